"""The past of a machine, from ten minutes to a year: means, extremes and percentiles of four metrics (CON-002).

The last ten minutes come from the console's memory. Longer spans come from the lake's roll-ups; after their newest window
the values in memory continue them, so that a plot has no gap and ends now.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from weft.base.now import MILLISECOND, Now
from weft.shell.console import limits
from weft.shell.console.lake import Answer, Lake
from weft.shell.console.lastvalues import METRICS, NAMES, Machine

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
LIVE: Final = "10m"


class Span(NamedTuple):
    """A span: its length, the width of its windows, and the table of the lake; empty: the console's memory."""

    ms: int
    width_ms: int
    table: str


SPANS: Final[dict[str, Span]] = {
    LIVE: Span(10 * MINUTE, limits.POINT_MS, ""),
    "1h": Span(HOUR, MINUTE, "rollup_1m"),
    "24h": Span(DAY, 10 * MINUTE, "rollup_1m"),
    "7d": Span(7 * DAY, HOUR, "rollup_1h"),
    "30d": Span(30 * DAY, 6 * HOUR, "rollup_1h"),
    "1y": Span(365 * DAY, DAY, "rollup_1d"),
}
Window = tuple[int, float, float, float, float]
"""Beginning in ms, mean, minimum, maximum, 95th percentile."""
QUESTION: Final = """
WITH named AS (SELECT series, detail FROM silver.series WHERE detail IN ({details})),
parts AS (
    SELECT detail, series, epoch_ms(window_start) // {width} * {width} AS t, n, sum, min, max, sketch
    FROM gold.{table} JOIN named USING (series)
    WHERE node = {node} AND n > 0 AND epoch_ms(window_start) >= {since}
), windows AS (
    SELECT detail, series, t, sum(sum) / sum(n) AS mean, min(min) AS low, max(max) AS high,
           percentile(sketch_merge(list(sketch)), 0.95, min(min), max(max)) AS p95
    FROM parts GROUP BY GROUPING SETS ((detail, series, t), (detail, series))
)
SELECT detail, t, round(mean, 2) AS mean, round(low, 2) AS low, round(high, 2) AS high, round(p95, 2) AS p95 FROM windows
QUALIFY row_number() OVER (PARTITION BY detail, t ORDER BY mean DESC) = 1 ORDER BY detail, t
"""
"""The question to the lake. Of several disks, cores or devices the fullest counts; a row without `t` is the whole span."""


async def history(machine: Machine | None, name: str, span: str, lake: Lake, now: Now) -> dict[str, Any]:
    """The windows of each metric; KeyError if there is no such span."""
    chosen, now_ms = SPANS[span], now.wall // MILLISECOND
    since = (now_ms - chosen.ms) // chosen.width_ms * chosen.width_ms
    answer = await lake.ask(question(name, chosen, since)) if chosen.table else Answer([])
    metrics = {}
    for detail, metric in METRICS.items():
        rows = [row for row in answer.rows if row["detail"] == detail]
        windows = [_window(row) for row in rows if row["t"] is not None]
        live = machine.rings[metric].since(0) if machine else []
        windows += live_windows(live, max(since, windows[-1][0] + chosen.width_ms if windows else 0), chosen.width_ms)
        whole = [row["p95"] for row in rows if row["t"] is None]
        metrics[metric] = {
            "windows": windows,
            "p95": whole[0] if whole else p95_of(value for _, value in live),
            "max": max((high for _, _, _, high, _ in windows), default=None),
        }
    page = {"span": span, "from": now_ms - chosen.ms, "to": now_ms, "width": chosen.width_ms, "metrics": metrics}
    return page | {"error": answer.error, "mend": answer.mend}


def question(name: str, span: Span, since_ms: int) -> str:
    """The SQL that asks the lake about a machine."""
    details = ", ".join(f"'{detail}'" for detail in METRICS)
    node = "'" + name.replace("'", "''") + "'"
    return QUESTION.format(details=details, width=span.width_ms, table=span.table, node=node, since=since_ms)


def live_windows(points: Iterable[tuple[int, float]], since_ms: int, width_ms: int) -> list[Window]:
    """Values of five seconds each, from an instant on, as windows.

    >>> live_windows([(0, 1), (11, 9), (12, 4), (13, 6)], 60_000, 60_000)
    [(60000, 5.0, 4, 6, 6)]
    """
    found: dict[int, list[float]] = {}
    for slot, value in points:
        at_ms = slot * limits.POINT_MS
        if at_ms >= since_ms:
            found.setdefault(at_ms // width_ms * width_ms, []).append(value)
    return [
        (at_ms, round(sum(each) / len(each), 2), min(each), max(each), p95_of(each) or 0.0)
        for at_ms, each in found.items()
    ]


def p95_of(values: Iterable[float]) -> float | None:
    """The 95th percentile: one of the values, which 95 % of them do not exceed.

    >>> p95_of(range(1, 101)), p95_of([3.0]), p95_of([])
    (95, 3.0, None)
    """
    ordered = sorted(values)
    return ordered[-(-len(ordered) * 95 // 100) - 1] if ordered else None


def _window(row: dict[str, Any]) -> Window:
    return row["t"], row["mean"], row["low"], row["high"], row["p95"]


assert set(NAMES) == set(METRICS.values()), "each metric has a ring"
