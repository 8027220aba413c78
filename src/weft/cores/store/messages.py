"""What the store core hears and says: settings, orders, events, work. Its wire messages stand in `weft.wire.store`."""

from typing import Any, Final

import msgspec

from weft.base.changes import Event
from weft.base.now import SECOND


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who the node is in the store, and `[store]` of its file (docs/store.md)."""

    name: str
    """Of the node in the store (STO-001)."""
    fabric: str = "weft"
    found: bytes | None = None
    """The root's value, packed: who has nothing and hears of nobody for three clocks founds the store with it."""
    boot: int = 0
    """Of this start: two of one name differ in it (LNK-022)."""
    endpoint: str = ""
    """`host:port` of the node's block of ports, where the mesh finds it; empty: there is no mesh."""
    client_port: int = 0
    peers: tuple[str, ...] = ()
    """The same of others, which need no beacon."""
    hostmap: dict[str, str] = {}
    """Where the client port of a foreign node is, by its name (CLN-022)."""
    dialects: tuple[str, ...] = ("seed",)
    keys: str = "seed"
    clock_ns: int = 5 * SECOND
    ping_length: int = 4
    chain_length: int = 5
    vary: int = 3
    cycle_ns: int = 10 * SECOND
    """`cycle`, `gap` of the moat dialect's pings, `del_cycle`, `del_gap` of its deleters'."""
    gap_ns: int = 2 * SECOND
    del_cycle_ns: int = 100 * SECOND
    del_gap_ns: int = 10 * SECOND
    absent_max_ns: int = 0
    """A node that was away so long is dropped (DEL-006); 0: none ever is but by order."""
    serve_stale: bool = False
    is_open: bool = False
    """Whether clients of other machines are served, who may then do everything (ADM-003)."""


# Orders of the shell


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """Order: a link that is no mesh carries messages now: `mqtt`."""

    link: str


class LinkDown(msgspec.Struct, frozen=True, gc=False):
    """Order: it does so no more."""

    link: str
    why: str = ""


class ClientCame(msgspec.Struct, frozen=True, gc=False):
    """Order: a client has connected to the client port."""

    peer: bytes
    """Never used before in this start."""
    address: str
    is_local: bool


class ClientGone(msgspec.Struct, frozen=True, gc=False):
    """Order: its connection has ended."""

    peer: bytes


class ClientPaused(msgspec.Struct, frozen=True, gc=False):
    """Order: it does not read what it gets: say nothing more to it."""

    peer: bytes


class ClientResumed(msgspec.Struct, frozen=True, gc=False):
    """Order: it reads again."""

    peer: bytes


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: something came that cannot be read."""

    channel: str
    peer: bytes
    code: str


class DialFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: a connection that this core had opened has ended, or never began."""

    tag: bytes
    why: str


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: the journal has no room, or has room again (STO-032)."""

    is_full: bool


class PeerHeard(msgspec.Struct, frozen=True, gc=False):
    """Order: a node that holds the store, too, is heard at this block of ports, `host:port`."""

    endpoint: str


# Orders of people


class Found(msgspec.Struct, frozen=True, gc=False):
    """Order: be the first node of a new store; `value` is the root's, packed. Reply: dict, or StoreRefused."""

    ticket: int
    value: bytes


class Show(msgspec.Struct, frozen=True, gc=False):
    """Order: tell about the store. `what`: state, members, conflicts, orphans. Reply: dict of plain data."""

    ticket: int
    what: str = "state"


class RestoreLoser(msgspec.Struct, frozen=True, gc=False):
    """Order: write the value that lost conflict `number` again. Reply: dict, or StoreRefused."""

    ticket: int
    number: int


class DropNode(msgspec.Struct, frozen=True, gc=False):
    """Order: a node will not come back: nobody waits for it any more (DEL-006). Reply: dict, or StoreRefused."""

    ticket: int
    node: str


class SetDeleters(msgspec.Struct, frozen=True, gc=False):
    """Order: name the nodes that must have seen a deletion before it is forgotten (DEL-003); empty: all."""

    ticket: int
    nodes: tuple[str, ...]


class ReplayOrphans(msgspec.Struct, frozen=True, gc=False):
    """Order: write anew what was set aside when this node had been dropped (DEL-006). Reply: dict, or StoreRefused."""

    ticket: int


class AcceptTick(msgspec.Struct, frozen=True, gc=False):
    """Order: go on under the own name although nobody confirmed its ticks (STO-034)."""

    ticket: int


class CopyFile(msgspec.Struct, frozen=True, gc=False):
    """Order: take over a piece of a file's store as it is (ADM-013). Reply: dict, or StoreRefused."""

    ticket: int
    records: tuple[bytes, ...]
    """Whole records of the file, in its order."""
    is_first: bool
    is_last: bool
    is_whole: bool = False
    """With the last piece: what the file has not is nowhere, and nobody needs to ask for it."""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye and speak no more."""


class StoreRefused(msgspec.Struct, frozen=True, gc=False):
    """Reply: the order was not obeyed; `code` as in CLN-003."""

    code: str
    text: str


# Work of the shell


class Dial(msgspec.Struct, frozen=True, gc=False):
    """Work: connect to a client port, `host:port`; what is heard there comes on `store-join` from `tag`.

    Its end is told by `DialFailed`; `Send("store-join", tag, request)` speaks.
    """

    endpoint: str
    tag: bytes


class HangUp(msgspec.Struct, frozen=True, gc=False):
    """Work: end a connection, dialled or taken: by `tag` on `store-join`, or by a client's `peer`."""

    peer: bytes


