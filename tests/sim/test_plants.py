"""Planted bugs take what the right code takes: one with other parameters fails before it can do its harm."""

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

from weft.sim.canaries import load

BUGS: Final = load()
BY_PLACE: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def not_taken(right: Callable[..., Any], wrong: Callable[..., Any]) -> list[str]:
    """The parameters of the right code that the wrong one does not take."""
    wanted, there = (inspect.signature(each).parameters.values() for each in (right, wrong))
    kinds = {each.kind for each in there}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return []
    by_place = [each.name for each in wanted if each.kind in BY_PLACE]
    taken = len([each for each in there if each.kind in BY_PLACE])
    by_name = {each.name for each in wanted if each.kind is inspect.Parameter.KEYWORD_ONLY}
    left = [] if inspect.Parameter.VAR_POSITIONAL in kinds else by_place[taken:]
    return left + sorted(by_name - {each.name for each in there})


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_takes_what_the_right_code_takes(name: str) -> None:
    bug = BUGS[name]
    right = bug.place[bug.attribute] if isinstance(bug.place, dict) else getattr(bug.place, bug.attribute)
    wrong = bug.plant(right)
    if inspect.isroutine(right) and inspect.isroutine(wrong):
        assert [] == not_taken(right, wrong)


def test_what_is_not_taken_is_named() -> None:
    def right(one: int, two: int, *, three: int) -> None: ...

    def short(one: int) -> None: ...

    def open_(one: int, *more: int, **named: int) -> None: ...

    assert (["two", "three"], []) == (not_taken(right, short), not_taken(right, open_))
