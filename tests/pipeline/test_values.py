"""Calculated values against the vectors, and against the function that everybody else uses (PIP-040..043)."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from tests.pipeline.ground import NET, Ground, era_end, lost, taken
from weft.base.calculated import Point, calculate
from weft.pipeline.tables import EDGES
from weft.pipeline.transforms.values import neighbours, paired

FILE = Path(__file__).parents[1] / "vectors" / "pipeline.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_bytes().splitlines()]
CALCULATED = [v for v in VECTORS if v["id"].startswith("calc-") and v["means"]["type"] != "basic"]
PAIRS = [v for v in VECTORS if v["id"].startswith("pairs-")]
HARD: list[tuple[str, Point, Point]] = [
    ("delta", (0, -(1 << 63), None), (1, (1 << 63) - 1, None)),
    ("rate", (0, 1, None), (1, 1.5, None)),
    ("rate", (5, 1, None), (4, 2, None)),
    ("average", (0, 1, 1), (1, 2, None)),
    ("percent", (0, 1.5, 1.5), (1, 2.5, 1.5)),
    ("percent", (0, 1, 5), (1, 0, 4)),
]


def point(pair: int, number: int, kind: str, at: tuple[int, Any, Any]) -> dict[str, Any]:
    def exact(value: Any) -> Any:
        return value if isinstance(value, int) else None

    at_ms, value, base = at
    return dict.fromkeys(EDGES.schema.names) | {
        "origin": "a", "era": pair, "sequence": number, "node": "a", "series": 1, "type": kind, "island": 1, "lost": 0,
        "at_ns": at_ms * 1_000_000, "value": float(value), "value_long": exact(value),
        "base": None if base is None else float(base), "base_long": exact(base), "was": None,
    }  # fmt: skip


@pytest.mark.proves("PIP-040")
def test_pairs_calculate_as_everywhere_else(spark: SparkSession) -> None:
    cases = [(v["means"]["type"], v["means"]["from"], v["means"]["to"]) for v in CALCULATED] + HARD
    points = [point(i, n, kind, at) for i, (kind, *ends) in enumerate(cases) for n, at in enumerate(ends, 1)]
    schema = EDGES.schema.arrow().append(pa.field("was", pa.int64()))
    frame = spark.createDataFrame(pa.Table.from_pylist(points, schema))
    rows = paired(neighbours(frame), lit(0)).orderBy("era").collect()
    actual = [(row["result"], row["reason"]) for row in rows]
    wanted = [(v["means"]["result"], v["means"]["reason"]) for v in CALCULATED]
    assert wanted == actual[: len(wanted)]
    told = [calculate(kind, before, after) for kind, before, after in HARD]
    assert [(None if t.result is None else float(t.result), t.reason) for t in told] == actual[len(wanted) :]


@pytest.mark.prove("whole batches in Spark")
@pytest.mark.proves("PIP-043")
@pytest.mark.parametrize("vector", PAIRS, ids=lambda vector: vector["id"])
def test_each_pair_once_in_any_order(ground: Ground, vector: dict[str, Any]) -> None:
    held, across = vector["means"]["samples"], []
    filler = type(NET)("other", "OTHER", "text", {})
    seen: list[list[int]] = []
    for batch in vector["means"]["batches"]:
        for first, last in batch.get("covers", ()):
            rows = [(NET if n in held else filler, n, None) for n in range(first, last + 1)]
            ground.write(taken(first, rows))
        for first, last in batch.get("lost", ()):
            ground.write(lost(first, last))
        ground.take()
        seen += batch["pairs"]
        across += batch.get("across_lost", [])
        assert sorted(seen) == [list(pair) for pair in ground.pairs()]
    told = ground.rows("silver.values", "from_sequence", "sequence", "reason")
    assert across == [[first, last] for first, last, reason in told if reason == "across-lost"]
    edges = ground.rows("meta.edges", "sequence")
    assert [(held[-1],)] == edges


@pytest.mark.prove("whole batches in Spark")
@pytest.mark.proves("PIP-043")
def test_what_comes_after_it_was_announced_lost_is_flagged_and_makes_no_pair(ground: Ground) -> None:
    ground.take(taken(1, [(NET, 10, None)]), lost(2, 2))
    ground.take(taken(3, [(NET, 30, None)]))
    ground.take(taken(2, [(NET, 20, None)]), taken(4, [(NET, 40, None)]))
    assert [(1, 3), (3, 4)] == ground.pairs()
    flags = ground.rows("silver.samples", "sequence", "flags")
    assert [(1, []), (2, ["after-lost"]), (3, []), (4, [])] == flags
    ground.job.fold()
    row = ground.rows("gold.completeness")[0]
    assert ("complete", 4, 0, []) == (row["state"], row["received"], row["lost"], row["lost_ranges"])


@pytest.mark.prove("whole batches in Spark")
def test_the_edges_of_an_era_that_is_over_are_dropped(ground: Ground) -> None:
    ground.take(taken(1, [(NET, 10, None)] * 3))
    assert [(3,)] == ground.rows("meta.edges", "sequence")
    ground.take(taken(5, [(NET, 10, None)]), era_end(5))
    assert [(3,), (5,)] == ground.rows("meta.edges", "sequence")
    ground.take(taken(4, [(NET, 10, None)]))
    assert [] == ground.rows("meta.edges", "sequence")
    assert [(1, 2), (2, 3), (3, 4), (4, 5)] == ground.pairs()
