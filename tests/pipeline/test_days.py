"""Windows and partitions are days of UTC; what comes late corrects days that were folded before."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.pipeline.ground import NET, SEEN, T0_MS, Ground, at_ms, lost, taken
from weft.pipeline.sql import Lake

pytestmark = pytest.mark.prove("whole batches in Spark")

DAY_MS = 86_400_000
MIDNIGHT = (T0_MS // DAY_MS + 1) * DAY_MS
FIRST_TODAY = (MIDNIGHT - T0_MS) // 1000  # the number of the sample that is taken at midnight
YESTERDAY, TODAY = date(2026, 11, 21), date(2026, 11, 22)


def windows(ground: Ground, table: str) -> list[tuple[Any, ...]]:
    rows = ground.rows(table, "window_start", "n", "sum", order=("window_start",))
    return [(start.isoformat()[:16], n, total) for start, n, total in rows]


def test_the_calendar() -> None:
    assert MIDNIGHT == at_ms(FIRST_TODAY)
    assert TODAY == datetime.fromtimestamp(MIDNIGHT / 1000, UTC).date()


@pytest.mark.proves("LAK-034", "PIP-044", "PIP-045")
def test_late_data_corrects_both_sides_of_midnight(ground: Ground) -> None:
    counters = [(SEEN, 10 * n, None) for n in range(7)]
    ground.take(taken(1, counters[:2]), taken(FIRST_TODAY - 2, counters[2:4]), taken(FIRST_TODAY + 1, counters[5:]))
    ground.job.fold()
    assert [("2026-11-21T00:00", 2, 20.0), ("2026-11-22T00:00", 1, 10.0)] == windows(ground, "gold.rollup_1d")
    ground.take(taken(FIRST_TODAY, counters[4:5]), lost(3, FIRST_TODAY - 3))
    before = answer(ground)
    ground.job.fold()
    assert before == answer(ground)
    assert [("2026-11-21T00:00", 3, 30.0), ("2026-11-22T00:00", 3, 30.0)] == windows(ground, "gold.rollup_1d")
    hours = [("2026-11-21T02:00", 1, 10.0), ("2026-11-21T23:00", 2, 20.0), ("2026-11-22T00:00", 3, 30.0)]
    assert hours == windows(ground, "gold.rollup_1h")
    days = ground.rows("silver.values", "sequence", "day")
    assert [TODAY if number >= FIRST_TODAY else YESTERDAY for number, _ in days] == [day for _, day in days]
    assert {TODAY, YESTERDAY} == {day for (day,) in ground.rows("gold.rollup_1m", "day", order=())}
    assert {date(2026, 11, 1)} == {month for (month,) in ground.rows("gold.rollup_1h", "month", order=())}


@pytest.mark.proves("PIP-040")
def test_a_rate_over_midnight_is_of_the_day_in_which_it_ends(ground: Ground) -> None:
    ground.take(taken(1, [(NET, 0, None)]), lost(2, FIRST_TODAY - 1), taken(FIRST_TODAY, [(NET, 500, None)]))
    span = at_ms(FIRST_TODAY) - at_ms(1)
    found = ground.rows("silver.values", "span_ms", "result", "reason", "day")
    assert [(span, 1000.0 * 500 / span, "across-lost", TODAY)] == found


def answer(ground: Ground) -> list[dict[str, Any]]:
    with Lake(ground.lake.root) as lake:
        found = lake.query("SELECT window_start, n, sum FROM rollup_1d ORDER BY window_start")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
