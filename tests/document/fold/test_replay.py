"""What was true at a time, and what was with all up to an operation (GSP-032)."""

import pytest

from tests.document.fold.feeding import copy_of, result_of, said, source_of
from tests.document.fold.test_engine import PLAIN, row, text
from weft.base.errors import UserError
from weft.cores.document.fold.engine import fold, fold_until

SAID = [*row("a", 5), said("b", 1, 2.5, "b1", path="other"), said("b", 2, 1.0, "b2", path="other")]


@pytest.mark.proves("GSP-032")
@pytest.mark.parametrize(
    "at, expected", [(0.5, ""), (1.0, "a1"), (2.4, "a2"), (2.5, "a2b2"), (3.0, "a3b2"), (9.0, "a5b2")]
)
def test_at_a_time_there_is_what_has_an_effective_time_up_to_it(at: float, expected: str) -> None:
    assert expected == text(fold_until(PLAIN, SAID, at=at))


@pytest.mark.proves("GSP-032")
def test_until_an_operation_there_is_what_has_a_key_up_to_it() -> None:
    shown = {
        str(until): text(fold_until(PLAIN, SAID, until=(source_of(until[0]), int(until[1]))))
        for until in ("a2", "b1", "b2", "a3")
    }
    assert {"a2": "a2", "b1": "a2b1", "b2": "a2b2", "a3": "a3b2"} == shown


def test_both_may_be_said_and_neither() -> None:
    assert "a1" == text(fold_until(PLAIN, SAID, at=1.5, until=(source_of("b"), 1)))
    assert result_of(fold(PLAIN, SAID)) == result_of(fold_until(PLAIN, SAID))


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        fold_until(PLAIN, SAID, until=(source_of("b"), 3))
    assert "unknown-operation" == refused.value.code


def test_before_the_original_came_its_copy_counted() -> None:
    said_all = [copy_of("a", 1, ("d", 1), 2.0, "copy"), said("d", 1, 5.0, "original")]
    assert ["copy", "original"] == [text(fold_until(PLAIN, said_all, at=at)) for at in (2.0, 5.0)]
