"""Short stories of one lake, with their exact ends (section 12.1)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.pipeline.ground import (
    CPU,
    ERA,
    MEM,
    NET,
    OTHER_DRAIN,
    SEEN,
    A,
    B,
    Ground,
    at_ms,
    era_end,
    lost,
    single,
    taken,
)
from weft.base.now import MILLISECOND
from weft.pipeline.completeness import OVERDUE_NS

pytestmark = pytest.mark.prove("whole batches in Spark, one story after the other")

COMPLETENESS = ("expected", "received", "missing", "lost", "state")


def instant(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


@pytest.mark.proves("LAK-012", "LAK-019")
def test_three_samples(ground: Ground) -> None:
    done = ground.take(taken(1001, [(CPU, 48730, 150519), (MEM, 412876800, None), (NET, 987654321, None)]))
    assert (3, 3, 0, 0) == done.outcome[:4]
    columns = ("sequence", "series", "config_name", "type", "value_long", "base_long", "at", "node")
    assert ground.rows("silver.samples", *columns) == [
        (1001, 481236526586726027, "cpu", "percent", 48730, 150519, instant(at_ms(1001)), A),
        (1002, 6272995468246442855, "mem", "basic", 412876800, None, instant(at_ms(1002)), A),
        (1003, 5138648725690891938, "net", "rate", 987654321, None, instant(at_ms(1003)), A),
    ]
    assert ground.rows("silver.samples", "labels")[0] == ([("cpu", "total")],)


@pytest.mark.proves("PIP-043", "PIP-045", "PIP-061")
def test_a_hole_is_filled_later(ground: Ground) -> None:
    rows = [(NET, 100 * number, None) for number in range(1, 10)]
    ground.take(taken(1, rows[:4]), taken(7, rows[6:]))
    ground.job.fold()
    assert [(9, 7, 2, 0, "filling")] == ground.rows("gold.completeness", *COMPLETENESS)
    assert [(1, 2), (2, 3), (3, 4), (7, 8), (8, 9)] == ground.pairs()
    ground.take(taken(5, rows[4:6]))
    ground.job.fold()
    assert [(9, 9, 0, 0, "complete")] == ground.rows("gold.completeness", *COMPLETENESS)
    assert [(number, number + 1) for number in range(1, 9)] == ground.pairs()
    assert [(8, 800.0)] == ground.rows("gold.rollup_1d", "n", "sum")


@pytest.mark.proves("PIP-043", "PIP-061")
def test_a_hole_is_announced_lost(ground: Ground) -> None:
    rows = [(NET, 100 * number, None) for number in range(1, 10)]
    ground.take(taken(1, rows[:4]), taken(7, rows[6:]))
    ground.take(lost(5, 6))
    ground.job.fold()
    assert [(9, 7, 0, 2, "lost")] == ground.rows("gold.completeness", *COMPLETENESS)
    assert (4, 7) in ground.pairs()
    across = [row for row in ground.rows("silver.values") if row["reason"] is not None]
    assert [(4, 7, 100.0, "across-lost")] == [
        (row["from_sequence"], row["sequence"], row["result"], row["reason"]) for row in across
    ]


@pytest.mark.proves("PIP-030", "LAK-018")
def test_two_drains_bring_the_same(ground: Ground) -> None:
    records = [taken(1 + 100 * i, [(MEM, 7, None)] * 100) for i in range(10)]
    ground.write(*records)
    ground.write(*records, drain=OTHER_DRAIN)
    done = ground.take()
    assert (2000, 1000, 1000, 0) == done.outcome[:4]
    ground.job.fold()
    assert 2000 == len(ground.rows("bronze.samples", "row"))
    assert 1000 == len(ground.rows("silver.samples", "sequence"))
    assert [(1000, 1000, 1000)] == ground.rows("gold.completeness", "expected", "received", "duplicates")


@pytest.mark.proves("PIP-060")
def test_a_new_era_tells_how_far_the_old_one_came(ground: Ground) -> None:
    ground.take(taken(1, [(MEM, 1, None)] * 48), era_end(50))
    ground.job.fold()
    row = ground.rows("gold.completeness")[0]
    assert (50, 48, 2, True, "missing", "era-link") == (
        row["expected"], row["received"], row["missing"], row["closed"], row["state"], row["known_by"],
    )  # fmt: skip
    assert [(49, 50)] == [(hole["first"], hole["last"]) for hole in row["missing_ranges"]]


@pytest.mark.proves("PIP-060")
def test_a_hole_is_missing_when_it_is_overdue_and_an_origin_silent_when_it_says_nothing(ground: Ground) -> None:
    now = at_ms(10) * MILLISECOND
    clock = iter([now, now, now, now + OVERDUE_NS + 1, now + OVERDUE_NS + 1])
    ground.restart(ground.options._replace(clock=lambda: next(clock)))
    ground.take(taken(1, [(MEM, 1, None)] * 2), taken(4, [(MEM, 1, None)]), taken(1, [(MEM, 1, None)], origin=B))
    ground.job.fold()
    assert ["filling", "complete"] == [state for (state,) in ground.rows("gold.completeness", "state")]
    ground.take(taken(5, [(MEM, 1, None)]))
    ground.job.fold()
    assert ["missing", "silent"] == [state for (state,) in ground.rows("gold.completeness", "state")]


@pytest.mark.proves("PIP-032", "PIP-033")
def test_bad_rows_among_a_thousand_good_ones(ground: Ground) -> None:
    bad = [
        single(1001, b"\xc1"),
        single(1002, b"\xc0"),
        single(1003, b"\x90"),
        single(1004, b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
        single(1005, b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
        single(1006, b"\x01", detail="x" * 2000),
        single(1007, b"\x01", at=(at_ms(0) + 86_400_001) * MILLISECOND, received=at_ms(0) * MILLISECOND),
        single(1008, b"\x01", at=1),
        single(1 << 63, b"\x01"),
        single(0, b"\x01"),
    ]
    good = [taken(1 + 100 * i, [(MEM, 7, None)] * 100) for i in range(10)]
    done = ground.take(*good, *bad)
    assert (1010, 1000, 0, 10) == done.outcome[:4]
    assert {
        1001: "undecodable", 1002: "missing-field", 1003: "bad-type", 1004: "bad-number", 1005: "out-of-range",
        1006: "too-long", 1007: "future", 1008: "ancient", None: "out-of-range", 0: "no-sequence",
    } == dict(ground.rows("quarantine.samples", "sequence", "reason"))  # fmt: skip
    ground.job.fold()
    assert [(1008, 1008, 0, 10)] == ground.rows("gold.completeness", "expected", "received", "missing", "quarantined")


@pytest.mark.proves("PIP-040")
def test_a_counter_that_is_reset(ground: Ground) -> None:
    ground.take(taken(1, [(NET, 10, None), (NET, 20, None), (NET, 5, None), (NET, 8, None)]))
    results = ground.rows("silver.values", "sequence", "result", "reason")
    assert [(2, 10.0, None), (3, None, "reset"), (4, 3.0, None)] == results
    ground.job.fold()
    assert [(2, 13.0, 1)] == ground.rows("gold.rollup_1d", "n", "sum", "resets")


@pytest.mark.proves("PIP-041", "PIP-042")
def test_eras_are_never_bridged_and_the_first_sample_has_no_value_unless_basic(ground: Ground) -> None:
    ground.take(taken(1, [(SEEN, 10, None), (MEM, 1, None), (SEEN, 30, None)]))
    ground.take(era_end(3), taken(1, [(SEEN, 70, None), (MEM, 2, None), (SEEN, 71, None)], era=ERA + 1))
    values = ground.rows("silver.values", "era", "from_sequence", "sequence", "result")
    assert [(ERA, None, 2, 1.0), (ERA, 1, 3, 20.0), (ERA + 1, None, 2, 2.0), (ERA + 1, 1, 3, 1.0)] == values
