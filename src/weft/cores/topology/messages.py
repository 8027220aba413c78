"""What the topology core hears and says."""

import msgspec

from weft.base.now import SECOND
from weft.cores.topology import limits
from weft.wire.beacon import Beacon
from weft.wire.discovery import Announcement, Control
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Wtf

__all__ = [
    "Announcement",
    "Answer",
    "Asked",
    "Beacon",
    "ChildIs",
    "Control",
    "ElectionCalled",
    "LearnHolds",
    "LearnPairs",
    "LinkIs",
    "NameTaken",
    "NodeJoined",
    "NodeLeft",
    "NodeSeen",
    "NodeUnassigned",
    "NodeVanished",
    "NodesStopped",
    "NoteDiverged",
    "ParentAssigned",
    "ParentIs",
    "ParentMoved",
    "PlaceAssigned",
    "PlaceLost",
    "RecordWritten",
    "RecordsWanted",
    "ResetRoot",
    "RootKnown",
    "RootLeft",
    "RootReset",
    "RootTaken",
    "Stop",
    "StopNodes",
    "StoreSeen",
    "TopologySettings",
    "TwinSuspected",
    "VotePromised",
    "Wtf",
]


class TopologySettings(msgspec.Struct, frozen=True, kw_only=True):
    """This node's place, as its own file says it, and the times of the fleet."""

    fleet: str
    name: str
    level: str
    """`root`, `collector`, `sensor`; `auto`: where the root puts it."""
    parent: str = ""
    """A node's name, found by its beacon; or `host:port` of its port block; empty: none, or assigned."""
    base_port: int
    host: str = "127.0.0.1"
    """Under which others reach this node (TOP-004)."""
    beacons: bool = True
    join: tuple[str, ...] = ()
    """Endpoints to call in at, for whom no beacon reaches (TOP-006)."""
    labels: dict[str, str] = {}
    heartbeat_ns: int = 2 * SECOND
    dead_after: int = 5
    quorum: str = "majority"
    """`alone`: an acting root of a fleet of two voters may become root (REC-014)."""
    calls: bool = True
    """Whether this node calls and is called: MARCO, POLO, elections; a fleet of static parents needs none of it."""
    has_store: bool = False
    """Whether its beacon says that it holds the shared store."""
    start_beats: int = limits.START_BEATS
    """Beats that a root without its disk waits for who knows more (REC-016)."""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: pairs of the replicated store have changed: `/TOPO/` and groups of `/CONFIG/`; None: deleted."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number applied: what this node holds (REC-010)."""
    digest: bytes = b""
    """Of all pairs at that number (FLD-003)."""
    is_partial: bool = False
    """Whether this node lacks a part of the configuration."""


class LearnHolds(msgspec.Struct, frozen=True, gc=False):
    """Order: the replicated store is at that number, though no pair may have changed."""

    number: int
    digest: bytes


class NoteDiverged(msgspec.Struct, frozen=True, gc=False):
    """Order: the parent has other pairs at this node's number; until the next snapshot this node has no vote (FLD-003)."""


class RecordWritten(msgspec.Struct, frozen=True, gc=False):
    """Order: what was wanted by `RecordsWanted(ticket)` is durable; `code` 0, or one of WTF."""

    ticket: int
    code: int = 0


class ParentIs(msgspec.Struct, frozen=True, gc=False):
    """Order: how the parent is heard: `heard`, `quiet` (for D/2) or `silent` (for D, said again every D)."""

    state: str


class LinkIs(msgspec.Struct, frozen=True, gc=False):
    """Order: whether the node link to the parent is up: the parent has welcomed this node and answers."""

    is_up: bool


