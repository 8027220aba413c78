"""What the checkers of fleets call broken, and what not."""

from typing import Any

import pytest

from weft.base.now import SECOND
from weft.checks import Calm, Checker, Fact, Kept, NeverBack, Numbers, OneRoot, Settled, Swift, Unknown, judge

Told = tuple[int, str, str, str, Any]
TAKEN = ("event", "root-taken")
WRITE = ("sent", "write")


def history(*told: Told) -> list[Fact]:
    return [Fact(at * SECOND, node, 1, kind, what, value) for at, node, kind, what, value in told]


def taken(at: int, node: str, epoch: int, *, is_acting: bool = False) -> Told:
    return at, node, *TAKEN, ["f", epoch, is_acting]


def write(at: int, node: str, number: int, value: str = "v") -> Told:
    return at, node, *WRITE, ["f", number, "/k", value]


RIGHT: dict[str, tuple[type[Checker], list[Fact]]] = {
    "a root that starts again, and one of a later epoch": (
        OneRoot,
        history(taken(1, "a", 1), taken(2, "a", 1), taken(3, "b", 2), taken(4, "c", 2, is_acting=True)),
    ),
    "a vote behind its promise": (
        OneRoot,
        history((1, "a", "durable", "promise", [2]), (2, "a", "sent", "vote", ["f", 2])),
    ),
    "numbers that ascend": (
        Numbers,
        history(taken(1, "a", 0), write(2, "a", 1), write(3, "a", 2), taken(4, "b", 1), write(5, "b", 9)),
    ),
    "a write that is written over": (
        Kept,
        history((1, "a", "ok", "wrote", ["f", "/k", "v", 3, True]), (9, "a", "info", "store", ["f", [["/k", 4, "w"]]])),
    ),
    "a node that says that it goes back": (
        NeverBack,
        history(
            (1, "a", "event", "applied", [5]),
            (2, "a", "event", "went-back", [3, 5]),
            (3, "a", "event", "applied", [3]),
        ),
    ),
    "one root, and a member": (
        Settled,
        history(
            (1, "a", "info", "standing", ["f", "ROOT", "BASE", "IDLE", ""]),
            (1, "b", "info", "standing", ["f", "FOLLOW", "JOINED", "RUN", "a"]),
            (2, "", "info", "quiet", None),
        ),
    ),
    "a root in time": (
        Swift,
        history(
            (1, "a", "info", "due", ["root", "f", 9 * SECOND, "a"]), taken(8, "b", 1), (10, "", "info", "quiet", None)
        ),
    ),
    "a parent that is silent soon after a crash": (
        Calm,
        history((1, "a", "info", "start", ["root", "", 0]), (19, "b", "event", "parent-silent", [2 * SECOND])),
    ),
    "a parent that is silent while a cable is cut, or a node is down": (
        Calm,
        history(
            (1, "a", "info", "path", ["a", "b", "cut"]),
            (2, "c", "info", "crash", ["kept"]),
            (90, "b", "event", "parent-silent", [2 * SECOND]),
            (91, "a", "info", "path", ["a", "b", "open"]),
            (190, "b", "event", "parent-silent", [2 * SECOND]),
        ),
    ),
    "a parent in time": (
        Swift,
        history(
            (1, "a", "info", "due", ["parent", "m", 9 * SECOND, "a"]),
            (8, "m", "event", "parent-joined", ["b"]),
            (10, "", "info", "quiet", None),
        ),
    ),
}
WRONG: dict[str, tuple[type[Checker], list[Fact]]] = {
    "two roots of one epoch": (OneRoot, history(taken(1, "a", 1), taken(2, "b", 1))),
    "a vote before its promise": (
        OneRoot,
        history((1, "a", "durable", "promise", [1]), (2, "a", "sent", "vote", ["f", 2])),
    ),
    "a number of two writes": (
        Numbers,
        history(taken(1, "a", 0), write(2, "a", 1), taken(3, "b", 0), write(4, "b", 1, "w")),
    ),
    "a number twice": (Numbers, history(taken(1, "a", 0), write(2, "a", 2), write(3, "a", 1))),
    "a writer that only acts": (Numbers, history(taken(1, "a", 0, is_acting=True), write(2, "a", 1))),
    "a number below that of the root before": (
        Numbers,
        history(taken(1, "a", 0), write(2, "a", 5), taken(3, "b", 1), write(4, "b", 4)),
    ),
    "a confirmed write that is gone": (
        Kept,
        history((1, "a", "ok", "wrote", ["f", "/k", "v", 3, True]), (9, "b", "info", "store", ["f", [["/k", 2, "u"]]])),
    ),
    "a node that goes back and says nothing": (
        NeverBack,
        history((1, "a", "event", "applied", [5]), (3, "a", "event", "applied", [3])),
    ),
    "no root": (
        Settled,
        history((1, "b", "info", "standing", ["f", "FOLLOW", "JOINED", "RUN", "a"]), (2, "", "info", "quiet", None)),
    ),
    "a member without a place": (
        Settled,
        history(
            (1, "a", "info", "standing", ["f", "ROOT", "BASE", "IDLE", ""]),
            (1, "b", "info", "standing", ["f", "FOLLOW", "CALLED", "RUN", ""]),
            (2, "", "info", "quiet", None),
        ),
    ),
    "somebody who still acts": (
        Settled,
        history(
            (1, "a", "info", "standing", ["f", "ROOT", "BASE", "IDLE", ""]),
            (1, "b", "info", "standing", ["f", "ACTING", "BASE", "IDLE", ""]),
            (2, "", "info", "quiet", None),
        ),
    ),
    "a parent that is silent without a reason": (
        Calm,
        history(
            (1, "a", "info", "crash", ["kept"]),
            (1, "a", "info", "path", ["a", "b", "cut"]),
            (2, "a", "info", "start", ["root", "", 0]),
            (2, "a", "info", "path", ["a", "b", "open"]),
            (23, "b", "event", "parent-silent", [2 * SECOND]),
        ),
    ),
    "a root too late": (Swift, history((1, "a", "info", "due", ["root", "f", 9 * SECOND, "a"]), taken(10, "b", 1))),
    "the same parent again": (
        Swift,
        history(
            (1, "a", "info", "due", ["parent", "m", 9 * SECOND, "a"]),
            (8, "m", "event", "parent-joined", ["a"]),
            (10, "", "info", "quiet", None),
        ),
    ),
}


@pytest.mark.proves("CHK-002")
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(name: str) -> None:
    kind, told = RIGHT[name]
    assert None is judge(kind(), told)


@pytest.mark.proves("CHK-002")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    kind, told = WRONG[name]
    verdict = judge(kind(), told)
    assert verdict is not None
    assert verdict.rule == kind.rule


def test_a_write_of_which_nobody_says_what_became_of_it_is_unknown() -> None:
    told = history((1, "a", "ok", "wrote", ["f", "/k", "v", 3, True]))
    assert isinstance(judge(Kept(), told), Unknown)
