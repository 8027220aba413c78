"""What all tests share: examples without a clock, requirement ids that exist, pages that are generated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it has no types

from tests.house import requirements

hypothesis.settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=20_000, print_blob=True)


class Passed:
    """Notes which tests passed, without their parameters."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.add(report.nodeid.partition("[")[0])


PASSED = pytest.StashKey[Passed]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="a night's worth of examples, freshly drawn")
    parser.addoption("--generate", action="store_true", help="write the pages that are generated")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[PASSED] = Passed()
    config.pluginmanager.register(config.stash[PASSED])
    hypothesis.settings.load_profile("soak" if config.getoption("--soak") else "house")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a run whose tests name requirements that nobody knows; of several workers each begins with what is long."""
    if hasattr(config, "workerinput"):  # else one ends long after the other
        items.sort(key=lambda item: _group_of(item.nodeid) not in LONG)
    if not config.getoption("--soak", default=False):
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    known = requirements.known()
    unknown: list[str] = []
    for item in items:
        ids = {number for mark in item.iter_markers("proves") for number in mark.args}
        unknown += [f"{item.nodeid}: no requirement {number!r}" for number in sorted(ids - known.keys(), key=str)]
    if unknown:
        raise pytest.UsageError("\n".join([*unknown, f"known ids stand in {requirements.SOURCE.name}"]))


SPARK = frozenset({"pipeline", "source", "tables"})
"""Rooms whose tests share a session of Spark. There are two of it, so that workers end at about the same time."""
SECOND = "test_n"
"""With which files the second half begins."""
PROCESSES = frozenset({"fabric", "peers", "cli", "client", "shell", "clone"})
"""Rooms whose tests are done by one worker: one fleet at a time on this machine's ports."""
PEERS_SPARK = frozenset({"test_connect.py", "test_declarative.py", "test_lake_readers.py"})
"""What of `tests/interop` needs Spark; all else there is machines and brokers, one after the other."""
LONG = frozenset({"spark", "processes", "more spark"})
"""Groups that take minutes, which begin first: one for each worker."""


def _group_of(nodeid: str) -> str:
    """What one worker does as a whole; a file is never torn: its fixtures are made once."""
    file = nodeid.partition("::")[0]
    room = file.split("/")[1] if "/" in file else ""
    if room in SPARK:
        return "spark" if Path(file).name < SECOND else "more spark"
    if room == "interop":
        return "spark" if Path(file).name in PEERS_SPARK else "processes"
    return "processes" if room in PROCESSES else file


class _ByRoom(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    def _split_scope(self, nodeid: str) -> str:
        return _group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByRoom:
    """Deal the tests out by groups."""
    return _ByRoom(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that is marked with `varies` its values: a few in every run, a night's worth with --soak."""
    for mark in metafunc.definition.iter_markers("varies"):
        name, usual, soaked = mark.args
        metafunc.parametrize(name, soaked if metafunc.config.getoption("--soak") else usual)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Hold docs/requirements.md to its word: in a full run each proved id had a test that passed."""
    config = session.config
    if hasattr(config, "workerinput"):
        return  # one of several: who began them knows of all
    narrowed = any(config.getoption(name, None) for name in ("keyword", "markexpr", "collectonly", "lf"))
    if exitstatus or narrowed or config.args != config.getini("testpaths"):
        return
    ran = [proof for proof in requirements.proofs() if not proof.path.startswith("tests/interop/")]
    if missing := requirements.unproved(ran, config.stash[PASSED].names):
        config.get_terminal_writer().line(f"\nproved by no test that passed: {', '.join(missing)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> bool:
    """Whether this is `make soak`: heavy tests then take their time."""
    return bool(request.config.getoption("--soak"))


@pytest.fixture
def committed(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a generated page with the one in the tree; `make docs` writes it instead.

    Mark the test with `@pytest.mark.generates`, so that `make docs` finds it.
    """

    def check(path: Path, expected: str) -> None:
        if request.config.getoption("--generate"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(expected, "utf-8")
        actual = path.read_text("utf-8") if path.exists() else ""
        assert expected == actual, f"{path.name} is stale: run `make docs` and commit it"

    return check
