"""State that the parts of the configuration core share: the store, counters, the outbox.

All records of a turn stand in one Persist ahead of its effects. So a turn is atomic in the journal, and nothing is
published, answered or told that a crash could take back (CFG-023).
"""

import msgspec

from weft.base.budget import Budget
from weft.base.errors import UNREADABLE
from weft.cores.configuration import limits
from weft.cores.configuration.memory import Adopted, Begun, Memory, Part, part_of, to_record
from weft.cores.configuration.messages import ConfigurationSettings
from weft.cores.configuration.store import Room, Store
from weft.cores.kit.outbox import Outbox
from weft.wire.replication import Hugz, KvPack, KvPub, epoch_of

PUBLISH, SERVE, UPDATES, ASK = "publish", "serve", "updates", "ask"
ROOT_KEY = "/TOPO/root"
PIECES = (Begun, Part, Adopted)


class RootRecord(msgspec.Struct, frozen=True, gc=False):
    """The root, as recorded in the configuration itself."""

    uuid: str = ""
    endpoint: str = ""


_decode_root = msgspec.json.Decoder(RootRecord).decode


class Counters(msgspec.Struct):
    """Counts since the start (CFG-090), and a few current values."""

    applied: int = 0
    duplicate: int = 0
    leftover: int = 0
    late: int = 0
    """Messages of a connection that was already closed (CFG-038)."""
    resync_lower: int = 0
    resync_gap: int = 0
    resync_epoch: int = 0
    resync_tip: int = 0
    attempts: int = 0
    """Snapshots asked for."""
    snapshots: int = 0
    """Snapshots adopted."""
    differed: int = 0
    """Snapshots refused because their pairs did not match the count and digest in their ends."""
    unproved: int = 0
    """Snapshots adopted from a parent that sends no count and digest: an older version, or other software."""
    snapshot_ms: int = 0
    """Duration of the last one, from question to adoption."""
    snapshot_bytes: int = 0
    """Bytes of keys and values in the last one."""
    waiting_high: int = 0
    """Highest number of updates that waited for a snapshot."""
    forwarded: int = 0
    telltales: int = 0
    hugz: int = 0
    served: int = 0
    """Answers to requests that were sent completely."""
    pairs_served: int = 0
    choked: int = 0
    """Messages that did not fit into a child's full queue."""
    stuck: int = 0
    """Children dropped because they accepted no messages."""
    written: int = 0
    expired: int = 0
    wtf_heard: dict[str, int] = {}
    wtf_said: dict[str, int] = {}
    refused: dict[str, int] = {}
    """Everything refused, by code."""

    def count(self, table: dict[str, int], what: object) -> None:
        """One more of a kind."""
        table[str(what)] = table.get(str(what), 0) + 1


class Context(Outbox):
    """State that the parts share; records of a turn stand ahead of its effects."""

    __slots__ = (
        "budget",
        "counters",
        "dead_ns",
        "heartbeat_ns",
        "is_diverged",
        "node",
        "parts",
        "promises",
        "room",
        "settings",
        "store",
    )

    def __init__(self, settings: ConfigurationSettings, node: bytes) -> None:
        super().__init__()
        self.settings, self.node = settings, node
        self.set_times(settings.heartbeat_ns, settings.dead_after)
        self.counters = Counters()
        self.budget = Budget()
        self.store = Store(Room(settings.keys_max, settings.bytes_max))
        self.room = self.budget.part("pairs", limits.PAIRS_PERCENT, lambda: self.store.cost)
        self.parts: list[Begun | Part] = []
        """Journaled records of a snapshot that is not adopted yet."""
        self.is_diverged = False
        """Whether the parent has other pairs at the same number; until the next snapshot."""
        self.promises: tuple[tuple[int, bytes], ...] = ()
        """Nodes that may still become root by this node's vote: epoch and node."""

    def set_times(self, heartbeat_ns: int, dead_after: int) -> None:
        """Set H, and after how many H of silence a peer counts as dead; within their limits (CFG-074)."""
        self.heartbeat_ns = min(max(heartbeat_ns, limits.HEARTBEAT_MIN_NS), limits.HEARTBEAT_MAX_NS)
        self.dead_ns = self.heartbeat_ns * max(dead_after, 2)

    def remember(self, memory: Memory) -> None:
        """Make a record durable ahead of all effects of this turn."""
        if self.settings.is_kept:
            self.keep(to_record(memory))
            if type(memory) in PIECES:
                self.note(memory)

    def remember_pack(self, pack: KvPack) -> None:
        """As `remember`, for packed pairs of an incoming snapshot: a `Part` with their bytes as they came."""
        if self.settings.is_kept:
            self.keep(part_of(pack))
            self.note(Part(pack.pairs))

    def note(self, memory: Memory) -> None:
        """An incoming snapshot: note which of its records are journaled, also when they are restored."""
        if isinstance(memory, Begun):
            self.parts = [memory]
        elif isinstance(memory, Part):
            self.parts.append(memory)
        else:
            self.parts = []

    def shown_digest(self) -> bytes:
        """The digest that this node reports for its number.

        Empty: it has only a part of the configuration, or other pairs than its parent.
        """
        return self.store.tally.digest if self.store.is_whole and not self.is_diverged else b""

    def candidates(self) -> tuple[str, ...]:
        """Nodes that may still become root of a later epoch by this node's vote."""
        epoch_held = epoch_of(self.store.number)
        return tuple([node.hex() for epoch, node in self.promises if epoch > epoch_held])

    def publish(self, message: KvPub | Hugz) -> None:
        """Publish to all children that have subscribed to its key."""
        self.send(PUBLISH, b"", message)

    def root(self) -> RootRecord:
        """The root of record; empty if it is unknown or unreadable."""
        try:
            return _decode_root(self.store.value(ROOT_KEY))
        except UNREADABLE:
            return RootRecord()

    def root_uuid(self) -> bytes:
        """Its UUID in 16 bytes, or empty."""
        try:
            uuid = bytes.fromhex(self.root().uuid.replace("-", ""))
        except ValueError:
            return b""
        return uuid if len(uuid) == len(self.node) else b""
