"""Nothing from data is evaluated: the program's own text says which expressions Spark is handed (PIP-088)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parents[2] / "src"
ROOMS: Final = ("weft/lake", "weft/pipeline", "pyspark_weft")
EVALUATING: Final = {"eval", "exec", "compile", "__import__"}
READING: Final = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
TEXTS: Final = {"expr", "selectExpr"}
KNOWN: Final = {
    "rules.py: rule.when": "a rule of the lake's owner, looked at before the first row",
    "transforms/quality.py: rule.when": "the same",
    "doctor.py: *numbered.values()": "names and types of the program's own table",
    "batch.py: text": "counters of the program's own",
    "transforms/completeness.py: text": "columns by the kind of the stream",
    "foreign.py: where[0]": "columns of a scan",
    "foreign.py: where[1]": "columns of a scan",
    "transforms/columns.py: f'{nanoseconds} div {DAY_NS} - if({nanoseconds} % {DAY_NS} < 0, 1, 0)'": "a column's name",
    "transforms/columns.py: f'{nanoseconds} div 1000'": "a column's name",
    "transforms/columns.py: f'{nanoseconds} div 1000000'": "a column's name",
    "transforms/values.py: f'try_subtract({name}_long, before.{name}_long)'": "a column's name",
    "transforms/late.py: BEHIND": "a constant",
    "transforms/anomalies.py: back": "a constant",
}
"""Texts of expressions that are no literals, and what they are instead."""


def calls_in(source: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


def found_in(source: Path, name: str) -> Iterator[str]:
    """What of a program is evaluated, or handed to Spark as a text that is no literal."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        yield from (f"{name}: {module}" for module in imported if module.partition(".")[0] in READING)
    for called, node in calls_in(source):
        if called in EVALUATING and isinstance(node.func, ast.Name):
            yield f"{name}: {called}"
        if called in TEXTS:
            yield from (f"{name}: {ast.unparse(text)}" for text in node.args if not isinstance(text, ast.Constant))


@pytest.mark.proves("PIP-088", part="nothing from data is evaluated")
def test_no_text_of_data_becomes_an_expression() -> None:
    found: set[str] = set()
    for room in ROOMS:
        for source in (HERE / room).rglob("*.py"):
            found.update(found_in(source, str(source.relative_to(HERE / room))))
    assert set(KNOWN) == found


@pytest.mark.parametrize(
    "program",
    ["eval(row)", "import pickle", "from marshal import loads", "F.expr(row.text)", "rows.selectExpr(f'{x}')"],
)
def test_what_would_evaluate_data_is_found(program: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(program, "utf-8")
    assert 1 == len(list(found_in(tmp_path / "a.py", "a.py")))
