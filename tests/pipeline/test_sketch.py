"""Sketches: what Spark makes of values, what DuckDB merges and answers, and what plain Python says of both (PIP-047)."""

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline import sketches
from tests.pipeline.ground import MEM, Ground, taken
from tests.pipeline.worlds import play, world
from weft.base.chance import Chance
from weft.pipeline import sketch
from weft.pipeline.schemas.table import SKETCH
from weft.pipeline.sql import Lake
from weft.pipeline.transforms import rollup
from weft.pipeline.views.sketch import GAMMA, LN_GAMMA, MACROS, SHARE

pytestmark = pytest.mark.prove("whole batches in Spark")

VECTORS = Path(__file__).parents[1] / "vectors" / "pipeline.jsonl"
SHARES = (0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0)

numbers = st.one_of(st.floats(-1e12, 1e12), st.floats(-1e-7, 1e-7), st.integers(-50, 50).map(float))
steady = numbers.filter(lambda value: abs(value) < 1e-9 or _is_inside(abs(value)))
"""Values whose bucket no rounding of a logarithm can move."""
parts = st.lists(st.lists(steady, min_size=1, max_size=6), min_size=1, max_size=5)
Parts = list[list[float]]


def _is_inside(size: float) -> bool:
    place = math.log(size) / math.log(GAMMA)
    return abs(place - round(place)) > 1e-9


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for macro in MACROS:
            connection.execute(f"CREATE MACRO {macro}")
        yield connection


MERGED = """
SELECT c, sketch_merge(list(part)) AS merged, sketch_quantile(sketch_merge(list(part)), ?) AS found
FROM (SELECT c, p, sketch_merge(list(sketch_of(v))) AS part FROM given GROUP BY c, p) GROUP BY c ORDER BY c
"""


def merged_of(duck: duckdb.DuckDBPyConnection, cases: list[Parts], share: float) -> list[tuple[Any, ...]]:
    """What DuckDB makes of parts, each made of its values and all of them merged; and a quantile of that."""
    rows = [(c, p, v) for c, parts in enumerate(cases) for p, part in enumerate(parts) for v in part]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    duck.register("given", pa.table(columns, ["c", "p", "v"]))
    return duck.execute(MERGED, [share]).fetchall()


def test_the_constants_are_what_they_are_called() -> None:
    assert (1.01 / 0.99, 0.020000666706669435) == (GAMMA, LN_GAMMA)
    assert (math.log(1.01 / 0.99), 2 / (1.01 / 0.99 + 1)) == (0.020000666706669435, 0.9900000000000001)
    assert 0.9900000000000001 == SHARE


@pytest.mark.proves("PIP-047")
@settings(max_examples=10)  # of forty cases each: a question costs more than its rows
@given(st.lists(parts, min_size=1, max_size=40), st.sampled_from(SHARES))
def test_merged_in_any_grouping_and_order_it_is_that_of_all_values_and_1_percent_off(
    duck: duckdb.DuckDBPyConnection, cases: list[Parts], share: float
) -> None:
    for shape in (cases, [[part[::-1] for part in reversed(parts)] for parts in cases]):
        for case, merged, found in merged_of(duck, shape, share):
            values = [value for part in cases[case] for value in part]
            assert sketches.sketch_of(values) == merged
            exact = sketches.quantile(values, share)
            assert abs(found - exact) <= 0.01 * abs(exact) + 1e-9


def wide(chance: Chance) -> list[float]:
    """More buckets than a side may have: over twenty powers of ten."""
    return [chance.choice((1, 1, -1)) * math.exp(chance.uniform(-20, 30)) for _ in range(9_000)]


@cache
def worlds() -> dict[int, list[float]]:
    """Values of many windows: small ones, wide ones, those of the vectors, none at all."""
    chance = Chance("sketches")
    windows: dict[int, list[float]] = {0: [], 1: [chance.choice((0.0, 1e-10, -3.5)) for _ in range(5)], 2: wide(chance)}
    windows[3] = [means["value"] for means in vectors()]
    for number in range(4, 40):
        windows[number] = [chance.gauss(chance.uniform(-50, 50), 10) for _ in range(chance.randint(1, 60))]
    return {key: [value for value in window if value == 0 or _is_inside(abs(value))] for key, window in windows.items()}


