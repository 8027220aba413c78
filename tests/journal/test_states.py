"""The table of section 5.4, walked: a journal in each state hears each answer of the disk."""

from collections.abc import Callable

import pytest

from tests.journal.model import DIRECTORY, NODE, STATE, WALL, all_entries, stop
from weft.base.errors import OurFault, StorageFailed
from weft.base.now import SECOND
from weft.base.records import CoreRecord, DamageRecord, LostRecord, Record, SafeRecord, StreamRecord
from weft.node import settings
from weft.shell.journal import Journal, Limits, State, StorageFull, for_budget
from weft.shell.journal.states import TABLE, On
from weft.testing.disk import CHANGES, Fault, FaultyFiles, MemoryFiles

ROOMY = Limits(budget_bytes=1 << 20, segment_bytes=16 << 10, ballast_bytes=8 << 10, free_bytes_min=0)
SAMPLE = StreamRecord(1, NODE, 1, 1, WALL, WALL, "cpu", bytes(100), {})
KEEPERS: list[Record] = [
    CoreRecord("carrier", 1, b"upto"),
    LostRecord(1, NODE, 1, 1, 9, "spool-full"),
    SafeRecord(1, NODE, 1, 9),
    DamageRecord(1, 2, "0000000000000001.seg", "checksum"),
]


class Bench:
    """A journal on a disk whose size and health are at hand."""

    def __init__(self, limits: Limits = ROOMY) -> None:
        self.memory = MemoryFiles()
        self.memory.directories.add(STATE)
        self.files = FaultyFiles(self.memory)
        self.journal, _ = Journal.open(DIRECTORY, NODE, self.files, WALL, limits)

    @property
    def has_ballast(self) -> bool:
        return "ballast" in self.memory.list(DIRECTORY)

    @property
    def used(self) -> int:
        return sum(len(content) for content in self.memory.content().values())

    def fill(self, left: int = 0) -> None:
        self.memory.capacity = self.used + left

    def fail(self, fault: Fault = Fault.BROKEN, call: str = "append") -> None:
        self.files.at, self.files.fault, self.files._calls, self.files.log = 0, fault, (call,), []

    def changes(self) -> list[str]:
        """What is done to the disk from now on."""
        self.files.at, self.files._calls, self.files.log = None, CHANGES, []
        return self.files.log

    def promise_without_end(self) -> None:
        while True:
            self.journal.write([SAMPLE] * 10, WALL, promised=True)

    def write(self, *records: Record) -> None:
        self.journal.write(records or [SAMPLE], WALL)


def _open(bench: Bench) -> None:
    bench.write()


def _full(bench: Bench) -> None:
    bench.write()
    bench.fill()
    with pytest.raises(StorageFull):
        bench.write()


def _failed(bench: Bench) -> None:
    bench.write()
    bench.fail()
    with pytest.raises(StorageFailed):
        bench.write()


def _closed(bench: Bench) -> None:
    bench.write()
    bench.journal.close(WALL)


REACH: dict[State, Callable[[Bench], None]] = {
    State.OPEN: _open,
    State.FULL: _full,
    State.FAILED: _failed,
    State.CLOSED: _closed,
}


def _good_write(bench: Bench) -> None:
    bench.write(*KEEPERS)


def _no_room(bench: Bench) -> None:
    bench.fill()
    with pytest.raises(StorageFull):
        bench.write(StreamRecord(1, NODE, 1, 1, WALL, WALL, "cpu", bytes(20_000), {}))


def _broken(bench: Bench) -> None:
    bench.fail()
    with pytest.raises(StorageFailed):
        bench.write(*KEEPERS)


def _room(bench: Bench) -> None:
    bench.fill(left=1 << 20)
    bench.journal.rest(WALL + SECOND)


def _stop(bench: Bench) -> None:
    bench.journal.close(WALL)


HEAR: dict[On, Callable[[Bench], None]] = {
    On.WRITTEN: _good_write,
    On.NO_ROOM: _no_room,
    On.BROKEN: _broken,
    On.ROOM: _room,
    On.STOPPED: _stop,
}


