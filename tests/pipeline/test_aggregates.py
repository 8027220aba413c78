"""What makes a plan dear stands in none (PIP-048), and Spark's own state is used for nothing (PIP-073)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.pipeline.tables import VIEWS
from weft.pipeline.views.folded import LATEST_VIEW, ROLLUP_VIEW

HERE = Path(__file__).parents[2] / "src" / "weft" / "pipeline"
PERCENTILE = re.compile(r"\b(approx_)?(percentile|median|quantile)\w*\s*\(|\bmad\s*\(", re.IGNORECASE)
DISTINCT = re.compile(r"count_?distinct|sum_?distinct|\bcount\s*\(\s*distinct\b", re.IGNORECASE)
STATEFUL = (
    "transformWithState",
    "applyInPandasWithState",
    "flatMapGroupsWithState",
    "withWatermark",
    "dropDuplicatesWithin",
)


def aggregates(source: str) -> Iterator[str]:
    """What each aggregation of a module is made of: the arguments of `agg`, and texts that are SQL."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("agg", "sql", "selectExpr")
        ):
            yield ast.unparse(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "select" in node.value.lower():
            yield node.value


def is_dear(aggregate: str) -> bool:
    """Whether a percentile stands beside a count of what is distinct: minutes instead of seconds."""
    return bool(PERCENTILE.search(aggregate) and DISTINCT.search(aggregate))


@pytest.mark.proves("PIP-048")
def test_no_percentile_stands_beside_a_distinct_count() -> None:
    found = [(path.name, text) for path in sorted(HERE.rglob("*.py")) for text in aggregates(path.read_text("utf-8"))]
    assert any(".agg(" in text for _, text in found)
    views = [(name, view.sql) for name, view in VIEWS.items()]
    assert not [
        pair for pair in [*found, *views, ("roll-ups", ROLLUP_VIEW), ("latest", LATEST_VIEW)] if is_dear(pair[1])
    ]


@pytest.mark.parametrize(
    "planted",
    [
        "def f(rows):\n    return rows.groupBy('a').agg(F.percentile('x', 0.5), F.count_distinct('y'))",
        "def f(rows):\n    return rows.groupBy('a').agg(F.countDistinct('y').alias('n'), F.median('x').alias('m'))",
        "TEXT = 'SELECT count(DISTINCT a), quantile_cont(b, 0.9) FROM t'",
        "def f(spark):\n    return spark.sql('select mad(x), COUNT ( distinct y) from t')",
    ],
)
def test_a_planted_one_is_seen(planted: str) -> None:
    assert any(is_dear(text) for text in aggregates(planted))


@pytest.mark.proves("PIP-073")
def test_no_state_is_left_to_spark() -> None:
    for path in sorted(HERE.rglob("*.py")):
        words = {node.attr for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)}
        assert not words & {*STATEFUL}, path
