"""The configuration core's own records in the journal, and back.

    APPLIED  one write of the root, applied here
    WROTE    one write of our own, as root
    WIPED    all pairs are deleted, because a lower number was heard
    BEGUN    a new snapshot comes: earlier parts that were not adopted no longer count
    PART     pairs, absences and last writes in which the snapshot differs from what was here
    ADOPTED  the snapshot is complete: only now its parts count
    TOOK     this node is the root, and writes from that number on
    NOTED    the last write of a chain, seen but not applied
    OLD      writes that can be listed and undone, for the journal's snapshots
    KEPT     the end of what `condense` yields: BEGUN, PART, OLD, KEPT

Replaying records that a snapshot contains already has no effect: each states the new state, not the change.
"""

from typing import Final

import msgspec

from weft.base.memories import Memories
from weft.base.records import CoreRecord
from weft.wire.replication import KvPack, KvSync

CORE: Final = "configuration"


class Last(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last write of a chain (CFG-040)."""

    key: str
    """Empty: not known."""
    number: int
    prev: int | None = None
    is_deleted: bool = False


class Applied(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A write of the root."""

    key: str
    number: int
    value: bytes
    prev: int | None
    expires_at: int = 0
    """Wall ns; 0: never."""


class Wrote(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An own write: like `Applied`, with its author and time (wall ns)."""

    key: str
    number: int
    value: bytes
    prev: int | None
    expires_at: int
    who: str
    at: int


class Wiped(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Everything was deleted; `seen`: the highest number that was here."""

    seen: int


class Begun(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Parts of a snapshot follow."""

    is_whole: bool = False
    """They replace everything; otherwise they change what is here."""


class Part(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """New pairs, and keys that are gone."""

    pairs: list[KvSync]
    gone: list[str] = []
    lasts: list[tuple[str, Last]] = []
    """By chain."""
    lasts_gone: list[str] = []
    expiries: list[tuple[str, int]] = []
    """Keys with an end, and when: wall ns."""


class Adopted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`number`: the highest of the snapshot's ends; `floors`: the end of each topic."""

    number: int
    floors: list[tuple[str, int]]


class Took(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first number that this root will write."""

    first: int


class Noted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last write of a chain that was seen but not applied."""

    last: Last


class Old(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A piece of the history: (number, who, at, key, old, new)."""

    writes: list[tuple[int, str, int, str, bytes, bytes]]


class Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The other remembered state."""

    number: int
    seen: int
    floors: list[tuple[str, int]]
    wrote_from: int
    history_from: int
    is_history_cut: bool = False
    """Whether writes behind `history_from` are lost, and none is known behind these yet."""


Memory = Applied | Wrote | Wiped | Begun | Part | Adopted | Took | Noted | Old | Kept

KINDS: Final[dict[int, type[Memory]]] = {
    1: Applied,
    2: Wrote,
    3: Wiped,
    4: Begun,
    5: Part,
    6: Adopted,
    7: Took,
    8: Noted,
    9: Old,
    10: Kept,
}
_MEMORIES: Final = Memories[Memory](CORE, KINDS)
_PART: Final = 5
_ONE_FIELD: Final = b"\x91"  # an array of one: the other fields have their defaults
to_record = _MEMORIES.to_record
from_record = _MEMORIES.from_record


def part_of(pack: KvPack) -> CoreRecord:
    """The record of a `Part` with these pairs: they are journaled as they came."""
    return CoreRecord(CORE, _PART, _ONE_FIELD + pack.body)
