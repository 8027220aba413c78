"""The table of requirements: what docs/requirements.toml promises, joined with what the tests say they prove.

Proofs are read from the source of the tests, not from a run, so that the page depends on nothing but the tree.
A full run then holds the page to its word: see `unproved` and tests/conftest.py.
"""

import ast
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.tidy.tree import parsed

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "docs" / "requirements.toml"
PAGE: Final = ROOT / "docs" / "requirements.md"

SOAK: Final = "pytest.mark.soak"
PROVE: Final = "pytest.mark.prove("
HEAD: Final = """\
# Requirements

Written by `make docs` from `docs/requirements.toml` and the tests; a test fails when it is stale. A requirement is

- *proved*: the named tests assert it, and run in every `make test`, or, where it says so, in `make prove`;
- *part*: they assert some of it; what is missing is said. A test that asserts one clause of several names the clause;
- *interop*: only tests beside programs of others assert it, and those run in `make interop` alone;
- *not done*: no test asserts it, with the reason.

"""


Mark = tuple[str, str]
"""An id, and the clause of it that is asserted; empty: the whole."""
STATES: Final = ("proved", "part", "interop", "not done")


class Requirement(NamedTuple):
    """One promise. `why` says why it is not done, as long as no test proves it."""

    id: str
    room: str
    meaning: str
    why: str
    missing: str = ""
    """What the tests that name it do not assert of it; empty: nothing."""


class Proof(NamedTuple):
    """A test that names a requirement."""

    id: str
    path: str
    line: int
    test: str
    part: str = ""
    """The clause that it asserts; empty: the whole."""
    is_prove: bool = False
    """Whether `make test` leaves it out, and `make prove` runs it."""

    @property
    def is_interop(self) -> bool:
        """Whether only `make interop` runs it."""
        return self.path.startswith("tests/interop/")


def known(source: Path = SOURCE) -> dict[str, Requirement]:
    """All requirements by id, in the order of the file."""
    table = tomllib.loads(source.read_text("utf-8"))
    return {found.id: found for prefix, area in table.items() for found in _area(prefix, area)}


def _area(prefix: str, area: dict[str, object]) -> Iterator[Requirement]:
    lines = area.get("id") or {}
    assert isinstance(lines, dict), prefix
    listed = _expand(str(area["ids"])) if "ids" in area else []
    why, missing = area.get("why") or {}, area.get("missing") or {}
    steps = area["step"]
    assert isinstance(why, dict), prefix
    assert isinstance(missing, dict), prefix
    assert isinstance(steps, list), prefix
    reasons = {number: str(step["is"]) for step in steps for number in _expand(str(step["ids"]))}
    for number in [*lines, *listed]:
        meaning = lines.get(number) or str(area["about"])
        reason = why.get(number) or reasons[number]
        yield Requirement(f"{prefix}-{number}", str(area["room"]), meaning, reason, missing.get(number, ""))


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


def proofs(tests: Path = ROOT / "tests", is_asked: Callable[[Path], bool] = lambda _: True) -> list[Proof]:
    """Every `pytest.mark.proves` of the tests, or of the files that are asked for, by file, in the order of the lines."""
    return [
        proof
        for path in sorted(tests.rglob("test_*.py"))
        if is_asked(path)
        for proof in _proofs_in(path, path.relative_to(tests.parent).as_posix())
    ]


@cache
def _proofs_in(path: Path, name: str) -> list[Proof]:
    return list(_proofs_of(parsed(path.read_text("utf-8")).tree, name))


def _proofs_of(module: ast.Module, path: str) -> Iterator[Proof]:
    assigned = _assigned(module.body)
    whole, is_prove = _marks(assigned), PROVE in " ".join(ast.unparse(one) for one in assigned)
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            of_class = [*whole, *_marks(node.decorator_list), *_marks(_assigned(node.body))]
            for inner in node.body:
                yield from _proofs_of_test(inner, path, of_class, f"{node.name}.", is_prove=is_prove)
        else:
            yield from _proofs_of_test(node, path, whole, "", is_prove=is_prove)


def _proofs_of_test(node: ast.stmt, path: str, outer: list[Mark], prefix: str, *, is_prove: bool) -> Iterator[Proof]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        told = [ast.unparse(mark) for mark in node.decorator_list]
        if SOAK in told:
            return  # it is in no run but `make soak`
        is_prove = is_prove or any(mark.startswith(PROVE) for mark in told)
        for number, part in dict.fromkeys([*outer, *_marks(node.decorator_list)]):
            yield Proof(number, path, node.lineno, prefix + node.name, part, is_prove)


def _assigned(body: list[ast.stmt]) -> list[ast.expr]:
    """What stands in `pytestmark`."""
    return [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
    ]


def _marks(expressions: Iterable[ast.expr]) -> list[Mark]:
    """The ids inside every `…mark.proves(…)` of the expressions, also those of single parameters, with their clause."""
    return [
        (str(argument.value), "".join(ast.literal_eval(one.value) for one in node.keywords if one.arg == "part"))
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
    lines = [HEAD + f"| | room | {' | '.join(STATES)} | of |", "|---|---|---|---|---|---|---|"]
    for prefix, members in areas.items():
        states = [state(one, by_id.get(one.id, [])) for one in members]
        counts = " | ".join(str(states.count(name)) for name in STATES)
        lines.append(f"| [{prefix}](#{prefix.lower()}) | {members[0].room} | {counts} | {len(members)} |")
    for prefix, members in areas.items():
        lines += ["", f"## {prefix}", "", "| id | what | state |", "|---|---|---|"]
        lines += [f"| {one.id} | {one.meaning} | {_said(one, by_id.get(one.id, []))} |" for one in members]
    return "\n".join(lines) + "\n"


def state(one: Requirement, proved: list[Proof]) -> str:
    """Which of the four a requirement is, by the tests that name it."""
    if not proved:
        return "not done"
    if one.missing or all(proof.part for proof in proved):
        return "part"
    return "interop" if all(proof.is_interop or proof.part for proof in proved) else "proved"


def unsaid(requirements: dict[str, Requirement], proved: list[Proof]) -> list[str]:
    """What the file and the marks do not agree about: parts of which nobody says what is missing, and the like."""
    by_id: dict[str, list[Proof]] = {}
    for proof in proved:
        by_id.setdefault(proof.id, []).append(proof)
    found = []
    for one in requirements.values():
        told = by_id.get(one.id, [])
        if state(one, told) == "part" and not one.missing:
            found.append(f"{one.id}: every test of it proves a part; say in [{one.id[:3]}.missing] what is missing")
        if one.missing and not told:
            found.append(f"{one.id}: [{one.id[:3]}.missing] says what is missing, and no test proves the rest")
    return found


def _said(one: Requirement, proved: list[Proof]) -> str:
    name = state(one, proved)
    if name == "not done":
        return f"not done: {one.why}"
    files: dict[str, list[str]] = {}
    for proof in proved:
        test = proof.test.removeprefix("test_") + (f" ({proof.part})" if proof.part else "")
        files.setdefault(proof.path.removeprefix("tests/"), []).append(test)
    whole = [proof for proof in proved if not proof.part] or proved
    places = {"interop" if proof.is_interop else "prove" if proof.is_prove else "" for proof in whole}
    by = "" if "" in places or name == "interop" else f" by make {max(places)}"
    told = "; ".join(f"{path}: {', '.join(dict.fromkeys(tests))}" for path, tests in files.items())
    return f"{name}{by}: {told}" + (f". Missing: {one.missing}" if name == "part" else "")


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