@pytest.mark.proves("JRN-030")
@pytest.mark.parametrize("state,on", TABLE, ids=lambda part: part.name)
def test_every_row_of_the_table_is_what_happens(state: State, on: On) -> None:
    bench = Bench()
    REACH[state](bench)
    assert bench.journal.state is state
    HEAR[on](bench)
    assert TABLE[state, on].then is bench.journal.state
    if bench.journal.state in (State.OPEN, State.FULL):
        assert bench.has_ballast is (bench.journal.state is State.OPEN)
    stop(bench.journal)


def test_every_row_names_something_that_a_journal_does() -> None:
    assert [cell.do for cell in TABLE.values() if cell.do and not callable(getattr(Journal, cell.do))] == []


def test_what_has_no_row_cannot_happen() -> None:
    absent = {(state, on) for state in State for on in On} - TABLE.keys()
    never = {(State.OPEN, On.ROOM)} | {(State.FAILED, on) for on in On if on is not On.STOPPED}
    assert absent == never | {(State.CLOSED, on) for on in On}
    bench = Bench()
    _failed(bench)
    done = bench.changes()
    with pytest.raises(StorageFailed):
        bench.write()
    bench.journal.rest(WALL + 10 * SECOND)
    bench.journal.forget(1)
    bench.journal.close(WALL)
    bench.journal.close(WALL)
    with pytest.raises(OurFault):
        bench.write()
    assert done == [], "a failed journal does nothing to its disk any more"


@pytest.mark.proves("JRN-001", "JRN-003")
@pytest.mark.proves("MEA-028", part="one sync for a group")
def test_a_turn_is_one_append_and_one_sync() -> None:
    bench = Bench()
    done = bench.changes()
    bench.write(*[SAMPLE] * 100)
    bench.write(*KEEPERS)
    assert ["append", "sync"] * 2 == done


@pytest.mark.proves("JRN-012")
def test_a_segment_and_its_name_are_durable_before_its_first_batch_and_each_start_begins_one() -> None:
    bench = Bench()
    bench.write()
    names = [name for name in bench.memory.list(DIRECTORY) if name.endswith(".seg")]
    done = bench.changes()
    bench.write(StreamRecord(1, NODE, 1, 2, WALL, WALL, "cpu", bytes(17_000), {}))
    seal, begin, batch = ["append", "sync"], ["create", "append", "sync", "sync_directory"], ["append", "sync"]
    note = ["unlink", "create", "append", "sync", "rename", "sync_directory"]
    assert done == [*seal, *begin, *note, *batch]
    bench.journal.close(WALL)
    before = bench.memory.content()
    for _ in range(3):
        journal, _ = Journal.open(DIRECTORY, NODE, bench.memory, WALL, ROOMY)
        journal.close(WALL)
    after = bench.memory.content()
    assert [before[DIRECTORY / name] for name in names] == [after[DIRECTORY / name] for name in names], (
        "never appended to"
    )
    assert len([path for path in after if path.suffix == ".seg"]) == 3, "and the empty ones go"


@pytest.mark.proves("JRN-001")
def test_what_may_wait_becomes_durable_with_the_next_wall_in_the_same_batch() -> None:
    bench = Bench()
    done = bench.changes()
    assert bench.journal.buffer([SAMPLE, SAMPLE]) == 1
    assert bench.journal.buffer([SAMPLE]) == 3
    assert (bench.journal.next_lsn, bench.journal.durable_lsn, done) == (4, 0, [])
    assert bench.journal.read(0, 1 << 20) == ([], 0)
    assert bench.journal.write(KEEPERS, WALL) == 4
    assert (bench.journal.next_lsn, bench.journal.durable_lsn, done) == (8, 7, ["append", "sync"])
    bench.journal.buffer([SAMPLE])
    bench.journal.flush(WALL)
    assert [(lsn, record) for lsn, record in all_entries(bench.journal)] == list(
        enumerate([SAMPLE, SAMPLE, SAMPLE, *KEEPERS, SAMPLE], 1)
    )


