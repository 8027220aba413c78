"""Each checker beside a twin that is too slow to be wrong, and over long histories with one thing wrong (CHK-004)."""

import pytest

from tests.checks import catalogs
from tests.checks.standard import SMALL, SPOILED, Case, agrees, finds
from weft.checks.history import VOCABULARY

CASES = (*catalogs.CASES,)
EACH = [pytest.param(case, id=f"{case.kind.rule}-{case.kind.__name__}") for case in CASES]


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("case", EACH)
def test_a_checker_agrees_with_its_twin_on_small_histories(case: Case, soak: bool) -> None:
    agrees(case, 10_000 if soak else SMALL)


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("case", EACH)
def test_one_thing_wrong_in_a_long_history_is_found(case: Case, soak: bool) -> None:
    finds(case, 1_000 if soak else SPOILED)


@pytest.mark.parametrize("case", EACH)
def test_what_it_hears_is_in_the_vocabulary(case: Case) -> None:
    assert case.kind.HEARS.keys() <= VOCABULARY.keys()
