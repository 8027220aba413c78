"""What an outbox keeps in memory while it reads its disk, and which of its records it calls the oldest."""

import pytest

from weft.base.records import Stream, StreamRecord
from weft.base.spool import RecordsFetched
from weft.cores.carrier import limits
from weft.cores.carrier.context import Counters
from weft.cores.carrier.outbox import Outbox, weight

NODE, PARENT, ERA = b"n" * 16, b"p" * 16, 7
MANY = 1 << 30


def record(number: int) -> StreamRecord:
    return StreamRecord(Stream.SAMPLES, NODE, ERA, number, number * 1_000, number * 1_000, "", b"payload", {"n": 1})


SIZE = weight(record(1))


def outbox() -> Outbox:
    return Outbox(NODE, ERA, MANY, Counters())


def reading(late: int) -> Outbox:
    """Its first record is on disk alone; while that is read, so many more come."""
    made = outbox()
    made.is_on_disk_only = True
    made.add(1, (record(1),))
    made.is_on_disk_only = False
    assert made.fetch("carrier") is not None
    for number in range(2, 2 + late):
        made.add(number, (record(number),))
    made.fetched(RecordsFetched("carrier", 0, 1, ((1, record(1)),)))
    return made


def sequences(made: Outbox) -> list[int]:
    """What it would send now."""
    batch = made.take(1_000, MANY)
    return [] if batch is None else [item.mid[2] for item in batch.hop.m]


@pytest.mark.parametrize("late", [0, 1, 2])
def test_what_came_while_the_disk_was_read_is_taken_from_memory(late: int) -> None:
    made = reading(late)
    assert made.fetch("carrier") is None
    assert list(range(1, late + 2)) == sequences(made)


@pytest.mark.parametrize("late", [3, 4, 9])
def test_more_than_it_may_keep_meanwhile_is_read_from_the_disk(late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is more kept than one record beyond the limit, nor is one passed over that was not kept."""
    monkeypatch.setattr(limits, "LATE_BYTES_MAX", 2 * SIZE)
    made = reading(late)
    fetching = made.fetch("carrier")
    assert fetching is not None
    assert 1 == fetching.after
    assert [1] == sequences(made)


def test_while_as_much_came_as_it_may_keep_no_record_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LATE_BYTES_MAX", 2 * SIZE)
    assert [1, 2, 3] == sequences(reading(2))


def test_the_oldest_is_the_first_that_is_not_safe_whether_it_was_sent_or_not() -> None:
    made = outbox()
    assert 0 == made.oldest_at()
    made.add(1, (record(1), record(2), record(3), record(4)))
    assert 1_000 == made.oldest_at()
    made.begin(0)
    made.take(2, MANY)
    assert 1_000 == made.oldest_at()
    made.acknowledge(2)
    assert 1_000 == made.oldest_at()
    made.release(1)
    assert 2_000 == made.oldest_at()
    made.release(2)
    assert 3_000 == made.oldest_at()
    made.take(4, MANY)
    made.acknowledge(4)
    made.release(4)
    assert 0 == made.oldest_at()
