"""`make test` touches every kind of promise, `make prove` has what it leaves out, and no test is in neither."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest

from tests.house import runs

pytest_plugins = ["pytester"]

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted((ROOT / "tests").rglob("test_*.py"))
STORIES: Final = {
    "measurement and drain": "fabric/test_kills.py::test_no_sample_is_lost_or_doubled_by_killing_each_node_of_the_road",
    "topology": "fabric/test_tree.py::test_a_fleet_finds_itself_follows_its_root_and_outlives_it",
    "configuration": "fabric/test_config.py::test_a_changed_rate_is_in_force_everywhere_and_no_sample_is_lost_or_doubled",
    "chains": "fabric/test_chains.py::test_messages_of_every_format_come_from_a_leaf_to_the_lake",
    "store": "fabric/test_store.py::test_what_one_node_was_told_every_other_one_shows_also_after_a_kill",
    "catalog": "fabric/test_catalog.py::test_services_are_there_while_they_live_whatever_becomes_of_the_broker",
    "documents": "fabric/test_documents.py::test_what_is_entered_anywhere_is_everywhere_survives_a_kill_and_is_a_row_of_the_lake",
    "keys": "fabric/test_closed.py::test_a_closed_fabric_measures_and_loses_nothing",
    "enrolment": "fabric/test_enrolment.py::test_two_commands_bring_a_machine_in_and_nothing_that_they_write_holds_a_secret",
    "clone": "clone/test_servers.py::test_two_roots_of_weft_follow_one_another_so",
    "the tables, of a history": "pipeline/test_oracle.py::test_random_histories",
    "the tables, of a driver that is killed": "pipeline/test_oracle.py::test_killed_before_and_after_each_step",
    "the tables, of an earlier version": "pipeline/test_golden.py::test_a_lake_of_an_earlier_version_goes_on",
    "many cases in Spark at once": "pipeline/test_values.py::test_pairs_calculate_as_everywhere_else",
    "seeds of the simulator": "sim/test_fleets.py::test_every_small_fleet_is_green",
    "nights of each protocol": "sim/test_protocols.py::test_every_night_of_a_protocol_is_green",
    "the last metre to the disk": "syncs/test_syncs.py::test_every_sync_of_the_program_is_met_by_a_life_and_missed_when_it_is_left_out",
    "the house": "tidy/test_tidy.py::test_tree_is_tidy",
}
"""A test of every kind of promise that is in each `make test`."""
SAMPLE: Final = """
import pytest
def test_usual(): ...
@pytest.mark.prove("long")
def test_long(): ...
@pytest.mark.soak
def test_night(): ...
@pytest.mark.varies("seed", range(2), range(9), prove=range(2, 5))
def test_seed(seed): ...
"""
DRAWN: Final = """
import pathlib
from hypothesis import given, strategies
from tests.examples import examples
drawn, more = [], []
@given(strategies.integers())
def test_drawn(number): drawn.append(number)
@examples(300)
@given(strategies.integers())
def test_more(number): more.append(number)
def teardown_module(): pathlib.Path("drawn").write_text(f"{len(drawn)} {len(more)}")
"""
INI: Final = "[pytest]\nmarkers =\n    soak: x\n    prove(why): x\n    varies(names): x\n    proves(*ids): x"
HOOKS: Final = "pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_generate_tests"


def marks_of(path: Path) -> dict[str, str]:
    """The tests of a file, each with what decorates it and its module."""
    tree = ast.parse(path.read_text("utf-8"))
    module = " ".join(ast.unparse(node) for node in tree.body if ast.unparse(node).startswith("pytestmark"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: " ".join([module, *map(ast.unparse, node.decorator_list)]) for node in tests}


@pytest.fixture(autouse=True)
def examples() -> Iterator[None]:
    """What a run in this process draws is not what the tests after it draw."""
    profile = hypothesis.settings.get_current_profile_name()
    yield
    hypothesis.settings.load_profile(profile)


def beside(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder of tests of its own, with the options and the marks of this one."""
    pytester.makeini(INI)
    pytester.makeconftest(f"from tests.conftest import {HOOKS}")
    return pytester


@pytest.mark.proves("HSE-020", part="every kind of promise is in `make test`")
@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_a_kind_of_promise_is_in_every_make_test(story: str) -> None:
    path, _, name = story.partition("::")
    marks = marks_of(ROOT / "tests" / path)
    assert name in marks
    assert re.findall(r"mark\.(?:prove|soak)\(", marks[name]) == []


@pytest.mark.proves("HSE-020", part="`make prove` has what `make test` leaves out")
@pytest.mark.parametrize(
    "words, passed, left",
    [
        ((), 3, 5),
        (("--prove",), 7, 1),
        (("--prove", "-m", "prove"), 4, 4),
        (("--soak",), 12, 0),
    ],
)
def test_what_is_left_out_is_in_the_other_run(
    words: tuple[str, ...], passed: int, left: int, pytester: pytest.Pytester
) -> None:
    beside(pytester).makepyfile(SAMPLE)
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=passed, deselected=left)


