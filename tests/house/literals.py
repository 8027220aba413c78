"""Expected values that follow the program: an `assert` that holds a constant against what the constant itself has made (FLD-043).

`assert limits.PEERS_MAX == len(peers)` holds whatever the limit is, so it says nothing of what was promised. With the
figure of the specification it does. A limit beside nothing but literals is the other way round, and welcome.

Numbers that do not stand in a `limits.py` are found by what a test imports. They may be expected by name if
`figures.toml` says what they are, and so may units of time.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

from tests.tidy.tree import Parsed, parsed

ROOT = Path(__file__).parents[2]
UNITS = "weft.base.now."
"""Where seconds are nanoseconds: `3 * SECOND` is a literal."""
MADE_OF = (
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)


def findings(tests: Path = ROOT / "tests") -> list[str]:
    """`file:line: expression` of every such assert, but of limits that the test itself has set."""
    return [
        f"{path.relative_to(tests.parent).as_posix()}:{line}"
        for path in sorted(tests.rglob("*.py"))
        for line in _all_lines(path.read_text("utf-8"))
    ]


def _all_lines(text: str) -> list[int]:
    """A text in which neither `limits` nor such a name stands is not parsed."""
    words = set(re.findall(r"\w+", text))
    numbers = frozenset(name for name in open_numbers() if name.rpartition(".")[2] in words)
    if "limits" not in words and not numbers:
        return []
    module = parsed(text)
    return sorted({*(lines(module) if "limits" in words else ()), *(named_lines(module, numbers) if numbers else ())})


def lines(module: Parsed) -> Iterator[int]:
    """The lines of a module on which a limit is compared with what is no literal."""
    if any(_limits(node.test, set()) for node in module.of(ast.Assert)):
        for function in [*module.of(ast.FunctionDef), *module.of(ast.AsyncFunctionDef)]:
            yield from _of(function)


def named_lines(module: Parsed, numbers: frozenset[str]) -> Iterator[int]:
    """The lines on which one of these constants, imported from the product, is compared with what is no literal."""
    imported = {
        one.asname or one.name: f"{node.module}.{one.name}"
        for node in module.of(ast.ImportFrom)
        if (node.module or "").startswith("weft")
        for one in node.names
    }
    if not any(name == one or name.startswith(f"{one}.") for one in imported.values() for name in numbers):
        return  # it imports another one that is called so
    for node in module.of(ast.Assert):
        if any(_follows_name(one, imported, numbers) for one in ast.walk(node.test)):
            yield node.lineno


def _follows_name(node: ast.AST, imported: dict[str, str], numbers: frozenset[str]) -> bool:
    if not isinstance(node, ast.Compare) or not any(isinstance(one, ast.Eq) for one in node.ops):
        return False
    sides = [node.left, *node.comparators]
    named = [{_full(one, imported) for one in ast.walk(side)} & numbers for side in sides]
    return any(named) and any(not _is_made_of(side, imported, numbers) for side in sides)


def _full(node: ast.AST, imported: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_full(node.value, imported)}.{node.attr}"
    return imported.get(node.id, "") if isinstance(node, ast.Name) else ""


def _is_made_of(side: ast.AST, imported: dict[str, str], numbers: frozenset[str]) -> bool:
    """Whether there is nothing in it but literals and those constants."""
    if _full(side, imported) in numbers:
        return True
    return isinstance(side, MADE_OF) and all(_is_made_of(one, imported, numbers) for one in ast.iter_child_nodes(side))


@cache
def open_numbers() -> frozenset[str]:
    """Numbers of the product that a module gives a name, but units and those whose figure is said."""
    said = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))
    figures = {f"{module}.{name}" for module, names in said.items() for name in names}
    return frozenset(
        name
        for path in (ROOT / "src").rglob("*.py")
        if path.name != "limits.py"
        for name in _numbers(parsed(path.read_text("utf-8")).tree, _module(path))
        if name not in figures and not name.startswith(UNITS)
    )


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def _numbers(module: ast.Module, prefix: str) -> Iterator[str]:
    for node in module.body:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if _is_one(node) else None
        value = node.value if isinstance(node, ast.AnnAssign | ast.Assign) else None
        if isinstance(target, ast.Name) and target.id.isupper() and value is not None and _is_number(value):
            yield f"{prefix}.{target.id}"


def _is_one(node: ast.stmt) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and len(node.targets) == 1


def _is_number(value: ast.expr) -> bool:
    parts = list(ast.walk(value))
    return all(isinstance(one, MADE_OF) for one in parts) and all(
        type(one.value) in (int, float) for one in parts if isinstance(one, ast.Constant)
    )


def _of(function: ast.AST) -> Iterator[int]:
    asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    changed = set(_set_by_hand(function)) if asserts else set()
    for node in asserts:
        if any(_follows(one, changed) for one in ast.walk(node.test)):
            yield node.lineno


def _set_by_hand(function: ast.AST) -> Iterator[str]:
    """Names of what `monkeypatch.setattr(limits, "NAME", …)` sets."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def _follows(node: ast.AST, changed: set[str]) -> bool:
    if not isinstance(node, ast.Compare) or not any(isinstance(one, ast.Eq) for one in node.ops):
        return False
    sides = [node.left, *node.comparators]
    return any(_limits(one, changed) for one in sides) and any(not _is_known(one) for one in sides)


def _limits(side: ast.AST, changed: set[str]) -> list[str]:
    return [one.attr for one in ast.walk(side) if _is_limit(one) and one.attr not in changed]


def _is_limit(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "limits"
        and node.attr.isupper()
    )


def _is_known(side: ast.AST) -> bool:
    """Whether it is made of literals and limits alone."""
    return all(
        isinstance(one, ast.Constant | ast.Tuple | ast.List | ast.BinOp | ast.operator | ast.expr_context)
        or _is_limit(one)
        or (isinstance(one, ast.Name) and one.id == "limits")
        for one in ast.walk(side)
    )
