"""The replica's side: asks for a snapshot, follows the updates, notices what is missing (CFG-030 to CFG-048)."""

from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.endpoints import SNAPSHOTS, UPDATES, shifted
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.configuration import context, limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.lost import lost_writes, values_gone_back
from weft.cores.configuration.memory import Applied, Last, Noted, Wiped
from weft.cores.configuration.messages import (
    ConfigurationDiverged,
    ConfigurationRewound,
    ConfigurationWiped,
    FollowParent,
    ReplicaResynced,
    SnapshotDiffers,
    SyncFailing,
)
from weft.cores.configuration.silence import Silence
from weft.cores.configuration.stage import Stage
from weft.cores.configuration.states import TABLE, On, State
from weft.cores.configuration.store import EVERYTHING, is_coarse
from weft.cores.configuration.telling import Teller
from weft.cores.configuration.tips import Tips
from weft.cores.kit.timers import earliest
from weft.wire.replication import (
    CHAINS,
    COUNTER_BITS,
    STALE_EPOCH,
    TIP,
    TOO_LARGE,
    UNSPECIFIED,
    Bundle,
    Hugz,
    ICanHaz,
    KThxBai,
    KvPack,
    KvPub,
    KvSync,
    Wtf,
    chain_of,
)

BEATS: Final = b"HUGZ"
_COUNTED: Final = {
    On.LOWER: ("lower", "resync_lower"),
    On.HOLE: ("gap", "resync_gap"),
    On.EPOCH: ("epoch", "resync_epoch"),
    On.TIP: ("tip", "resync_tip"),
}


class Failure(NamedTuple):
    """Why an attempt failed: a code of WTF, and when to try again if not after the doubling pause."""

    code: int
    pause_ns: int | None = None
    is_told: bool = False
    """An event is told at once, not only after the third failure."""


