"""The base of all checkers: they get facts one by one, and stop at the first that breaks a promise (CHK-002)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, NoReturn

from weft.base.ranges import Range, RangeSet
from weft.checks.history import WITNESSES_MAX, Fact, Unknown, Violation

Shelf = dict[tuple[int, str], RangeSet]
"""Numbers by stream and origin."""


class Broken(Exception):
    """Raised by a checker at the fact that breaks its promise."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


class Checker:
    """Judges one promise. `HEARS` maps (kind, what) to a method that takes the fact.

    A checker that can only judge a whole history overrides `end`.
    """

    rule: ClassVar[str]
    HEARS: ClassVar[dict[tuple[str, str], str]]

    def end(self) -> Violation | Unknown | None:
        """The verdict that needs the whole history; None: ok."""
        return None

    def broken(self, why: str, *witnesses: Fact) -> NoReturn:
        """Stop here: the promise is broken."""
        raise Broken(Violation(self.rule, why, witnesses[:WITNESSES_MAX]))


Verdict = Violation | Unknown


class Suite:
    """Several checkers over one history. A fact costs one look-up and the methods that handle it."""

    def __init__(self, checkers: Iterable[Checker]) -> None:
        self.checkers = list(checkers)
        self._heard: dict[tuple[str, str], list[Callable[[Fact], Any]]] = {}
        for checker in self.checkers:
            for key, method in checker.HEARS.items():
                self._heard.setdefault(key, []).append(getattr(checker, method))

    def hears(self, kind: str, what: str) -> bool:
        """Whether any checker handles such a fact."""
        return (kind, what) in self._heard

    def feed(self, fact: Fact) -> None:
        """Pass the fact to every checker; raises `Broken` at the first broken promise."""
        for method in self._heard.get((fact.kind, fact.what), ()):
            method(fact)

    def end(self) -> list[Verdict]:
        """The verdicts that need the whole history."""
        return [verdict for checker in self.checkers if (verdict := checker.end()) is not None]


def judge(checker: Checker, history: Iterable[Fact]) -> Verdict | None:
    """The verdict of one checker on a whole history; None: ok."""
    suite = Suite([checker])
    try:
        for fact in history:
            suite.feed(fact)
    except Broken as found:
        return found.violation
    return next(iter(suite.end()), None)


def judge_all(checkers: Iterable[Checker], history: Sequence[Fact]) -> list[Verdict]:
    """The verdicts of several checkers, each over the whole history."""
    return [verdict for checker in checkers if (verdict := judge(checker, history)) is not None]


def numbers_of(shelf: Shelf, stream: int, origin: str) -> RangeSet:
    """The set of numbers of that stream and origin; made if it does not exist."""
    key = (stream, origin)
    found = shelf.get(key)
    if found is None:
        found = shelf[key] = RangeSet()
    return found


def without(pieces: list[Range], covers: Iterable[RangeSet]) -> list[Range]:
    """The part of `pieces` that is in none of `covers`."""
    for numbers in covers:
        if not pieces:
            break
        pieces = [gap for first, last in pieces for gap in numbers.gaps(last, first)]
    return pieces


def shown(pieces: Iterable[Range]) -> str:
    """Ranges as people write them: `3, 5-9`."""
    listed = [str(first) if first == last else f"{first}-{last}" for first, last in pieces]
    return ", ".join(listed[:SHOWN_MAX]) + (f" and {len(listed) - SHOWN_MAX} more" if len(listed) > SHOWN_MAX else "")


SHOWN_MAX: Final = 8
