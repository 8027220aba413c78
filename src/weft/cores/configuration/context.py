"""What the rooms of the configuration core share: the store, what is counted, what is wanted done.

Whatever a turn makes durable stands before whatever it says, in one Persist: so a turn is atomic in the journal, and
nothing is published, answered or told that a crash could take back (CFG-023).
"""

import msgspec

from weft.base.budget import Budget
from weft.base.errors import UNREADABLE
from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.memory import Adopted, Begun, Memory, Part, to_record
from weft.cores.configuration.messages import ConfigurationSettings
from weft.cores.configuration.store import Room, Store
from weft.cores.kit.outbox import Outbox
from weft.wire.replication import Hugz, KvPub, epoch_of

PUBLISH, SERVE, UPDATES, ASK = "publish", "serve", "updates", "ask"
ROOT_KEY = "/TOPO/root"
PIECES = (Begun, Part, Adopted)


class RootRecord(msgspec.Struct, frozen=True, gc=False):
    """What the configuration itself says of its root."""

    uuid: str = ""
    endpoint: str = ""


_decode_root = msgspec.json.Decoder(RootRecord).decode


class Counters(msgspec.Struct):
    """Plain counts since the start (CFG-090), and a few present values."""

    applied: int = 0
    duplicate: int = 0
    leftover: int = 0
    late: int = 0
    """Messages of a connection that was given up (CFG-038)."""
    resync_lower: int = 0
    resync_gap: int = 0
    resync_epoch: int = 0
    resync_tip: int = 0
    attempts: int = 0
    """Snapshots asked for."""
    snapshots: int = 0
    """Snapshots adopted."""
    differed: int = 0
    """Snapshots refused because their pairs were not those that their ends spoke of."""
    unproved: int = 0
    """Snapshots adopted from a parent that says no count and digest: of another make, or older."""
    snapshot_ms: int = 0
    """How long the last one took, from the question to the adoption."""
    snapshot_bytes: int = 0
    """Keys and values of the last one."""
    waiting_high: int = 0
    """Most updates that have waited for a snapshot."""
    forwarded: int = 0
    telltales: int = 0
    hugz: int = 0
    served: int = 0
    """Answers to requests that have ended."""
    pairs_served: int = 0
    choked: int = 0
    """Messages that a child's full queue did not take."""
    stuck: int = 0
    """Children given up because they took nothing."""
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
    """What the rooms share; records of a turn stand before all that it says."""

    __slots__ = (
        "budget",
        "counters",
        "dead_ns",
        "heartbeat_ns",
        "is_diverged",
        "node",
        "parts",
        "promises",
        "published_at",
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
        """What is journaled of a snapshot that is not adopted."""
        self.is_diverged = False
        """Whether the parent has other pairs at the same number, until the next snapshot."""
        self.promises: tuple[tuple[int, bytes], ...] = ()
        """Who may still become the root with this node's vote, by epoch and node."""
        self.published_at = 0
        """When children last heard something, monotonic ns (CFG-045)."""

    def set_times(self, heartbeat_ns: int, dead_after: int) -> None:
        """H, and after how many of it a silence is a death; within their limits (CFG-074)."""
        self.heartbeat_ns = min(max(heartbeat_ns, limits.HEARTBEAT_MIN_NS), limits.HEARTBEAT_MAX_NS)
        self.dead_ns = self.heartbeat_ns * max(dead_after, 2)

    def remember(self, memory: Memory) -> None:
        """Make it durable before anything that this turn says."""
        if self.settings.is_kept:
            self.keep(to_record(memory))
            if type(memory) in PIECES:
                self.note(memory)

    def note(self, memory: Memory) -> None:
        """A snapshot on its way in: what of it stands in the journal, also when it is read back."""
        if isinstance(memory, Begun):
            self.parts = [memory]
        elif isinstance(memory, Part):
            self.parts.append(memory)
        else:
            self.parts = []

    def shown_digest(self) -> bytes:
        """What this node shows for its number; empty: it holds only some of the configuration, or not what its parent has."""
        return self.store.tally.digest if self.store.is_whole and not self.is_diverged else b""

    def candidates(self) -> tuple[str, ...]:
        """Who may still become the root of a later epoch than this node holds, with its vote."""
        held = epoch_of(self.store.number)
        return tuple([node.hex() for epoch, node in self.promises if epoch > held])

    def publish(self, message: KvPub | Hugz, now: Now) -> None:
        """Let all children hear it."""
        self.published_at = now.mono
        self.send(PUBLISH, b"", message)

    def root(self) -> RootRecord:
        """The root of record; empty if it is not known or not readable."""
        try:
            return _decode_root(self.store.value(ROOT_KEY))
        except UNREADABLE:
            return RootRecord()

    def root_uuid(self) -> bytes:
        """Its UUID, in 16 bytes, or empty."""
        try:
            uuid = bytes.fromhex(self.root().uuid.replace("-", ""))
        except ValueError:
            return b""
        return uuid if len(uuid) == len(self.node) else b""