# Events


class StoreJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: the node has what the others have, and serves."""

    node: str
    tick: int
    entries: int


class ConflictResolved(msgspec.Struct, frozen=True, gc=False):
    """Event: of two changes that knew nothing of each other one had to be taken (STO-013)."""

    number: int
    """Of the conflict, for this node."""
    path: str
    reason: str
    """`concurrent`, `id-clash` or `tock-regression`."""
    kept: dict[str, Any]
    lost: dict[str, Any]
    """Each: node, tick, tock, value or deleted, at, by."""


class StoreIncomplete(msgspec.Struct, frozen=True, gc=False):
    """Event: the node serves although changes are missing that nobody in reach has; it goes on asking (HEA-012)."""

    missing: dict[str, list[Any]]
    """Ranges by node, as on the wire (COD-004)."""


class SplitFound(msgspec.Struct, frozen=True, gc=False):
    """Event: nodes are heard that had been apart (PNG-012)."""

    peer: str
    has_won: bool
    """Whether this node's chain of pings goes on."""


class SplitHealed(msgspec.Struct, frozen=True, gc=False):
    """Event: nothing that was heard of since the last split is missing any more."""

    received: int
    took_ns: int


class EntryRepaired(msgspec.Struct, frozen=True, gc=False):
    """Event: an entry was written anew, unchanged, since foreign servers may differ about it (STO-014)."""

    path: str
    tick: int
    why: str
    """`equal-tock` or `deletion`."""


class TombstonesPurged(msgspec.Struct, frozen=True, gc=False):
    """Event: so many deletions that everybody has seen are forgotten (DEL-004)."""

    count: int


class StaleDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: an old copy of an entry that was deleted and forgotten is removed (DEL-004)."""

    path: str
    node: str
    tick: int
    value: Any


class ValueMistyped(msgspec.Struct, frozen=True, gc=False):
    """Event: another node's change does not fit the type of its path; it is kept all the same (ADM-010)."""

    path: str
    node: str
    tick: int
    why: str


class IdClash(msgspec.Struct, frozen=True, gc=False):
    """Event: two different changes have one name; the greater is taken (STO-016)."""

    path: str
    node: str
    tick: int


class NameCollision(msgspec.Struct, frozen=True, gc=False):
    """Event: another live node has this node's name in the store; the newer one is refused (LNK-022)."""

    name: str
    peer: str


class NameChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: nobody could confirm which changes of this name had been sent: the node goes on under another (STO-034)."""

    before: str
    name: str
    tick: int


class NodeDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: a node will not come back; its later changes are refused everywhere (DEL-006)."""

    node: str
    tick: int


class ChangesOrphaned(msgspec.Struct, frozen=True, gc=False):
    """Event: this node had been dropped; what nobody took of its changes is set aside (DEL-006)."""

    count: int


class StoreMalformed(msgspec.Struct, frozen=True, gc=False):
    """Event: a message could not be read or may not be said; at most one per sender in ten seconds (COD-007)."""

    peer: str
    code: str
    count: int
    """Of this sender so far."""


class EchoMissing(msgspec.Struct, frozen=True, gc=False):
    """Event: the broker does not hand this node's own messages back (PNG-032)."""

    link: str


class NetworkOpen(msgspec.Struct, frozen=True, gc=False):
    """Event: beyond this machine nobody is asked who they are, at each start (LNK-030, ADM-003)."""

    what: str
    """`clients`, who may do everything; and `moat`, where that dialect is spoken, which nobody signs."""


class StoreLinkUp(msgspec.Struct, frozen=True, gc=False):
    """Event: a link of the store carries messages."""

    link: str
    """`mesh` or `mqtt`."""
    peer: str


class StoreLinkDown(msgspec.Struct, frozen=True, gc=False):
    """Event: it does so no more."""

    link: str
    peer: str
    why: str


class BecameReadOnly(msgspec.Struct, frozen=True, gc=False):
    """Event: no order is taken any more, and why."""

    why: str
    """`dropped`, `name-collision` or `unconfirmed`."""


class LimitExceeded(msgspec.Struct, frozen=True, gc=False):
    """Event: more than there should be; what comes from others is kept all the same."""

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

# Inside the core


class Change(msgspec.Struct, frozen=True, gc=False):
    """What a merge did to an entry (STO-011), for the parts of the core that have to know."""

    outcome: str
    """`first newer conflict-taken` show the event; `duplicate stale conflict-kept` do not."""
    event: Event
    other: Event | None
    """What stood there before, or stands there still."""

    @property
    def is_shown(self) -> bool:
        """Whether readers see the event from now on."""
        return self.outcome in ("first", "newer", "conflict-taken")