@pytest.mark.proves("JRN-010")
def test_rest_and_an_orderly_stop_mark_what_is_durable() -> None:
    bench = Bench()
    bench.write()
    done = bench.changes()
    bench.journal.rest(WALL + 4 * SECOND)
    assert done == []
    bench.journal.rest(WALL + 5 * SECOND)
    bench.journal.rest(WALL + 60 * SECOND)
    assert done == ["append", "sync"], "one mark, however long the rest"
    bench.write()
    del done[:]
    bench.journal.close(WALL)
    assert done == ["append", "sync"]


@pytest.mark.proves("JRN-005")
@pytest.mark.parametrize("fault", [Fault.BROKEN, Fault.NO_ROOM, Fault.READ_ONLY], ids=lambda fault: fault.name)
def test_a_sync_that_failed_is_never_repeated(fault: Fault) -> None:
    bench = Bench()
    bench.fail(fault, "sync")
    with pytest.raises(StorageFailed) as failure:
        bench.write()
    assert not isinstance(failure.value, StorageFull), "whatever the disk calls it"
    assert bench.journal.state is State.FAILED
    done = bench.changes()
    with pytest.raises(StorageFailed):
        bench.write()
    bench.journal.rest(WALL + 10 * SECOND)
    bench.journal.close(WALL)
    assert done == []


@pytest.mark.proves("JRN-005")
def test_a_short_write_is_cut_back_and_synced_before_anything_else_is_written() -> None:
    bench = Bench()
    bench.write()
    size = bench.used
    bench.fail(Fault.SHORT)
    bench.files._calls = CHANGES
    with pytest.raises(StorageFull):
        bench.write()
    assert bench.files.log == ["append", "truncate", "sync", "unlink", "sync_directory"]
    assert bench.used == size - ROOMY.ballast_bytes
    assert bench.journal.stats.cut_back == 1


@pytest.mark.proves("JRN-030")
def test_a_full_disk_still_takes_what_keeps_promises_and_refuses_the_rest() -> None:
    bench = Bench()
    bench.write()
    bench.fill(left=50)
    with pytest.raises(StorageFull):
        bench.write()
    assert (bench.journal.state, bench.has_ballast) == (State.FULL, False)
    lsn = bench.journal.next_lsn
    for record in KEEPERS:
        bench.write(record)
    assert bench.journal.next_lsn == lsn + len(KEEPERS)
    done = bench.changes()
    with pytest.raises(StorageFull):
        bench.journal.buffer([SAMPLE])
    with pytest.raises(StorageFull):
        bench.write(CoreRecord("carrier", 1, b""), SAMPLE)
    assert done == [], "a refusal does not even try"
    bench.memory.capacity += 1 << 20
    bench.journal.rest(WALL + SECOND)
    assert (bench.journal.state, bench.has_ballast) == (State.OPEN, True)
    bench.write()
    stop(bench.journal)
    bench.memory.kill()
    journal, _ = Journal.open(DIRECTORY, NODE, bench.memory, WALL, ROOMY)
    expected = [SAMPLE, *KEEPERS, SAMPLE]
    assert expected == [record for _, record in all_entries(journal)]


@pytest.mark.proves("JRN-030")
def test_a_promise_that_finds_no_room_takes_that_of_the_ballast() -> None:
    bench = Bench()
    bench.write()
    bench.fill()
    bench.write(*KEEPERS)
    assert bench.journal.state is State.FULL
    assert [SAMPLE, *KEEPERS] == [record for _, record in all_entries(bench.journal)]


