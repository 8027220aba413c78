"""The carrier's own records in the journal, and back.

    SAFE   everything up to an lsn is durable at the root; at a root: in the lake
    HELD   hop numbers of a child's era are durable here; stands behind their records, in one Persist
    CHILD  all that is known of one child, for snapshots
    SEEN   numbers of origins that the root has, for snapshots
    SPOOL  as SAFE, for snapshots
    ROOTED what follows as SEEN is what this node has as root of an epoch
    GIVEN  as SAFE, but given up: the announcements of what is lost stand before it, in one Persist

Replaying a record that a snapshot contains already has no effect.
"""

from typing import Final

import msgspec

from weft.base.memories import Memories

CORE: Final = "carrier"


class Safe(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`lsn`: all carried records up to it are safe, at a root drained; then `records` of `bytes` are not."""

    lsn: int
    records: int
    bytes: int


class Held(msgspec.Struct, array_like=True, frozen=True, gc=False):
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
    """One child as of `lsn`."""

    node: bytes
    lsn: int
    eras: list[EraKept]


class SeenKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Numbers of a stream that the root has, as a WV1 version vector."""

    stream: int
    vector: bytes


class SpoolKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`Safe` as of `seen_lsn`, the last record that the journal had."""

    lsn: int
    records: int
    bytes: int
    seen_lsn: int


class GivenUp(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Everything up to `lsn` is safe or given up; then `records` of `bytes` are not."""

    lsn: int
    records: int
    bytes: int


class Rooted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What was seen before does not count any more: from here on this node is the root of `epoch`."""

    epoch: int


Memory = Rooted | Safe | Held | ChildKept | SeenKept | SpoolKept | GivenUp

KINDS: Final[dict[int, type[Memory]]] = {
    1: Safe,
    2: Held,
    3: ChildKept,
    4: SeenKept,
    5: SpoolKept,
    6: GivenUp,
    7: Rooted,
}
_MEMORIES: Final = Memories[Memory](CORE, KINDS)
to_record = _MEMORIES.to_record
from_record = _MEMORIES.from_record
