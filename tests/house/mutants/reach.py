"""Which tests can see a mutant: those that run its function, first those that name its requirement.

A test file near a place is run once, as soon as a mutant there lives, and it is noted which functions of the product each
test calls. The notes are kept in `var/` as long as the product and the room of the test are unchanged. Tests that start processes are left out,
for nobody sees which functions are called there, and so are files that take long.
"""

import ast
import hashlib
import json
import re
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from tests.house import requirements
from tests.house.mutants.rules import FUNCTIONS, Mutant

LEFT_OUT: Final = frozenset({"cli", "fabric", "house", "interop", "peers", "sim", "tidy"})
"""Rooms of tests that start processes, look at texts, or play whole fleets."""
SPARK: Final = frozenset({"pipeline", "source", "tables"})
"""Rooms of tests that start Spark, and are asked for the pipeline alone."""
FIGURES: Final = "tests/house/test_figures.py"
FILE_S_MAX: Final = 40.0  # a file that takes longer is left out: nobody waits for it at each mutant
MUTANT_S_MAX: Final = 10.0  # of tests that are run for one mutant
ID: Final = re.compile(r"\b[A-Z]{3}-\d{3}\b")
WHOLE_ROOMS: Final = ("weft.lake", "weft.checks", "weft.torture")
"""Packages whose modules are tested through one another; elsewhere a room is one deeper."""


class Seen(NamedTuple):
    """What a test called, and the work of it in seconds of a core."""

    seconds: float
    functions: list[str]


class Tracer:
    """Notes which functions of the product are called, in all threads."""

    def __init__(self, root: Path) -> None:
        self._source = f"{root}/src/"
        self._names: dict[CodeType, str] = {}
        self._called: set[str] = set()

    def begin(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)  # a test may have taken it away

    def taken(self) -> list[str]:
        """What was called since the last time."""
        called, self._called = self._called, set()
        return sorted(called - {""})

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        name = self._names.get(code)
        if name is None:
            name = self._names[code] = self._name_of(code)
        self._called.add(name)

    def _name_of(self, code: CodeType) -> str:
        """`src/weft/….py Class.method`; functions inside of functions count as the outer one."""
        if not code.co_filename.startswith(self._source):
            return ""
        path = code.co_filename.removeprefix(self._source.removesuffix("src/"))
        return f"{path} {code.co_qualname.partition('.<locals>')[0]}"


class Choice(NamedTuple):
    """Tests for one mutant, the best first."""

    tests: list[str]
    seconds: float
    left_out: int


