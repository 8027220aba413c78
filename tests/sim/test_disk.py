"""What a crash leaves of a simulated journal (SIM-022), and what it may forget (JRN-041)."""

import pytest

from weft.base.chance import Chance
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.sim.disk import Claim, JournalDisk

NODE = b"n" * 16


def sample(sequence: int) -> StreamRecord:
    return StreamRecord(Stream.SAMPLES, NODE, 1, sequence, 5, 6, "k", b"payload", {"n": 1})


def claim_of(record: Record) -> Claim | None:
    return Claim("record", 1, "n/1", record.sequence, record.last) if isinstance(record, StreamRecord) else None


def disk_with(*batches: int, segment_records: int = 4) -> JournalDisk:
    """A disk with synced batches of so many samples."""
    disk, sequence = JournalDisk(claim_of, segment_records, 1 << 20), 1
    for count in batches:
        disk.write([sample(sequence + index) for index in range(count)])
        disk.sync()
        sequence += count
    return disk


def numbers(disk: JournalDisk) -> list[int]:
    return [record.sequence for _, record in disk.recover() if isinstance(record, StreamRecord)]


@pytest.mark.proves("SIM-022")
def test_what_is_synced_survives_every_crash_that_keeps_the_disk() -> None:
    for how in ("kept", "torn"):
        disk = disk_with(2, 3)
        disk.crash(Chance("x"), how)
        assert numbers(disk) == [1, 2, 3, 4, 5]


@pytest.mark.proves("SIM-022")
def test_an_unsynced_batch_survives_whole_or_not_at_all() -> None:
    outcomes = set()
    for seed in range(40):
        disk = disk_with(2)
        disk.write([sample(3), sample(4)])
        survived = disk.crash(Chance(str(seed)), "kept")
        outcomes.add((len(survived), tuple(numbers(disk))))
    assert outcomes == {(0, (1, 2)), (2, (1, 2, 3, 4))}


@pytest.mark.proves("SIM-022")
def test_a_torn_batch_is_gone() -> None:
    disk = disk_with(2)
    disk.write([sample(3)])
    assert disk.crash(Chance("x"), "torn") == []
    assert numbers(disk) == [1, 2]
    assert disk.next_lsn == 3


@pytest.mark.proves("SIM-022")
def test_a_lost_disk_is_empty_and_an_old_one_is_what_it_was() -> None:
    disk = disk_with(2)
    image = disk.image()
    disk.write([sample(3)])
    disk.sync()
    disk.crash(Chance("x"), "torn")
    disk.go_back(image)
    assert numbers(disk) == [1, 2]
    disk.crash(Chance("x"), "lost")
    assert numbers(disk) == []
    assert disk.next_lsn == 1


@pytest.mark.proves("JRN-003")
def test_two_batches_are_never_written_and_not_synced() -> None:
    disk = disk_with(1)
    disk.write([sample(2)])
    with pytest.raises(AssertionError, match="at most one batch"):
        disk.write([sample(3)])


def test_what_is_read_back_has_been_through_the_codec() -> None:
    disk = disk_with(2)
    (first, record), (second, _) = disk.read("carrier", 0, 1 << 20).entries
    assert (first, second) == (1, 2)
    assert record == sample(1)


def test_a_fetch_takes_about_so_many_bytes_and_says_how_far_it_came() -> None:
    disk = disk_with(10)
    answer = disk.read("carrier", 2, 1)
    assert (answer.after, answer.upto, len(answer.entries)) == (2, 3, 1)
    whole = disk.read("carrier", 3, 1 << 20)
    assert (whole.upto, len(whole.entries)) == (10, 7)
    assert disk.read("carrier", 10, 100).entries == ()


def test_a_fetch_gives_only_what_is_durable() -> None:
    disk = disk_with(2)
    disk.write([sample(3)])
    assert disk.read("carrier", 0, 1 << 20).upto == 2


@pytest.mark.proves("JRN-041")
def test_whole_segments_go_when_they_are_released_and_two_snapshots_cover_them() -> None:
    disk = disk_with(4, 4, 4)
    assert disk.forget(12) == []
    disk.snapshot([CoreRecord("core", 1, b"x")])
    assert disk.forget(12) == []
    disk.write([sample(13)])
    disk.sync()
    disk.snapshot([CoreRecord("core", 1, b"y")])
    assert not disk.may_forget(3)
    gone = disk.forget(7)
    assert [claim.first for claim in gone] == [1, 2, 3, 4]
    assert disk.first_lsn == 5
    assert [claim.first for claim in disk.forget(99)] == [5, 6, 7, 8, 9, 10, 11, 12]


@pytest.mark.proves("JRN-040")
def test_a_start_restores_the_newest_snapshot_and_what_stands_behind_it() -> None:
    disk = disk_with(4, 4)
    disk.snapshot([CoreRecord("core", 1, b"x")])
    disk.write([sample(9)])
    disk.sync()
    entries = disk.recover()
    assert entries[0] == (8, CoreRecord("core", 1, b"x"))
    assert [(lsn, record.sequence) for lsn, record in entries[1:] if isinstance(record, StreamRecord)] == [(9, 9)]


def test_the_oldest_of_a_full_journal_is_its_lowest_closed_segment_that_is_needed() -> None:
    disk = disk_with(4, 4, 1)
    upto, spans = disk.oldest(released=0)
    assert (upto, [span.first for span in spans]) == (4, [1, 2, 3, 4])
    assert disk.oldest(released=4)[0] == 8
    assert disk.oldest(released=8) == (0, ())
