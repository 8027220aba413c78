"""The topology core's records in the journal, and back.

    PROMISED   the node that got this node's vote in an epoch; durable before the vote is sent (REC-011)
    ROOT       the root of record, as this node knows it
    PLACE      this node's last assignment, so that a restarted node knows its place at once
    CANDIDATES every promise that may still make a root, the last one and earlier ones; durable with the promise
    GIVEN_UP   the voters that a root has given up and not heard since, with the voters of that time (REC-011)
    LEAVING    the voters that a root has removed while no majority knows of it: they still count (REC-015)
    STARTS     how often a member has started: its `incarnation` (TOP-007)

The last record of each kind counts.
"""

from typing import Final

import msgspec

from weft.base.memories import Memories
from weft.cores.topology.messages import Electorates

CORE: Final = "topology"


class Promised(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The vote of this node in `epoch` belongs to `node`."""

    epoch: int = -1
    node: bytes = b""


class Root(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The root of record; epoch -1: none is known."""

    epoch: int = -1
    node: bytes = b""
    """Empty: not known yet."""
    endpoint: str = ""
    name: str = ""


class Place(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An assignment (TOP-012); without a parent: none."""

    parent: str = ""
    parent_name: str = ""
    root: str = ""
    level: str = "leaf"
    group: str = ""
    tier: int = 0
    epoch: int = 0
    alternates: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    """Groups at or below a collector, whose configuration it serves (CFG-030)."""
    is_acting: bool = False
    """Assigned by an acting root (REC-014)."""


class Starts(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """So many starts."""

    count: int = 0


class Candidates(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Promised votes of this node that may still make a root: a later promise does not cancel an earlier one."""

    promises: tuple[tuple[int, bytes], ...] = ()
    """Epoch and node; for each node only the last."""

    def plus(self, epoch: int, node: bytes, followed: int) -> "Candidates":
        """Add a promise.

        Drop those of epochs up to `followed`, since this node follows a root of that epoch or a later one.
        """
        kept = [each for each in self.promises if each[0] > followed and each[1] != node]
        return Candidates((*kept, (epoch, node)))


class GivenUp(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Voters that this root counts as dead and has not heard since: they may still vote, as the voters of that time."""

    epoch: int = -1
    places: tuple[str, ...] = ()
    """Their endpoints."""
    electorates: tuple[tuple[str, ...], ...] = ()
    """The sets of voters, without this root, since the first of the unreachable ones was lost."""


class Leaving(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Voters that the root of this epoch has removed, while no majority has the write that did: they still count."""

    epoch: int = -1
    voters: tuple[tuple[bytes, int], ...] = ()
    """Node, and number of the write."""
    electorates: Electorates = ()


Memory = Promised | Root | Place | Starts | Candidates | GivenUp | Leaving
KINDS: Final[dict[int, type[Memory]]] = {
    1: Promised,
    2: Root,
    3: Place,
    4: Starts,
    5: Candidates,
    6: GivenUp,
    7: Leaving,
}
_MEMORIES: Final = Memories[Memory](CORE, KINDS)
to_record = _MEMORIES.to_record
from_record = _MEMORIES.from_record
