"""Condensing and forgetting: a start from a snapshot is a start from everything, and nothing goes too early."""

from pathlib import Path

import pytest

from tests.journal.model import DIRECTORY, NODE, SMALL, STATE, WALL, all_entries
from weft.base.now import SECOND
from weft.base.records import CoreRecord, Entry, StreamRecord
from weft.shell.journal import Journal, Limits, Recovery, State, StorageFull
from weft.shell.journal.limits import HOUR_NS
from weft.shell.journal.survey import Survey
from weft.testing.disk import Fault, FaultyFiles, MemoryFiles
from weft.wire.segments import Verdict

WEEK = 7 * 24 * HOUR_NS


def state(number: int) -> CoreRecord:
    return CoreRecord("core", 1, str(number).encode())


def sample(number: int) -> StreamRecord:
    return StreamRecord(1, NODE, 7, number, WALL, WALL, "cpu", bytes(900), {})


class Room:
    """A journal on a memory disk, started as often as wanted."""

    def __init__(self, limits: Limits = SMALL) -> None:
        self.files = MemoryFiles()
        self.files.directories.add(STATE)
        self.limits = limits
        self.journal, self.recovery = self.start()

    def start(self) -> tuple[Journal, Recovery]:
        self.files.kill()
        self.journal, self.recovery = Journal.open(DIRECTORY, NODE, self.files, WALL, self.limits)
        return self.journal, self.recovery

    def names(self, suffix: str) -> list[str]:
        return [name for name in self.files.list(DIRECTORY) if name.endswith(suffix)]

    def entries(self) -> list[Entry]:
        return list(self.start()[1].entries())

    def write(self, *numbers: int) -> None:
        for number in numbers:
            self.journal.write([sample(number)], WALL)


@pytest.mark.proves("JRN-040")
def test_a_start_takes_the_newest_snapshot_and_what_came_after_it() -> None:
    room = Room()
    room.write(1, 2, 3)
    room.journal.snapshot([state(3), CoreRecord("other", 2, b"x")], WALL)
    room.write(4)
    assert [(3, state(3)), (3, CoreRecord("other", 2, b"x")), (4, sample(4))] == room.entries()
    room.journal.snapshot([state(4)], WALL)
    assert [(4, state(4))] == room.entries()
    assert room.recovery.verdicts == "clean"


@pytest.mark.proves("JRN-040")
def test_two_snapshots_are_kept_and_the_older_one_serves_when_the_newest_is_rotten() -> None:
    room = Room()
    for number in range(1, 5):
        room.write(number)
        room.journal.snapshot([state(number)], WALL)
    assert len(room.names(".snap")) == 2
    newest = DIRECTORY / room.names(".snap")[-1]
    room.files.flip(newest, 8 * 110)
    assert [(3, state(3)), (4, sample(4))] == room.entries()
    assert room.recovery.verdicts == f"{newest.name} damaged"
    room.write(5)
    room.journal.snapshot([state(5)], WALL)
    assert newest.name not in room.names(".snap")
    assert [(5, state(5))] == room.entries()


@pytest.mark.proves("JRN-040")
def test_a_snapshot_without_its_seal_is_ignored() -> None:
    room = Room()
    room.write(1)
    room.journal.snapshot([state(1)], WALL)
    path = DIRECTORY / room.names(".snap")[0]
    content = room.files.content()
    room.files = MemoryFiles({**content, path: content[path][:-40]})
    assert [(1, sample(1))] == room.entries()


@pytest.mark.proves("JRN-040")
def test_a_large_snapshot_comes_back_in_order() -> None:
    room = Room(Limits(budget_bytes=1 << 30, ballast_bytes=0, free_bytes_min=0))
    records = [CoreRecord(core, 1, number.to_bytes(4, "big") * 500) for core in ("a", "b") for number in range(2_500)]
    room.write(1)
    room.journal.snapshot(iter(records), WALL)
    assert records == [record for _, record in room.entries()]


@pytest.mark.proves("JRN-040")
def test_a_snapshot_is_due_after_four_segments_or_ten_minutes_with_changes() -> None:
    room = Room(Limits(budget_bytes=1 << 20, segment_bytes=4 << 10, ballast_bytes=0, free_bytes_min=0))
    assert not room.journal.is_snapshot_due(WALL + 600_000_000_000), "nothing has changed"
    room.write(1)
    assert not room.journal.is_snapshot_due(WALL + 600_000_000_000 - SECOND)
    assert room.journal.is_snapshot_due(WALL + 600_000_000_000)
    room.journal.snapshot([state(1)], WALL)
    assert not room.journal.is_snapshot_due(WALL + 600_000_000_000)
    number = 1
    while len(room.journal.shelf.segments) < 5:
        assert not room.journal.is_snapshot_due(WALL)
        number += 1
        room.write(number)
    assert room.journal.is_snapshot_due(WALL)


