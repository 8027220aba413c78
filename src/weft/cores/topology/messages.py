"""Orders and events of the topology core, and its wire messages."""

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
    "NodePromoted",
    "NodeSeen",
    "NodeUnassigned",
    "NodeVanished",
    "NodesStopped",
    "NoteDiverged",
    "NoteLeaving",
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
    "VotersRecalled",
    "Wtf",
]


class TopologySettings(msgspec.Struct, frozen=True, kw_only=True):
    """This node's place according to its file, and the times of the fleet."""

    fleet: str
    name: str
    level: str
    """`root`, `collector`, `sensor`; `auto`: decided by the root."""
    parent: str = ""
    """A node's name, found by its beacon; or `host:port` of its port block; empty: none, or assigned by a root."""
    base_port: int
    host: str = "127.0.0.1"
    """Address at which other nodes reach this node (TOP-004)."""
    beacons: bool = True
    join: tuple[str, ...] = ()
    """Endpoints to ask for a place where no beacon arrives (TOP-006)."""
    labels: dict[str, str] = {}
    heartbeat_ns: int = 2 * SECOND
    dead_after: int = 5
    quorum: str = "majority"
    """`alone`: an acting root of a fleet of two voters may become root (REC-014)."""
    calls: bool = True
    """Whether this node takes part in MARCO, POLO and elections; a fleet of static parents needs none of them."""
    has_store: bool = False
    """Whether its beacon says that it has the shared store."""
    start_beats: int = limits.START_BEATS
    """Beats that a root without its disk waits for nodes that know more (REC-016)."""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: changed pairs of the replicated store: `/TOPO/` and groups of `/CONFIG/`; None: deleted."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number applied: what this node has (REC-010)."""
    digest: bytes = b""
    """Of all pairs at that number (FLD-003)."""
    is_partial: bool = False
    """Whether this node lacks a part of the configuration."""


class LearnHolds(msgspec.Struct, frozen=True, gc=False):
    """Order: the number of the replicated store, even if no pair has changed."""

    number: int
    digest: bytes


class NoteDiverged(msgspec.Struct, frozen=True, gc=False):
    """Order: the parent has other pairs at this node's number.

    Until the next snapshot this node may not vote (FLD-003).
    """


Electorates = tuple[tuple[int, tuple[tuple[bytes, str], ...]], ...]
"""Earlier sets of voters that may still elect a root: the number of the write that ended each, its nodes and their endpoints."""


class NoteLeaving(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: voters that are removed, each with the number of the write, while no majority has it (REC-015)."""

    voters: tuple[tuple[bytes, int], ...]
    electorates: Electorates = ()


class VotersRecalled(msgspec.Struct, frozen=True, gc=False):
    """Event: a root that has started again still counts these voters, which it had removed: see `NoteLeaving`."""

    voters: tuple[tuple[bytes, int], ...]
    electorates: Electorates = ()


class RecordWritten(msgspec.Struct, frozen=True, gc=False):
    """Order: the records of `RecordsWanted(ticket)` are durable; `code` 0, or a code of WTF."""

    ticket: int
    code: int = 0


class ParentIs(msgspec.Struct, frozen=True, gc=False):
    """Order: state of the parent: `heard`, `quiet` (for D/2) or `silent` (for D, repeated every D)."""

    state: str


class LinkIs(msgspec.Struct, frozen=True, gc=False):
    """Order: whether the parent has welcomed this node on the node link and answers."""

    is_up: bool


class ChildIs(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: a child's node link has ended (`lost`) or is back (`joined`) (REC-003)."""

    node: bytes
    state: str


class AcceptLoss(msgspec.Struct, frozen=True):
    """Order: a person has accepted what damage took from the journal (`weft journal accept-loss`)."""


class StopNodes(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: stop a group, or with an empty one all nodes; answered by `NodesStopped` (TOP-017)."""

    ticket: int
    group: str = ""


class ResetRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: forget the followed root and the promises; answered by `RootReset(ticket)` (FLD-011)."""

    ticket: int


class RootReset(msgspec.Struct, frozen=True, gc=False):
    """Answer: what was forgotten, and what this node does now: `leads`, `becomes-root`, `seeks`."""

    root: str
    """Endpoint of the root that was followed; empty: none."""
    epoch: int
    """The highest epoch that it had followed or promised; -1: none."""
    now: str


class NodesStopped(msgspec.Struct, frozen=True, gc=False):
    """Answer: the nodes that got the order to stop, and those that did not answer."""

    stopped: tuple[str, ...]
    missing: tuple[str, ...]


class PlaceAssigned(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has another place in the tree (TOP-012)."""

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
    """The topics to replicate (CFG-030)."""


class PlaceLost(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has lost its place: `stopped`, `unknown`, `reset`."""

    why: str


class RootKnown(msgspec.Struct, frozen=True, gc=False):
    """Event: the root of record is known: this node itself, or from its assignment or configuration."""

    node: bytes
    epoch: int


class RootTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: this node is root now: by its file, by election, or acting without a majority (REC-010..014)."""

    epoch: int
    is_acting: bool
    votes: int
    voters: int


class RootLeft(msgspec.Struct, frozen=True, gc=False):
    """Event: this node is no longer root: there is one of a higher epoch (REC-015)."""

    epoch: int
    root: str
    """Endpoint of the new root; empty: not known yet."""


class RecordsWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: the root wants these records written; answered by `RecordWritten(ticket)`. Empty value: delete."""

    ticket: int
    writes: tuple[tuple[str, bytes], ...]


class NodeJoined(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has got a place."""

    name: str
    endpoint: str
    group: str
    level: str
    parent: str


class NodeLeft(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node was told to stop, or a dead collector was replaced: `stopped`, `dead`."""

    name: str
    endpoint: str
    why: str


class NodePromoted(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node becomes a collector of its group, which has too many children or a dead collector."""

    name: str
    endpoint: str
    group: str
    parent: str


class NodeUnassigned(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node matches no group; told once (TOP-010)."""

    name: str
    endpoint: str


class ElectionCalled(msgspec.Struct, frozen=True, gc=False):
    """Event: the root is silent, and this node asks the voters."""

    propose: int
    attempt: int


class VotePromised(msgspec.Struct, frozen=True, gc=False):
    """Event: nodes that may still become root by this node's vote: epoch and node of each durable promise (REC-011)."""

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
    """Event: an older live node of this fleet has our name and has confirmed it; this node has to stop."""

    name: str
    node: bytes
    """The UUID of the older node."""


class TwinSuspected(msgspec.Struct, frozen=True, gc=False):
    """Event: a datagram claims that an older node has our name, without proof; this node goes on (FLD-010)."""

    name: str
    endpoint: str
    """The block of ports that the datagram names."""


class NodeSeen(msgspec.Struct, frozen=True, gc=False):
    """Event: a new node of this fleet was heard."""

    name: str
    level: str


class StoreSeen(msgspec.Struct, frozen=True, gc=False):
    """Event: a node with the shared store was heard, for the first time or at a new endpoint."""

    endpoint: str
    """Of its block of ports."""


class NodeVanished(msgspec.Struct, frozen=True, gc=False):
    """Event: a known node left, or was not heard for four beacons."""

    name: str
    level: str
