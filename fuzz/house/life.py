"""The life of one core, driven by choices through its seven verbs (FUZ-002): messages, orders, time, crashes, snapshots.

    life = Life(Cast(make=lambda start: Topology(SETTINGS, NODE, start, Chance(f"x/{start}")), …))
    life.hear(message, Source("control", b"p"))
    life.order(order)
    life.advance(5 * SECOND)
    life.crash()

What it persists is durable at once and travels as bytes. Looked at always: no exception but a refusal; a refusal changes
nothing and asks for nothing; what is kept can be written; no core asks to be woken without time passing; and a core that
is restored from what was kept so far remembers what the live one does.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from fuzz.house.choices import Choices
from fuzz.house.made import Hints, Maker
from fuzz.house.running import outcomes
from weft.base.effects import Confirm, Confirmed, Connect, Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Carried, Entry, Record
from weft.base.spool import FetchRecords, Journaled, RecordsFetched, Released
from weft.sim.digest import Walk
from weft.wire.journal import decode_record, encode_record

WALL: Final = 1_795_000_000 * SECOND
SPANS: Final = (
    0, MILLISECOND, 100 * MILLISECOND, SECOND, 2 * SECOND, 5 * SECOND, 11 * SECOND, 60 * SECOND, 700 * SECOND,
)  # fmt: skip
WAKES_MAX: Final = 200  # at one instant (SIM-004)
STEPS_MAX: Final = 60
READERS: Final = ("carrier", "drain", "store")
"""Cores that are told what was journaled."""
State = Callable[[Any], Any]


def dialled(channel: str) -> Callable[["Life"], Source]:
    """Who is at the other end of the connection that the core has opened last on a channel."""
    return lambda life: Source(channel, life.tags.get(channel, b""))


class Life:
    """A core, its journal, its clock."""

    def __init__(self, cast: "Cast") -> None:
        self._make, self._state, self._begin = cast.make, cast.state, cast.begin
        self.now = Now(10 * SECOND, WALL)
        self.entries: list[Entry] = []
        """All that was kept."""
        self.kept: list[Entry] = []
        """What a start is given: the last snapshot, and what was kept since."""
        self.next_lsn, self.starts = 1, 1
        self.told: list[Any] = []
        self.said: list[Send] = []
        self.works: list[Any] = []
        self.tags: dict[str, bytes] = {}
        """Of the connection that is open, by channel."""
        self.core = self._started(self.starts)
        self.turn()

    def _started(self, start: int) -> Any:
        """A core as a start with what was kept makes it."""
        core = self._make(start)
        core.restore(list(self.kept), self.now)
        for order in self._begin:
            core.command(order, self.now)
        return core

    # Verbs

    def hear(self, message: Any, source: Source) -> None:
        """Somebody says it."""
        before = self._whole()
        try:
            self.core.receive(message, source, self.now)
        except PeerError as error:
            outcomes.add(("refused", error.code))
            wanted = self.core.effects()
            is_answer = all(isinstance(effect, Send) and effect.peer == source.peer for effect in wanted)
            assert is_answer, f"refused as {error.code}, and more is wanted than an answer: {wanted}"
            assert before == self._whole(), f"refused as {error.code}, and something is different"
        else:
            outcomes.add(("heard", type(message).__name__))
        self.turn()

    def order(self, order: Any) -> None:
        """Somebody orders it."""
        self.core.command(order, self.now)
        self.turn()

    def keep(self, *records: Record) -> None:
        """Another core of the node has these kept."""
        self._keep(Persist(records))
        self.turn()

    def advance(self, span_ns: int) -> None:
        """Time passes, and the core is woken whenever it asks."""
        until, wakes = self.now.mono + span_ns, 0
        while (due := self.core.deadline()) is not None and due <= until:
            wakes = 0 if due > self.now.mono else wakes + 1
            assert wakes < WAKES_MAX, "it asks to be woken again and again"
            self._set(max(due, self.now.mono))
            self.core.wake(self.now)
            self.turn()
        self._set(until)

    def crash(self) -> None:
        """It ends, and starts again with what was kept."""
        self.starts += 1
        self._set(self.now.mono + SECOND)
        self.core = self._started(self.starts)
        self.works.clear()
        self.turn()

    def snapshot(self) -> None:
        """A start is given a snapshot from now on, and what is kept behind it (JRN-040)."""
        self.kept = [(0, decode_record(encode_record(record))) for record in self.core.condense()]

    # What it wants

    def turn(self) -> None:
        """Do what it wants until it wants nothing."""
        for _ in range(WAKES_MAX):
            effects = self.core.effects()
            if not effects:
                return
            for effect in effects:
                self._perform(effect)
        raise AssertionError("it wants something again and again")

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Persist():
                self._keep(effect)
            case Connect():
                self.tags[effect.channel] = effect.tag
            case Send():
                outcomes.add(
                    ("said", f"{type(effect.message).__name__} {getattr(effect.message, 'command', '')!r:.12}")
                )
                self.said = [*self.said[-50:], effect]
            case Confirm():
                answer = Confirmed(effect.channel, effect.peer, effect.count, effect.token, 0)
                self.core.command(answer, self.now)
            case Perform(FetchRecords() as work):
                self.core.command(self._fetched(work), self.now)
            case Perform():
                self.works.append(effect.work)
            case Tell():
                self._hear(effect.event)
            case Reply():
                outcomes.add(("reply", type(effect.answer).__name__))

    def _keep(self, persist: Persist) -> None:
        records = tuple([decode_record(encode_record(record)) for record in persist.records])
        first, self.next_lsn = self.next_lsn, self.next_lsn + len(records)
        entries = list(enumerate(records, first))
        self.entries += entries
        self.kept += entries
        if self.core.name in READERS and (self.core.name == "store" or any(isinstance(r, Carried) for r in records)):
            self.core.command(Journaled(first, persist.records), self.now)

    def _fetched(self, work: FetchRecords) -> RecordsFetched:
        found = [entry for entry in self.entries if entry[0] > work.after][:40]
        upto = found[-1][0] if len(found) == 40 else max(work.after, self.next_lsn - 1)
        return RecordsFetched(work.holder, work.after, upto, tuple(found))

    def _hear(self, event: Any) -> None:
        outcomes.add(("told", type(event).__name__))
        self.told = [*self.told[-50:], event]
        if isinstance(event, Released):
            assert event.upto < self.next_lsn, "it lets go of what is not there"

    # What must hold

    def check(self) -> None:
        """A start with what was kept so far remembers what this one does."""
        assert self._state(self.core) == self._state(self._started(self.starts + 1)), "restored, it is another one"

    def _whole(self) -> bytes:
        return b"".join(Walk().pieces(self.core, 0))

    def _set(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)


class Cast(NamedTuple):
    """Who is who in the story of a core."""

    make: Callable[[int], Any]
    """A core for the start of that number."""
    says: Sequence[tuple[Sequence[Source | Callable[[Life], Source]], Sequence[Any], Callable[[Any], Any]]]
    """Where something is heard, which types of messages, and how each travels: what comes out of encoding and decoding."""
    orders: Sequence[Any]
    hints: Hints = {}
    state: State = lambda core: list(core.condense())
    works: Callable[[Any, Choices], Any] = lambda work, choices: None
    """The outcome of a work, as an order; None: there is none."""
    acts: Sequence[Callable[[Life, Choices], None]] = ()
    """What else may happen to the node."""
    begin: Sequence[Any] = ()
    """Orders with which each start begins."""


def play(cast: Cast, data: bytes) -> Life:
    """The story that these bytes tell."""
    choices = Choices(data)
    maker, life = Maker(choices, cast.hints), Life(cast)
    for _ in range(STEPS_MAX):
        if choices.is_over:
            break
        _step(life, cast, maker)
        life.check()
    life.snapshot()
    life.check()
    return life


def _step(life: Life, cast: Cast, maker: Maker) -> None:
    choices, kind = maker.choices, maker.choices.below(20 if cast.acts else 16)
    if kind < 7 and cast.says:
        sources, kinds, travel = choices.pick(cast.says)
        message = _travelled(travel, maker.one_of(kinds))
        if message is not None:
            source = choices.pick(sources)
            life.hear(message, source if isinstance(source, Source) else source(life))
    elif kind < 11:
        life.order(maker.one_of(cast.orders))
    elif kind < 13:
        life.advance(choices.pick(SPANS))
    elif kind == 13 and life.works:
        outcome = cast.works(life.works.pop(0), choices)
        if outcome is not None:
            life.order(outcome)
    elif kind == 14:
        life.crash()
    elif kind == 15:
        life.snapshot()
    elif kind > 15:
        choices.pick(cast.acts)(life, choices)


def _travelled(travel: Callable[[Any], Any], message: Any) -> Any:
    """The message as the other end reads it; None: it cannot be said."""
    try:
        return travel(message)
    except (PeerError, AssertionError, UnicodeEncodeError, OverflowError):
        return None
