"""Tests that are loaded once, and run against one mutant after the other, each in a process that is forked from here.

A mutant inside of a function is put in place by giving the functions that exist another code. What stands outside of
functions (a limit, a field of a message) has done its work when a module was loaded, and cannot be planted like that.
"""

import gc
import inspect
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

import pytest

from tests.house.mutants.copied import forked
from tests.house.mutants.reach import FILE_S_MAX, Choice, Reach, Seen, Tracer
from tests.house.mutants.rules import Mutant

PATIENCE: Final = 3.0  # times the usual work of its tests: then a mutant does not end, and counts as killed
START_S: Final = 10.0  # to load what the tests need
COLD: Final = "cold"
"""The outcome of a mutant that cannot be planted into what is loaded."""

IMPOSSIBLE: Final = 9
ALIVE: Final = ("survived", "untested")
UNDECIDED: Final = "undecided"
"""The outcome of a mutant that still lives when the time is over, while there are test files near it to be looked at."""
OUTCOMES: Final = {0: "survived", 5: "untested", None: "endless", IMPOSSIBLE: COLD}
"""What the end of a run says; all others: killed, be it by a test that failed or by a module that cannot be loaded."""

Key = tuple[str, int]
"""A function, by its name with those around it, and its first line."""
Told = Callable[[Mutant, Choice, str], None]


class Chosen:
    """A plugin of pytest that runs some tests alone, in their order."""

    def __init__(self, names: list[str]) -> None:
        self._places = {name: number for number, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )


class Warm:
    """A plugin of pytest that, instead of running the tests, runs some of them for each mutant."""

    def __init__(self, root: Path, reach: Reach, mutants: list[Mutant], until: float, told: Told) -> None:
        self._root, self._reach, self._mutants, self._until, self._told = root, reach, mutants, until, told
        self._failed = 0
        self._passed: set[str] = set()
        self._by_file: dict[str, list[pytest.Item]] = {}
        self._items: dict[str, pytest.Item] = {}
        self._live: dict[tuple[str, Key], list[FunctionType]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        by_file: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
        self._by_file = by_file
        self._find_live()
        self._items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            if time.monotonic() > self._until:
                break
            self._told(mutant, *self._play(mutant))
        return True

    def _play(self, mutant: Mutant) -> tuple[Choice, str]:
        """Run the tests that are known to call it, and while it lives look at one further file, as long as there is time."""
        choice = self._reach.choice(mutant)
        tried, outcome = set(choice.tests), self._fate(mutant, choice)
        for test in self._reach.unseen(mutant):
            if outcome not in ALIVE:
                break
            if time.monotonic() > self._until:
                return choice, UNDECIDED
            self._know(test)
            choice = self._reach.choice(mutant)
            fresh = choice._replace(tests=[name for name in choice.tests if name not in tried])
            if fresh.tests:
                outcome = self._fate(mutant, fresh)
                tried |= set(fresh.tests)
        return choice, outcome

    def _find_live(self) -> None:
        source = f"{self._root}/src/"
        gc.unfreeze()  # `tests/conftest.py` hides what was loaded from collections, and from `get_objects`
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(source):
                path = one.__code__.co_filename.removeprefix(source)
                self._live.setdefault((f"src/{path}", key_of(one.__code__)), []).append(one)
        gc.freeze()  # collections in the processes to come would only copy memory

    def _know(self, test: str) -> None:
        """Note what the tests of a file call."""
        notes, items = self._reach.notes_of(test), self._by_file.get(test, [])
        begun = time.monotonic()
        ended = forked(lambda: self._note(items, notes), FILE_S_MAX, notes.with_suffix(".log"))
        if ended is None:
            notes.write_text("{}", "utf-8")
        if not notes.exists():
            raise SystemExit(f"mutants: the tests of {test} do not run: see {notes.with_suffix('.log')}")
        took = f"{time.monotonic() - begun:.0f} s" if ended is not None else "takes long, and is left out"
        print(f"  {test}: {took}", flush=True)
        self._reach.load(test)

    def _note(self, items: list[pytest.Item], notes: Path) -> int:
        tracer, seen = Tracer(self._root), {}
        for item, after in _with_next(items):
            tracer.begin()
            begun = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            seen[item.nodeid] = Seen(time.process_time() - begun, tracer.taken())
        notes.write_text(json.dumps({name: seen[name] for name in seen if name in self._passed}), "utf-8")
        return 0

    def _fate(self, mutant: Mutant, choice: Choice) -> str:
        if not choice.tests:
            return "untested"
        codes = changed((self._root / mutant.path).read_text("utf-8"), mutant.text)
        if not codes:
            return COLD
        items = [self._items[name] for name in choice.tests if name in self._items]
        log = self._reach.kept / "last.log"
        ended = forked(lambda: self._try(mutant.path, codes, items), START_S + PATIENCE * choice.seconds, log)
        return OUTCOMES.get(ended, "killed")

    def _try(self, path: str, codes: dict[Key, CodeType], items: list[pytest.Item]) -> int:
        for key, code in codes.items():
            functions = self._live.get((path, key), [])
            if not functions and not _is_inner(key):
                return IMPOSSIBLE  # a test loads its module later: nothing would be planted
            for function in functions:
                try:
                    function.__code__ = code
                except ValueError:  # it takes other variables from the function around it
                    return IMPOSSIBLE
        for item, after in _with_next(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self._failed:
                return 1
        return 0


def _is_inner(key: Key) -> bool:
    """Whether a function is made anew each time that the one around it is called, which has the other code by then."""
    return "<locals>" in key[0]


def key_of(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno


def changed(right: str, wrong: str) -> dict[Key, CodeType]:
    """Code of the functions that differ, by what they are in the right text; nothing where something else differs, too.

    >>> text = "LIMIT = 3\\ndef is_few(x):\\n    return x < LIMIT\\n"
    >>> list(changed(text, text.replace("<", "<=")))
    [('is_few', 2)]
    >>> changed(text, text.replace("3", "4"))
    {}
    """
    found: dict[Key, CodeType] = {}
    keys: list[Key] = []
    for old, new in zip_longest(codes_of(right), _codes(compile(wrong, "", "exec"))):
        if old is None or new is None or old.co_qualname != new.co_qualname:
            return {}
        keys.append(key_of(old))
        if _plain(old) != _plain(new):
            found[key_of(old)] = new
    is_certain = all(keys.count(key) == 1 and "<module>" not in key and _is_function(found[key]) for key in found)
    return found if is_certain else {}


@cache
def codes_of(text: str) -> list[CodeType]:
    return list(_codes(compile(text, "", "exec")))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _plain(code: CodeType) -> tuple[object, ...]:
    """What it does, whatever its lines are."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    consts = [one for one in code.co_consts if not isinstance(one, CodeType)]
    nested = tuple(map(_plain, inner)) if _is_function(code) else ()  # else they are functions of their own
    return nested, code.co_code, repr(consts), code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)  # bodies of modules and classes are not


def _with_next(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each test with the one behind it: pytest ends fixtures that this one does not need."""
    return zip_longest(items, items[1:])