@pytest.mark.proves("JRN-030")
def test_what_has_been_promised_is_written_in_place_of_the_ballast_until_that_is_used_up() -> None:
    bench = Bench()
    _full(bench)
    lsn = bench.journal.write([SAMPLE] * 10, WALL, promised=True)
    assert [SAMPLE] * 10 == [record for _, record in bench.journal.read(lsn - 1, 1 << 20)[0]]
    with pytest.raises(StorageFull):
        bench.promise_without_end()
    assert bench.journal.state is State.FULL
    assert bench.journal.durable_lsn > lsn + 20
    assert bench.memory.capacity - bench.used < 2_000, "the room of the ballast is used"


@pytest.mark.proves("JRN-030")
def test_what_may_wait_waits_for_room() -> None:
    bench = Bench()
    bench.write()
    bench.journal.buffer([SAMPLE] * 60)
    bench.fill(left=1_000)
    bench.journal.rest(WALL + SECOND)
    assert (bench.journal.state, bench.journal.durable_lsn) == (State.FULL, 1)
    bench.journal.rest(WALL + 2 * SECOND)
    assert (bench.journal.next_lsn, bench.journal.durable_lsn) == (62, 1)
    bench.memory.capacity += 1 << 20
    bench.journal.rest(WALL + 3 * SECOND)
    assert (bench.journal.state, bench.journal.durable_lsn) == (State.OPEN, 61)


@pytest.mark.proves("JRN-030")
def test_what_was_promised_and_may_wait_is_taken_without_room_and_waits_for_it() -> None:
    bench = Bench()
    _full(bench)
    assert 2 == bench.journal.buffer([SAMPLE], promised=True)
    with pytest.raises(StorageFull):
        bench.journal.flush(WALL)
    bench.journal.write(KEEPERS, WALL, promised=True)
    assert [SAMPLE, SAMPLE, *KEEPERS] == [record for _, record in all_entries(bench.journal)]


@pytest.mark.proves("JRN-001")
def test_what_may_wait_is_never_more_than_one_write_takes() -> None:
    bench = Bench(Limits(budget_bytes=64 << 20, segment_bytes=16 << 20, ballast_bytes=8 << 10, free_bytes_min=0))
    large = StreamRecord(1, NODE, 1, 1, WALL, WALL, "cpu", bytes(1 << 20), {})
    for _ in range(20):
        bench.journal.buffer([large], promised=True)
    bench.journal.write(KEEPERS, WALL, promised=True)
    assert [large] * 20 + KEEPERS == [record for _, record in bench.journal.read(0, 64 << 20)[0]]


LARGE = Limits(budget_bytes=256 << 20, segment_bytes=16 << 20, ballast_bytes=8 << 10, free_bytes_min=0)
MEBIBYTES = [StreamRecord(1, NODE, 1, number, WALL, WALL, "cpu", bytes(1 << 20), {}) for number in range(2, 42)]
"""More than two batches hold."""


@pytest.mark.proves("JRN-001", part="a turn that no batch holds")
def test_a_turn_that_no_batch_holds_is_written_in_several_each_durable_before_the_next() -> None:
    bench = Bench(LARGE)
    log = bench.changes()
    bench.journal.buffer([SAMPLE], promised=True)
    assert 2 == bench.journal.write(MEBIBYTES, WALL, promised=True)
    written = [call for call in log if call in ("append", "sync")]
    assert len(written) >= 6
    assert all(pair == ("append", "sync") for pair in zip(written[::2], written[1::2], strict=True))
    assert (42, 41) == (bench.journal.next_lsn, bench.journal.durable_lsn)
    assert [SAMPLE, *MEBIBYTES] == [record for _, record in bench.journal.read(0, 64 << 20)[0]]


def test_a_turn_that_no_batch_holds_stands_once_when_the_disk_was_full_in_the_middle() -> None:
    bench = Bench(LARGE)
    bench.journal.buffer([SAMPLE], promised=True)
    bench.fill(24 << 20)
    with pytest.raises(StorageFull):
        bench.journal.write(MEBIBYTES, WALL, promised=True)
    begun = [record for _, record in bench.journal.read(0, 64 << 20)[0]]
    assert begun
    assert [SAMPLE, *MEBIBYTES][: len(begun)] == begun
    bench.fill(1 << 30)
    bench.journal.flush(WALL)
    assert begun == [record for _, record in bench.journal.read(0, 64 << 20)[0]]


