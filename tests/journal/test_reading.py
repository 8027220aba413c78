"""Reading back: the same whatever the window, no more read than asked for, and safe beside the writer."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.model import DIRECTORY, NODE, SMALL, STATE, WALL, all_entries, reopen, stop
from weft.base.errors import StorageFailed
from weft.base.now import SECOND
from weft.base.records import CoreRecord, Entry, LostRecord, Record, StreamRecord, UnknownRecord
from weft.base.spool import Span
from weft.shell.files import File, Files
from weft.shell.journal import DamageNote, Journal, JournalReader, Limits
from weft.shell.journal.limits import HOUR_NS
from weft.testing.disk import READS, Fault, FaultyFiles, MemoryFiles

LARGE = Limits(budget_bytes=1 << 30, segment_bytes=2 << 20, ballast_bytes=0, free_bytes_min=0)


class CountingFiles(MemoryFiles):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.directories.add(STATE)
        self.bytes_read = 0

    def read(self, file: File, offset: int, count: int) -> bytes:
        data = super().read(file, offset, count)
        self.bytes_read += len(data)
        return data


def sample(number: int, size: int = 100, **attributes: Any) -> StreamRecord:
    return StreamRecord(1, NODE, 7, number, WALL, WALL, "cpu", bytes(size), attributes)


def filled(files: Files, count: int, per_turn: int, limits: Limits, size: int = 100) -> Journal:
    journal, _ = Journal.open(DIRECTORY, NODE, files, WALL, limits)
    for first in range(1, count + 1, per_turn):
        journal.write([sample(number, size) for number in range(first, first + per_turn)], WALL)
    return journal


@given(st.data())
def test_whatever_the_window_the_records_are_the_same(data: st.DataObject) -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    limits = Limits(budget_bytes=1 << 20, segment_bytes=8 << 10, ballast_bytes=0, free_bytes_min=0)
    journal, _ = Journal.open(DIRECTORY, NODE, files, WALL, limits)
    expected: list[Entry] = []
    for size in data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=12)):
        turn: list[Record] = [sample(len(expected) + n + 1, n * 7) for n in range(size)]
        expected += enumerate(turn, journal.write(turn, WALL))
    window = data.draw(st.integers(1, 5_000))
    assert expected == list(all_entries(journal, window))
    after = data.draw(st.integers(0, len(expected) + 3))
    entries, upto = journal.read(after, window)
    assert expected[after : max(upto, after)] == entries
    journal.close(WALL)
    again, _ = Journal.open(DIRECTORY, NODE, files, WALL, limits)
    assert expected == list(all_entries(again, window))
    assert expected == list(JournalReader(DIRECTORY, files).entries())


def test_a_window_costs_what_it_holds_wherever_it_stands() -> None:
    files = CountingFiles()
    journal = filled(files, 12_000, 10, LARGE)
    for after in (0, 5_000, 11_000):
        files.bytes_read = 0
        entries, upto = journal.read(after, 10_000)
        assert (entries[0][0], upto) == (after + 1, after + len(entries))
        assert files.bytes_read < 600_000, "at most the piece in front of it and the piece it stands in"
    journal.close(WALL)
    again, _ = Journal.open(DIRECTORY, NODE, files, WALL, LARGE)
    again.read(11_000, 10_000)
    files.bytes_read = 0
    again.read(11_000, 10_000)
    assert files.bytes_read < 600_000, "a segment found at a start is indexed as it is read"


@pytest.mark.proves("JRN-011", "JRN-040")
def test_a_start_reads_the_ends_of_files_and_what_came_after_the_snapshot() -> None:
    files = CountingFiles()
    journal = filled(files, 24_000, 100, LARGE, size=500)
    journal.snapshot([CoreRecord("core", 1, b"state")], WALL)
    journal.write([sample(24_001)], WALL)
    journal.close(WALL)
    stored = sum(len(content) for content in files.content().values())
    assert stored > 12 << 20
    files.bytes_read = 0
    again, recovery = Journal.open(DIRECTORY, NODE, files, WALL, LARGE)
    assert files.bytes_read < 4 << 20, "one segment to replay, 64 KiB of each other"
    assert [(24_000, CoreRecord("core", 1, b"state")), (24_001, sample(24_001))] == list(recovery.entries())
    assert again.next_lsn == 24_002


@pytest.mark.proves("JRN-011")
def test_a_segment_is_sealed_when_it_is_full_or_an_hour_old_and_lists_what_it_holds() -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    journal, _ = Journal.open(DIRECTORY, NODE, files, WALL, SMALL)
    other = StreamRecord(3, "gateway", None, 5, WALL, WALL, "log", b"x", {})
    journal.write([sample(1, n=10), other, sample(11, n=5), CoreRecord("core", 1, b"")], WALL)
    journal.write([sample(20), sample(21), sample(21)], WALL)
    journal.rest(WALL + HOUR_NS - SECOND)
    assert len(journal.shelf.segments) == 1
    journal.rest(WALL + HOUR_NS)
    sealed, opened = list(journal.shelf.segments)
    expected = [
        (1, NODE, 7, 1, 15, 2),
        (3, "gateway", None, 5, 5, 1),
        (1, NODE, 7, 20, 21, 3),
    ]
    actual = sealed.footer(files)
    assert actual is not None
    assert expected == [entry[:6] for entry in actual]
    assert [entry.offset for entry in actual][:2] == [64, 64]
    assert opened.first_lsn == 8
    for number in range(100, 140):
        journal.write([sample(number, 1_000)], WALL + HOUR_NS)
    sizes = [len(files.content()[segment.path]) for segment in journal.shelf.segments]
    assert len(sizes) > 10
    assert max(sizes) <= SMALL.segment_bytes + 200, "a seal may pass the limit, a batch not"


def test_the_oldest_spans_are_the_numbers_that_a_full_spool_would_give_up() -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    journal, _ = Journal.open(DIRECTORY, NODE, files, WALL, SMALL)
    assert journal.oldest_spans() == (0, ())
    lost = LostRecord(1, NODE, 7, 4, 6, "damage")
    journal.write([sample(1, n=3), lost, sample(7), sample(9)], WALL)
    journal.write([StreamRecord(3, "gateway", None, 1, WALL, WALL, "log", bytes(3_000), {})], WALL)
    assert journal.oldest_spans() == (0, ()), "the open segment is not given up"
    journal.write([sample(10, 3_000)], WALL)
    spans = (Span(1, NODE, 7, 1, 7), Span(1, NODE, 7, 9, 9), Span(3, "gateway", None, 1, 1))
    assert journal.oldest_spans() == (5, spans)
    journal.forget(5)
    assert journal.oldest_spans() == (0, ()), "released is not given up again"


@pytest.mark.proves("JRN-014")
def test_a_record_of_a_later_version_is_kept_byte_for_byte() -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    journal, _, _ = reopen(files)
    later = UnknownRecord(9, bytes.fromhex("9309c4010181a16101"))
    journal.write([sample(1), later], WALL)
    journal.close(WALL)
    again, recovery = Journal.open(DIRECTORY, NODE, files, WALL, SMALL)
    assert [(1, sample(1)), (2, later)] == list(recovery.entries())
    assert again.read(1, 100) == ([(2, later)], 2)


@pytest.mark.proves("JRN-013")
def test_a_checksum_is_verified_at_every_read_and_the_scrubber_reads_all() -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    journal = filled(files, 80, 2, SMALL)
    segment = journal.shelf.segments[1]
    before = list(all_entries(journal))
    files.flip(segment.path, (segment.near(segment.first_lsn)[1] + 40) * 8)
    found: list[DamageNote] = []
    for hour in range(1, 49):
        journal.scrub(WALL + hour * HOUR_NS)
        found += journal.take_damage()
    assert [note.file for note in found] == [segment.path.name]
    missing = range(found[0].first_lsn, found[0].end_lsn)
    assert [entry for entry in before if entry[0] not in missing] == list(all_entries(journal))
    assert journal.take_damage() == (), "told once"
    assert journal.stats.damaged == 0
    journal.write([found[0].record], WALL)
    assert journal.stats.damaged == 1, "degraded from the moment that the damage is recorded"
    stop(journal)


@pytest.mark.prove("two processes, for seconds")
def test_readers_beside_the_writer_see_only_whole_durable_turns(tmp_path: Path) -> None:
    journal, _ = Journal.open(tmp_path / "journal", NODE, Files(), WALL, SMALL)
    stopped = threading.Event()
    wrong: list[Any] = []

    def read_on() -> None:
        after = 0
        while not stopped.is_set() or after < journal.durable_lsn:
            entries, upto = journal.read(after, 700)
            wrong.extend(
                e for e, lsn in zip(entries, range(after + 1, upto + 1), strict=True) if e != (lsn, sample(lsn))
            )
            after = upto

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    for first in range(1, 600, 3):
        journal.write([sample(number) for number in range(first, first + 3)], WALL)
    stopped.set()
    for reader in readers:
        reader.join()
    journal.close(WALL)
    assert wrong == []


def test_a_reader_from_outside_follows_a_running_node(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal, _ = Journal.open(directory, NODE, Files(), WALL, SMALL)
    reader = JournalReader(directory)
    assert list(reader.entries()) == []
    for turn in _turns(60):
        journal.write(turn, WALL)
        assert list(reader.refresh().entries(journal.durable_lsn)) == [(journal.durable_lsn, turn[-1])]
    assert list(reader.entries()) == list(all_entries(journal))
    with (directory / journal.shelf.segments[-1].path.name).open("ab") as file:
        file.write(b"half of a batch")
    assert reader.refresh().next_lsn == journal.next_lsn
    journal.snapshot([CoreRecord("core", 1, b"x")], WALL)
    assert list(reader.refresh().snapshot_entries()) == [(journal.durable_lsn, CoreRecord("core", 1, b"x"))]
    journal.close(WALL)


def _turns(count: int) -> Iterator[list[Record]]:
    for number in range(count):
        yield [sample(number * 2 + 1), sample(number * 2 + 2)]


@pytest.mark.parametrize("what", ["seal", "last batch", "head in the middle"])
def test_rot_under_a_running_journal_is_read_around(what: str) -> None:
    files = MemoryFiles()
    files.directories.add(STATE)
    journal = filled(files, 80, 2, SMALL)
    segment = journal.shelf.segments[0]
    before = list(all_entries(journal))
    assert segment.seal is not None
    assert segment.footer(files)
    byte = {
        "seal": segment.seal.offset + 40,
        "last batch": segment.seal.offset - 100,
        "head in the middle": 64 + 352 + 5,
    }[what]
    files.flip(segment.path, byte * 8)
    after = list(all_entries(journal))
    (note,) = journal.take_damage()
    missing = range(note.first_lsn, note.end_lsn)
    assert len(missing) == (0 if what == "seal" else 2)
    assert [entry for entry in before if entry[0] not in missing] == after
    journal.write([sample(81), sample(82)], WALL)
    assert journal.read(80, 1 << 20) == ([(81, sample(81)), (82, sample(82))], 82)
    journal.close(WALL)


class ForgetfulFiles(MemoryFiles):
    """A segment is gone, so many times, between the look into the directory and the opening."""

    def __init__(self) -> None:
        super().__init__()
        self.directories.add(STATE)
        self.times = self.looks = 0

    def list(self, path: Path) -> list[str]:
        self.looks += 1
        return super().list(path)

    def open(self, path: Path, *, is_writable: bool = False) -> File:
        if self.times:
            self.times -= 1
            raise FileNotFoundError(path)
        return super().open(path, is_writable=is_writable)


def test_a_reader_looks_again_where_a_segment_was_forgotten_meanwhile() -> None:
    files = ForgetfulFiles()
    stop(filled(files, 20, 5, SMALL))
    files.times = 2
    assert 21 == JournalReader(DIRECTORY, files).next_lsn
    assert 0 == files.times


def test_a_reader_does_not_look_for_ever() -> None:
    files = ForgetfulFiles()
    stop(filled(files, 20, 5, SMALL))
    files.times, files.looks = 1_000_000, 0
    with pytest.raises(FileNotFoundError):
        JournalReader(DIRECTORY, files)
    assert 1 + 3 == files.looks  # one more, to see that there is a journal


@pytest.mark.proves("FLT-019", part="of the journal: each call that reads")
def test_a_disk_that_cannot_be_read_is_said_so_and_may_be_asked_again() -> None:
    memory = MemoryFiles()
    memory.directories.add(STATE)
    files = FaultyFiles(memory, None, Fault.BROKEN, READS)
    journal = filled(files, 200, 20, SMALL)
    whole = list(all_entries(journal, 1 << 20))
    begun = len(files.log)
    journal.read(0, 1 << 20)
    for at in range(len(files.log) - begun):
        files.at = len(files.log) + at
        with pytest.raises(StorageFailed, match="cannot be read"):
            journal.read(0, 1 << 20)
        files.mend()
        assert whole == list(all_entries(journal, 1 << 20))