def vectors() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]
    return [line["means"] for line in lines if line["what"] == "sketch index"]


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> pa.Table:
    """Of each window its sketch, that of its halves merged, and quantiles, by Spark."""
    rows: list[tuple[int, int, float | None]]
    rows = [(key, place % 2, value) for key, window in worlds().items() for place, value in enumerate(window)]
    rows.append((0, 0, None))
    values = spark.createDataFrame(rows, "k int, half int, v double").withColumn("bucket", sketch.bucket_of(F.col("v")))
    counts = values.groupBy("k", "half", "bucket").count()
    bucket = F.when(F.col("bucket").isNotNull(), F.struct("bucket", "count"))
    whole = values.groupBy("k", "bucket").count().groupBy("k").agg(F.collect_list(bucket).alias("counts"))
    halves = counts.groupBy("k", "half").agg(sketch.sketch_of(F.collect_list(bucket)).alias("part"))
    merged = halves.groupBy("k").agg(sketch.sketch_merge(sketch.sketches_of(F.col("part"))).alias("merged"))
    asked = [sketch.sketch_quantile(F.col("merged"), share).alias(f"q{place}") for place, share in enumerate(SHARES)]
    both = whole.select("k", sketch.sketch_of(F.col("counts")).alias("whole")).join(merged, "k")
    unknown = sketch.sketch_merge(F.array("whole", F.lit(None).cast(SKETCH))).alias("unknown")
    nothing = sketch.sketch_merge(F.filter(F.array("whole"), lambda _: F.lit(False))).alias("nothing")
    beyond = sketch.sketch_quantile(F.col("whole"), 1.5).alias("beyond")
    return both.select("k", "whole", "merged", *asked, unknown, nothing, beyond).toArrow()


@pytest.mark.proves("PIP-047")
def test_spark_counts_and_merges_as_plain_python_does(made: pa.Table) -> None:
    found = {row["k"]: row for row in made.to_pylist()}
    assert worlds().keys() == found.keys()
    assert found[2]["whole"]["collapsed"]
    for key, values in worlds().items():
        wanted = sketches.sketch_of(values)
        assert wanted == found[key]["whole"], key
        assert wanted == found[key]["merged"], key


@pytest.mark.proves("PIP-047")
def test_spark_and_duckdb_answer_alike(made: pa.Table, duck: duckdb.DuckDBPyConnection) -> None:
    duck.register("made", made)
    asked = ", ".join(f"q{place}, sketch_quantile(merged, {share})" for place, share in enumerate(SHARES))
    rows = duck.execute(f"SELECT {asked} FROM made WHERE k > 0").fetchall()
    for row in rows:
        for ours, theirs in zip(row[::2], row[1::2], strict=True):
            assert abs(ours - theirs) <= 1e-12 * abs(ours)
    (nothing,) = duck.execute(f"SELECT {asked} FROM made WHERE k = 0").fetchall()
    assert {None} == set(nothing)
    assert {(None, None, None)} == {(row["unknown"], row["nothing"], row["beyond"]) for row in made.to_pylist()}
    odd = "SELECT sketch_quantile(merged, 1.5), sketch_quantile(NULL, 0.5), sketch_merge([]), sketch_merge([merged, NULL]) "
    assert [(None,) * 4] == duck.execute(odd + "FROM made WHERE k = 4").fetchall()


@pytest.mark.proves("PIP-047")
def test_the_vectors(made: pa.Table) -> None:
    (whole,) = [row["whole"] for row in made.to_pylist() if row["k"] == 3]
    for means in vectors():
        if means["index"] is None:
            assert sum(other["index"] is None for other in vectors()) == whole["zero"]
            continue
        indices = [bucket["index"] for bucket in whole[means["side"]]]
        assert not _is_inside(abs(means["value"])) or means["index"] in indices, means
        sign = 1 if means["side"] == "positive" else -1
        assert math.isclose(sign * sketches.estimate(means["index"]), means["estimate"], rel_tol=1e-12)


def sketched(ground: Ground, table: str = "rollup_1h") -> list[Any]:
    with Lake(ground.lake.root) as lake:
        asked = f"SELECT node, config_name, n, sketch FROM {table} JOIN series USING (series) ORDER BY ALL"
        return [tuple(row.values()) for row in lake.query(asked).to_pylist()]


def compare(ground: Ground, expected: Any) -> None:
    """All windows of an hour against plain Python, before their fold and behind it."""
    values: dict[tuple[str, str], list[float]] = {}
    for number, (_, result, _) in expected.values.items():
        kept = values.setdefault((number[0], expected.silver[number].series), [])
        kept += [] if result is None else [result]
    wanted = [(*key, len(some), sketches.sketch_of(some)) for key, some in sorted(values.items())]
    assert wanted == sketched(ground)
    ground.job.fold()
    assert wanted == sketched(ground)


@pytest.mark.proves("PIP-044", "PIP-045", "PIP-047")
def test_roll_ups_hold_sketches_of_all_values_and_a_lost_count_is_caught(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = world(Chance("spread"), batches=3)
    for number, arrival in enumerate(history.arrivals):
        play(ground, arrival)
        if number == 1:
            ground.job.fold()
    compare(ground, history.expected())
    monkeypatch.setattr(rollup, "_united", lambda: F.col("sketches")[0]["sketch"])
    ground.take(taken(25, [(MEM, 3.25, None)]))
    ground.job.fold()
    assert any(n != size(found) for _, _, n, found in sketched(ground))


def size(found: sketches.Sketch) -> int:
    """How many values a sketch has counted."""
    sides = found["positive"] + found["negative"]
    return int(found["zero"] + sum(bucket["count"] for bucket in sides))
