"""What a transformation may be (PIP-070), read from the source of all of them; and what is told of each sin."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from weft.pipeline import transforms

LINES_MAX = 30
HOME = Path(transforms.__file__).parent
PLACES = (
    "functools",
    "typing",
    "collections.abc",
    "pyspark.sql",
    "weft.lake.schemas",
    "weft.lake.body",
    "weft.pipeline",
)
"""What may be imported: columns and their names."""
ACTIONS: Final = frozenset({
    "cache", "checkpoint", "collect", "count", "createDataFrame", "first", "foreach", "foreachPartition",
    "getActiveSession", "head", "isEmpty", "localCheckpoint", "persist", "read", "readStream", "show", "sparkSession",
    "sql", "tail", "take", "toArrow", "toLocalIterator", "toPandas", "write", "writeStream",
})  # fmt: skip
"""What runs a plan, reads, writes, or reaches for the session; asked of `F` some of them are columns."""
CHANCE: Final = frozenset({
    "curdate", "current_date", "current_timestamp", "localtimestamp", "monotonically_increasing_id", "now",
    "pandas_udf", "rand", "randn", "randstr", "shuffle", "spark_partition_id", "udf", "udtf", "uniform", "uuid",
})  # fmt: skip
"""Columns that are not the same when they are asked again, and Python in the middle of a plan."""
CONTRACT = ("grain", "key", "columns")


def sins(text: str, known: frozenset[str]) -> Iterator[str]:
    """What is wrong with a module of transformations; `known` are the names of all of them."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        if isinstance(node, ast.Attribute):
            yield from _reaching(node)
    for function in transformations(tree):
        yield from _shape(function, known)


def transformations(tree: ast.Module) -> list[ast.FunctionDef]:
    """Public functions that give a DataFrame."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return [node for node in functions if node.returns is not None and "DataFrame" in ast.unparse(node.returns)]


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
    for name in names:
        if not name.startswith(PLACES):
            yield f"line {node.lineno}: imports {name}"


def _reaching(node: ast.Attribute) -> Iterator[str]:
    is_column = isinstance(node.value, ast.Name) and node.value.id == "F"
    if node.attr in (CHANCE if is_column else ACTIONS):
        yield f"line {node.lineno}: {node.attr}"


def _shape(function: ast.FunctionDef, known: frozenset[str]) -> Iterator[str]:
    named = function.name
    lines = (function.end_lineno or 0) - function.lineno + 1
    if lines > LINES_MAX:
        yield f"{named}: {lines} lines"
    if not any("DataFrame" in ast.unparse(given.annotation or ast.Constant(0)) for given in function.args.args):
        yield f"{named}: takes no DataFrame"
    told = (ast.get_docstring(function) or "").lower()
    for word in CONTRACT:
        if word not in told:
            yield f"{named}: its docstring does not say {word}"
    for returned in (node for node in ast.walk(function) if isinstance(node, ast.Return)):
        if not _is_select(returned.value, known):
            yield f"{named}: line {returned.lineno} does not end in a select"


def _is_select(value: ast.expr | None, known: frozenset[str]) -> bool:
    """Whether an expression is a `select`, or what another transformation gives."""
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    if isinstance(called, ast.Attribute) and called.attr == "select":
        return True
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in known


MODULES = {path.stem: path.read_text("utf-8") for path in sorted(HOME.glob("*.py")) if path.stem != "__init__"}
KNOWN = frozenset(function.name for text in MODULES.values() for function in transformations(ast.parse(text)))


@pytest.mark.proves("PIP-070")
@pytest.mark.parametrize("module", MODULES)
def test_a_transformation_is_short_pure_and_ends_in_a_select(module: str) -> None:
    assert [] == list(sins(MODULES[module], KNOWN))


def test_there_are_transformations() -> None:
    assert {"to_bronze", "to_samples", "numbered", "changed", "judged"} <= KNOWN


GOOD = """
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

def made(rows: DataFrame) -> DataFrame:
    "Grain: a row. Key: id. Columns: id, n."
    found = rows.groupBy("id").agg(F.count("n").alias("n"), F.first("id").alias("first"))
    return found.select("id", "n")
"""


def test_what_is_right_is_left_alone() -> None:
    assert [] == list(sins(GOOD, frozenset()))
    assert [] == list(sins(GOOD.replace('found.select("id", "n")', "other(found)"), frozenset({"other"})))


@pytest.mark.parametrize(
    ("was", "planted", "told"),
    [
        ("from pyspark.sql import DataFrame", "import time", "imports time"),
        ("from pyspark.sql import DataFrame", "from weft.lake.layout import Layout", "imports weft.lake.layout"),
        ('return found.select("id", "n")', "return found", "does not end in a select"),
        ('return found.select("id", "n")', 'return found.select("id").distinct()', "does not end in a select"),
        ("    found =", '    if rows.count():\n        return rows.select("id")\n    found =', "count"),
        ("    found =", '    rows.sparkSession.sql("select 1")\n    found =', "sparkSession"),
        ('F.count("n")', "F.current_timestamp()", "current_timestamp"),
        ('F.count("n")', "F.udf(len)()", "udf"),
        (" Key: id.", "", "does not say key"),
        ("rows: DataFrame", "rows: int", "takes no DataFrame"),
        ("    found =", "    n = 1\n" * LINES_MAX + "    found =", f"{LINES_MAX + 4} lines"),
    ],
)
def test_a_planted_sin_is_told(was: str, planted: str, told: str) -> None:
    assert was in GOOD
    assert any(told in sin for sin in sins(GOOD.replace(was, planted, 1), frozenset()))
