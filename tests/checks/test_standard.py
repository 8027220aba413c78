"""Each checker beside a twin that is too slow to be wrong, and over long histories with one thing wrong (CHK-004)."""

from typing import Any

import pytest

from tests.checks import catalogs, programs, roots, stores
from tests.checks.standard import SMALL, SPOILED, Case, Line, agrees, facts_of, finds
from weft.checks import Checker, Unknown, Violation, judge
from weft.checks.history import VOCABULARY
from weft.checks.sealed import Sealed

CASES = (*catalogs.CASES, *programs.CASES, *roots.CASES, *stores.CASES)
EACH = [pytest.param(case, id=f"{case.kind.rule}-{case.kind.__name__}") for case in CASES]
GOOD = {**programs.GOOD, **roots.GOOD}
BAD = {**programs.BAD, **roots.BAD}


def _named(table: dict[type[Any], dict[str, tuple[Line, ...]]]) -> list[Any]:
    return [
        pytest.param(kind, lines, id=f"{kind.__name__}-{name}") for kind in table for name, lines in table[kind].items()
    ]


@pytest.mark.proves(
    "CHK-004", "CHK-008", "CHK-011", "CHK-012", "CHK-013", "CHK-015", "CHK-016", "CHK-017", "CHK-021", "JRN-006"
)
@pytest.mark.parametrize(("kind", "lines"), _named(GOOD))
def test_what_is_right_is_left_alone(kind: type[Any], lines: tuple[Line, ...]) -> None:
    assert judge(kind(), facts_of(lines)) is None


@pytest.mark.proves(
    "CHK-004", "CHK-008", "CHK-011", "CHK-012", "CHK-013", "CHK-015", "CHK-016", "CHK-017", "CHK-021", "JRN-006"
)
@pytest.mark.parametrize(("kind", "lines"), _named(BAD))
def test_what_is_wrong_is_named(kind: type[Any], lines: tuple[Line, ...]) -> None:
    verdict = judge(kind(), facts_of(lines))
    assert isinstance(verdict, Violation)
    assert kind.rule == verdict.rule
    assert 1 <= len(verdict.witnesses) <= 20


@pytest.mark.proves("CHK-004")
def test_each_has_ten_of_both() -> None:
    assert GOOD.keys() == BAD.keys()
    assert [] == [kind.__name__ for kind in GOOD if min(len(GOOD[kind]), len(BAD[kind])) < 10]


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("case", EACH)
def test_a_checker_agrees_with_its_twin_on_small_histories(case: Case, soak: bool) -> None:
    agrees(case, 10_000 if soak else SMALL)


@pytest.mark.prove("long histories")
@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("case", EACH)
def test_one_thing_wrong_in_a_long_history_is_found(case: Case, soak: bool) -> None:
    finds(case, 1_000 if soak else SPOILED)


def test_whatever_a_checker_hears_is_in_the_vocabulary() -> None:
    heard = {key for kind in _all(Checker) if hasattr(kind, "HEARS") for key in kind.HEARS}
    assert [] == sorted(heard - VOCABULARY.keys())


def _all(kind: type[Checker]) -> list[type[Checker]]:
    return [each for sub in kind.__subclasses__() for each in (sub, *_all(sub))]


def test_who_is_a_stranger_is_unknown_where_nobody_says_who_belongs_there() -> None:
    assert isinstance(judge(Sealed(), facts_of([programs.joins("a")])), Unknown)
