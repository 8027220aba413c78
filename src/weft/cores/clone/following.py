"""Follows a Clone server: its snapshot and its updates become writes under a prefix (CFG-060, CFG-064)."""

from typing import Any

from weft.base.effects import Source
from weft.base.endpoints import shifted
from weft.base.now import Now
from weft.base.paths import is_key
from weft.cores.clone import limits
from weft.cores.clone.context import ASK, FOLLOW, UPDATES, Context, is_telling, wanted
from weft.cores.clone.messages import (
    Hugz,
    ICanHaz,
    KeyRefused,
    KThxBai,
    KvPub,
    KvSync,
    ServerFollowed,
    ServerLost,
    Wanted,
)
from weft.cores.clone.states import TABLE, On, State
from weft.wire.chp import Pair


class Follower:
    """Follows one server. Times are monotonic nanoseconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.state = State.RESTING
        self.last = 0
        """Number of the last update applied, or of the snapshot."""
        self._stage: dict[str, Wanted] = {}
        self._waiting: list[KvPub] = []
        self._stage_bytes = self._waiting_bytes = 0
        self._asked: dict[int, str] = {}
        """Open write orders by ticket, each with its first key."""
        self._unanswered = self._holes = 0
        """Unanswered questions since the last snapshot; gaps since the last calm period (CALM_NS without a gap)."""
        self._room = context.budget.part(
            "stage", limits.STAGE_PERCENT, lambda: self._stage_bytes + limits.PAIR_COST * len(self._stage)
        )
        self._tag = b""
        self._heard_at = self._adopted_at = 0
        self._due_at: int | None = None
        """When to ask again, monotonic ns; None: not waiting."""
        self._has_beat = self._is_lost = False
        self._is_subscribed = self._is_sure = False
        """`_is_sure`: a second snapshot was asked for when the subscription had certainly arrived, so no early update
        is missing.
        """

    # Inputs

    def begin(self, now: Now) -> None:
        """Follow the configured server, if there is one."""
        if self._context.settings.source:
            self._turn(On.BEGUN, None, now)

    def end(self, now: Now) -> None:
        """Stop following."""
        self._turn(On.ENDED, None, now)

    def hear_answer(self, message: KvSync | KThxBai, source: Source, now: Now) -> None:
        """A message of the snapshot stream."""
        if source.peer != self._tag or (self.state, On.PAIR) not in TABLE:
            self._context.counters.late += 1
            return
        self._due_at = now.mono + limits.SILENCE_NS
        self._turn(On.END if type(message) is KThxBai else On.PAIR, message, now)

    def hear_update(self, message: KvPub | Hugz, source: Source, now: Now) -> None:
        """An update or beat that the server published."""
        if source.peer != FOLLOW.encode() or self.state is State.RESTING:
            self._context.counters.late += 1
            return
        self._heard_at = now.mono
        if type(message) is Hugz:
            self._has_beat = True
            if self.state is State.FOLLOWING and message.tip and self._is_apart(message.tip - self.last, now):
                self._turn(On.HOLE, None, now)
            return
        if self.state is State.ASKING:
            self._turn(On.UPDATE, message, now)
        else:
            self._judge(message, now)

    def _judge(self, message: Any, now: Now) -> None:
        """Decide whether an update is the next one, is already in the snapshot, or shows a gap."""
        if message.number == self.last + 1:
            self._turn(On.UPDATE, message, now)
        elif self._is_apart(message.number - self.last, now):
            self._turn(On.HOLE, None, now)
        else:
            self._context.counters.leftovers += 1

    def _is_apart(self, ahead: int, now: Now) -> bool:
        """Whether a number that differs by `ahead` shows that this node and the server disagree.

        A lower number counts only once LEFTOVER_NS have passed since the snapshot.
        """
        return ahead > 0 or (ahead < 0 and now.mono >= self._adopted_at + limits.LEFTOVER_NS)

    def done(self, ticket: int, code: int, now: Now) -> None:
        """The configuration has answered our writes; if one was refused, ask for a snapshot again, after a pause."""
        key = self._asked.pop(ticket, None)
        if key is not None and code:
            self._context.refuse(key, code)
            if self.state is State.FOLLOWING:
                self._turn(On.HOLE, None, now)

    def wake(self, now: Now) -> None:
        """Do what is due."""
        due = self.deadline()
        if due is not None and now.mono >= due:
            self._turn(On.SILENCE, None, now)

    def deadline(self) -> int | None:
        if self.state is State.FOLLOWING and not (self._has_beat or self._is_sure):
            return self._adopted_at + limits.LEFTOVER_NS
        if self.state is State.FOLLOWING:
            return self._heard_at + (limits.SILENCE_NS if self._has_beat else limits.QUIET_NS)
        return self._due_at if self.state is State.ASKING else None

    def _turn(self, on: On, message: Any, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is not None:
            self.state = cell.then
            getattr(self, cell.do)(message, now)

    # What follows (methods named in states.TABLE)

    def subscribe_then_ask(self, message: None, now: Now) -> None:
        """Ask for a snapshot on a new connection, so that an answer to an older question is not mistaken for it.

        Updates that waited so far are dropped: they were published before the answer, so it contains them.
        """
        context, source = self._context, self._context.settings.source
        if not self._is_subscribed:
            self._is_subscribed = True
            context.connect(FOLLOW, shifted(source, UPDATES), FOLLOW.encode(), (b"",))
        if self._unanswered == limits.FAILING_AFTER and not self._is_lost:
            self._is_lost = True
            context.tell(ServerLost(source, "no snapshot"))
        context.counters.questions += 1
        self._drop_held()
        self._tag = b"%d" % context.counters.questions
        context.connect(ASK, source, self._tag)
        context.send(ASK, b"", ICanHaz("", dialect="chp"))
        self._due_at = now.mono + _pause_ns(self._unanswered)
        self._unanswered += 1

    def stage_pair(self, pair: KvSync, now: Now) -> None:
        """Collect a pair of the snapshot until the snapshot is complete."""
        key = self._key_of(pair)
        if key is None:
            return
        self._stage[key] = wanted(key, pair, now)
        self._stage_bytes += len(key) + len(pair.value)
        is_full = len(self._stage) > limits.STAGE_PAIRS_MAX or self._stage_bytes > limits.STAGE_BYTES_MAX
        if self._room.is_over:
            self._room.refuse()
        if is_full or self._room.is_over:
            self._turn(On.HOLE, None, now)

    def hold_update(self, update: KvPub, now: Now) -> None:
        """Keep an update until the snapshot is complete."""
        self._waiting.append(update)
        self._waiting_bytes += len(update.key) + len(update.value)
        if len(self._waiting) > limits.WAITING_UPDATES_MAX or self._waiting_bytes > limits.WAITING_BYTES_MAX:
            self._turn(On.HOLE, None, now)

    def adopt(self, end: KThxBai, now: Now) -> None:
        """Adopt the complete snapshot: the subtree under the prefix becomes equal to it.

        Then apply the waiting updates.
        """
        context = self._context
        context.counters.snapshots += 1
        self.last, self._adopted_at, self._heard_at = end.number, now.mono, now.mono
        stage, waiting = self._stage, self._waiting
        self._drop_held()
        self._unanswered = 0
        prefix = context.settings.prefix
        deletions = [Wanted(key, b"") for key in context.sorted_keys() if key.startswith(prefix) and key not in stage]
        self._want([*deletions, *stage.values()])
        if self._is_lost or context.counters.snapshots == 1:
            context.tell(ServerFollowed(context.settings.source, end.number, len(stage)))
        self._is_lost = False
        for update in waiting:
            self._go_through(update, now)

    def _drop_held(self) -> None:
        self._stage, self._waiting = {}, []
        self._stage_bytes = self._waiting_bytes = 0

    def _go_through(self, update: KvPub, now: Now) -> None:
        """Apply an update that waited. After a gap, the remaining ones wait again."""
        if self.state is State.FOLLOWING:
            self._judge(update, now)
        else:
            self._turn(On.UPDATE, update, now)

    def write_update(self, update: KvPub, now: Now) -> None:
        """Write the next update."""
        self.last = update.number
        key = self._key_of(update)
        if key is not None:
            self._context.counters.updates += 1
            self._want([wanted(key, update, now)])

    def pause(self, message: None, now: Now) -> None:
        """Something is missing: ask again, at once for the first gap, else after a pause. Updates wait meanwhile."""
        self._context.counters.holes += 1
        self._drop_held()
        self._tag = b""
        if now.mono >= self._adopted_at + limits.CALM_NS:
            self._holes = 0
        self._holes += 1
        if self._holes == 1:
            self.subscribe_then_ask(message, now)
        else:
            self._due_at = now.mono + _pause_ns(self._holes - 2)

    def lose(self, message: None, now: Now) -> None:
        """The server is silent: subscribe and ask again.

        A server that never sent a beat is only asked for a snapshot.
        """
        if self._has_beat:
            self._is_lost = True
            self._context.tell(ServerLost(self._context.settings.source, "silent"))
        is_new = not (self._has_beat or self._is_sure)
        self._is_subscribed = self._is_sure = is_new
        self._has_beat = False
        self._unanswered = self._holes = 0
        self.subscribe_then_ask(message, now)

    def let_go(self, message: None, now: Now) -> None:
        """Stop following; values already written stay."""
        self._context.disconnect(FOLLOW)
        self._context.disconnect(ASK)
        self._drop_held()
        self._asked, self._tag = {}, b""
        self._unanswered = self._holes = 0
        self._has_beat = self._is_subscribed = self._is_sure = self._is_lost = False

    # Writing

    def _key_of(self, pair: Pair) -> str | None:
        """The key under the prefix. None if it is no valid key here; that is counted and told."""
        key = self._context.settings.prefix + pair.key.removeprefix("/")
        if is_key(key) and not key.endswith("/HUGZ"):
            return key
        counters = self._context.counters
        counters.keys_refused += 1
        if is_telling(counters.keys_refused):
            self._context.tell(
                KeyRefused(pair.key, "it has empty parts, other letters, or too many", counters.keys_refused)
            )
        return None

    def _want(self, writes: list[Wanted]) -> None:
        """Ask for writes, in orders small enough for the configuration to accept."""
        order: list[Wanted] = []
        size = 0
        for write in writes:
            order.append(write)
            size += len(write.key) + len(write.value)
            if len(order) >= limits.ORDER_WRITES_MAX or size >= limits.ORDER_BYTES_MAX:
                self._asked[self._context.want(tuple(order))] = order[0].key
                order, size = [], 0
        if order:
            self._asked[self._context.want(tuple(order))] = order[0].key


def _pause_ns(times: int) -> int:
    """The pause before attempt number `times`; it grows."""
    return min(limits.ANSWER_NS << min(times, 10), limits.ANSWER_MAX_NS)
