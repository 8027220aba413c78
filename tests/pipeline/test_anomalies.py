"""Anomalies (PIP-055): transformations against plain Python, stories with exact ends, planted bugs, and a lake."""

import json
import statistics
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline.canaries import planted
from tests.pipeline.ground import A, Ground, at_ms
from tests.pipeline.test_late import instant, recorded, spaced
from weft.base.chance import Chance
from weft.cli.lake_anomalies import anomalies as shown
from weft.pipeline.anomalies import Anomalies, muted_by
from weft.pipeline.fold import Fold
from weft.pipeline.settings import MuteTable
from weft.pipeline.tables import ANOMALIES, ROLLUP_1H, ROLLUP_1M
from weft.pipeline.transforms import anomalies as judged_by

pytestmark = pytest.mark.prove("whole batches in Spark")

NODE: Final = "n"
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 11, 20, 14, tzinfo=UTC)
"""The hour that is judged; the one before and the one behind are, too."""
JUDGED: Final = (NOW - HOUR, NOW, NOW + HOUR)

Series = dict[datetime, float]
"""A mean per minute."""


class World(NamedTuple):
    minutes: dict[int, Series]
    resets: dict[tuple[int, datetime], int]


def noisy(chance: Chance, mean: Callable[[datetime], float], width: float, since: timedelta) -> Series:
    """A mean in each minute, near to what is given, of all hours that a judgement can look at."""
    found, at = {}, NOW - since
    while at < NOW + 2 * HOUR:
        if at >= NOW - 26 * HOUR or abs(at.hour - NOW.hour) <= 1:
            found[at] = round(mean(at) + chance.uniform(-width, width), 3)
        at += MINUTE
    return found


def made() -> World:
    """One series for each thing that can be odd, or only look like it."""
    chance, week, resets = Chance("anomalies"), timedelta(days=8), {}
    minutes = {number: noisy(chance, lambda _: 20.0, 3.0, week) for number in range(9)}
    for minute in (5, 6, 7, 8, 30, 31):
        minutes[0][NOW + minute * MINUTE] = 60.0 + minute  # four in a row, and two that are too few
    for minute in (-2, -1, 0, 1):
        minutes[1][NOW + minute * MINUTE] = 2.0  # over the full hour
    minutes[2] = dict.fromkeys(minutes[2], 5.0) | {NOW + n * MINUTE: 5.04 for n in range(10)}  # within 1 %
    minutes[2] |= {NOW + n * MINUTE: 5.2 for n in range(40, 50)}
    minutes[3] = noisy(chance, lambda at: 100.0 if at.hour == NOW.hour else 10.0, 1.0, week)
    minutes[4] |= {at: 21.5 for at in minutes[4] if NOW <= at < NOW + HOUR}
    minutes[5] = {at: mean for at, mean in minutes[5].items() if at < NOW or at.minute % 2}
    minutes[6] = {at: mean for at, mean in minutes[6].items() if at < NOW}
    resets[7, NOW] = 2
    minutes[8] = {at: mean * (1 if at < NOW else 9) for at, mean in minutes[8].items() if at > NOW - 10 * MINUTE}
    return World(minutes, resets)


def usual(series: Series, hour: datetime) -> tuple[float, float] | None:
    """From what to what a mean is usual in an hour."""
    day = [mean for at, mean in series.items() if hour - 24 * HOUR <= at < hour]
    same = [mean for at, mean in series.items() if hour - 168 * HOUR <= at < hour and at.hour == hour.hour]
    lows, highs = [], []
    for some in (day, same):
        if len(some) >= 20:
            middle = statistics.median(some)
            off = [abs(mean - middle) for mean in some]
            least = min((one for one in off if one > 0), default=0.0)
            half = max(6 * 1.4826 * statistics.median(off), 0.01 * abs(middle), least)
            lows.append(middle - half)
            highs.append(middle + half)
    return (min(lows), max(highs)) if lows else None


class Mean(NamedTuple):
    at: datetime
    side: str
    value: float
    off: float

    @property
    def hour(self) -> datetime:
        return self.at.replace(minute=0)


def beyond(number: int, series: Series) -> set[tuple[Any, ...]]:
    """Stretches of at least three minutes beyond what is usual, hour by hour."""
    means = []
    for at, value in sorted(series.items()):
        band = usual(series, at.replace(minute=0)) if at.replace(minute=0) in JUDGED else None
        if band is not None:
            side = "high" if value > band[1] else "low" if value < band[0] else ""
            means.append(Mean(at, side, value, max(value - band[1], band[0] - value)))
    runs = [list(run) for side, run in groupby(means, lambda mean: mean.side) if side]
    parts = [(hour, [mean for mean in run if mean.hour == hour]) for run in runs if len(run) >= 3 for hour in JUDGED]
    return {
        (number, hour, some[0].side, some[0].at, some[-1].at + MINUTE, len(some), max(some, key=lambda m: m.off).value)
        for hour, some in parts if some
    }  # fmt: skip