class ChildIs(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: the node link of a child has ended (`lost`) or is there again (`joined`) (REC-003)."""

    node: bytes
    state: str


class AcceptLoss(msgspec.Struct, frozen=True):
    """Order: a person has accepted what damage took from the journal (`weft journal accept-loss`)."""


class StopNodes(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: stop a group, or with an empty one all nodes; answered by `NodesStopped` (TOP-017)."""

    ticket: int
    group: str = ""


class ResetRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: forget which root this node follows, and its promises; answered by `RootReset(ticket)` (FLD-011)."""

    ticket: int


class RootReset(msgspec.Struct, frozen=True, gc=False):
    """Answer: what was forgotten, and what this node does now: `leads`, `becomes-root`, `seeks`."""

    root: str
    """Endpoint of the root that it followed; empty: none."""
    epoch: int
    """The highest that it had followed or promised; -1: none."""
    now: str


class NodesStopped(msgspec.Struct, frozen=True, gc=False):
    """Answer: who was told to stop, and who did not answer."""

    stopped: tuple[str, ...]
    missing: tuple[str, ...]


class PlaceAssigned(msgspec.Struct, frozen=True, gc=False):
    """Event: this node's place in the tree is another one now (TOP-012)."""

    parent: str
    """Endpoint of the parent's port block."""
    parent_name: str
    """Empty: not known."""
    root: str
    level: str
    """`collector` or `sensor`."""
    group: str
    tier: int
    """Of this node: the root is 0."""
    epoch: int
    topics: tuple[str, ...]
    """What to replicate (CFG-030)."""


class PlaceLost(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has no place any more: `stopped`, `unknown`, `reset`."""

    why: str


class RootKnown(msgspec.Struct, frozen=True, gc=False):
    """Event: this is the root of record now, by this node's own office, its assignment, or its configuration."""

    node: bytes
    epoch: int


class RootTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: this node is the root now: by its file, by election, or acting without a majority (REC-010..014)."""

    epoch: int
    is_acting: bool
    votes: int
    voters: int


class RootLeft(msgspec.Struct, frozen=True, gc=False):
    """Event: this node is the root no longer: one of a higher epoch is (REC-015)."""

    epoch: int
    root: str
    """Endpoint of the new one; empty: not known yet."""


class RecordsWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: the root's tree wants these written; answered by `RecordWritten(ticket)`. Empty value: delete."""

    ticket: int
    writes: tuple[tuple[str, bytes], ...]


class NodeJoined(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has a place that it had not before."""

    name: str
    endpoint: str
    group: str
    level: str
    parent: str


class NodeLeft(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node is told to stop, or its collector is replaced because it is dead: `stopped`, `dead`."""

    name: str
    endpoint: str
    why: str


class NodeUnassigned(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: no group wants this node; told once (TOP-010)."""

    name: str
    endpoint: str


class ElectionCalled(msgspec.Struct, frozen=True, gc=False):
    """Event: the root is silent, and this node asks the voters for their votes."""

    propose: int
    attempt: int


class VotePromised(msgspec.Struct, frozen=True, gc=False):
    """Event: who may still become the root with this node's vote: epoch and node of each promise, durable (REC-011)."""

    promises: tuple[tuple[int, bytes], ...]


class ParentAssigned(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent is at this endpoint (`host:port` of its node link)."""

    endpoint: str
    name: str


class ParentMoved(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent of that name is now found at another endpoint."""

    endpoint: str
    name: str


class NameTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: an older live node of this fleet has our name, and has said so itself; this node has to end."""

    name: str
    node: bytes
    """The UUID of the one who had the name before."""


class TwinSuspected(msgspec.Struct, frozen=True, gc=False):
    """Event: a datagram says that an older node has our name, and nothing proves it; this node goes on (FLD-010)."""

    name: str
    endpoint: str
    """Of the block of ports that the datagram speaks of."""


class NodeSeen(msgspec.Struct, frozen=True, gc=False):
    """Event: a node of this fleet is heard that was not known."""

    name: str
    level: str


class StoreSeen(msgspec.Struct, frozen=True, gc=False):
    """Event: a node that holds the shared store is heard, there or now elsewhere."""

    endpoint: str
    """Of its block of ports."""


class NodeVanished(msgspec.Struct, frozen=True, gc=False):
    """Event: a known node left, or has not been heard for four beacons."""

    name: str
    level: str
