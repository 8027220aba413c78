"""The page of limits: every number of every `limits.py`, with the line that says why (SEC-041)."""

import ast
import importlib
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.house.requirements import ROOT

PAGE: Final = ROOT / "docs" / "limits.md"
SOURCES: Final = ROOT / "src"
OF_NO_NODE: Final = ("weft.torture.limits", "weft.cores.template.limits")
"""What tests a node, and what shows how a core is made."""
OF_A_NODE: Final = ("base", "wire", "cores", "node", "lake", "shell", "web", "client")
"""Folders in which every module counts, and not only those of limits: what a node or a client of it runs."""
OTHERS: Final = "In other modules"
BOUND: Final = re.compile(r"_MAX(_|$)")
"""What a name says that bounds something, such as `CALLS_MAX` and `BACKOFF_MAX_MS`."""
HEAD: Final = """\
# Limits

Every number that bounds what a node takes, holds, waits for or says, as its module has it. This page is made from
the modules (`make docs`). What a name ends in says the unit: `_BYTES`, `_NS` (ns), `_S` (s), `_MS` (ms), `_PERCENT`; without one it is a number of things.
The memory of a whole node, and how its cores share it, is set in its file (`[limits]`, [configuration.md](configuration.md#limits)).
"""


class Limit(NamedTuple):
    """One number, and what is said of it."""

    name: str
    value: Any
    why: str


def modules() -> Iterator[str]:
    """Names of all modules of limits of the product, and of all others that a node runs."""
    others = (path for folder in OF_A_NODE for path in (SOURCES / "weft" / folder).rglob("*.py") if _bounds(path))
    for path in sorted({*SOURCES.rglob("limits.py"), *others}):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        if name not in OF_NO_NODE:
            yield name


def _bounds(path: Path) -> bool:
    """Whether a module defines a bound of its own: only such a one is imported for it."""
    return any(
        BOUND.search(line.partition(":")[0]) for line in path.read_text("utf-8").splitlines() if line[:1].isupper()
    )


def is_limit(module: str, name: str) -> bool:
    """Modules of limits have nothing else; others have numbers, too, that bound nothing, such as those of formats."""
    return module.endswith("limits") or bool(BOUND.search(name))


def limits_in(text: str, values: dict[str, Any]) -> Iterator[Limit]:
    """The numbers that a module's text defines, in its order; `values` are those that it has when it is imported."""
    said = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    body = ast.parse(text).body
    for each, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name, lines = each.target.id, range(each.lineno, (each.end_lineno or each.lineno) + 1)
            if not name.startswith("_") and is_number(values[name]):
                beside = " ".join(said[line] for line in lines if line in said)
                yield Limit(name, values[name], beside or _doc(after))


def _doc(after: ast.stmt | None) -> str:
    """The text that stands below a constant."""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    return ""


def is_number(value: Any) -> bool:
    """Whether it is a number, or a few of them."""
    if isinstance(value, tuple):
        return bool(value) and all(map(is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A number as it is read: with commas, or as the power of two that it is."""
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    if isinstance(value, int) and value >= 1 << 40 and value.bit_count() == 1:
        return f"2^{value.bit_length() - 1}"
    if isinstance(value, int) and value >= 1 << 40 and (value + 1).bit_count() == 1:
        return f"2^{value.bit_length()} - 1"
    return f"{value:,}"


def render() -> str:
    """The page: a section for each module of limits or of the wire, and at the end a table of what other modules bound."""
    parts, others = [HEAD], []
    for name in modules():
        module = importlib.import_module(name)
        rows = [row for row in limits_in(inspect.getsource(module), vars(module)) if is_limit(name, row.name)]
        if has_section(name):
            parts += _section(name.removesuffix(".limits"), "| | | |", [_line(row) for row in rows])
        else:
            others += [f"| {name.removeprefix('weft.')} {_line(row)}" for row in rows]
    return "\n".join([*parts, *_section(OTHERS, "| in | | | |", others)])


def has_section(name: str) -> bool:
    """Whether a module has a section of its own: one of limits, and what reads the wire."""
    return name.endswith("limits") or name.startswith("weft.wire.")


def _section(title: str, head: str, lines: list[str]) -> list[str]:
    ruler = "|" + "---|" * (head.count("|") - 1)
    return ["\n".join([f"## {title}\n", head, ruler, *lines]) + "\n"] if lines else []


def _line(row: Limit) -> str:
    return f"| `{row.name}` | {shown(row.value)} | {row.why.replace('|', chr(92) + '|')} |"
