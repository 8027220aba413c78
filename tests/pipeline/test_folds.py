"""Parts of roll-ups in any order and grouping make the same windows; bugs that would make others are caught (section 12.4)."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from deltalake import CommitProperties
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline import sketches
from tests.pipeline.canaries import planted
from tests.pipeline.ground import MEM, Ground, taken
from weft.base.chance import Chance
from weft.lake.schemas import BRONZE
from weft.pipeline import fold
from weft.pipeline.delta import Tables
from weft.pipeline.fold import Fold
from weft.pipeline.folding import Folding, session_beside
from weft.pipeline.late import Late
from weft.pipeline.rules import lenient
from weft.pipeline.tables import ROLLUP_1H, ROLLUP_1M
from weft.pipeline.transforms import rollup, series

pytestmark = pytest.mark.prove("whole batches in Spark")

Patch = pytest.MonkeyPatch
START = datetime(2026, 11, 21, 12, 50, tzinfo=UTC)
SHAPE = (
    "node string, group string, series bigint, at timestamp, era bigint, sequence bigint, result double, reason string"
)
Value = tuple[datetime, int, int, float | None]


def made() -> list[Value]:
    """Values of twenty minutes over a full hour, shuffled; some stamps twice, some pairs without a result."""
    chance = Chance("folds")
    values: list[Value] = []
    for number in range(1, 61):
        at = START + timedelta(seconds=20 * (number - number % 7 // 6))
        values.append((at, number % 2, number, None if number % 13 == 0 else chance.randint(-40, 400) / 4))
    chance.shuffle(values)
    return values


def wanted(values: list[Value]) -> dict[datetime, tuple[Any, ...]]:
    """The windows of an hour, in plain Python."""
    windows = {}
    for hour in (START.replace(minute=0), START.replace(minute=0) + timedelta(hours=1)):
        here = sorted(value for value in values if value[0].replace(minute=0, second=0) == hour)
        good = [value for value in here if value[3] is not None]
        numbers = [value[3] for value in here if value[3] is not None]
        windows[hour] = (
            len(good), sum(numbers), sum(n * n for n in numbers), min(numbers), max(numbers), good[0], good[-1],
            len(here) - len(good), sketches.sketch_of(numbers),
        )  # fmt: skip
    return windows


def folded(spark: SparkSession, values: list[Value]) -> dict[datetime, tuple[Any, ...]]:
    """What three folds make of them, one after the other."""
    rows = [("n", None, 1, *value, "reset" if value[3] is None else None) for value in values]
    old: DataFrame | None = None
    for part in (rows[:7], rows[7:30], rows[30:]):
        counts = rollup.counted(rollup.parts_of(spark.createDataFrame(part, SHAPE)), ROLLUP_1M)
        fresh = rollup.windows_of(counts, ROLLUP_1H)
        both = fresh if old is None else old.select(*fresh.columns).unionByName(fresh)
        old = spark.createDataFrame(rollup.merged(both.coalesce(1), ROLLUP_1H).toArrow(), ROLLUP_1H.spark())
    assert old is not None
    names = ("n", "sum", "sum_sq", "min", "max", "first", "last", "resets", "sketch")
    found = {row["window_start"]: tuple(row[name] for name in names) for row in old.toArrow().to_pylist()}
    return {
        hour: (*row[:5], tuple(row[5].values()), tuple(row[6].values()), *row[7:])
        for hour, row in found.items()
    }  # fmt: skip


@pytest.mark.proves("PIP-044", "PIP-047")
def test_three_folds_of_what_came_in_any_order_are_one_recomputation(spark: SparkSession) -> None:
    values = made()
    assert wanted(values) == folded(spark, values)


def changed(patch: Patch, **fields: Callable[[], Any]) -> None:
    """Some fields of a window add up in another way."""
    real = rollup._added

    def added() -> tuple[Any, ...]:
        names = ("group", "n", "sum", "sum_sq", "min", "max", "first", "last", "resets")
        kept = dict(zip(names, real(), strict=True)) | {name: make().alias(name) for name, make in fields.items()}
        return tuple(kept.values())

    patch.setattr(rollup, "_added", added)


def average_of_averages(patch: Patch) -> None:
    changed(patch, sum=lambda: F.avg("sum"))


def first_and_last_by_arrival(patch: Patch) -> None:
    changed(patch, first=lambda: F.first("first", ignorenulls=True), last=lambda: F.last("last", ignorenulls=True))


def resets_counted_once(patch: Patch) -> None:
    changed(patch, resets=lambda: F.max("resets"))


@pytest.mark.proves("PIP-044")
@pytest.mark.parametrize("bug", planted([average_of_averages, first_and_last_by_arrival, resets_counted_once]))
def test_a_planted_bug_is_caught(spark: SparkSession, monkeypatch: Patch, bug: Callable[[Patch], None]) -> None:
    bug(monkeypatch)
    values = made()
    assert wanted(values) != folded(spark, values)


def steps(node: Any) -> Iterator[str]:
    """What Spark is going to do, from the end on."""
    yield node.nodeName()
    for number in range(node.children().size()):
        yield from steps(node.children().apply(number))


def plan(rows: DataFrame) -> set[str]:
    return set(steps(rows._jdf.queryExecution().executedPlan()))


def test_no_fold_sorts_its_rows(spark: SparkSession, monkeypatch: Patch) -> None:
    values = spark.createDataFrame([("n", None, 1, *made()[0], None)], SHAPE)
    assert "SortAggregate" not in plan(rollup.counted(rollup.parts_of(values), ROLLUP_1M))
    monkeypatch.setattr(rollup, "hashed", lambda rows, key, added: rows.groupBy(*key).agg(*added))
    assert "SortAggregate" in plan(rollup.counted(rollup.parts_of(values), ROLLUP_1M))


def test_definitions_of_keys_are_found_without_sorting_the_rows_of_a_batch(ground: Ground, monkeypatch: Patch) -> None:
    rows = ground.spark.createDataFrame([], BRONZE["samples"].ddl())
    assert "SortAggregate" not in plan(series.definitions(rows))
    monkeypatch.setattr(series, "hashed", lambda rows, key, added: rows.groupBy(*key).agg(*added))
    assert "SortAggregate" in plan(series.definitions(rows))


class Pulled(Exception):
    """The plug."""


@pytest.mark.soak
@pytest.mark.proves("PIP-045")
def test_a_mark_outside_of_its_commit_would_fold_twice_and_is_caught(ground: Ground, monkeypatch: Patch) -> None:
    ground.take(taken(1, [(MEM, 7, None)] * 3))
    real, committed = Tables._properties, Tables.commit

    def without(self: Tables, *about: Any) -> CommitProperties:
        found = real(self, *about)
        return CommitProperties(custom_metadata=found.custom_metadata)

    def commit(self: Tables, *what: Any, **more: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tables, "_properties", without)
            committed(self, *what, **more)
        raise Pulled  # before the mark is made

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "commit", commit)
        with pytest.raises(Pulled):
            ground.job.fold()
    ground.job.fold()
    assert [(6,)] == ground.rows("gold.rollup_1m", "n", order=())
    assert [(3,)] == ground.rows("gold.rollup_1h", "n", order=())


@pytest.mark.proves("PIP-045", part="batches go on while a fold does, which ends with the rows that it began with")
def test_no_batch_waits_for_a_fold(ground: Ground, monkeypatch: Patch) -> None:
    may_end, counted = threading.Event(), Late.count

    def count(self: Late) -> None:
        assert may_end.wait(120)
        counted(self)

    monkeypatch.setattr(Late, "count", count)
    ground.take(taken(1, [(MEM, 7, None)] * 3))
    ground.job.fold_on()
    ground.take(taken(4, [(MEM, 8, None)] * 2))
    assert [(1,), (2,), (3,), (4,), (5,)] == ground.rows("silver.values", "sequence", order=("sequence",))
    ground.job.fold_on()
    assert (True, -1) == (ground.job.is_folding, ground.job.fold_upto)
    assert [] == ground.rows("gold.latest", "value", order=())
    may_end.set()
    while ground.job.is_folding:
        ground.job.fold_on()
    assert 0 == ground.job.fold_upto
    assert [(3,)] == ground.rows("gold.rollup_1d", "n", order=())
    assert [(7.0,)] == ground.rows("gold.latest", "value", order=())
    ground.job.fold()
    assert [(5,)] == ground.rows("gold.rollup_1d", "n", order=())
    assert [(8.0,)] == ground.rows("gold.latest", "value", order=())


@pytest.mark.proves("PIP-045", part="a long backlog is folded in steps of bounded size, with the same result")
def test_a_long_backlog_is_folded_in_steps(ground: Ground, monkeypatch: Patch) -> None:
    for batch in range(5):
        ground.take(taken(10 * batch + 1, [(MEM, 7 + batch, None)] * 3))
    uptos, real = list[int](), Fold.rollups

    def rollups(self: Fold, upto: int) -> None:
        uptos.append(upto)
        real(self, upto)

    monkeypatch.setattr(Fold, "rollups", rollups)
    monkeypatch.setattr(fold, "STEP_ROWS", 6)
    ground.job.fold()
    assert [1, 3, 4] == uptos
    assert [(15, 135.0)] == ground.rows("gold.rollup_1d", "n", "sum", order=())
    assert [(11.0,)] == ground.rows("gold.latest", "value", order=())
    ground.take(taken(101, [(MEM, 1, None)] * 9))
    ground.job.fold()
    assert [1, 3, 4, 5] == uptos
    assert [(24, 144.0)] == ground.rows("gold.rollup_1d", "n", "sum", order=())


def test_what_ends_a_fold_early_is_raised_where_batches_are_taken(ground: Ground, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Late, "count", Mock(side_effect=Pulled))
    ground.take(taken(1, [(MEM, 7, None)] * 3))
    ground.job.fold_on()
    with pytest.raises(Pulled):
        ground.job.fold()
    assert (False, -1) == (ground.job.is_folding, ground.job.fold_upto)


def test_a_fold_knows_nothing_of_settings_that_a_batch_changes_for_a_moment(ground: Ground) -> None:
    seen: list[str | None] = []
    beside = session_beside(ground.spark)
    with lenient(ground.spark):
        Folding(ground.spark, 0, lambda: seen.append(beside.conf.get("spark.sql.ansi.enabled"))).end()
    assert ["true"] == seen
