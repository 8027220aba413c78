"""What every checker is held to (CHK-004): a slow twin that agrees with it, and long histories with one thing wrong.

A case brings small histories of both kinds, the twin, a long history that is right, and the ways to spoil that. Twins
judge a whole history by its definition, fact by fact against all facts before it; they share no code with the checkers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.checks import Checker, Fact, Violation, judge

Line = tuple[str, str, str, Any]
"""Node, kind, what, value."""
Spoil = Callable[[list[Fact], Chance], list[Fact]]
QUIET: Final[Line] = ("", "info", "quiet", None)
SMALL: Final = 500
"""Small histories of each case in every run; `--soak`: 10,000."""
SPOILED: Final = 100
"""Spoiled histories of each case in every run; `--soak`: 1,000."""


class Case(NamedTuple):
    """One checker, and what it is held to."""

    kind: type[Checker]
    draw: Callable[[Chance], list[Line]]
    """A small history that may be right."""
    twin: Callable[[list[Fact]], bool]
    """Whether a history is right."""
    long: Callable[[Chance], list[Line]]
    """A long one that is right."""
    spoils: tuple[Spoil, ...]
    """Each breaks the promise by changing, moving, adding or removing one thing."""


def facts_of(lines: Sequence[Line]) -> list[Fact]:
    """The history, a nanosecond between two lines."""
    return [Fact(at, node, 1, kind, what, value) for at, (node, kind, what, value) in enumerate(lines)]


def agrees(case: Case, histories: int) -> None:
    """The checker says of each small history what its twin says, and there are enough of both kinds."""
    chance, right = Chance(f"twin/{case.kind.__name__}"), 0
    for number in range(histories):
        facts = facts_of(case.draw(chance))
        expected = case.twin(facts)
        verdict = judge(case.kind(), facts)
        assert expected == (verdict is None), (number, [str(fact) for fact in facts], str(verdict))
        right += expected
    assert histories // 50 < right < histories * 49 // 50, f"{right} of {histories} are right"


def finds(case: Case, spoiled: int) -> None:
    """A long history is right; with one thing wrong it is not, by 99 of 100."""
    chance = Chance(f"spoiled/{case.kind.__name__}")
    facts = facts_of(case.long(chance))
    assert judge(case.kind(), facts) is None, str(judge(case.kind(), facts))
    for spoil in case.spoils:
        found = sum(isinstance(judge(case.kind(), spoil(facts, chance)), Violation) for _ in range(spoiled))
        assert found * 100 >= spoiled * 99, f"{found} of {spoiled} by {spoil.__name__}"


# Ways to spoil a history


def places(facts: list[Fact], what: str, fits: Callable[[Fact], bool] = lambda fact: True) -> list[int]:
    """Where facts of that name stand."""
    return [at for at, fact in enumerate(facts) if fact.what == what and fits(fact)]


def changed(facts: list[Fact], at: int, **fields: Any) -> list[Fact]:
    """One fact is another one."""
    return [*facts[:at], msgspec.structs.replace(facts[at], **fields), *facts[at + 1 :]]


def put(facts: list[Fact], at: int, *more: Fact) -> list[Fact]:
    """Facts more, before the one at `at`."""
    return [*facts[:at], *more, *facts[at:]]


def without(facts: list[Fact], at: int) -> list[Fact]:
    """One fact less."""
    return [*facts[:at], *facts[at + 1 :]]
