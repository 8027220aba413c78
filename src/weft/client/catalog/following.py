"""The logic by which a watch misses no change (CAT-043), without sockets and clocks.

    follower = Follower(filter)              filter: a dict as in CAT-035; {} or None: everything
    follower.opened(now)                     a new SUB socket is connected (at the start, and after each Reopen)
    follower.heard(frames, now)              the frames of a message from that socket
    follower.answered(ticket, told, now)     the answer to a query, as decoded JSON
    follower.failed(ticket, now)             a query got no answer
    follower.wake(now) / deadline()          in monotonic nanoseconds
    follower.actions()                       what to do, in order: Subscribe, Ask, Reopen
    follower.changes()                       what to report: Change, oldest first

It subscribes to its topic, then to `tick`. The first tick shows that the broker has both subscriptions. Only then it asks
for a snapshot; so the snapshot and the events after it together are complete. From then on each event names the index of
the event before it (`prev`), and each tick the latest index. An index that was not received means a gap: the follower asks
for the changes after the last one it knows. If the broker no longer has them, or they are too many, it asks for a new
snapshot, which is reported as `resync`, followed by the differences to what was reported before.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.now import seconds
from weft.client.catalog import limits
from weft.client.catalog.entries import Change, Entry
from weft.client.catalog.errors import BadRequest, error_of
from weft.cores.catalog import events, filters
from weft.cores.catalog.events import Heard
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.limits import CHANGES_LIST_MAX, FILTER_TICK_NS
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import State

Key = tuple[str, str]
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
TICK: Final = events.TICK.encode()
SILENT_NS: Final = seconds(limits.SILENT_S)
TOPIC_SILENT_NS: Final = 3 * FILTER_TICK_NS + SILENT_NS  # the topic may have ended: a snapshot starts it again
HELD_MAX: Final = limits.CHANGES_AHEAD_MAX  # events buffered while an answer is pending; losing more shows as a gap
CATCH_UP_MAX: Final = 10 * CHANGES_LIST_MAX  # missed changes that are reported one by one: ten answers of a broker


class Subscribe(NamedTuple):
    """Subscribe the SUB socket to this topic."""

    topic: bytes


class Ask(NamedTuple):
    """Send the broker this query (`u_U` with these frames); then call `answered` or `failed` with this ticket."""

    ticket: int
    frames: tuple[bytes, ...]


class Reopen(NamedTuple):
    """Nothing arrives: close the SUB socket, open a new one to the broker's current address, then call `opened`."""


Action = Subscribe | Ask | Reopen


class Phase(Enum):
    SHUT = "no socket"
    JOINING = "subscribed, waits for a tick"
    SNAPSHOT = "waits for a snapshot; events are buffered"
    CATCHING_UP = "waits for the missed changes; events are buffered"
    LIVE = "events are reported as they come"


class Answer(msgspec.Struct, frozen=True):
    """The answer to `dbp.watch`, or to `dbp.changes`."""

    epoch: str
    index: int
    records: list["Recorded"] | None = None
    changes: list["Missed"] | None = None
    more: int = 0


class Recorded(msgspec.Struct, frozen=True):
    """One instance of a snapshot."""

    name: str
    instance: str
    record: dict[str, Any]


class Missed(msgspec.Struct, frozen=True):
    """One change that was not received when it happened."""

    index: int
    op: str
    name: str
    instance: str
    record: dict[str, Any] | None = None
    ts: float = 0.0


