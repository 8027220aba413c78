"""What a receiver outside has got: every range once it is named, over failures, crashes and a journal that needs room (MET-006)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.tables import pairs
from weft.base.chance import Chance
from weft.base.effects import Perform, Persist, Tell
from weft.base.now import SECOND, Now
from weft.base.records import Entry, Record, Stream, StreamRecord
from weft.base.spool import Journaled, Released
from weft.cores.export import limits
from weft.cores.export.core import Export
from weft.cores.export.lane import Lane
from weft.cores.export.messages import (
    ExportBack,
    ExportFailing,
    ExportGaveUp,
    ExportSettings,
    GiveWay,
    RangeFailed,
    RangeSent,
    SendRange,
)
from weft.cores.export.states import TABLE, Cell, On, State

pytestmark = pytest.mark.proves("MET-006", part="the journal is the spool of what goes outside: nothing is lost")

SAMPLES = StreamRecord(Stream.SAMPLES, b"p" * 16, 1, 1, 0, 0, "weft.metric", b"", {"n": 1})
EVENT = StreamRecord(Stream.EVENTS, b"p" * 16, 1, 1, 0, 0, "node.started", b"", {})


class Node:
    """An export core, its journal, and a receiver that takes everything unless it is `down`."""

    def __init__(self, kept: list[Entry] | None = None, sinks: tuple[str, ...] = ("prom",), last: int = 100) -> None:
        self.core = Export(ExportSettings(sinks), Chance("seed"))
        self.journal: list[Entry] = list(kept or [])
        self.last = self.journal[-1][0] if self.journal else last
        self.mono = 5 * SECOND
        self.core.restore(self.journal, self.now)
        self.is_down = self.is_silent = False
        self.taken: list[int] = []
        """Records with samples that the receiver has taken, in order."""
        self.works: list[SendRange] = []
        self.told: list[Any] = []
        self.released = 0
        self.unsaid: list[Record] = []

    @property
    def now(self) -> Now:
        return Now(self.mono, self.mono)

    def write(self, *records: Record) -> None:
        """Records become durable, and every reader hears of them."""
        first = self.last + 1
        self.keep(*records)
        self.core.command(Journaled(first, records), self.now)
        self.settle()

    def keep(self, *records: Record) -> None:
        for record in records:
            self.last += 1
            self.journal.append((self.last, record))

    def settle(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Persist):
                self.keep(*effect.records)
            elif isinstance(effect, Perform):
                self.works.append(effect.work)
                if not self.is_silent:
                    self.answer(effect.work)
            elif isinstance(effect, Tell) and isinstance(effect.event, Released):
                self.released = effect.event.upto
            elif isinstance(effect, Tell):
                self.told.append(effect.event)

    def answer(self, work: SendRange, upto: int | None = None) -> None:
        if self.is_down:
            self.core.command(RangeFailed(work.sink, work.attempt, "refused"), self.now)
        else:
            upto = work.upto if upto is None else upto
            new = [lsn for lsn, each in self.journal if each is SAMPLES and work.after < lsn <= upto]
            self.taken += new
            self.core.command(RangeSent(work.sink, work.attempt, upto, samples=len(new)), self.now)
        self.settle()

    def advance(self, seconds: float) -> None:
        """Let time pass, with every deadline at its instant."""
        ends = self.mono + int(seconds * SECOND)
        while (due := self.core.deadline()) is not None and due <= ends:
            self.mono = max(self.mono, due)
            self.core.wake(self.now)
            self.settle()
        self.mono = ends

    def crashed(self, **more: Any) -> "Node":
        """The node that starts from the journal."""
        again = Node(self.journal, **more)
        again.mono, again.taken = self.mono, self.taken
        return again

    @property
    def written(self) -> list[int]:
        return [lsn for lsn, each in self.journal if each is SAMPLES]

    @property
    def lane(self) -> Lane:
        return self.core.lanes["prom"]


def test_samples_of_a_second_are_named_durably_before_they_are_sent() -> None:
    node = Node()
    node.write(SAMPLES)
    node.write(EVENT, SAMPLES)
    assert [] == node.works
    node.mono += SECOND
    node.core.wake(node.now)
    first, second = node.core.effects()[:2]
    assert isinstance(first, Persist)
    assert isinstance(second, Perform)
    assert SendRange("prom", 1, warm=100, after=100, upto=104) == second.work
    assert [100, 100, 104] == msgspec.msgpack.decode(first.records[0].data)[1:]  # type: ignore[union-attr]  # a CoreRecord


def test_what_comes_while_a_range_is_under_way_goes_next_and_at_once_if_it_is_much() -> None:
    node = Node()
    node.is_silent = True
    node.write(SAMPLES)
    node.advance(1)
    node.write(*[SAMPLES] * (limits.RANGE_LSNS + 5))
    assert 1 == len(node.works)
    node.is_silent = False
    node.answer(node.works[0])
    node.advance(0)
    assert 2 == len(node.works)
    node.advance(1)
    assert node.written == node.taken


def test_a_receiver_that_is_away_is_tried_later_each_time_and_gets_everything_once() -> None:
    node = Node()
    node.is_down = True
    for _ in range(60):
        node.write(SAMPLES)
        node.advance(1)
    assert 5 <= len(node.works) <= 8, "1, 2, 4 … 30 s, and a fifth more or less"
    assert [ExportFailing] == list(map(type, node.told)), "once an hour"
    assert (60, "refused") == (len(node.written), node.lane.why)
    node.is_down = False
    node.advance(40)
    assert node.written == node.taken
    assert [ExportFailing, ExportBack] == list(map(type, node.told))
    assert 0 == node.core.facts()["waiting"]


def test_a_start_sends_the_range_again_that_was_under_way_and_nothing_that_was_taken() -> None:
    node = Node()
    node.write(SAMPLES)
    node.advance(1)
    node.is_silent = True
    node.write(SAMPLES)
    node.advance(1)
    under_way = node.works[-1]
    node.write(SAMPLES)
    again = node.crashed()
    again.advance(0)
    assert (under_way.after, under_way.upto) == (again.works[0].after, again.works[0].upto), "the same range"
    again.advance(2)
    assert node.written == again.taken


def test_a_part_of_a_range_that_was_sent_is_not_sent_again() -> None:
    node = Node()
    node.is_silent = True
    node.write(SAMPLES, SAMPLES, SAMPLES)
    node.advance(1)
    node.answer(node.works[0], upto=102)
    assert [(100, 103), (102, 103)] == [(work.after, work.upto) for work in node.works]
    node.answer(node.works[1])
    assert node.written == node.taken


def test_an_answer_that_does_not_come_is_a_failure_and_a_late_one_is_stale() -> None:
    node = Node()
    node.is_silent = True
    node.write(SAMPLES)
    node.advance(1)
    node.advance(limits.LATE_NS / SECOND)
    assert "no answer for 60 s" == node.lane.why
    node.answer(node.works[0])
    assert (State.RESTING, 1) == (node.lane.state, node.core.counts["stale"])


def test_what_was_there_before_the_first_start_with_a_receiver_is_not_sent() -> None:
    node = Node([(lsn, SAMPLES) for lsn in range(1, 10)])
    node.advance(10)
    assert [] == node.works
    node.write(SAMPLES)
    node.advance(1)
    assert [10] == node.taken


def test_two_minutes_of_the_journal_are_kept_to_calculate_with_and_no_more() -> None:
    node = Node()
    for _ in range(200):
        node.write(SAMPLES)
        node.advance(1)
    place = node.lane.place
    assert place is not None
    assert node.released == place.warm
    kept = sum(lsn > place.warm for lsn in node.written)
    assert 115 <= kept <= 135, kept
    again = node.crashed()
    again.write(SAMPLES)
    again.advance(1)
    assert place.warm == again.works[0].warm


def test_records_that_are_no_samples_hold_nothing() -> None:
    node = Node()
    for _ in range(20):
        node.write(EVENT)
        node.advance(10)
    assert [] == node.works
    assert node.released >= node.last - 15


def test_the_slowest_receiver_holds_the_journal() -> None:
    node = Node(sinks=("prom", "otel"))
    node.is_silent = True
    node.write(SAMPLES)
    node.advance(1)
    node.answer(node.works[0])
    for _ in range(20):
        node.write(SAMPLES)
        node.advance(20)
        for work in node.works[-2:]:
            if work.sink == "otel":
                node.answer(work)
    assert 100 == node.released


def test_a_journal_that_needs_room_takes_it_and_says_how_much_is_lost() -> None:
    node = Node()
    node.is_down = True
    node.write(*[SAMPLES] * 10)
    node.advance(10)
    node.core.command(GiveWay(105), node.now)
    node.settle()
    assert ExportGaveUp("prom", 5) == node.told[-1]
    assert (105, 5) == (node.released, node.core.counts["given_up"])
    node.is_down = False
    node.advance(40)
    assert node.written[5:] == node.taken
    assert node.taken == node.crashed().taken
    node.core.command(GiveWay(105), node.now)
    assert 5 == node.core.counts["given_up"], "asked again, it gives nothing more"


def test_the_place_of_a_receiver_that_the_file_does_not_name_any_more_is_forgotten() -> None:
    node = Node()
    node.write(SAMPLES)
    node.advance(1)
    assert [] == list(node.crashed(sinks=("other",)).core.condense())
    assert 1 == len(list(node.core.condense()))


def test_condensed_it_is_the_same() -> None:
    node = Node()
    node.is_down = True
    node.write(SAMPLES, SAMPLES)
    node.advance(1)
    other = Node([(lsn, each) for lsn, each in enumerate(node.core.condense(), 200)])
    assert node.lane.place == other.lane.place
    assert State.RESTING == other.lane.state


STEPS = st.lists(st.sampled_from(["write", "event", "second", "down", "up", "silent", "crash", "many"]), max_size=40)


@given(STEPS)
def test_over_any_story_every_record_arrives_and_in_order(steps: list[str]) -> None:
    node = Node()
    node.write(EVENT)
    for step in steps:
        if step in ("write", "many"):
            node.write(*[SAMPLES] * (1 if step == "write" else limits.RANGE_LSNS))
        elif step == "event":
            node.write(EVENT)
        elif step == "second":
            node.advance(1)
        elif step == "crash":
            node = node.crashed()
        else:
            node.is_down, node.is_silent = step == "down", step == "silent"
    node.is_down = node.is_silent = False
    node.write(SAMPLES)
    node.advance(300)
    assert node.written == list(dict.fromkeys(node.taken))


@pytest.mark.parametrize(("state", "on", "cell"), list(pairs(TABLE)))
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    assert cell is None or callable(getattr(Lane, cell.do))
    if on in (On.SENT_ALL, On.SENT_MORE, On.SENT_PART, On.FAILED):
        assert (cell is not None) == (state is State.SENDING)