@pytest.mark.proves("JRN-041")
def test_a_segment_goes_when_it_is_released_and_the_older_snapshot_covers_it() -> None:
    room = Room()
    room.write(*range(1, 41))
    segments = room.names(".seg")
    assert len(segments) > 8
    room.journal.forget(8)
    assert segments == room.names(".seg"), "no snapshot"
    room.journal.snapshot([state(40)], WALL)
    room.journal.forget(8)
    assert segments == room.names(".seg"), "one snapshot, and if that rots there is nothing"
    room.write(41)
    room.journal.snapshot([state(41)], WALL)
    segments = room.names(".seg")
    first = room.journal.shelf.segments[2].first_lsn
    room.journal.forget(first - 1)
    assert segments[2:] == room.names(".seg"), "whole segments, lowest first, as far as they are released"
    room.journal.forget(first)
    assert segments[2:] == room.names(".seg"), "not for a part of a segment"
    assert (first, sample(first)) == next(all_entries(room.journal))
    assert [(41, state(41))] == room.entries()
    before = room.journal.bytes_used
    assert before == sum(len(data) for path, data in room.files.content().items() if path.suffix in (".seg", ".snap"))
    room.journal.forget(40)
    assert before - room.journal.bytes_used > 10_000
    assert room.journal.stats.forgotten == len(segments[2:]) - 1


@pytest.mark.proves("JRN-041")
def test_what_is_released_stays_for_a_week_as_long_as_half_of_the_budget_is_free() -> None:
    kept = Limits(budget_bytes=80_000, segment_bytes=4 << 10, ballast_bytes=0, free_bytes_min=0, released_age_ns=WEEK)
    room = Room(kept)
    room.write(*range(1, 21))
    segments = room.names(".seg")
    for number in (21, 22):
        room.write(number)
        room.journal.snapshot([state(number)], WALL)
    room.journal.forget(20)
    assert segments == room.names(".seg")[: len(segments)]
    room.journal.rest(WALL + WEEK)
    room.journal.forget(20)
    assert [name for name in segments if name in room.names(".seg")] == []
    room = Room(kept)
    room.write(*range(1, 61))
    for number in (61, 62):
        room.write(number)
        room.journal.snapshot([state(number)], WALL)
    room.journal.forget(60)
    assert 30_000 < room.journal.bytes_used <= 40_000, "half of the budget is used, so the oldest goes"


@pytest.mark.proves("JRN-030", "JRN-041")
def test_what_was_full_and_is_released_has_room_again_after_two_snapshots_and_seconds() -> None:
    tight = Limits(budget_bytes=80_000, segment_bytes=4 << 10, ballast_bytes=4 << 10, free_bytes_min=0)
    room = Room(tight)
    journal, number, at = room.journal, 0, WALL
    while journal.state is State.OPEN:
        number += 1
        journal.write([sample(number)], WALL)
    assert not journal.is_snapshot_due(WALL + SECOND), "nobody has released anything"
    journal.forget(number)
    for _ in range(2):
        assert (State.FULL, False) == (journal.state, journal.is_snapshot_due(at + SECOND))
        at += 2 * SECOND
        assert journal.is_snapshot_due(at)
        journal.snapshot([state(number)], at)
        journal.forget(number)
        journal.write([state(number)], at)
    assert State.OPEN is journal.state


def test_a_snapshot_that_finds_no_room_leaves_the_one_before() -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    faulty = FaultyFiles(files, None, Fault.NO_ROOM, ("append",))
    journal, _ = Journal.open(DIRECTORY, NODE, faulty, WALL, SMALL)
    journal.write([sample(1)], WALL)
    journal.snapshot([state(1)], WALL)
    journal.write([sample(2)], WALL)
    faulty.at, faulty.log = 1, []
    with pytest.raises(StorageFull):
        journal.snapshot([state(2)], WALL)
    assert not journal.is_snapshot_due(WALL + 30 * SECOND), "not tried again at once"
    files.kill()
    _, recovery = Journal.open(DIRECTORY, NODE, files, WALL, SMALL)
    assert [(1, state(1)), (2, sample(2))] == list(recovery.entries())


@pytest.mark.proves("JRN-024")
@pytest.mark.parametrize("index", [0, 2, -1])
def test_a_survey_names_what_is_missing(index: int) -> None:
    room = Room()
    room.write(*range(1, 20))
    room.journal.snapshot([state(19)], WALL)
    room.write(*range(20, 30))
    room.journal.snapshot([state(29)], WALL)
    room.journal.close(WALL)
    names = room.names(".seg")
    content = room.files.content()
    gone = DIRECTORY / names[index]
    del content[gone]
    survey = Survey(MemoryFiles(content), DIRECTORY, NODE)
    survey.settle()
    survey.segments[-1].inspect(survey.files, is_last=True)
    survey.follow(survey.snapshot())
    first = int(Path(names[index]).stem, 16)
    if index == 0:
        assert survey.faults == [], "covered by both snapshots"
    else:
        kind = "missing" if index == 2 else "gone"  # of what nothing follows only the note beside the segments knows
        assert [(kind, first)] == [(fault.kind, fault.first_lsn) for fault in survey.faults]
    assert survey.segments[0].inspect(survey.files, is_last=False).verdict is Verdict.CLEAN
