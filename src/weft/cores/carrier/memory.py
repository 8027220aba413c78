"""The carrier's own records in the journal, and back.

    SAFE   everything up to an lsn is durable at the root; at a root: in the lake
    HELD   hop numbers of a child's era are durable here; stands behind their records, in one Persist
    CHILD  all that is known of one child, for snapshots
    SEEN   numbers of origins that the root has, for snapshots
    SPOOL  as SAFE, for snapshots
    ROOTED what follows as SEEN is what this node has as root of an epoch
    GIVEN  as SAFE, but given up: the announcements of what is lost stand before it, in one Persist
    MET    mail of these identities has been here; stands beside what became of it, in one Persist
    METS   all that is known of one origin's era, for snapshots
    HOME   mail that was to go up, up to an lsn, was given to the `in` chain of this root
    DOUBT  what damage of the journal has taken was asked for again: of children, or of the lake

Replaying a record that a snapshot contains already has no effect.
"""

from typing import Final

import msgspec

from weft.base.memories import Memories

CORE: Final = "carrier"


class Safe(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Everything carried up to `lsn` is safe (at a root: drained). Behind it are `records` of `bytes`."""

    lsn: int
    records: int
    bytes: int


class Received(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Hop numbers of `node` in `era` are held up to `upto`."""

    node: bytes
    era: int
    upto: int


class EraKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One start of a child: what we hold, what of it is safe, and `(upto, lsn)` of what will be."""

    era: int
    upto: int
    safe: int
    marks: list[tuple[int, int]]


class ChildKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """All that is known of one child, as of `lsn`."""

    node: bytes
    lsn: int
    eras: list[EraKept]


class SeenKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The numbers of a stream that the root has, as a WV1 version vector."""

    stream: int
    vector: bytes


class SpoolKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`Safe` as of `seen_lsn`, the last record that the journal had."""

    lsn: int
    records: int
    bytes: int
    seen_lsn: int


class GivenUp(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Everything up to `lsn` is safe or given up. Behind it are `records` of `bytes`."""

    lsn: int
    records: int
    bytes: int


class Rooted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """From here on this node is the root of `epoch`; SEEN records before this one no longer count."""

    epoch: int


class Met(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Mail with these sequences of `origin` in `era` has been here (CHN-035)."""

    origin: bytes
    era: int
    numbers: list[int]


class MetKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The window of one origin's era: its highest sequence, and big-endian a bit for each number from its lowest on."""

    origin: bytes
    era: int
    high: int
    bits: bytes


class Home(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """This root has taken the mail in its outbox up to `lsn` itself, as its own parent; it does not go up."""

    lsn: int


class Doubted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The records from `first_lsn` up to but not including `end_lsn` were lost; what they held was asked for again.

    A child's numbers that do not end before them are not held any more.
    """

    first_lsn: int
    end_lsn: int


Memory = Rooted | Safe | Received | ChildKept | SeenKept | SpoolKept | GivenUp | Met | MetKept | Home | Doubted

KINDS: Final[dict[int, type[Memory]]] = {
    1: Safe,
    2: Received,
    3: ChildKept,
    4: SeenKept,
    5: SpoolKept,
    6: GivenUp,
    7: Rooted,
    8: Met,
    9: MetKept,
    10: Home,
    11: Doubted,
}
PLACED: Final = frozenset(kind for kind, memory in KINDS.items() if memory in (Received, GivenUp))
"""Kinds whose place in the journal is needed: what they name ends there."""
_MEMORIES: Final = Memories[Memory](CORE, KINDS)
to_record = _MEMORIES.to_record
from_record = _MEMORIES.from_record