class Follower:
    """One watch. Whatever events are lost, the reported changes lead to the broker's state."""

    def __init__(self, given: dict[str, Any] | None = None) -> None:
        try:
            self._filter = filters.parse(msgspec.json.encode(given or {}))
        except Refusal as refusal:
            raise BadRequest(refusal.why, refusal.code) from None
        self.topic = self._filter.topic.encode()
        self._is_of_all = not self._filter.given
        self.phase = Phase.SHUT
        self.entries: dict[Key, Entry] = {}
        """The matching instances, as they were reported last."""
        self.epoch = ""
        """The broker's epoch in the last snapshot; empty: there was no snapshot yet."""
        self.last = 0
        """Everything up to this index is in `entries`."""
        self.garbled = 0
        """How many frames and answers could not be decoded."""
        self._held: list[tuple[Heard, bytes]] = []
        self._ticket = 0
        self._tick_due = self._topic_due = 0
        self._retry_at: int | None = None
        self._back_off_ns = seconds(limits.BACK_OFF_MIN_S)
        self._actions: list[Action] = []
        self._changes: list[Change] = []

    @property
    def is_live(self) -> bool:
        """Whether `entries` is the broker's current state, apart from events on their way."""
        return self.phase is Phase.LIVE

    def actions(self) -> list[Action]:
        """What to do, in order; the call empties the list."""
        done, self._actions = self._actions, []
        return done

    def changes(self) -> list[Change]:
        """The changes to report, in order; the call empties the list."""
        changes, self._changes = self._changes, []
        return changes

    # Input

    def opened(self, now: int) -> None:
        """A new SUB socket is connected."""
        self._begin(Phase.JOINING)
        self._held.clear()
        self._tick_due = now + SILENT_NS
        self._actions += [Subscribe(self.topic), Subscribe(TICK)]

    def heard(self, frames: Sequence[bytes], now: int) -> None:
        """A message from the SUB socket; its contents are unchecked."""
        if len(frames) < 2 or frames[0] not in (self.topic, TICK) or self.phase is Phase.SHUT:
            return
        try:
            heard = events.decode(frames[1])
        except UNREADABLE:
            self.garbled += 1
            return
        if frames[0] == TICK:
            self._hear_tick(heard, now)
        else:
            self._hear(heard, frames[2] if len(frames) > 2 else b"", now)

    def answered(self, ticket: int, body: Any, now: int) -> None:
        """A query was answered. Raises CatalogError if the broker refuses the first snapshot."""
        if ticket != self._ticket or self.phase not in (Phase.SNAPSHOT, Phase.CATCHING_UP):
            return
        if isinstance(body, dict) and "Error" in body and not self.epoch:
            self._begin(Phase.SHUT)
            raise error_of(body)
        if self.phase is Phase.CATCHING_UP and body == {"resync": True}:
            self._ask_snapshot()
            return
        try:
            answer = msgspec.convert(body, Answer)
        except msgspec.ValidationError:
            self.garbled += 1
            self.failed(ticket, now)
            return
        self._back_off_ns = seconds(limits.BACK_OFF_MIN_S)
        ANSWERED[self.phase](self, answer, now)

    def failed(self, ticket: int, now: int) -> None:
        """A query got no answer: it is repeated later, with doubling pauses."""
        if ticket == self._ticket and self.phase in (Phase.SNAPSHOT, Phase.CATCHING_UP):
            self._retry_at = now + self._back_off_ns
            self._back_off_ns = min(2 * self._back_off_ns, seconds(limits.BACK_OFF_MAX_S))

    def wake(self, now: int) -> None:
        """Time has passed."""
        if self.phase is Phase.SHUT:
            return
        if self._tick_due <= now:
            self._begin(Phase.SHUT)
            self._held.clear()
            self._actions.append(Reopen())
        elif (self._retry_at is not None and self._retry_at <= now) or (
            self.phase is Phase.LIVE and self._topic_due <= now
        ):
            self._ask_snapshot()

    def deadline(self) -> int | None:
        """When to be woken, in monotonic nanoseconds."""
        if self.phase is Phase.SHUT:
            return None
        dues = [self._tick_due]
        dues += [] if self._retry_at is None else [self._retry_at]
        dues += [self._topic_due] if self.phase is Phase.LIVE else []
        return min(dues)

    # Events

    def _hear_tick(self, tick: Heard, now: int) -> None:
        self._tick_due = now + SILENT_NS
        if self.phase is Phase.JOINING:
            self._ask_snapshot()
        elif self.phase is Phase.LIVE:
            self._compare(tick, tick.index if self._is_of_all else 0)

    def _hear(self, heard: Heard, record: bytes, now: int) -> None:
        self._topic_due = now + TOPIC_SILENT_NS
        if self.phase is Phase.LIVE:
            self._take(heard, record)
        elif self.phase is not Phase.JOINING and len(self._held) < HELD_MAX:
            self._held.append((heard, record))

    def _take(self, heard: Heard, record: bytes) -> None:
        """Handle an event of our topic while no query is pending: the next one, a known one, or one after a gap."""
        if heard.op == events.TICK:
            self._compare(heard, heard.last or 0)
        elif not self._compare(heard, heard.prev):
            self._held.append((heard, record))
        elif heard.index > self.last:
            self._apply(heard, record)

    def _compare(self, heard: Heard, before: int) -> bool:
        """Whether everything up to the index `before` is known; if not, ask for it."""
        if heard.epoch != self.epoch:
            self._ask_snapshot()
        elif before > self.last:
            self._catch_up(heard.index)
        else:
            return True
        return False

    def _apply(self, heard: Heard, record: bytes) -> None:
        key = (heard.name, heard.instance)
        try:
            entry = _entry(*key, msgspec.json.decode(record, type=dict[str, Any])) if record else None
        except UNREADABLE:
            self.garbled += 1
            self._ask_snapshot()
            return
        self.last = heard.index
        self._note(heard.op, key, entry, heard.index, heard.ts)

    def _note(self, op: str, key: Key, entry: Entry | None, index: int, ts: float) -> None:
        """Report a change, and store its result. In a watch of everything, an instance that enters is a new registration."""
        if entry is None or op == "leave":
            self.entries.pop(key, None)
        else:
            self.entries[key] = entry
        shown = "register" if op == "enter" and self._is_of_all else op
        self._changes.append(Change(shown, *key, entry, index, ts))

    # Queries

    def _begin(self, phase: Phase) -> None:
        """Start another phase; answers to earlier queries are ignored from now on."""
        self.phase = phase
        self._ticket += 1
        self._retry_at = None

    def _ask_snapshot(self) -> None:
        self._begin(Phase.SNAPSHOT)
        self._actions.append(Ask(self._ticket, (b"dbp.watch", self._filter.canonical)))

    def _catch_up(self, index: int) -> None:
        """Ask for the changes up to an index, or, if they are very many, for a snapshot instead."""
        if index - self.last > (CATCH_UP_MAX if self._is_of_all else CHANGES_LIST_MAX):
            self._ask_snapshot()
            return
        self._begin(Phase.CATCHING_UP)
        since = msgspec.json.encode({"epoch": self.epoch, "since": self.last})
        self._actions.append(Ask(self._ticket, (b"dbp.changes", since)))

    def _adopt(self, answer: Answer, now: int) -> None:
        """A snapshot has arrived: report the differences to the last reported state."""
        if answer.records is None:
            self.garbled += 1
            self.failed(self._ticket, now)
            return
        fresh = {(row.name, row.instance): _entry(row.name, row.instance, row.record) for row in answer.records}
        is_missed = self.epoch != answer.epoch or self.last != answer.index
        if self.epoch and is_missed:
            self._changes.append(Change("resync", "", "", None, answer.index))
        for key in [key for key in self.entries if key not in fresh]:
            self._note("remove" if self._is_of_all else "leave", key, None, answer.index, 0.0)
        for key, entry in fresh.items():
            if (op := _difference(self.entries.get(key), entry)) is not None:
                self._changes.append(Change(op, *key, entry, answer.index))
        self.entries = fresh
        self.epoch = answer.epoch
        self._go_on(answer.index, now)

    def _replay(self, answer: Answer, now: int) -> None:
        """Missed changes have arrived: report them as if they had come as events."""
        if answer.changes is None or answer.epoch != self.epoch:
            self._ask_snapshot()
            return
        for missed in answer.changes:
            if missed.index > self.last:
                self._replay_one(missed)
        self.last = max(self.last, answer.index)
        if answer.more:
            self._catch_up(self.last + answer.more)
        else:
            self._go_on(self.last, now)

    def _replay_one(self, missed: Missed) -> None:
        key = (missed.name, missed.instance)
        entry = None if missed.record is None else _entry(*key, missed.record)
        was, now = key in self.entries, entry is not None and self._filter.matches(_instance(entry))
        op = missed.op
        if entry is not None and was != now:
            op = "enter" if now else "leave"
        if was or now:
            self._note(op, key, entry, missed.index, missed.ts)

    def _go_on(self, index: int, now: int) -> None:
        """Everything up to this index is reported; continue with the buffered events.

        Those of another epoch are dropped: the next tick shows the new epoch.
        """
        waiting, self._held = self._held, []
        self._begin(Phase.LIVE)
        self.last = index
        self._topic_due = now + TOPIC_SILENT_NS
        for heard, record in waiting:
            if self.phase is not Phase.LIVE:
                self._held.append((heard, record))
            elif heard.epoch == self.epoch:
                self._take(heard, record)


ANSWERED: Final[dict[Phase, Callable[[Follower, Answer, int], None]]] = {
    Phase.SNAPSHOT: Follower._adopt,
    Phase.CATCHING_UP: Follower._replay,
}
"""The method that handles each answer."""


def _entry(name: str, instance: str, record: dict[str, Any]) -> Entry:
    facts = record.pop("_dbp", {})
    return Entry(name=name, instance=instance, record=record, facts=facts if isinstance(facts, dict) else {})


def _instance(entry: Entry) -> Instance:
    """An entry as the broker's own type, with the fields that filters use."""
    instance = Instance(entry.name, entry.instance, "", "")
    instance.record = entry.record
    instance.state = filters.STATES.get(entry.state, State.NONE)
    instance.health = entry.health
    instance.net = str(entry.facts.get("net", ""))
    return instance


def _difference(was: Entry | None, entry: Entry) -> str | None:
    """The `op` of the change from the reported entry to the current one; None: they are equal."""
    if was is None:
        return "enter"
    if was == entry:
        return None
    if was.state != entry.state:
        return entry.state
    return "health" if was.health != entry.health else "update"
