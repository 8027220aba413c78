"""Messages between store nodes, typed: updates, infos, pings. `bus` has their bytes.

`node`, `tick` and `tock` of an info or ping are the sender's.
"""

import msgspec

from weft.base.changes import Chain, Event, Link
from weft.base.ranges import RangeSet

Ticks = dict[str, RangeSet]
"""Sets of ticks by node."""


class Update(msgspec.Struct, frozen=True, gc=False):
    """A change, sent by its author, or repeated for a node that missed it."""

    event: Event
    sender: Link | None = None
    """Who repeats it, and its tick; None: the author itself sends it."""
    wants_ack: bool = False


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has, lacks, or wants known; None: nothing about that."""

    node: str
    tick: int
    tock: int
    ticks: dict[str, int] | None = None
    """The highest tick of each node that the sender has heard of."""
    missing: Ticks | None = None
    known: Ticks | None = None
    """Ticks of changes that later changes of their entries have replaced; read also as `superseded`."""
    deleted: Ticks | None = None
    have: Ticks | None = None
    node_drop: tuple[str, ...] | None = None
    reason: Chain | None = None
    """The ping chain of the side that lost."""
    prev: Chain | None = None
    """The chain of the ping that is answered."""


class Ping(msgspec.Struct, frozen=True, gc=False):
    """The sender is there; its chain is itself and whom it heard last (PNG-010). Ticks of 0 stand for none."""

    chain: Chain
    tock: int

    @property
    def node(self) -> str:
        return self.chain.links[0][0]

    @property
    def tick(self) -> int:
        return self.chain.links[0][1]


Message = Update | Info | Ping


class Publication(msgspec.Struct, frozen=True, gc=False):
    """Bytes for a topic (`update info ping del wping`), made once for all receivers."""

    topic: str
    payload: bytes
    has_sum: bool = False
    """Whether it has a checksum: only over the mesh, and only for peers that read it (FLD-030)."""
