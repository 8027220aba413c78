"""Expected values that follow the program: an `assert` that holds a limit against what the limit itself has made (FLD-043).

`assert limits.PEERS_MAX == len(peers)` holds whatever the limit is, so it says nothing of what was promised. With the
figure of the specification it does. A limit beside nothing but literals is the other way round, and welcome.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[2]


def findings(tests: Path = ROOT / "tests") -> list[str]:
    """`file:line: expression` of every such assert, but of limits that the test itself has set."""
    return [
        f"{path.relative_to(tests.parent).as_posix()}:{line}"
        for path in sorted(tests.rglob("*.py"))
        if "limits." in (text := path.read_text("utf-8"))
        for line in lines(ast.parse(text))
    ]


def lines(module: ast.Module) -> Iterator[int]:
    """The lines of a module on which a limit is compared with what is no literal."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of(function)


def _of(function: ast.AST) -> Iterator[int]:
    changed = set(_set_by_hand(function))
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and any(_follows(one, changed) for one in ast.walk(node.test)):
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