def per_hour(number: int, world: World) -> set[tuple[Any, ...]]:
    """Hours that are flat, that lack values, or that have resets."""
    series, found = world.minutes[number], set()
    hours: dict[datetime, list[float]] = {}
    for at, mean in series.items():
        hours.setdefault(at.replace(minute=0), []).append(mean)
    for hour in JUDGED:
        before = [
            at
            for at in hours
            if hour - 24 * HOUR <= at < hour or (at.hour == hour.hour and hour - 168 * HOUR <= at < hour)
        ]
        if len(before) < 3:
            continue
        here, whole = hours.get(hour, []), (hour, hour + HOUR, 60)
        spread = statistics.median(max(hours[at]) - min(hours[at]) for at in before)
        count = statistics.median(len(hours[at]) for at in before)
        if len(here) >= 20 and min(here) == max(here) and spread > 0:
            found.add((number, hour, "flat", *whole, here[0]))
        if hour + HOUR <= NOW + 2 * HOUR - MINUTE and len(here) < 0.9 * count and count - len(here) >= 2:
            found.add((number, hour, "missing", *whole, float(len(here))))
        if world.resets.get((number, hour), 0) > 0:
            found.add((number, hour, "resets", *whole, float(world.resets[number, hour])))
    return found


def frames(spark: SparkSession, world: World) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Roll-ups of a minute and of an hour, and what is judged."""
    minutes = []
    hours: dict[tuple[int, datetime], list[float]] = {}
    for number, series in world.minutes.items():
        for at, mean in series.items():
            minutes.append((NODE, None, number, at, 4, 4 * mean))
            hours.setdefault((number, at.replace(minute=0)), []).append(mean)
    shapes = "node string, group string, series bigint, window_start timestamp, n bigint"
    rows = [
        (NODE, None, number, at, len(some), world.resets.get((number, at), 0), min(some), max(some))
        for (number, at), some in hours.items()
    ]
    stamps = [(NODE, NOW)]
    newest = spark.createDataFrame([(NODE, NOW + 2 * HOUR - MINUTE)], "node string, newest timestamp")
    touched = spark.createDataFrame(stamps, "node string, at timestamp")
    return (
        spark.createDataFrame(minutes, f"{shapes}, sum double"),
        spark.createDataFrame(rows, f"{shapes}, resets bigint, min double, max double"),
        judged_by.hours_of(touched, newest, "interval 24 hours"),
    )


def judged(spark: SparkSession, world: World) -> list[dict[str, Any]]:
    minutes, hours, when = frames(spark, world)
    found = judged_by.stretches(minutes, judged_by.bands(minutes, when))
    both = found.unionByName(judged_by.odd_hours(hours, judged_by.usual_hours(hours, when)))
    rows: list[dict[str, Any]] = judged_by.anomalies(both, when, 7).toArrow().to_pylist()
    return rows


def told(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    columns = ("series", "hour", "kind", "start", "until", "windows", "observed")
    return {tuple(row[name] for name in columns) for row in rows}


@pytest.fixture(scope="module")
def wanted() -> set[tuple[Any, ...]]:
    world = made()
    return {row for number, series in world.minutes.items() for row in beyond(number, series) | per_hour(number, world)}


@pytest.mark.proves("PIP-055")
def test_what_is_odd_is_what_plain_python_calls_odd(spark: SparkSession, wanted: set[tuple[Any, ...]]) -> None:
    rows = judged(spark, made())
    assert wanted == told(rows)
    assert len(rows) == len(told(rows))
    kinds = {(row["series"], row["kind"]) for row in rows if row["hour"] == NOW}
    assert {(0, "high"), (1, "low"), (2, "high"), (4, "flat"), (5, "missing"), (6, "missing"), (7, "resets")} <= kinds
    assert not [row for row in rows if row["series"] in (3, 8)], "what is usual at that hour, and what nobody knows yet"
    said = {(row["series"], row["kind"]): row["because"] for row in rows if row["hour"] == NOW}
    assert said[2, "high"].startswith(
        "mean 5.200 in 10 windows, where 4.950 to 5.050 is usual; the 24 hours before: median 5"
    )
    assert "30 values, where 60 are usual" == said[5, "missing"]
    assert "2 times a counter ran backwards, where 0 are usual" == said[7, "resets"]
    scores = [row["score"] for row in rows if row["kind"] in ("high", "low", "missing")]
    assert all(score > 6 for score in scores)
    assert {7} == {row["batch"] for row in rows}


def test_a_judged_hour_is_compared_with_a_row_for_each_hour_not_for_each_minute(spark: SparkSession) -> None:
    minutes, _, when = frames(spark, made())
    rows = judged_by.compared(minutes, when).selectExpr("series", "hour", "before", "size(means) AS n").toArrow()
    seen = Counter(zip(rows["series"].to_pylist(), rows["hour"].to_pylist(), strict=True))
    assert 24 < max(seen.values()) <= 30
    assert 60 == max(rows["n"].to_pylist())


def only_the_day_before(patch: pytest.MonkeyPatch) -> None:
    real = judged_by._before
    patch.setattr(
        judged_by, "_before", lambda *frames: real(*frames).where("is_day").withColumn("is_same", F.lit(False))
    )


def two_windows_are_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judged_by, "LONG", 2)


@pytest.mark.proves("PIP-055")
@pytest.mark.parametrize("bug", planted([only_the_day_before, two_windows_are_enough]))
def test_a_planted_bug_is_caught(
    spark: SparkSession,
    wanted: set[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    bug: Callable[[pytest.MonkeyPatch], None],
) -> None:
    bug(monkeypatch)
    assert wanted != told(judged(spark, made()))


def test_columns_are_those_of_the_roll_ups() -> None:
    assert {"node", "group", "series", "window_start", "n", "sum"} <= set(ROLLUP_1M.schema.names)
    assert {"node", "group", "series", "window_start", "n", "resets", "min", "max"} <= set(ROLLUP_1H.schema.names)


@pytest.mark.proves("PIP-055")
def test_mutes_fit_by_node_series_label_and_kind(spark: SparkSession) -> None:
    found = spark.createDataFrame(
        [(series, node, kind) for series in (1, 2) for node in ("a", "b") for kind in ("high", "flat")],
        "series bigint, node string, kind string",
    )
    known = [(1, "cpu", {"cpu": "total"}), (2, "net", {"device": "lo"}), (2, "net", {"device": "lo"})]
    series = spark.createDataFrame(known, "series bigint, config_name string, labels map<string,string>")
    mutes = [MuteTable(node="a", config_name="cpu"), MuteTable(labels={"device": "lo"}, kind="flat")]
    either = muted_by(mutes[0]) | muted_by(mutes[1])
    unmuted = judged_by.unmuted(found, series, either).collect()
    assert {(1, "b", "high"), (1, "b", "flat"), (2, "a", "high"), (2, "b", "high")} == {tuple(row) for row in unmuted}
    assert not judged_by.unmuted(found, series, muted_by(MuteTable())).collect()


def rows_of(ground: Ground) -> list[tuple[Any, ...]]:
    return ground.rows("gold.anomalies", "kind", "start", "windows", "observed", order=("start",))


@pytest.mark.proves("PIP-055")
def test_a_lake_is_judged_as_it_grows_again_when_data_comes_late_and_shown(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = spaced(A, 1, 190, 60_000)
    odd = [sample._replace(value=200.0) if 175 <= sample.number <= 181 else sample for sample in minutes]
    late = odd.pop(177)._replace(value=12.0)
    judge = Anomalies(ground.job.tables, {})
    for number, some in enumerate((odd[:177], odd[177:])):
        ground.take(recorded(some))
        Fold(ground.job.tables, {}).bring(number)
        judge.bring(number)
        assert number == ground.job.tables.committed(ANOMALIES)
    start = [instant(at_ms(60 * number)) for number in (175, 179)]
    assert [("high", start[0], 6, 200.0)] == rows_of(ground), "the hole is none to a series of its own rate"
    ground.take(recorded([late]))
    Fold(ground.job.tables, {}).bring(2)
    judge.bring(2)
    assert [("high", start[0], 3, 200.0), ("high", start[1], 3, 200.0)] == rows_of(ground)
    judge.since(start[0].replace(hour=0, minute=0), 2)
    assert [("high", start[0], 3, 200.0), ("high", start[1], 3, 200.0)] == rows_of(ground)
    shown(lake=ground.lake.root, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [("mem", "high"), ("mem", "high")] == [(row["config_name"], row["kind"]) for row in rows]
    shown(lake=ground.lake.root)
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith(f"2026-11-21 05:10 to 05:13  high     {A} mem: mean 200.0 in 3 windows, where ")
    Anomalies(ground.job.tables, {}, [MuteTable(kind="high")]).since(start[0].replace(hour=0, minute=0), 2)
    assert [] == rows_of(ground)
    shown(lake=ground.lake.root, since=start[0].date())
    assert "nothing is odd" in capsys.readouterr().out