def test_a_record_that_no_batch_holds_is_not_written() -> None:
    bench = Bench(LARGE)
    with pytest.raises(OurFault):
        bench.write(StreamRecord(1, NODE, 1, 1, WALL, WALL, "cpu", bytes(17 << 20), {}))
    assert 1 == bench.journal.next_lsn


@pytest.mark.proves("JRN-031")
def test_a_used_up_budget_counts_as_full_and_a_tenth_before_it_is_tight() -> None:
    bench = Bench()
    lsn = 0
    while bench.journal.state is State.OPEN:
        assert bench.journal.is_tight is (bench.journal.bytes_used >= ROOMY.budget_bytes * 90 // 100)
        lsn = bench.journal.write([SAMPLE] * 50, WALL)
    assert bench.journal.is_tight
    assert bench.journal.next_lsn == lsn + 50, "the turn that used it up is written"
    assert ROOMY.budget_bytes < bench.journal.bytes_used < ROOMY.budget_bytes + 20_000
    with pytest.raises(StorageFull):
        bench.write()
    for _ in range(2):
        bench.write(KEEPERS[0])
        bench.journal.snapshot([CoreRecord("carrier", 1, b"")], WALL)
    upto, spans = bench.journal.oldest_spans()
    assert spans[0].first == 1
    bench.journal.forget(upto)
    assert bench.journal.state is State.OPEN
    bench.write()


@pytest.mark.proves("JRN-031")
def test_the_budgets_of_the_levels() -> None:
    budgets = {"sensor": 64 << 20, "collector": 1 << 30, "root": 8 << 30, "auto": 256 << 20}
    assert budgets == settings.JOURNAL_BYTES
    for level, budget in settings.JOURNAL_BYTES.items():
        limits = for_budget(budget)
        assert (limits.budget_bytes, limits.tight_bytes) == (budget, budget * 9 // 10), level
        assert (limits.free_bytes_min, limits.ballast_bytes) == (64 << 20, 4 << 20), level
        assert limits.segment_bytes == min(16 << 20, budget // 16), level


@pytest.mark.proves("JRN-031")
def test_little_free_space_counts_as_full() -> None:
    memory = MemoryFiles()
    memory.directories.add(STATE)
    scarce = Limits(budget_bytes=1 << 20, ballast_bytes=8 << 10, free_bytes_min=64 << 10)
    journal, _ = Journal.open(DIRECTORY, NODE, memory, WALL, scarce)
    journal.write([SAMPLE], WALL)
    memory.capacity = 90 << 10
    journal.rest(WALL + SECOND)
    assert journal.state is State.OPEN
    memory.capacity = 70 << 10
    journal.rest(WALL + 2 * SECOND)
    assert journal.state is State.FULL
    memory.capacity = 1 << 20
    journal.rest(WALL + 3 * SECOND)
    assert journal.state is State.OPEN


@pytest.mark.parametrize("left", [0, 64, 300, 5_000, 9_000])
def test_a_start_on_a_full_disk_gives_back_all_and_waits_for_room(left: int) -> None:
    bench = Bench()
    bench.write(*[SAMPLE] * 10)
    bench.journal.close(WALL)
    bench.memory.unlink(DIRECTORY / "ballast")
    bench.fill(left)
    journal, recovery = Journal.open(DIRECTORY, NODE, bench.memory, WALL, ROOMY)
    assert [record for _, record in recovery.entries()] == [SAMPLE] * 10
    if left < ROOMY.ballast_bytes:
        assert journal.state is State.FULL
    bench.memory.capacity = 1 << 20
    journal.rest(WALL + SECOND)
    assert journal.state is State.OPEN
    assert journal.write([SAMPLE], WALL) == 11
    assert len(list(all_entries(journal))) == 11
    stop(journal)
    bench.memory.kill()