class Replica:
    """Follows one parent. Times are monotonic nanoseconds."""

    def __init__(self, shared: Context, teller: Teller, chance: Chance) -> None:
        self.context, self.teller, self._chance = shared, teller, chance
        self.state = State.IDLE
        self.parent = ""
        self.topics: tuple[str, ...] = ()
        self.serves = False
        self.silence = Silence(shared)
        self.tips = Tips(shared)
        self.published: dict[str, int] = {}
        """The last number of each chain that was published to children (CFG-041)."""
        self.breaks = 0
        """How often the history here was replaced by another one; answers being sent are then of the old one."""
        self.waiting: list[KvPub] = []
        self.received = 0
        """The highest number received in the present attempt, including the one that started it (CFG-032)."""
        self._waiting_bytes = 0
        self._stage: Stage | None = None
        self._why = "start"
        self._attempts = self._rewinds = self._tags = 0
        self._updates_tag = self._ask_tag = b""
        self._ask_at: int | None = None
        self._is_retrying = False
        self._answer_by: int | None = None
        self._asked_at = 0
        self._resynced_at: int | None = None
        self._resync_pause = limits.RESYNC_NS
        self._floors: dict[str, tuple[int, bool]] = {}

    # Orders

    def assign(self, order: FollowParent, now: Now) -> None:
        """Follow a parent; nothing happens if it is followed already."""
        if self.state is State.IDLE or (order.endpoint, order.topics, order.serves) != (
            self.parent,
            self.topics,
            self.serves,
        ):
            self._turn(On.ASSIGNED, order, now)

    def leave(self, now: Now) -> None:
        """Stop following."""
        self._turn(On.LEFT, None, now)

    # Messages

    def hear_update(self, message: KvPub | Hugz, source: Source, now: Now) -> None:
        """An update or beat of the parent."""
        if source.peer != self._updates_tag or self.state is State.IDLE:
            self.context.counters.late += 1
            return
        if self.silence.hear(now) and self._is_retrying and self._ask_at is not None:
            self._ask_at = min(
                self._ask_at, now.mono + limits.RETRY.first_ns
            )  # it is back: the long pause was meant for its absence
        if type(message) is KvPub:
            self._turn(self.judge(message) if self.state is State.RUN else On.UPDATED, message, now)
        elif type(message) is Hugz:
            if message.tip > self.context.store.number and self._is_whole() and self.state is State.RUN:
                self.tips.ask_soon(now)
        else:
            raise PeerError("command", type(message).__name__)

    def hear_answer(self, message: KvSync | KvPack | KThxBai | Bundle | Wtf, source: Source, now: Now) -> None:
        """An answer of the parent; PeerError for one that was not asked for."""
        if source.peer != self._ask_tag or self.state is State.IDLE:
            self.context.counters.late += 1
            return
        if type(message) is Wtf:
            self.silence.hear(now)
            self.context.counters.count(self.context.counters.wtf_heard, message.code)
            if self._stage is not None:
                self._turn(On.FAILED, Failure(message.code), now)
        elif type(message) is KThxBai and (message.subtree or "").startswith(TIP + "/"):
            self._hear_tip(message, now)
        elif self._stage is None:
            raise PeerError("not-asked", type(message).__name__)
        else:
            self._turn(On.ANSWERED, message, now)

    def _hear_tip(self, message: KThxBai, now: Now) -> None:
        topic = (message.subtree or "").removeprefix(TIP)
        is_other = self.tips.hear(message, now)
        self.silence.hear(now)
        if is_other or (self.state is State.RUN and message.digest and self._differs(topic, message)):
            self._turn(On.TIP, None, now)

    def _differs(self, topic: str, tip: KThxBai) -> bool:
        """Whether the parent has other pairs at the same number: then its pairs or this node's are not the root's."""
        store = self.context.store
        own = store.tally_of(topic)
        if tip.number != store.tip(topic) or (own.count, own.digest) == (tip.count, tip.digest):
            return False
        self.context.is_diverged = True
        here, there = own.digest.hex(), tip.digest.hex()
        self.context.tell(ConfigurationDiverged(self.parent, tip.number, own.count, here, tip.count, there))
        return True

    def wake(self, now: Now) -> None:
        """Do what is due."""
        if self.state is State.IDLE:
            return
        if self.silence.wake(now):
            self._subscribe(now)
        if self._answer_by is not None and now.mono >= self._answer_by:
            self._turn(On.FAILED, Failure(UNSPECIFIED), now)
        if self._ask_at is not None and now.mono >= self._ask_at:
            self._turn(On.DUE, None, now)
        if self.state is State.RUN:
            self._see_to_tips(now)

    def _see_to_tips(self, now: Now) -> None:
        if self.tips.is_behind(now):
            self._turn(On.TIP, None, now)
        elif self.tips.is_due(now):
            if self.tips.is_unanswered:
                self._open_ask()
            for topic in self.tips.ask(self.topics, now):
                self.context.send(context.ASK, b"", ICanHaz(topic, wants_digest=True))

    def deadline(self) -> int | None:
        """When `wake` is wanted."""
        if self.state is State.IDLE:
            return None
        tips_at = self.tips.deadline() if self.state is State.RUN else None
        return earliest(self.silence.deadline(), self._answer_by, self._ask_at, tips_at)

    def queue(self) -> dict[str, int]:
        """Number of updates that wait for a snapshot, and the limit (CFG-031)."""
        return {
            "items": len(self.waiting),
            "items_max": limits.WAITING_UPDATES_MAX,
            "bytes": self._waiting_bytes,
            "bytes_max": limits.WAITING_BYTES_MAX,
        }

    # Judging

    def judge(self, update: KvPub) -> On:
        """Classify an update, by the tests of CFG-032 in their order."""
        store, number = self.context.store, update.number
        chain = chain_of(update.key)
        last = store.chains.get(chain)
        floor, is_coarsely_known = self._floors.get(chain) or self._find_floor(chain)
        tip = last.number if last is not None else floor
        if number == tip and store.value(update.key) == update.value:
            return On.DUPLICATE
        if number <= self.received:
            return On.LOWER
        if number <= floor:
            return On.LEFTOVER
        if number >> COUNTER_BITS > store.number >> COUNTER_BITS:
            return On.EPOCH
        if self._is_whole():
            is_next = number == store.number + 1
        elif last is None and is_coarsely_known:
            is_next = update.prev is None or update.prev <= floor
        else:
            is_next = update.prev is None or update.prev == tip
        return On.NEXT if is_next and store.has_room(update.key, update.value) else On.HOLE

    def _find_floor(self, chain: str) -> tuple[int, bool]:
        """The end of the topic that contains a chain, and whether that topic has many chains."""
        found = (0, False)
        for topic, end in self.context.store.floors.items():
            if topic in EVERYTHING or chain == topic or (topic.endswith("/") and chain.startswith(topic)):
                found = max(found, (end, is_coarse(topic)))
        self._floors[chain] = found
        return found

    def _is_whole(self) -> bool:
        return len(self.topics) == 1 and self.topics[0] in EVERYTHING

    # Actions (methods named in states.TABLE)

    def _turn(self, on: On, what: Any, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is None:
            raise PeerError("not-now", f"{on.name} while {self.state.name}")
        self.state = cell.then
        getattr(self, cell.do)(on, what, now)

    def stay(self, on: On, what: None, now: Now) -> None:
        """Nothing to do."""

    def follow(self, on: On, order: FollowParent, now: Now) -> None:
        """Subscribe, then ask for everything (CFG-031). The present pairs stay readable."""
        self._why = "parent" if self.parent else "start"
        self.parent, self.topics, self.serves = order.endpoint, order.topics, order.serves
        self._attempts = self._rewinds = 0
        self._resync_pause, self._resynced_at = limits.RESYNC_NS, None
        self.silence.begin(now)
        self._subscribe(now)
        self._begin(0)
        self.ask(on, None, now)

    def _subscribe(self, now: Now) -> None:
        """Use a new connection: the old one may be dead without an error (SIM-021)."""
        self._updates_tag = self._tag(b"u")
        topics = tuple(b"" if topic in EVERYTHING else topic.encode() for topic in self.topics)
        self.context.connect(context.UPDATES, shifted(self.parent, UPDATES), self._updates_tag, (BEATS, *topics))
        self.tips.ask_soon(now)

    def _open_ask(self) -> None:
        self._ask_tag = self._tag(b"a")
        self.context.connect(context.ASK, shifted(self.parent, SNAPSHOTS), self._ask_tag)

    def _tag(self, kind: bytes) -> bytes:
        self._tags += 1
        return b"%b%d" % (kind, self._tags)

    def _begin(self, received: int) -> None:
        """Begin a new attempt; updates that waited for the earlier one are dropped."""
        self.waiting, self._waiting_bytes, self.received = [], 0, received
        self._stage = self._answer_by = self._ask_at = None
        self._is_retrying = False
        self._floors = {}
        self.tips.forget()

    def ask(self, on: On, what: None, now: Now) -> None:
        """Ask for all topics at once, over a connection named after the attempt (CFG-038)."""
        self._open_ask()
        self._ask_at, self._answer_by, self._asked_at = None, now.mono + limits.SNAPSHOT_NS, now.mono
        self._attempts += 1
        self.context.counters.attempts += 1
        self._stage = Stage(self.context, self.topics, asks_chains=self.serves)
        self._ask_more(self._stage)

    def _ask_more(self, stage: Stage) -> None:
        for subtree in stage.questions():
            takes_packs = not subtree.startswith(CHAINS)
            self.context.send(context.ASK, b"", ICanHaz(subtree, wants_digest=True, takes_packs=takes_packs))

    def hold(self, on: On, update: KvPub, now: Now) -> None:
        """Keep updates until the snapshot is complete."""
        self.waiting.append(update)
        self._waiting_bytes += len(update.key) + len(update.value) + len(update.raw)
        counters = self.context.counters
        counters.waiting_high = max(counters.waiting_high, len(self.waiting))
        if len(self.waiting) > limits.WAITING_UPDATES_MAX or self._waiting_bytes > limits.WAITING_BYTES_MAX:
            if self._ask_at is None:
                self._turn(On.FAILED, Failure(TOO_LARGE), now)
            else:
                self.waiting, self._waiting_bytes = (
                    [],
                    0,
                )  # the question is not sent yet: its answer will contain them

    def stage(self, on: On, answer: KvSync | KvPack | KThxBai | Bundle, now: Now) -> None:
        """Add a piece of the snapshot."""
        stage = self._stage
        assert stage is not None, "an answer is staged while a snapshot is asked for"
        if type(answer) is KvSync:
            stage.add(answer)
        elif type(answer) is KvPack:
            stage.add_pack(answer)
        elif type(answer) is KThxBai:
            stage.end(answer)
        elif type(answer) is Bundle:
            stage.add_all(answer)
        self.silence.hear(now)
        if type(answer) in (KThxBai, Bundle):
            self._ask_more(stage)  # an answer has ended: there is room for the next question
        self._answer_by = now.mono + limits.SNAPSHOT_NS
        if stage.is_full():
            self._turn(On.FAILED, Failure(TOO_LARGE, is_told=True), now)
        elif not stage.open:
            failure = self._compare(stage) or self._weigh(stage)
            self._turn(On.COMPLETED if failure is None else On.FAILED, failure, now)

    def _compare(self, stage: Stage) -> Failure | None:
        """Whether the received pairs do not match what the parent says it sent (FLD-002)."""
        missing = stage.short_by()
        if missing is None:
            return None
        self.context.counters.differed += 1
        self.context.tell(SnapshotDiffers(stage.number, missing, self._attempts))
        return Failure(UNSPECIFIED)

    def _weigh(self, stage: Stage) -> Failure | None:
        """Whether a complete snapshot is older than what was here (CFG-044)."""
        store = self.context.store
        epoch, epoch_seen = stage.number >> COUNTER_BITS, store.seen >> COUNTER_BITS
        if epoch != epoch_seen:
            return None if epoch > epoch_seen else Failure(STALE_EPOCH, is_told=True)
        if all(stage.ends[topic] >= store.tip(topic) for topic in self.topics if topic in store.floors):
            self._rewinds = 0
            return None
        self._rewinds += 1
        return Failure(UNSPECIFIED, self.context.heartbeat_ns) if self._rewinds <= limits.REWINDS_MAX else None

    def drop_stage(self, on: On, failure: Failure, now: Now) -> None:
        """Drop this attempt; the next one follows after a pause that doubles."""
        self._begin(0)
        pause = limits.RETRY.pause_ns(self._chance, self._attempts - 1)
        self._is_retrying = True
        self._ask_at = now.mono + (pause if failure.pause_ns is None else failure.pause_ns)
        if failure.is_told or self._attempts >= limits.FAILING_AFTER:
            self.context.tell(SyncFailing(self._attempts, failure.code))

    def adopt(self, on: On, what: None, now: Now) -> None:
        """The snapshot is complete: it replaces the store.

        Then apply the waiting updates, and repeat last writes for children.
        """
        stage, self._stage, self._answer_by = self._stage, None, None
        assert stage is not None, "only a stage can be complete"
        store, seen = self.context.store, self.context.store.seen
        for lost in lost_writes(store, stage, self.topics):
            self.context.tell(lost)
        gone_back = values_gone_back(store, stage, self.topics)
        self.teller.compare(stage.pairs)
        if stage.number <= seen and self._why in ("lower", "tip"):
            self.published = {}  # another history may use the same numbers: send children its last writes, to compare
        if self._rewinds or stage.number >> COUNTER_BITS != seen >> COUNTER_BITS:
            self.breaks += 1
        stage.close()
        self._note_adopted(stage, seen, gone_back, now)
        waiting, self.waiting, self._waiting_bytes = self.waiting, [], 0
        for update in waiting:
            self._go_through(update, now)
        if self.state is State.RUN:
            self.teller.report("snapshot")
            self._tell_tale(now)
            self.tips.ask_soon(now)

    def _note_adopted(self, stage: Stage, seen: int, gone_back: int, now: Now) -> None:
        if self._rewinds or gone_back:
            self.context.tell(ConfigurationRewound(stage.number, seen, gone_back))
        self.context.tell(ReplicaResynced(self._why, stage.number, self._attempts))
        counters = self.context.counters
        counters.snapshots += 1
        counters.unproved += not stage.is_proved
        self.context.is_diverged = False
        counters.snapshot_ms = (now.mono - self._asked_at) * 1_000 // SECOND
        counters.snapshot_bytes = stage.bytes
        self._attempts = self._rewinds = 0

    def _go_through(self, update: KvPub, now: Now) -> None:
        """An update that waited; the snapshot may contain it already."""
        if self.state is not State.RUN:
            self._turn(On.UPDATED, update, now)
            return
        floor = self._find_floor(chain_of(update.key))[0]
        self._turn(On.LEFTOVER if update.number <= floor else self.judge(update), update, now)

    def _tell_tale(self, now: Now) -> None:
        """Repeat the last writes that children cannot know, so that a child that differs asks again (CFG-041)."""
        if not self.serves:
            return
        store, uuid = self.context.store, self.context.root_uuid()
        for chain, last in sorted(store.chains.items(), key=lambda item: item[1].number):
            if last.key and self.published.get(chain) != last.number:
                prev = last.number if last.prev is None else last.prev
                value = b"" if last.is_deleted else store.value(last.key)
                self.context.publish(KvPub(last.key, last.number, uuid, value, prev))
                self.context.counters.telltales += 1
        self.published = {chain: last.number for chain, last in store.chains.items()}

    def apply(self, on: On, update: KvPub, now: Now) -> None:
        """The next update: make it durable, apply it, forward it unchanged, and tell it (CFG-040)."""
        shared = self.context
        key, number, value, prev = update.key, update.number, update.value, update.prev
        expires_at = 0
        if update.ttl is not None and value:
            expires_at = now.wall + round(min(update.ttl, limits.TTL_MAX_S) * SECOND)
        if shared.settings.is_kept:
            shared.remember(Applied(key, number, value, prev, expires_at))
        shared.store.apply(key, number, value, prev)
        if expires_at:
            shared.store.expiries[key] = expires_at
        shared.counters.applied += 1
        self.received = number
        chain = chain_of(key)
        if self.serves:
            self.published[chain] = number
            shared.publish(update)
            shared.counters.forwarded += 1
        self.teller.note(key, value, "update")
        self.teller.expect(chain, now, is_more=update.is_more)

    def pass_over(self, on: On, update: KvPub, now: Now) -> None:
        """The update is known already, but it may contain news about the end of its chain (CFG-040)."""
        counters = self.context.counters
        if on is On.DUPLICATE:
            counters.duplicate += 1
        else:
            counters.leftover += 1
        self.received = max(self.received, update.number)
        if self.serves:
            last = Last(update.key, update.number, update.prev, not update.value)
            if self.context.store.note(last):
                self.context.remember(Noted(last))
                self.published[chain_of(update.key)] = update.number

    def wipe(self, on: On, update: KvPub, now: Now) -> None:
        """The parent has another history: delete the saved pairs at once, and ask for them again (CFG-034)."""
        store = self.context.store
        self.context.tell(ConfigurationWiped(update.number, store.seen))
        self.teller.before_wipe()
        self.breaks += 1
        store.wipe()
        self.context.remember(Wiped(store.seen))
        self.resync(on, update, now)

    def resync(self, on: On, update: KvPub | None, now: Now) -> None:
        """Ask again, but not too often (CFG-037)."""
        self._why, counter = _COUNTED[on]
        setattr(self.context.counters, counter, getattr(self.context.counters, counter) + 1)
        if on is not On.LOWER:
            self.teller.flush(now)
        self._begin(update.number if update is not None else 0)
        before = self._resynced_at
        if before is None or now.mono >= before + limits.CALM_NS:
            self._resync_pause = limits.RESYNC_NS
        due = now.mono if before is None else max(now.mono, before + self._resync_pause)
        if before is not None and now.mono < before + limits.CALM_NS:
            self._resync_pause = min(2 * self._resync_pause, limits.RESYNC_MAX_NS)
        self._resynced_at = due
        if due == now.mono:
            self.ask(on, None, now)
        else:
            self._ask_at = due

    def let_go(self, on: On, what: None, now: Now) -> None:
        """There is no parent: the present pairs stay readable."""
        self._begin(0)
        self.silence.end()
        self.parent, self.topics = "", ()
        self._updates_tag = self._ask_tag = b""
        self.context.disconnect(context.UPDATES)
        self.context.disconnect(context.ASK)

    def forgive(self, now: Now) -> None:
        """The machine has slept: start the silence timer again (REC-001)."""
        self.silence.forgive(now)
        if self._answer_by is not None:
            self._answer_by = now.mono + limits.SNAPSHOT_NS
