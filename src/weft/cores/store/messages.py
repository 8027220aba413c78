"""Settings, orders, work and events of the store core. Its wire messages stand in `weft.wire.store`."""

from typing import Any, Final

import msgspec

from weft.base.changes import Event
from weft.base.now import SECOND


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The node's identity in the store, and `[store]` of its file (docs/store.md)."""

    name: str
    """The node's name in the store (STO-001)."""
    fabric: str = "weft"
    found: bytes | None = None
    """The root's value, packed: a node without data that hears no other for three clocks creates the store with it."""
    boot: int = 0
    """The boot of this start: two nodes with one name differ in it (LNK-022)."""
    endpoint: str = ""
    """`host:port` of the node's block of ports, for the mesh; empty: there is no mesh."""
    client_port: int = 0
    peers: tuple[str, ...] = ()
    """The same of other nodes, which then need no beacon."""
    hostmap: dict[str, str] = {}
    """The client port of a foreign node, by name (CLN-022)."""
    dialects: tuple[str, ...] = ("seed",)
    keys: str = "seed"
    clock_ns: int = 5 * SECOND
    ping_length: int = 4
    chain_length: int = 5
    vary: int = 3
    cycle_ns: int = 10 * SECOND
    """`cycle` and `gap` of the moat dialect's pings, `del_cycle` and `del_gap` of its deleters, ns."""
    gap_ns: int = 2 * SECOND
    del_cycle_ns: int = 100 * SECOND
    del_gap_ns: int = 10 * SECOND
    absent_max_ns: int = 0
    """A node away for this long is dropped (DEL-006), ns; 0: only by order."""
    serve_stale: bool = False
    is_open: bool = False
    """Whether clients of other machines are served; they may then do everything (ADM-003)."""


# Orders of the shell


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """Order: a link other than the mesh carries messages now: `mqtt`."""

    link: str


class LinkDown(msgspec.Struct, frozen=True, gc=False):
    """Order: that link is down."""

    link: str
    why: str = ""


class ClientCame(msgspec.Struct, frozen=True, gc=False):
    """Order: a client has connected to the client port."""

    peer: bytes
    """Unique within this start."""
    address: str
    is_local: bool


class ClientGone(msgspec.Struct, frozen=True, gc=False):
    """Order: its connection has ended."""

    peer: bytes


class ClientPaused(msgspec.Struct, frozen=True, gc=False):
    """Order: the client does not read: send it nothing more."""

    peer: bytes


class ClientResumed(msgspec.Struct, frozen=True, gc=False):
    """Order: the client reads again."""

    peer: bytes


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: unreadable data came."""

    channel: str
    peer: bytes
    code: str


class DialFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: a connection opened by this core has ended, or failed."""

    tag: bytes
    why: str


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: the journal has no room, or has room again (STO-032)."""

    is_full: bool


class PeerHeard(msgspec.Struct, frozen=True, gc=False):
    """Order: another node with the store was found at this block of ports, `host:port`."""

    endpoint: str


# Orders of people


class Found(msgspec.Struct, frozen=True, gc=False):
    """Order: create a new store with this node; `value` is the root's, packed. Reply: dict, or StoreRefused."""

    ticket: int
    value: bytes


class Show(msgspec.Struct, frozen=True, gc=False):
    """Order: show the store's state. `what`: state, members, conflicts, orphans. Reply: dict of plain data."""

    ticket: int
    what: str = "state"


class RestoreLoser(msgspec.Struct, frozen=True, gc=False):
    """Order: write the value that lost conflict `number` again. Reply: dict, or StoreRefused."""

    ticket: int
    number: int


class DropNode(msgspec.Struct, frozen=True, gc=False):
    """Order: drop a node that will not come back (DEL-006). Reply: dict, or StoreRefused."""

    ticket: int
    node: str


class SetDeleters(msgspec.Struct, frozen=True, gc=False):
    """Order: name the nodes that must have a deletion before it is forgotten (DEL-003); empty: all."""

    ticket: int
    nodes: tuple[str, ...]


class ReplayOrphans(msgspec.Struct, frozen=True, gc=False):
    """Order: write again what was set aside when this node was dropped (DEL-006). Reply: dict, or StoreRefused."""

    ticket: int


class AcceptTick(msgspec.Struct, frozen=True, gc=False):
    """Order: keep the node's name although no other node confirmed its ticks (STO-034)."""

    ticket: int


class CopyFile(msgspec.Struct, frozen=True, gc=False):
    """Order: take over a piece of a file's store, with its identities (ADM-013). Reply: dict, or StoreRefused."""

    ticket: int
    records: tuple[bytes, ...]
    """Complete records of the file, in its order."""
    is_first: bool
    is_last: bool
    is_whole: bool = False
    """With the last piece: changes that the file does not have are nowhere, so none need be asked for."""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye and send nothing more."""


class StoreRefused(msgspec.Struct, frozen=True, gc=False):
    """Reply: the order was not obeyed; `code` as in CLN-003."""

    code: str
    text: str


# Work of the shell


class Dial(msgspec.Struct, frozen=True, gc=False):
    """Work: connect to a client port, `host:port`; its messages come on `store-join` from `tag`.

    `DialFailed` reports its end; `Send("store-join", tag, request)` sends.
    """

    endpoint: str
    tag: bytes


class HangUp(msgspec.Struct, frozen=True, gc=False):
    """Work: end a connection: by `tag` on `store-join`, or by a client's `peer`."""

    peer: bytes


