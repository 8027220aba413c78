"""The table of requirements: what docs/requirements.toml promises, joined with what the tests say they prove.

Proofs are read from the source of the tests, not from a run, so that the page depends on nothing but the tree.
A full run then holds the page to its word: see `unproved` and tests/conftest.py.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "docs" / "requirements.toml"
PAGE: Final = ROOT / "docs" / "requirements.md"

SOAK: Final = "pytest.mark.soak"
HEAD: Final = """\
# Requirements

Written by `make docs` from `docs/requirements.toml` and the tests; a test fails when it is stale. *Proved* means: the
named tests assert it and run in every `make test`. Everything else is *not done*, with the reason.

"""


class Requirement(NamedTuple):
    """One promise. `why` says why it is not done, as long as no test proves it."""

    id: str
    room: str
    meaning: str
    why: str


class Proof(NamedTuple):
    """A test that names a requirement."""

    id: str
    path: str
    line: int
    test: str


def known(source: Path = SOURCE) -> dict[str, Requirement]:
    """All requirements by id, in the order of the file."""
    table = tomllib.loads(source.read_text("utf-8"))
    return {found.id: found for prefix, area in table.items() for found in _area(prefix, area)}


def _area(prefix: str, area: dict[str, object]) -> Iterator[Requirement]:
    lines = area.get("id") or {}
    assert isinstance(lines, dict), prefix
    listed = _expand(str(area["ids"])) if "ids" in area else []
    why = area.get("why") or {}
    steps = area["step"]
    assert isinstance(why, dict), prefix
    assert isinstance(steps, list), prefix
    reasons = {number: str(step["is"]) for step in steps for number in _expand(str(step["ids"]))}
    for number in [*lines, *listed]:
        meaning = lines.get(number) or str(area["about"])
        yield Requirement(f"{prefix}-{number}", str(area["room"]), meaning, why.get(number) or reasons[number])


def _expand(text: str) -> list[str]:
    """Numbers of a text.

    >>> _expand("001 007-009")
    ['001', '007', '008', '009']
    """
    numbers: list[str] = []
    for part in text.split():
        first, _, last = part.partition("-")
        numbers += [f"{number:03}" for number in range(int(first), int(last or first) + 1)]
    return numbers


def proofs(tests: Path = ROOT / "tests") -> list[Proof]:
    """Every `pytest.mark.proves` of the tests, by file, in the order of the lines."""
    return [
        proof
        for path in sorted(tests.rglob("test_*.py"))
        for proof in _proofs_of(ast.parse(path.read_text("utf-8")), path.relative_to(tests.parent).as_posix())
    ]


def _proofs_of(module: ast.Module, path: str) -> Iterator[Proof]:
    whole = _marks(_assigned(module.body))
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            of_class = [*whole, *_marks(node.decorator_list), *_marks(_assigned(node.body))]
            for inner in node.body:
                yield from _proofs_of_test(inner, path, of_class, f"{node.name}.")
        else:
            yield from _proofs_of_test(node, path, whole, "")


def _proofs_of_test(node: ast.stmt, path: str, outer: list[str], prefix: str) -> Iterator[Proof]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        if any(ast.unparse(mark) == SOAK for mark in node.decorator_list):
            return  # it is left out of `make test`
        for number in dict.fromkeys([*outer, *_marks(node.decorator_list)]):
            yield Proof(number, path, node.lineno, prefix + node.name)


def _assigned(body: list[ast.stmt]) -> list[ast.expr]:
    """What stands in `pytestmark`."""
    return [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
    ]


def _marks(expressions: Iterable[ast.expr]) -> list[str]:
    """The ids inside every `…mark.proves(…)` of the expressions, also those of single parameters."""
    return [
        str(argument.value)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]


def render(requirements: dict[str, Requirement], proved: list[Proof]) -> str:
    """The page docs/requirements.md."""
    by_id: dict[str, list[Proof]] = {}
    for proof in proved:
        by_id.setdefault(proof.id, []).append(proof)
    areas: dict[str, list[Requirement]] = {}
    for one in requirements.values():
        areas.setdefault(one.id[:3], []).append(one)
    lines = [HEAD + "| | room | proved | of |", "|---|---|---|---|"]
    for prefix, members in areas.items():
        done = sum(one.id in by_id for one in members)
        lines.append(f"| [{prefix}](#{prefix.lower()}) | {members[0].room} | {done} | {len(members)} |")
    for prefix, members in areas.items():
        lines += ["", f"## {prefix}", "", "| id | what | state |", "|---|---|---|"]
        lines += [f"| {one.id} | {one.meaning} | {_state(one, by_id.get(one.id, []))} |" for one in members]
    return "\n".join(lines) + "\n"


def _state(one: Requirement, proved: list[Proof]) -> str:
    if not proved:
        return f"not done: {one.why}"
    files: dict[str, list[str]] = {}
    for proof in proved:
        files.setdefault(proof.path.removeprefix("tests/"), []).append(proof.test.removeprefix("test_"))
    return "proved: " + "; ".join(f"{path}: {', '.join(dict.fromkeys(tests))}" for path, tests in files.items())


def unproved(proved: list[Proof], passed: set[str]) -> list[str]:
    """Ids of proofs none of whose tests passed. `passed` holds `path::test`, without parameters.

    >>> unproved([Proof("JRN-001", "tests/a/test_a.py", 1, "test_x")], set())
    ['JRN-001']
    """
    held: dict[str, bool] = {}
    for proof in proved:
        name = f"{proof.path}::{proof.test.replace('.', '::')}"
        held[proof.id] = held.get(proof.id, False) or name in passed
    return [number for number, good in held.items() if not good]
