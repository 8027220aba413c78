"""What the checkers of documents' entries call broken, and what not: histories made by hand (CHK-004)."""

import pytest

from tests.checks.standard import QUIET, Line, facts_of
from weft.checks import Checker, Violation, judge
from weft.checks.documents import Entered, OwnFirst


def kept(node: str, sequence: int, source: str = "a", session: str = "s") -> Line:
    return node, "durable", "operation", [session, source, sequence]


def heard(node: str, sequence: int, source: str = "a") -> Line:
    return node, "event", "operation", ["s", source, sequence]


def said(node: str, sequence: int, source: str = "a", session: str = "s") -> Line:
    return node, "sent", "operation", [session, source, sequence]


def entered(node: str, sequence: int, source: str = "a", session: str = "s") -> Line:
    return node, "ok", "entered", [session, source, sequence]


def log(node: str, last: int, source: str = "a", session: str = "s") -> Line:
    return node, "info", "log", [session, [[source, [[1, last]]]]]


def lost(node: str) -> Line:
    return node, "info", "disk", ["lost", [], []]


RIGHT: dict[str, tuple[type[Checker], tuple[Line, ...]]] = {
    "an own one behind its wall": (OwnFirst, (kept("a", 1), said("a", 1))),
    "one that was heard": (OwnFirst, (heard("b", 1), said("b", 1))),
    "the second alone": (OwnFirst, (kept("a", 2), said("a", 2))),
    "of two sessions": (OwnFirst, (kept("a", 1), kept("a", 1, session="t"), said("a", 1, session="t"))),
    "of two sources": (OwnFirst, (kept("a", 1), heard("a", 4, "b"), said("a", 4, "b"))),
    "taken when durable": (Entered, (kept("a", 1), entered("a", 1))),
    "taken behind a hole": (Entered, (kept("a", 3), entered("a", 3))),
    "in every log": (Entered, (kept("a", 1), kept("a", 2), log("a", 2), log("b", 2), QUIET)),
    "a log that goes further": (Entered, (kept("a", 1), log("b", 7), QUIET)),
    "another session's log": (Entered, (kept("a", 1), log("a", 1), log("c", 9, "b", session="t"), QUIET)),
    "kept behind a gap alone": (Entered, (kept("a", 2), log("b", 1), QUIET)),
    "its journal is lost": (Entered, (kept("a", 2), kept("a", 1), lost("a"), log("b", 1), QUIET)),
    "a log that grew": (Entered, (kept("a", 1), log("b", 0), log("b", 1), QUIET)),
}
WRONG: dict[str, tuple[type[Checker], tuple[Line, ...], str]] = {
    "said first": (OwnFirst, (said("a", 1), kept("a", 1)), "a says operation 1 of a, which is not durable"),
    "the next one": (OwnFirst, (kept("a", 1), said("a", 2)), "a says operation 2 of a, which is not durable"),
    "another node's": (OwnFirst, (kept("b", 1), said("a", 1)), "a says operation 1 of a, which is not durable"),
    "another session's": (OwnFirst, (kept("a", 1, session="t"), said("a", 1)), "a says operation 1 of a"),
    "another source's": (OwnFirst, (kept("a", 1, "b"), said("a", 1)), "a says operation 1 of a"),
    "taken and nowhere": (Entered, (entered("a", 1),), "a says that entry 1 of a is taken, which is not durable"),
    "taken, and another is durable": (Entered, (kept("a", 1), entered("a", 2)), "a says that entry 2 of a is taken"),
    "taken, and durable elsewhere": (Entered, (kept("b", 1), entered("a", 1)), "a says that entry 1 of a is taken"),
    "taken of another session": (Entered, (kept("a", 1, session="t"), entered("a", 1)), "a says that entry 1 of a"),
    "taken on a lost disk": (Entered, (kept("a", 1), lost("a"), entered("a", 1)), "a says that entry 1 of a is taken"),
    "a log too short": (
        Entered,
        (kept("a", 1), kept("a", 2), log("a", 2), log("b", 1), QUIET),
        "a has kept 2 of a, the log of b ends at 1",
    ),
    "a log without the source": (
        Entered,
        (kept("a", 1), log("b", 5, "c"), QUIET),
        "a has kept 1 of a, the log of b ends at 0",
    ),
    "another disk is lost": (
        Entered,
        (kept("a", 1), lost("b"), log("b", 0), QUIET),
        "a has kept 1 of a, the log of b ends at 0",
    ),
    "the gapless part alone": (
        Entered,
        (kept("a", 1), kept("a", 4), log("b", 0), QUIET),
        "a has kept 1 of a, the log of b ends at 0",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(name: str) -> None:
    kind, lines = RIGHT[name]
    assert judge(kind(), facts_of(lines)) is None


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    kind, lines, why = WRONG[name]
    verdict = judge(kind(), facts_of(lines))
    assert isinstance(verdict, Violation)
    assert verdict.why.startswith(why)
    assert kind.rule == verdict.rule