# Events


class StoreJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: the node has what the others have, and serves clients."""

    node: str
    tick: int
    entries: int


class ConflictResolved(msgspec.Struct, frozen=True, gc=False):
    """Event: two changes were made without knowledge of each other, and one was chosen (STO-013)."""

    number: int
    """Number of the conflict at this node."""
    path: str
    reason: str
    """`concurrent`, `id-clash` or `tock-regression`."""
    kept: dict[str, Any]
    lost: dict[str, Any]
    """Each loser: node, tick, tock, value or deleted, at, by."""


class StoreIncomplete(msgspec.Struct, frozen=True, gc=False):
    """Event: the node serves although changes are missing that no reachable node has; it goes on asking (HEA-012)."""

    missing: dict[str, list[Any]]
    """Ranges by node, as on the wire (COD-004)."""


class SplitFound(msgspec.Struct, frozen=True, gc=False):
    """Event: nodes that had been apart have met (PNG-012)."""

    peer: str
    has_won: bool
    """Whether this node's chain of pings continues."""


class SplitHealed(msgspec.Struct, frozen=True, gc=False):
    """Event: everything that was missing since the last split has arrived."""

    received: int
    took_ns: int


class EntryRepaired(msgspec.Struct, frozen=True, gc=False):
    """Event: an entry was written again with its value, since foreign servers may differ about it (STO-014)."""

    path: str
    tick: int
    why: str
    """`equal-tock` or `deletion`."""


class TombstonesPurged(msgspec.Struct, frozen=True, gc=False):
    """Event: deletions that all deleters have were forgotten (DEL-004)."""

    count: int


class StaleDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: an old copy of an entry that was deleted and forgotten is removed (DEL-004)."""

    path: str
    node: str
    tick: int
    value: Any


class ValueMistyped(msgspec.Struct, frozen=True, gc=False):
    """Event: another node's change does not fit the type of its path; it is kept nevertheless (ADM-010)."""

    path: str
    node: str
    tick: int
    why: str


class IdClash(msgspec.Struct, frozen=True, gc=False):
    """Event: two different changes have one identity; the greater is kept (STO-016)."""

    path: str
    node: str
    tick: int


class NameCollision(msgspec.Struct, frozen=True, gc=False):
    """Event: another live node has this node's name in the store; the newer one is refused (LNK-022)."""

    name: str
    peer: str


class NameChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: no node could confirm which changes under this name had been sent.

    The node continues under another name (STO-034).
    """

    before: str
    name: str
    tick: int


class NodeDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: a node was dropped; its later changes are refused everywhere (DEL-006)."""

    node: str
    tick: int


class ChangesOrphaned(msgspec.Struct, frozen=True, gc=False):
    """Event: this node had been dropped; its changes that no other node accepted are set aside (DEL-006)."""

    count: int


class StoreMalformed(msgspec.Struct, frozen=True, gc=False):
    """Event: a message was unreadable or not allowed; at most one event per sender in ten seconds (COD-007)."""

    peer: str
    code: str
    count: int
    """Number of such messages of this sender so far."""


class EchoMissing(msgspec.Struct, frozen=True, gc=False):
    """Event: the broker does not hand this node's own messages back (PNG-032)."""

    link: str


class NetworkOpen(msgspec.Struct, frozen=True, gc=False):
    """Event, at each start: clients beyond this machine need not identify themselves (LNK-030, ADM-003)."""

    what: str
    """`clients`, which may then do everything; and `moat`, where that dialect is used, which has no signatures."""


class StoreLinkUp(msgspec.Struct, frozen=True, gc=False):
    """Event: a link of the store carries messages."""

    link: str
    """`mesh` or `mqtt`."""
    peer: str


class StoreLinkDown(msgspec.Struct, frozen=True, gc=False):
    """Event: that link is down."""

    link: str
    peer: str
    why: str


class BecameReadOnly(msgspec.Struct, frozen=True, gc=False):
    """Event: no order is accepted any more."""

    why: str
    """`dropped`, `name-collision` or `unconfirmed`."""


class LimitExceeded(msgspec.Struct, frozen=True, gc=False):
    """Event: a limit is exceeded; changes of other nodes are accepted nevertheless."""

    what: str
    limit: int


JOURNALED: Final = (
    *(StoreJoined, ConflictResolved, StoreIncomplete, SplitFound, SplitHealed, EntryRepaired, TombstonesPurged),
    *(
        StaleDropped,
        ValueMistyped,
        IdClash,
        NameCollision,
        NameChanged,
        NodeDropped,
        ChangesOrphaned,
        StoreMalformed,
        EchoMissing,
    ),
    *(NetworkOpen, StoreLinkUp, StoreLinkDown, BecameReadOnly, LimitExceeded),
)
"""Events that the node writes into its stream of events (ADM-031)."""

# Within the core


class Change(msgspec.Struct, frozen=True, gc=False):
    """What a merge did to an entry (STO-011)."""

    outcome: str
    """`first newer conflict-taken`: readers see the event; `duplicate stale conflict-kept`: they do not."""
    event: Event
    other: Event | None
    """The change that stood there before, or still does."""

    @property
    def is_shown(self) -> bool:
        """Whether readers see the event from now on."""
        return self.outcome in ("first", "newer", "conflict-taken")
