"""Hints that act, verdicts that say too little, and numbers that stand for two things, in histories written by hand."""

from typing import Any

import pytest

from weft.checks import Checker, Claimed, Fact, HarmReported, Unmoved, judge
from weft.checks.history import VOCABULARY

Line = tuple[str, str, str, Any]
JOINED: list[Line] = [
    ("s", "info", "start", ["sensor", "r", 1]),
    ("s", "info", "link", ["s", "r", True]),
    ("s", "event", "parent-joined", ["r"]),
]
PAIRS = ["f", "/", 7, 2, "aa"]
HARMED: Line = ("s", "info", "harmed", ["with a flipped bit", False, [], [], []])
GAPPED: Line = ("s", "info", "harmed", ["without a segment", True, [], [], []])
REFUSED: Line = ("s", "event", "verdict", ["refused"])

RIGHT: dict[str, tuple[type[Checker], list[Line]]] = {
    "a child whose link is down goes elsewhere": (Unmoved, [*JOINED, ("s", "info", "link", ["s", "r", False]), ("s", "event", "parent-lost", ["moved"])]),
    "a child that was not welcomed goes elsewhere": (Unmoved, [*JOINED[:2], ("s", "event", "parent-lost", ["moved"])]),
    "a child whose parent is silent": (Unmoved, [*JOINED, ("s", "event", "parent-lost", ["silent"])]),
    "a node that becomes a root": (Unmoved, [("c", "event", "ended", ["RoleChanged"])]),
    "epochs of a fleet": (Unmoved, [("c", "durable", "promise", [1]), ("c", "event", "root-taken", ["f", 1, False]), ("d", "durable", "promise", [100_001])]),
    "a harmed journal that is called so": (HarmReported, [HARMED, ("s", "event", "verdict", ["damaged"]), ("s", "event", "verdict", ["clean"])]),
    "a harmed disk that is replaced": (HarmReported, [HARMED, ("s", "info", "disk", ["lost", [], []]), ("s", "event", "verdict", ["clean"])]),
    "a journal that is not whole is refused until it is repaired": (HarmReported, [GAPPED, REFUSED, REFUSED, ("s", "info", "repaired", None), ("s", "event", "verdict", ["damaged"])]),
    "a journal that is not whole is replaced": (HarmReported, [GAPPED, REFUSED, ("s", "info", "disk", ["lost", [], []]), ("s", "event", "verdict", ["clean"])]),
    "a clean start": (HarmReported, [("s", "event", "verdict", ["clean"])]),
    "the same pairs at one number": (Claimed, [("a", "event", "adopted", PAIRS), ("b", "event", "adopted", PAIRS)]),
    "other pairs of another topic": (Claimed, [("a", "event", "adopted", PAIRS), ("b", "event", "adopted", ["f", "/x", 7, 1, "bb"])]),
    "a history that a lost disk has broken": (Claimed, [("a", "event", "adopted", PAIRS), ("r", "info", "disk", ["lost", [], []]), ("b", "event", "adopted", ["f", "/", 7, 2, "bb"])]),
}  # fmt: skip
WRONG: dict[str, tuple[type[Checker], list[Line]]] = {
    "a child leaves a parent that answers": (Unmoved, [*JOINED, ("s", "event", "parent-lost", ["moved"])]),
    "a child leaves it after it was silent for a while": (Unmoved, [*JOINED, ("s", "event", "parent-lost", ["silent"]), JOINED[2], ("s", "event", "parent-lost", ["moved"])]),
    "a node ends for its name": (Unmoved, [("s", "event", "ended", ["NameTaken"])]),
    "a promise in a far epoch": (Unmoved, [("c", "durable", "promise", [100_001])]),
    "a promise far above the last root": (Unmoved, [("c", "event", "root-taken", ["f", 5, False]), ("c", "durable", "promise", [4_000_000])]),
    "damage that is called clean": (HarmReported, [HARMED, ("s", "event", "verdict", ["clean"])]),
    "a start on a journal that is not whole": (HarmReported, [GAPPED, ("s", "event", "verdict", ["damaged"])]),
    "a journal that is whole is refused": (HarmReported, [HARMED, REFUSED]),
    "a loss that is called clean after the repair": (HarmReported, [GAPPED, REFUSED, ("s", "info", "repaired", None), ("s", "event", "verdict", ["clean"])]),
    "damage that nobody has done": (HarmReported, [("s", "event", "verdict", ["damaged"])]),
    "damage at another node": (HarmReported, [HARMED, ("t", "event", "verdict", ["damaged"])]),
    "fewer pairs at one number": (Claimed, [("a", "event", "adopted", PAIRS), ("b", "event", "adopted", ["f", "/", 7, 1, "aa"])]),
    "other pairs at one number": (Claimed, [("a", "event", "adopted", PAIRS), ("b", "event", "adopted", ["f", "/", 7, 2, "bb"])]),
}  # fmt: skip


def told(lines: list[Line]) -> list[Fact]:
    return [Fact(at, node, 1, kind, what, value) for at, (node, kind, what, value) in enumerate(lines)]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(name: str) -> None:
    kind, lines = RIGHT[name]
    assert None is judge(kind(), told(lines))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    kind, lines = WRONG[name]
    found = judge(kind(), told(lines))
    assert found is not None
    assert kind.rule == found.rule


@pytest.mark.parametrize("kind", [Unmoved, HarmReported, Claimed])
def test_what_they_hear_is_in_the_vocabulary(kind: type[Checker]) -> None:
    assert kind.HEARS.keys() <= VOCABULARY.keys()
