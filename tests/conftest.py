"""What all tests share: examples without a clock, requirement ids that exist, pages that are generated."""

import gc
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.house import requirements, runs
from tests.house.hanging import Hanging
from tests.house.within import Within

hypothesis.settings.register_profile("test", deadline=None, derandomize=True, max_examples=20)
hypothesis.settings.register_profile("prove", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=20_000, print_blob=True)


class Passed:
    """Notes which tests passed, without their parameters."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.add(report.nodeid.partition("[")[0])


PASSED = pytest.StashKey[Passed]()
WITHIN = pytest.StashKey[Within]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--prove", action="store_true", help="also what `make test` leaves out; with `-m prove` nothing else"
    )
    parser.addoption("--shard", help=f"only files of these, with commas: {', '.join(runs.SHARDS)}")
    parser.addoption(
        "--within", type=float, metavar="SECONDS", help="begin no test after that, and say how many were left"
    )
    parser.addoption("--draw", default="", help="any word: with which file a run --within a time begins")
    parser.addoption("--soak", action="store_true", help="a night's worth of examples, freshly drawn")
    parser.addoption("--generate", action="store_true", help="write the pages that are generated")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[PASSED] = Passed()
    config.pluginmanager.register(config.stash[PASSED])
    config.pluginmanager.register(Hanging())
    if config.getoption("--within") is not None:
        config.stash[WITHIN] = Within(config.getoption("--within"), config.getoption("--draw"))
        config.pluginmanager.register(config.stash[WITHIN])
    profile = "soak" if config.getoption("--soak") else "prove" if config.getoption("--prove") else "test"
    hypothesis.settings.load_profile(profile)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let Python's collector alone while modules are loaded and compiled: whatever they make stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a run whose tests name requirements that nobody knows, and leave out what this run has no time for.

    A test of drawn examples has some of them in every run, and is in `make prove` with more.
    """
    for item in items if _is_only(config) else ():
        if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.prove("more examples"))
    if not config.getoption("--soak", default=False):
        _leave_out(config, items, "soak")
    if not _has_all(config):
        _leave_out(config, items, "prove")
    known = requirements.known()
    unknown: list[str] = []
    for item in items:
        ids = {number for mark in item.iter_markers("proves") for number in mark.args}
        unknown += [f"{item.nodeid}: no requirement {number!r}" for number in sorted(ids - known.keys(), key=str)]
    if unknown:
        raise pytest.UsageError("\n".join([*unknown, f"known ids stand in {requirements.SOURCE.name}"]))


def _leave_out(config: pytest.Config, items: list[pytest.Item], mark: str) -> None:
    left = [item for item in items if item.get_closest_marker(mark)]
    items[:] = [item for item in items if not item.get_closest_marker(mark)]
    if left:
        config.hook.pytest_deselected(items=left)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which this run takes nothing. What is named on the command line is not asked about."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    shards = config.getoption("--shard")
    if shards and runs.shard_of(collection_path) not in shards.split(","):
        return True
    return (
        runs.has_none(collection_path.read_text("utf-8"), is_prove=_has_all(config), is_only=_is_only(config)) or None
    )


def _has_all(config: pytest.Config) -> bool:
    return any(config.getoption(name, default=False) for name in ("--prove", "--soak"))


def _is_only(config: pytest.Config) -> bool:
    """Whether this is `make prove`, or a shard of it."""
    return bool(config.getoption("markexpr", default="") == "prove")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that is marked with `varies` its values: a few in every run, more with --prove, a night's worth with --soak."""
    for mark in metafunc.definition.iter_markers("varies"):
        name, usual, soaked = mark.args
        more = [_left_out(value) for value in mark.kwargs.get("prove", ())]
        metafunc.parametrize(name, soaked if metafunc.config.getoption("--soak") else [*usual, *more])


def _left_out(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.prove("more of the same"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Hold docs/requirements.md to its word: in a full run, or a shard of one, each id proved by it had a test that passed."""
    config = session.config
    if hasattr(config, "workerinput"):
        return  # one of several: who began them knows of all
    narrowed = any(config.getoption(name, None) for name in ("keyword", "collectonly", "lf"))
    narrowed = narrowed or config.getoption("markexpr") not in ("", "prove")
    narrowed = narrowed or (WITHIN in config.stash and config.stash[WITHIN].left > 0)
    if exitstatus or narrowed or config.args != config.getini("testpaths"):
        return
    shards = (config.getoption("--shard") or ",".join(runs.HERE)).split(",")
    proofs = requirements.proofs(is_asked=lambda path: runs.shard_of(path) in shards)
    ran = [
        proof for proof in proofs if (proof.is_prove if _is_only(config) else not proof.is_prove or _has_all(config))
    ]
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
