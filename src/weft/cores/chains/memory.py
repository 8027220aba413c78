"""The chains core's own records in the journal, and back.

    DONE   a message of the inbox has ended
    WAITS  a message of the inbox is kept for a client of this name, which has to confirm it or to come back
    INBOX  one message of the inbox that has not ended, for snapshots
    TAGS   tags of one client's sends: for snapshots, and where no other record has them
    HANDED a message of the inbox was forwarded or journaled, and has not ended
    REMEMBERED, FORGOTTEN   a confirming reader for which messages are kept while it is away, or no longer
    EMITTED a result of a filter, and the messages of the inbox it was made of
    GAVEUP a message of the inbox is not kept for this reader any more, but for others

Replaying a record that a snapshot contains already has no effect.
"""

from typing import Any, Final

import msgspec

from weft.base.mail import OUTBOX, Mail, of_record
from weft.base.memories import Memories
from weft.base.records import StreamRecord

CORE: Final = "chains"


class Done(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The message with this identity has ended here."""

    origin: bytes
    era: int
    sequence: int


class Waits(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The message with this identity is kept for this client."""

    origin: bytes
    era: int
    sequence: int
    name: str
    confirms: bool


class Handed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The message with this identity was forwarded or journaled, and is still open for later links."""

    origin: bytes
    era: int
    sequence: int


class InboxKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One open message: its record of the journal, and the clients it is kept for."""

    origin: bytes
    era: int
    sequence: int
    at: int
    received: int
    type: str
    payload: bytes
    attributes: dict[str, Any]
    waits: list[tuple[str, bool]]
    is_handed: bool = False
    counted_in: list[tuple[str, int, bytes]] = []


class Remembered(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Messages whose type matches the pattern are kept for the reader of this name while it is away."""

    name: str
    type: str
    at: int | str
    """Its place in the chain, as it was asked for."""
    away_ms: int
    """How long it may stay away, ms."""


class Forgotten(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Messages are no longer kept for this reader."""

    name: str
    type: str


class GaveUp(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The message with this identity is no longer kept for the reader of this name."""

    origin: bytes
    era: int
    sequence: int
    name: str


class Emitted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A filter's result, and the messages whose share in it is done (CHN-033c)."""

    filter: str
    start: int
    """Start of the window."""
    group: bytes
    taken: list[tuple[bytes, int, list[int]]]
    """Origin, era, numbers."""
    era: int
    sequence: int
    at: int
    type: str
    payload: bytes
    attributes: dict[str, Any]

    def mail(self, node: bytes) -> Mail:
        """The result. Its own record is the next one, unless a crash came between."""
        content = self.type, self.payload, self.attributes
        return of_record(StreamRecord(OUTBOX, node, self.era, self.sequence, self.at, self.at, *content))


class TagsKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Tags of one client, oldest first, with their final status."""

    client: bytes
    tags: list[tuple[int, str]]


Memory = Done | Waits | InboxKept | TagsKept | Handed | Remembered | Forgotten | GaveUp | Emitted

KINDS: Final[dict[int, type[Memory]]] = {
    1: Done,
    2: Waits,
    3: InboxKept,
    4: TagsKept,
    5: Handed,
    6: Remembered,
    7: Forgotten,
    8: GaveUp,
    9: Emitted,
}
_MEMORIES: Final = Memories[Memory](CORE, KINDS)
to_record = _MEMORIES.to_record
from_record = _MEMORIES.from_record