class Reach:
    """What is known of the tests of a tree."""

    def __init__(self, root: Path, kept: Path) -> None:
        self._root, self.kept = root, kept
        self._imports = _imports(root / "tests")
        self._proofs = requirements.proofs(root / "tests")
        self._product = _digest(root / "src")
        figures = (root / FIGURES).with_name("figures.toml")
        self._figures = tomllib.loads(figures.read_text("utf-8")).keys() if figures.exists() else ()
        self._near: list[str] = []
        self._notes: dict[str, dict[str, Seen]] = {}
        kept.mkdir(parents=True, exist_ok=True)

    def begin(self, paths: Iterable[str]) -> list[str]:
        """Think of another room: the test files near it, and what is noted of them."""
        self._near = self.near(set(paths))
        self._notes.clear()
        for test in self._near:
            self.load(test)
        return self._near

    def unseen(self, mutant: Mutant) -> list[str]:
        """Test files near it of which it is not known what they call; first that of its name, then those that import it."""
        module = module_of(mutant.path)
        own, name = self._importing(module), f"test_{module.rpartition('.')[2]}.py"
        left = [test for test in self._near if test not in self._notes]
        return sorted(left, key=lambda test: (test.rpartition("/")[2] != name, test not in own))

    def near(self, paths: Iterable[str]) -> list[str]:
        """Test files that import the room of a file or name a requirement which a file names; the room of its name first."""
        rooms = tuple({room_of(path) for path in paths})
        ids = {number for path in paths for number in ID.findall((self._root / path).read_text("utf-8"))}
        files = [test for test, names in self._imports.items() if any(f"{name}.".startswith(rooms) for name in names)]
        named = [proof.path for proof in self._proofs if proof.id in ids]
        words = {"syncs"} | {
            word for path in paths for word in path.split("/")
        }  # `tests/syncs` is short, and sees each sync
        left_out = LEFT_OUT if "pipeline" in words else LEFT_OUT | SPARK
        found = [test for test in dict.fromkeys([*files, *named]) if test.split("/")[1] not in left_out]
        return sorted(found, key=lambda test: test.split("/")[1] not in words)

    def notes_of(self, test: str) -> Path:
        """Where the notes of a test file are kept."""
        ground = _digest((self._root / test).parent)
        return self.kept / f"{test.replace('/', '-')}-{self._product[:16]}-{ground[:16]}.json"

    def load(self, test: str) -> None:
        """Know what the tests of a file call, if that was noted."""
        notes = self.notes_of(test)
        if notes.exists():
            told = json.loads(notes.read_text("utf-8"))
            self._notes[test] = {name: Seen(*one) for name, one in told.items()}

    def choice(self, mutant: Mutant) -> Choice:
        """Tests that call the function; for what is no function those that call one which mentions its name."""
        touching = self._touching({f"{mutant.path} {mutant.where}"})
        if not touching and mutant.where:
            touching = self._touching(mentions(self._root, mutant.where.rpartition(".")[2]))
        return self._cut(mutant, touching)

    def _touching(self, functions: set[str]) -> dict[str, Seen]:
        return {
            name: seen
            for tests in self._notes.values()
            for name, seen in tests.items()
            if not functions.isdisjoint(seen.functions)
        }

    def _cut(self, mutant: Mutant, touching: dict[str, Seen]) -> Choice:
        named, module = self._named(mutant), module_of(mutant.path)
        own = self._importing(module)

        def rank(name: str) -> tuple[bool, bool, float, str]:
            return name.partition("[")[0] not in named, name.partition("::")[0] not in own, touching[name].seconds, name

        order = sorted(touching, key=rank)
        tests, seconds = [], 0.0
        if module in self._figures:
            tests.append(f"{FIGURES}::test_limits_are_what_the_specification_says[{module}]")
        for name in order:
            if seconds + touching[name].seconds <= MUTANT_S_MAX:
                tests.append(name)
                seconds += touching[name].seconds
        return Choice(tests, seconds, len(set(order) - set(tests)))

    def _importing(self, module: str) -> set[str]:
        """Test files that import a module."""
        return {
            test for test, names in self._imports.items() if any(f"{name}.".startswith(f"{module}.") for name in names)
        }

    def _named(self, mutant: Mutant) -> set[str]:
        """Tests that name a requirement which the mutated function, its class or its module names."""
        ids = ids_around(self._root / mutant.path, mutant.where)
        return {f"{one.path}::{one.test.replace('.', '::')}" for one in self._proofs if one.id in ids}


def room_of(path: str) -> str:
    """The package that is tested as one, with a dot at its end.

    >>> room_of("src/weft/cores/carrier/core.py"), room_of("src/weft/lake/files.py")
    ('weft.cores.carrier.', 'weft.lake.')
    """
    module = module_of(path)
    return ".".join(module.split(".")[: 2 if module.startswith(WHOLE_ROOMS) else 3]) + "."


def module_of(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def ids_around(path: Path, where: str) -> set[str]:
    """Requirements that the docstrings of a function, its classes and its module name."""
    node: ast.AST | None = _parsed(path)
    found: set[str] = set()
    for name in ["", *where.split(".")]:
        if name:
            node = next((one for one in getattr(node, "body", []) if getattr(one, "name", "") == name), None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(ID.findall(ast.get_docstring(node) or ""))
    return found


def mentions(root: Path, name: str) -> set[str]:
    """Functions of the product in which a name stands."""
    return {
        f"{path.relative_to(root)} {where}"
        for path in sorted((root / "src").rglob("*.py"))
        if name in path.read_text("utf-8")
        for where, names in _names_by_function(path).items()
        if name in names
    }


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def _names_by_function(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, FUNCTIONS):
                names = (getattr(one, "attr", getattr(one, "id", "")) for one in ast.walk(node))
                found[prefix + node.name] = set(names)

    walk(_parsed(path).body, "")
    return found


def _imports(tests: Path) -> dict[str, set[str]]:
    """What of Weft each test file imports, by itself or through other files of the tests."""
    direct = {
        path.relative_to(tests.parent).as_posix(): set(_imported(ast.parse(path.read_text("utf-8"))))
        for path in sorted(tests.rglob("*.py"))
    }
    modules = {path.removesuffix(".py").replace("/", "."): path for path in direct}

    def whole(path: str, met: set[str]) -> set[str]:
        met.add(path)
        inner = [modules[name] for name in direct[path] if name in modules and modules[name] not in met]
        return {name for name in direct[path] if name.startswith("weft")}.union(*(whole(one, met) for one in inner))

    return {path: whole(path, set()) for path in direct if path.rpartition("/")[2].startswith("test_")}


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


@cache
def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()
