"""The table of requirements says what the tests say, and a test cannot name what does not exist."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import requirements
from tests.house.requirements import Proof, Requirement

pytest_plugins = ["pytester"]


@pytest.mark.generates
def test_page_says_what_the_tests_prove(committed: Callable[[Path, str], None]) -> None:
    committed(requirements.PAGE, requirements.render(requirements.known(), requirements.proofs()))


def test_every_proof_names_a_known_requirement() -> None:
    known = requirements.known()
    assert [] == [f"{proof.path}:{proof.line}: {proof.id}" for proof in requirements.proofs() if proof.id not in known]


def test_whatever_is_proved_in_part_says_what_is_missing() -> None:
    assert [] == requirements.unsaid(requirements.known(), requirements.proofs())


def test_every_known_requirement_has_a_reason_and_a_unique_id() -> None:
    known = requirements.known()
    assert [] == [one.id for one in known.values() if not (one.why and one.meaning and one.room)]
    assert {len("ABC-001")} == {len(number) for number in known}


def test_marks_are_found_on_functions_classes_modules_and_parameters(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").write_text(
        'pytestmark = [pytest.mark.proves("JRN-001")]\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.proves("JRN-002"))])\n'
        "def test_one(x): ...\n"
        '@pytest.mark.proves("JRN-003", "JRN-004")\n'
        "class TestTwo:\n"
        "    def test_inner(self): ...\n"
        "    def not_a_test(self): ...\n"
        '@pytest.mark.proves("JRN-006", part="a clause")\ndef test_of_a_part(): ...\n'
        '@pytest.mark.soak\n@pytest.mark.proves("JRN-005")\ndef test_that_is_left_out(): ...\n',
        "utf-8",
    )
    path = "tests/test_a.py"
    expected = [
        Proof("JRN-001", path, 3, "test_one"),
        Proof("JRN-002", path, 3, "test_one"),
        Proof("JRN-001", path, 6, "TestTwo.test_inner"),
        Proof("JRN-003", path, 6, "TestTwo.test_inner"),
        Proof("JRN-004", path, 6, "TestTwo.test_inner"),
        Proof("JRN-001", path, 9, "test_of_a_part"),
        Proof("JRN-006", path, 9, "test_of_a_part", "a clause"),
    ]
    assert expected == requirements.proofs(tests)


def test_table_shows_proofs_and_reasons() -> None:
    known = {
        "JRN-001": Requirement("JRN-001", "journal", "one sync per turn", "step 1"),
        "JRN-002": Requirement("JRN-002", "journal", "whole turns", "step 2"),
    }
    page = requirements.render(known, [Proof("JRN-001", "tests/journal/test_a.py", 1, "test_one_sync")])
    expected = [
        "| [JRN](#jrn) | journal | 1 | 0 | 0 | 1 | 2 |",
        "| JRN-001 | one sync per turn | proved: journal/test_a.py: one_sync |",
        "| JRN-002 | whole turns | not done: step 2 |",
    ]
    assert expected == [line for line in page.splitlines() if "J" in line and line.startswith("| ")]


HERE, BESIDE = "tests/journal/test_a.py", "tests/interop/test_b.py"


@pytest.mark.proves("FLD-043", part="the four states")
@pytest.mark.parametrize(
    "missing, proofs, expected",
    [
        ("", [], "not done"),
        ("", [Proof("A", HERE, 1, "t")], "proved"),
        ("", [Proof("A", BESIDE, 1, "t")], "interop"),
        ("", [Proof("A", HERE, 1, "t", "a clause")], "part"),
        ("", [Proof("A", HERE, 1, "t", "a clause"), Proof("A", BESIDE, 1, "u")], "interop"),
        ("", [Proof("A", HERE, 1, "t", "a clause"), Proof("A", HERE, 1, "u")], "proved"),
        ("the other clause", [Proof("A", HERE, 1, "t")], "part"),
    ],
)
def test_a_requirement_is_one_of_four(missing: str, proofs: list[Proof], expected: str) -> None:
    assert expected == requirements.state(Requirement("A", "room", "meaning", "why", missing), proofs)


def test_a_part_is_shown_with_its_clause_and_with_what_is_missing() -> None:
    known = {"JRN-001": Requirement("JRN-001", "journal", "one sync per turn", "step 1", "the rest")}
    page = requirements.render(known, [Proof("JRN-001", HERE, 1, "test_x", "a clause")])
    assert "| JRN-001 | one sync per turn | part: journal/test_a.py: x (a clause). Missing: the rest |" in page
    assert [] == requirements.unsaid(known, [Proof("JRN-001", HERE, 1, "test_x", "a clause")])
    assert ["JRN-001"] == [line[:7] for line in requirements.unsaid(known, [])]


def test_a_proof_counts_only_when_a_test_of_it_passed() -> None:
    proofs = [
        Proof("A", "tests/a.py", 1, "test_x"),
        Proof("A", "tests/a.py", 2, "C.test_y"),
        Proof("B", "b.py", 1, "t"),
    ]
    assert ["B"] == requirements.unproved(proofs, {"tests/a.py::C::test_y"})


def test_a_run_with_an_unknown_requirement_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = proves(*ids): x")
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makepyfile('import pytest\n@pytest.mark.proves("JRN-001", "JRN-999")\ndef test_x(): ...\n')
    result = pytester.runpytest_inprocess()
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["*test_x: no requirement 'JRN-999'*"])
