"""Journal records: what a node keeps (JRN-010 to JRN-014).

They are MessagePack arrays whose first item is the tag. This module says what they mean; `wire.journal` turns
them into bytes and back. All times are wall-clock nanoseconds.
"""

from enum import IntEnum
from typing import Any, Final

import msgspec

from weft.base.identity import Origin


class Stream(IntEnum):
    """What a record of tag 2 belongs to; the lake has a table for each."""

    SAMPLES = 1
    MESSAGES = 2
    LOGS = 3
    EVENTS = 4
    CATALOG = 5
    CONFIGURATION = 6
    STORE = 7
    DOCUMENTS = 8


class CoreRecord(msgspec.Struct, tag=1, array_like=True, frozen=True, gc=False):
    """A core's own memory; nobody else reads it."""

    core: str
    kind: int
    data: bytes


class StreamRecord(msgspec.Struct, tag=2, array_like=True, frozen=True, gc=False):
    """Something worth keeping, numbered by its origin: it travels up and ends as rows of the lake.

    A record of `samples` may be a whole batch (MEA-022): then `sequence` numbers its first row and
    `attributes["n"]` says how many rows it holds.
    """

    stream: int
    origin: Any  # bytes (16, a node) or text of at most 128 bytes; msgspec knows no union of the two
    era: int | None
    sequence: int
    at: int
    received: int
    key: str
    payload: bytes
    attributes: dict[str, Any]

    @property
    def source(self) -> Origin:
        return Origin(self.origin, self.era)

    @property
    def last(self) -> int:
        """The last sequence that this record holds."""
        return self.sequence + int(self.attributes.get("n", 1)) - 1


class LostRecord(msgspec.Struct, tag=3, array_like=True, frozen=True, gc=False):
    """Numbers that will never come, announced by the node that lost them: so the hole is known, and never blocks."""

    stream: int
    origin: Any
    era: int | None
    first: int
    last: int
    why: str

    @property
    def source(self) -> Origin:
        return Origin(self.origin, self.era)


class SafeRecord(msgspec.Struct, tag=4, array_like=True, frozen=True, gc=False):
    """All numbers up to `upto` are durable at the root."""

    stream: int
    origin: Any
    era: int | None
    upto: int


class DamageRecord(msgspec.Struct, tag=5, array_like=True, frozen=True, gc=False):
    """Found damaged at recovery: records `first_lsn` to before `end_lsn` of `file` cannot be read."""

    first_lsn: int
    end_lsn: int
    file: str
    why: str


class EraRecord(msgspec.Struct, tag=6, array_like=True, frozen=True, gc=False):
    """First record of an origin: which era came before it, and where that one ended."""

    stream: int
    origin: Any
    era: int
    era_before: int
    last_before: int


class UnknownRecord:
    """A record with a tag that this version does not know: kept as it is, byte for byte (JRN-014)."""

    __slots__ = ("raw", "tag")

    def __init__(self, tag: int, raw: bytes) -> None:
        self.tag, self.raw = tag, raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownRecord) and self.raw == other.raw

    def __hash__(self) -> int:
        return int.from_bytes(self.raw[:8], "big")

    def __repr__(self) -> str:
        return f"UnknownRecord(tag={self.tag}, raw={self.raw!r})"


Record = CoreRecord | StreamRecord | LostRecord | SafeRecord | DamageRecord | EraRecord | UnknownRecord
Carried = StreamRecord | LostRecord | EraRecord
"""What goes up the tree; other records stay on the node."""
CARRIED: Final = (StreamRecord, LostRecord, EraRecord)
"""The same for `isinstance`, which looks through a tuple in a third of the time."""

Entry = tuple[int, Record]
"""A record behind its lsn: its number in the node's journal, from 1."""
