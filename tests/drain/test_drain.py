"""The drain core: its table, its timing, and that every record ends in exactly one segment."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drain.world import SETTINGS, Violated, World, a_record, played
from weft.base.effects import Perform, Persist, Source, Tell
from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import EraRecord, LostRecord, Record, StreamRecord
from weft.base.spool import FetchRecords, Journaled, RecordsFetched, Released
from weft.cores.drain import limits
from weft.cores.drain.core import Cursor, Drain
from weft.cores.drain.lane import Lane, Moment, Noted
from weft.cores.drain.messages import (
    BeginBehind,
    DrainClosed,
    DrainSettings,
    InspectLake,
    LakeBack,
    LakeFailed,
    LakeFound,
    LakeFull,
    LakeRefused,
    SegmentFailed,
    SegmentPublished,
    SegmentWritten,
    Stop,
    StreamTip,
    WriteSegment,
)
from weft.cores.drain.states import TABLE, Cell, On, State
from weft.cores.kit.outbox import Outbox

ZEROS = "0" * 32


def at(ns: int) -> Now:
    return Now(ns, 10**18 + ns)


def sample(rows: int = 1, stream: int = 1) -> StreamRecord:
    return StreamRecord(stream, b"n" * 16, 1, 1, 1, 1, "weft.metric", b"p" * 100, {"n": rows})


class Bench:
    """A core that has found an empty lake and an empty journal; asks for its effects after each step."""

    def __init__(self, settings: DrainSettings = SETTINGS) -> None:
        self.core = Drain(settings)
        self.now = 0
        self.lsn = 0
        self.core.wake(at(0))
        assert [Perform(InspectLake())] == self.core.effects()
        self.core.command(LakeFound(()), at(0))
        assert [Perform(FetchRecords("drain", 0, 4 << 20))] == self.core.effects()
        self.core.command(RecordsFetched("drain", 0, 0, ()), at(0))
        assert [] == self.core.effects()

    def journaled(self, *records: Record) -> list[Any]:
        first, self.lsn = self.lsn + 1, self.lsn + len(records)
        self.core.command(Journaled(first, records), at(self.now))
        return self.core.effects()

    def after(self, ns: int) -> list[Any]:
        """Time passes; the core is only woken if it asked for it."""
        self.now += ns
        due = self.core.deadline()
        if due is not None and due <= self.now:
            self.core.wake(at(self.now))
        return self.core.effects()

    def hear(self, order: Any) -> list[Any]:
        self.core.command(order, at(self.now))
        return self.core.effects()


# The table.


def test_every_cell_names_a_method_of_the_lane() -> None:
    assert [] == [cell.do for cell in TABLE.values() if not callable(getattr(Lane, cell.do, None))]


def test_every_state_is_reached_and_left_until_closed() -> None:
    reached = {State.IDLE}
    for _ in State:
        reached |= {cell.then for (state, _), cell in TABLE.items() if state in reached}
    assert set(State) == reached
    assert {state for state, _ in TABLE} == set(State) - {State.CLOSED}


def test_every_state_that_waits_can_be_stopped() -> None:
    for state in set(State) - {State.CLOSED}:
        assert (state, On.STOPPED) in TABLE
    assert all(cell.then is State.CLOSED for (_, on), cell in TABLE.items() if on is On.OVERDUE)


PATHS: dict[State, list[On]] = {
    State.IDLE: [],
    State.OPEN: [On.RECORD],
    State.WRITING: [On.RECORD, On.DUE],
    State.FULL: [On.RECORD, On.DUE, On.NO_SPACE],
    State.FAILED: [On.RECORD, On.DUE, On.REFUSED],
    State.CLOSED: [On.STOPPED],
}


@pytest.mark.parametrize("on", On)
@pytest.mark.parametrize("state", State)
def test_walk_of_the_table(state: State, on: On) -> None:
    outbox = Outbox()
    lane = Lane(1, SETTINGS, outbox)
    moment = Moment(5, Noted(1, 10, 100, 100))
    for step in PATHS[state]:
        lane.turn(step, moment)
    assert state is lane.state
    outbox.take()
    lane.turn(on, moment)
    cell = TABLE.get((state, on), Cell("rest", state))
    assert cell.then is lane.state
    orders = [Perform(WriteSegment(1, 1, 1, 1, ZEROS))] if cell.do == "order_segment" else []
    assert orders == outbox.take()


# What is not for the lake.


@pytest.mark.proves("LAK-003")
@pytest.mark.parametrize("stream", [OUTBOX, INBOX])
def test_mail_under_way_is_never_drained_and_holds_nothing_back(stream: int) -> None:
    bench = Bench()
    mail = StreamRecord(stream, b"n" * 16, 1, 1, 1, 1, "demo.report", b"hello", {"to": ["PARENTSOF"]})
    notes = (LostRecord(stream, b"n" * 16, 1, 2, 2, "spool-full"), EraRecord(stream, b"n" * 16, 2, 1, 2))
    assert [Tell(Released("drain", 3))] == bench.journaled(mail, *notes)
    assert (None, (0, 0)) == (bench.core.deadline(), bench.core.behind)
    assert [] == bench.journaled(mail, sample())
    assert [Perform(WriteSegment(1, 1, 5, 5, ZEROS))] == bench.after(300 * MILLISECOND)


@pytest.mark.proves("LAK-007")
def test_mail_that_is_read_again_at_a_start_is_not_drained_either() -> None:
    core = Drain(SETTINGS)
    core.command(LakeFound(()), at(0))
    core.effects()
    mail = StreamRecord(INBOX, b"n" * 16, 1, 1, 1, 1, "demo.report", b"hello", {"to": ["PARENTSOF"]})
    core.command(RecordsFetched("drain", 0, 2, ((1, mail), (2, sample()))), at(0))
    assert (1, 2) == (core.behind[0], core.lanes[1].first_waiting())


# When a segment is cut.


@pytest.mark.proves("LAK-003")
def test_idle_time_cuts() -> None:
    bench = Bench()
    assert [] == bench.journaled(sample())
    assert 300 * MILLISECOND == bench.core.deadline()
    assert [Perform(WriteSegment(1, 1, 1, 1, ZEROS))] == bench.after(300 * MILLISECOND)


@pytest.mark.proves("LAK-003")
def test_age_cuts_under_steady_input() -> None:
    bench = Bench()
    for _ in range(10):
        assert [] == bench.journaled(sample())
        assert [] == bench.after(99 * MILLISECOND)
    bench.journaled(sample())
    assert [Perform(WriteSegment(1, 1, 1, 11, ZEROS))] == bench.after(10 * MILLISECOND)


@pytest.mark.proves("LAK-003")
def test_with_many_rows_a_quarter_of_the_age_cuts_so_fast_streams_are_fresh_and_slow_ones_make_no_more_files() -> None:
    bench = Bench(DrainSettings(age_s=1.0))
    bench.journaled(sample(1_000))
    bench.after(200 * MILLISECOND)
    bench.journaled(sample(999))
    assert [] == bench.after(50 * MILLISECOND)
    assert [Perform(WriteSegment(1, 1, 1, 3, ZEROS))] == bench.journaled(sample(1))
    slow = Bench(DrainSettings(age_s=10.0, idle_s=60.0))
    slow.journaled(sample(2_000))
    assert 2_500 * MILLISECOND == slow.core.deadline()


@pytest.mark.proves("LAK-003")
def test_rows_cut_before_the_record_that_would_be_too_many() -> None:
    bench = Bench(DrainSettings(rows_max=250))
    assert [] == bench.journaled(sample(100), sample(100))
    assert [Perform(WriteSegment(1, 1, 1, 2, ZEROS))] == bench.journaled(sample(100))
    assert [Persist, Tell, Tell] == [type(e) for e in bench.hear(SegmentWritten(1, 1, 2, 200, 9, "a" * 32))]
    assert [Perform(WriteSegment(1, 2, 3, 3, "a" * 32))] == bench.after(300 * MILLISECOND)


@pytest.mark.proves("LAK-003")
def test_bytes_cut() -> None:
    bench = Bench(DrainSettings(bytes_max=1000))
    assert [] == bench.journaled(*[sample()] * 3)
    assert [Perform(WriteSegment(1, 1, 1, 3, ZEROS))] == bench.journaled(sample())


def test_a_thin_stream_in_a_thick_journal_is_cut_before_it_spans_too_much() -> None:
    bench = Bench(DrainSettings(rows_max=250_000, age_s=60, idle_s=60))
    thick = StreamRecord(1, b"n" * 16, 1, 1, 1, 1, "", bytes(8 << 20), {})
    bench.journaled(sample(stream=4))
    for _ in range(4):
        bench.journaled(thick)
    works = [effect.work for effect in bench.journaled(sample(stream=4)) if isinstance(effect, Perform)]
    assert WriteSegment(4, 1, 1, 1, ZEROS) in works


# What follows a publication.


@pytest.mark.proves("LAK-002", "LAK-005")
def test_the_cursor_is_kept_before_anybody_hears_of_the_segment() -> None:
    bench = Bench()
    bench.journaled(sample(5))
    bench.after(SECOND)
    effects = bench.hear(SegmentWritten(1, 1, 1, 5, 4711, "a" * 32))
    persist, published, released = effects
    assert isinstance(persist, Persist)
    assert Tell(SegmentPublished(1, 1, 5, 4711, 1)) == published
    assert Tell(Released("drain", 1)) == released
    assert list(bench.core.condense()) == list(persist.records)


def test_a_quiet_stream_holds_nobody_back_and_a_waiting_one_does() -> None:
    bench = Bench()
    bench.journaled(sample(stream=3), sample(), sample())
    orders = bench.after(SECOND)
    assert [1, 3] == [order.work.stream for order in orders]
    effects = bench.hear(SegmentWritten(1, 1, 3, 2, 1, "a" * 32))
    assert [] == [e for e in effects if isinstance(e, Tell) and isinstance(e.event, Released)]
    effects = bench.hear(SegmentWritten(3, 1, 1, 1, 1, "a" * 32))
    assert Tell(Released("drain", 3)) == effects[-1]


# Trouble.


@pytest.mark.proves("LAK-015")
def test_full_lake_is_tried_again_ever_later_and_said_once() -> None:
    bench = Bench()
    bench.journaled(sample())
    order = bench.after(SECOND)
    waits = []
    for attempt in range(8):
        told = bench.hear(SegmentFailed(1, 1, "full", "no space"))
        assert ([Tell(LakeFull("no space"))] if attempt == 0 else []) == told
        due = bench.core.deadline()
        assert due is not None
        waits.append((due - bench.now) // SECOND)
        assert order == bench.after(due - bench.now)
    assert [1, 2, 4, 8, 16, 32, 60, 60] == waits
    assert Tell(LakeBack()) in bench.hear(SegmentWritten(1, 1, 1, 1, 1, "a" * 32))


@pytest.mark.proves("LAK-015")
def test_failed_lake_is_tried_again_after_a_minute() -> None:
    bench = Bench()
    bench.journaled(sample())
    order = bench.after(SECOND)
    assert [Tell(LakeFailed("EIO"))] == bench.hear(SegmentFailed(1, 1, "failed", "EIO"))
    assert [] == bench.after(60 * SECOND - 1)
    assert order == bench.after(1)


def test_a_lake_that_cannot_be_looked_at_is_asked_again() -> None:
    core = Drain()
    core.wake(at(0))
    core.effects()
    core.command(LakeRefused("failed", "not mounted"), at(0))
    assert [Tell(LakeFailed("not mounted"))] == core.effects()
    assert SECOND == core.deadline()
    core.wake(at(SECOND))
    assert [Perform(InspectLake())] == core.effects()
    core.command(LakeFound(()), at(SECOND))
    assert Tell(LakeBack()) in core.effects()


@pytest.mark.proves("LAK-015")
def test_over_the_limit_nothing_is_noted_and_later_it_is_read_again() -> None:
    bench = Bench(DrainSettings(rows_max=250_000))
    bench.journaled(*[sample(100_000)] * 5)
    bench.hear(SegmentFailed(1, 1, "full"))
    before = bench.core.behind
    assert 500_000 == before[0]
    bench.journaled(*[sample(100_000)] * 4)
    assert before == bench.core.behind
    assert 5 == bench.core.seen
    due = bench.core.deadline()
    assert due is not None
    bench.after(due - bench.now)
    effects = bench.hear(SegmentWritten(1, 1, 2, 200_000, 1, "a" * 32))
    fetches = [e.work for e in effects if isinstance(e, Perform) and isinstance(e.work, FetchRecords)]
    assert [FetchRecords("drain", 5, 4 << 20)] == fetches
    entries = tuple((lsn, sample(10)) for lsn in (6, 7, 8, 9))
    bench.hear(RecordsFetched("drain", 5, 9, entries))
    assert 9 == bench.core.seen
    bench.journaled(sample(7))
    assert 10 == bench.core.seen


# The start.


def restored(cursor: Cursor, *tips: StreamTip) -> tuple[Drain, list[Any]]:
    before = Drain()
    before._cursor = cursor
    core = Drain()
    core.restore([(77, record) for record in before.condense()], at(0))
    core.wake(at(0))
    core.effects()
    core.command(LakeFound(tips), at(0))
    return core, core.effects()


@pytest.mark.proves("LAK-007")
def test_start_behind_the_cursor_when_the_lake_agrees() -> None:
    core, effects = restored(Cursor(40, ((1, 3, 50), (4, 1, 41))), StreamTip(1, 3, 50, "a"), StreamTip(4, 1, 41, "b"))
    assert Perform(FetchRecords("drain", 40, 4 << 20)) == effects[0]
    entries = ((41, sample(stream=4)), (45, sample()), (50, sample()), (51, sample()), (52, sample(stream=4)))
    core.command(RecordsFetched("drain", 40, 52, entries), at(0))
    core.effects()
    core.wake(at(SECOND))
    assert [WriteSegment(1, 4, 51, 51, "a"), WriteSegment(4, 2, 52, 52, "b")] == [
        effect.work
        for effect in core.effects()
        if isinstance(effect, Perform) and isinstance(effect.work, WriteSegment)
    ]


@pytest.mark.proves("LAK-007")
def test_a_lake_that_is_ahead_of_the_cursor_wins() -> None:
    core, _ = restored(Cursor(40, ((1, 3, 40),)), StreamTip(1, 5, 60, "a"))
    core.command(RecordsFetched("drain", 40, 60, ((45, sample()), (60, sample()))), at(0))
    core.wake(at(SECOND))
    assert (0, 0) == core.behind


@pytest.mark.proves("LAK-007")
def test_a_lake_that_is_behind_the_cursor_wins() -> None:
    _, effects = restored(Cursor(40, ((1, 3, 40), (4, 2, 30))), StreamTip(1, 2, 20, "a"), StreamTip(4, 2, 30, "b"))
    assert Perform(FetchRecords("drain", 20, 4 << 20)) == effects[0]
    _, effects = restored(Cursor(40, ((1, 3, 40),)))
    assert Perform(FetchRecords("drain", 0, 4 << 20)) == effects[0]


def test_records_that_come_during_the_walk_are_read_in_their_turn() -> None:
    core, _ = restored(Cursor(0, ()))
    core.command(Journaled(8, (sample(), sample())), at(0))
    core.command(RecordsFetched("drain", 0, 5, ((2, sample()),)), at(0))
    assert [Perform(FetchRecords("drain", 5, 4 << 20))] == core.effects()
    core.command(RecordsFetched("drain", 5, 5, ()), at(0))  # not readable yet: the sync is still under way
    assert [] == core.effects()
    assert 50_000_000 == core.deadline()
    core.wake(at(limits.FETCH_AGAIN_NS))
    assert [Perform(FetchRecords("drain", 5, 4 << 20))] == core.effects()
    core.command(RecordsFetched("drain", 5, 9, ((8, sample()), (9, sample()))), at(limits.FETCH_AGAIN_NS))
    core.command(Journaled(10, (sample(),)), at(limits.FETCH_AGAIN_NS))
    assert (4, 10) == (core.behind[0], core.seen)


# The end.


def test_stop_writes_what_waits_and_closes() -> None:
    bench = Bench(DrainSettings(rows_max=250))
    bench.journaled(sample(200), sample(200), sample(stream=3))
    works = [effect.work for effect in bench.hear(Stop())]
    assert [WriteSegment(3, 1, 3, 3, ZEROS)] == works  # stream 1 is being written already
    effects = bench.hear(SegmentWritten(1, 1, 1, 200, 1, "a" * 32))
    assert Perform(WriteSegment(1, 2, 2, 2, "a" * 32)) in effects
    bench.hear(SegmentWritten(1, 2, 2, 200, 1, "b" * 32))
    assert Tell(DrainClosed(is_whole=True)) == bench.hear(SegmentWritten(3, 1, 3, 1, 1, "c" * 32))[-1]
    assert bench.core.deadline() is None


def test_stop_waits_ten_seconds_at_most() -> None:
    bench = Bench()
    bench.journaled(sample())
    bench.hear(Stop())
    assert [] == bench.after(10_000_000_000 - 1)
    assert [Tell(DrainClosed(is_whole=False))] == bench.after(1)


def test_stop_does_not_wait_for_a_lake_that_refuses() -> None:
    bench = Bench()
    bench.journaled(sample())
    bench.hear(Stop())
    assert [Tell(LakeFull("")), Tell(DrainClosed(is_whole=False))] == bench.hear(SegmentFailed(1, 1, "full"))


def test_records_after_the_stop_are_left_to_the_next_start() -> None:
    bench = Bench()
    bench.journaled(sample(), sample(stream=3))
    bench.hear(Stop())
    bench.journaled(sample())
    effects = [
        *bench.hear(SegmentWritten(1, 1, 1, 1, 1, "a" * 32)),
        *bench.hear(SegmentWritten(3, 1, 2, 1, 1, "a" * 32)),
    ]
    assert [Released("drain", 1), Released("drain", 2)] == [
        e.event for e in effects if isinstance(e, Tell) and isinstance(e.event, Released)
    ]


def test_stop_before_the_lake_was_found() -> None:
    core = Drain()
    core.command(Stop(), at(0))
    assert [Tell(DrainClosed(is_whole=False))] == core.effects()


def test_the_drain_has_no_links() -> None:
    with pytest.raises(PeerError):
        Drain().receive(object(), Source("up", b""), at(0))


# The whole.


@pytest.mark.proves("LAK-002", "LAK-006", "LAK-007")
@given(seed=st.integers(0, 1 << 32))
def test_every_record_is_in_exactly_one_segment_whatever_fails(seed: int) -> None:
    played(seed)


def test_a_life_is_repeatable() -> None:
    assert played("x").lake == played("x").lake


def test_a_stopped_world_starts_again() -> None:
    world = World("stop")
    world.grow(100)
    world.stop()
    world.run(20 * SECOND)
    assert world.is_closed()
    world.crash()
    world.run(20 * SECOND)
    assert world.next_lsn - 1 >= world.core.seen >= 100


class TrustsItsCursor(Drain):
    """Believes what it has kept, not what the lake has."""

    def _lake_found(self, order: LakeFound, now: Now) -> None:
        super()._lake_found(order, now)
        self.seen = max(self._cursor.released, self.seen)

    def _publish(self, order: SegmentWritten) -> None:
        super()._publish(order)
        self._cursor = Cursor(self._heard, self._cursor.tips)
        self._outbox.persist((self._cursor_record(),), 1)

    _ORDERS = Drain._ORDERS | {LakeFound: _lake_found}  # type: ignore[misc]  # a planted bug overrides what is final


class ReleasesEarly(Drain):
    """Lets the journal forget what has only been ordered to be written."""

    def _releasable(self) -> int:
        return self.seen


class ReusesNumbers(Drain):
    """Counts segments by its cursor instead of by the manifests."""

    def _lake_found(self, order: LakeFound, now: Now) -> None:
        kept = {stream: number for stream, number, _ in self._cursor.tips}
        tips = [StreamTip(tip.stream, kept.get(tip.stream, 0), 0, tip.prior) for tip in order.tips]
        super()._lake_found(LakeFound(tuple(tips)), now)

    _ORDERS = Drain._ORDERS | {LakeFound: _lake_found}  # type: ignore[misc]  # a planted bug overrides what is final


class DrainsTwice(Drain):
    """Does not ask what the lake has already."""

    def _note(self, lsn: int, record: Record, now: Now) -> None:
        for lane in self.lanes.values():
            lane.tip = msgspec.structs.replace(lane.tip, lsn=0)
        super()._note(lsn, record, now)


class ForgetsTheWaiting(Drain):
    """Over the limit, goes on behind what it did not note."""

    def _is_swamped(self) -> bool:
        return False

    def _journaled(self, order: Journaled, now: Now) -> None:
        self._is_live = True
        super()._journaled(order, now)

    _ORDERS = Drain._ORDERS | {Journaled: _journaled}  # type: ignore[misc]  # a planted bug overrides what is final


@pytest.mark.parametrize("bug", [TrustsItsCursor, ReleasesEarly, ReusesNumbers, DrainsTwice, ForgetsTheWaiting])
def test_a_planted_bug_is_caught(bug: type[Drain]) -> None:
    for seed in range(200):
        try:
            played(f"bug/{seed}", lambda: bug(SETTINGS))
        except (Violated, AssertionError):
            return
    pytest.fail(f"{bug.__name__} lived through 200 lives")


def test_the_world_draws_all_kinds_of_records() -> None:
    world = World("kinds")
    kinds = {type(a_record(world.chance, lsn)).__name__ for lsn in range(1, 200)}
    assert {"StreamRecord", "LostRecord", "EraRecord", "CoreRecord"} == kinds


def test_a_new_root_drains_behind_what_was_safe_before_also_after_its_next_start() -> None:
    core = Drain(DrainSettings())
    core.command(BeginBehind(7), Now(0, 0))
    (kept,) = [effect for effect in core.effects() if isinstance(effect, Persist)]
    for born in (core, Drain(DrainSettings())):
        born.restore([(8, record) for record in kept.records], Now(0, 0))
        born.command(LakeFound(()), Now(0, 0))
        works = [effect.work for effect in born.effects() if isinstance(effect, Perform)]
        assert [FetchRecords("drain", 7, 4 << 20)] == works