@pytest.mark.proves("HSE-020", part="`make prove` draws three times the examples of `make test`")
@pytest.mark.parametrize("words, drawn", [((), "20 100"), (("--prove", "-m", "prove"), "60 300")])
def test_of_drawn_examples_each_run_has_some_and_the_other_one_more(
    words: tuple[str, ...], drawn: str, pytester: pytest.Pytester
) -> None:
    beside(pytester).makepyfile(DRAWN)
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=2)
    assert drawn == (pytester.path / "drawn").read_text("utf-8")


@pytest.mark.proves("HSE-020", part="CI ends in its time, and says what it left out")
def test_a_run_within_a_time_says_what_it_left(pytester: pytest.Pytester) -> None:
    beside(pytester).makepyfile(SAMPLE)
    for seconds, passed, said in (("600", 7, 0), ("-1", 0, 1)):
        ran = pytester.runpytest_inprocess("--prove", "--within", seconds)
        ran.assert_outcomes(passed=passed, deselected=1)
        assert (0, said) == (ran.ret, str(ran.stdout).count("no time for 7 of 7 tests"))


def test_each_word_begins_a_run_within_a_time_with_some_file(pytester: pytest.Pytester) -> None:
    beside(pytester).makepyfile(**{f"test_{name}": "def test_it(): ..." for name in "abc"})
    orders = set()
    for word in "0123456789":
        ran = pytester.runpytest_inprocess("-v", "--within", "600", "--draw", word)
        orders.add("".join(re.findall(r"^test_(\w)\.py::test_it PASSED", str(ran.stdout), re.MULTILINE)))
    assert {"abc", "bca", "cab"} == orders


@pytest.mark.parametrize("shard", runs.HERE)
def test_no_process_of_a_run_is_without_tests(shard: str) -> None:
    here = [path.read_text("utf-8") for path in FILES if runs.shard_of(path) == shard]
    assert any(not runs.has_none(text, is_prove=False, is_only=False) for text in here)
    assert any("mark.prove(" in text for text in here)


def test_every_file_is_in_a_shard_and_each_shard_in_one_process_of_a_run() -> None:
    assert {runs.shard_of(path) for path in FILES} == set(runs.SHARDS)
    check = (ROOT / "scripts" / "check").read_text("utf-8")
    for run, shards in (("tests", runs.HERE), ("prove", runs.HERE), ("interop", ("interop-spark", "interop"))):
        (words,) = re.findall(rf'^{run}\(\) {{ (?:shards 25m|in_time) "[^"]*" ([^;]*);', check, re.MULTILINE)
        assert sorted(shards) == sorted(words.replace(",", " ").split())


@pytest.mark.parametrize(
    "source, usual, prove",
    [
        ("def test_x(): ...", False, True),
        ('pytestmark = pytest.mark.prove("x")\ndef test_x(): ...', True, False),
        ('@pytest.mark.prove("x")\ndef test_x(): ...', False, False),
        ("@given(st.integers())\ndef test_x(x): ...", False, False),
        ("@hypothesis.given(st.integers())\ndef test_x(x): ...", False, False),
        ('@pytest.mark.proves("JRN-001")\ndef test_x(): ...', False, True),
        ('@pytest.mark.varies("x", [1], [3], prove=[2])\ndef test_x(x): ...', False, False),
    ],
)
def test_a_module_is_not_loaded_when_nothing_of_it_is_run(source: str, *, usual: bool, prove: bool) -> None:
    assert usual is runs.has_none(source, is_prove=False, is_only=False)
    assert prove is runs.has_none(source, is_prove=True, is_only=True)
    assert not runs.has_none(source, is_prove=True, is_only=False)


@pytest.mark.proves("HSE-020", part="CI runs `make test`, `make prove` and `make interop`")
def test_ci_runs_all_three() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert ["make test", "make prove", "make interop"] == [line for line in lines if line.startswith("make ")]


@pytest.mark.proves(
    "HSE-020", part="what is shipped has its types checked in `make test`, all the rest in `make prove`"
)
def test_types_of_all_are_checked_in_one_of_the_two_runs() -> None:
    steps = dict(re.findall(r"^(\w+): .*\n\tscripts/check (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {"test": True, "prove": False} == {run: "shipped_types" in steps[run].split() for run in ("test", "prove")}
    assert ["check", "prove"] == sorted(run for run, words in steps.items() if "types" in words.split())
    lines = (ROOT / "scripts" / "check").read_text("utf-8").splitlines()
    assert 'types() { "$bin/mypy"; }' in lines
    assert any(line.startswith('shipped_types() { "$bin/mypy" src; }') for line in lines)
