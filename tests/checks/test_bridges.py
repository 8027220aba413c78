"""What bridged brokers say of each other, of health and of copies: histories that are right, and others that are not."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from weft.base.now import SECOND
from weft.checks import Checker, Fact, Violation, judge
from weft.checks.bridges import CalledOnce, Crossed, Healthy, Tapped

Form = tuple[str, str, str, str, Callable[[re.Match[str]], Any]]
FORMS: list[Form] = [
    (r"(s) (started|ended) at (\w)", "", "info", "service", lambda said: [said[2], "kind", SECOND, [said[3]]]),
    (r"(s) is (ill|well)", "", "info", "ill", lambda said: [said[2] == "ill"]),
    (r"(\w) opens", "", "info", "opened", lambda _: ["e", []]),
    (r"(\w) crashes", "", "info", "crash", lambda _: ["kept"]),
    (r"(\w) pauses", "", "info", "paused", lambda _: None),
    (r"(\w) resumes", "", "info", "resumed", lambda _: None),
    (r"(\w) (\w) is (\w+)", "", "info", "path", lambda said: [said[1], said[2], said[3]]),
    (r"time", "b", "info", "gauge", lambda _: ["queue", 0, 1]),
    (r"(\w) imports (\w+)@(\w) (\w+)", "", "info", "imported", lambda said: ["e", said[3], said[2], "s", said[4]]),
    (r"(\w) shows (\w+)", "", "info", "imports", lambda said: [["kind@a", "s", said[2]]]),
    (r"(\w) shows", "", "info", "imports", lambda _: []),
    (r"(a) has (\w+)", "", "info", "health", lambda said: [["kind", "s", said[2]]]),
    (r"(s) serves (\d)", "", "info", "served", lambda said: [said[2]]),
    (r"(c) called (\S+) (\d): (\d) by (\w)", "", "ok", "called", lambda said: [said[3], said[2], said[4], said[5]]),
    (r"copy (\d) of ?(\d?)", "a", "info", "copied", lambda said: ["t", "s", int(said[1]), said[2]]),
    (r"counts (\d) = (\d) (\d) (\d)", "a", "info", "tapped", lambda said: ["t", "s", *map(int, said.groups())]),
    (r"ends (\d) = (\d) (\d) (\d)", "a", "info", "untapped", lambda said: ["t", *map(int, said.groups())]),
]
UP = "1 a opens | 1 b opens | 2 s started at a | 3 b imports kind@a active"
SERVED = "1 s started at a | 2 s serves 1"
GOOD: list[tuple[type[Checker], str]] = [
    (Crossed, f"{UP} | 99 time | 100 a shows | 100 b shows passing"),
    (Crossed, f"{UP} | 10 a b is cut | 14 b imports kind@a inactive | 99 time"),
    (Crossed, f"{UP} | 10 a b is cut | 31 time"),
    (Crossed, "1 a opens | 1 b opens | 2 s started at a | 3 b imports kind@a inactive | 10 a b is cut | 99 time"),
    (Crossed, f"{UP} | 10 a b is cut | 30 a b is open | 99 time"),
    (Crossed, f"{UP} | 1 c opens | 10 a b is cut | 99 time"),
    (Crossed, f"{UP} | 10 a b is cut | 15 b pauses | 99 time | 100 b resumes | 121 time"),
    (Crossed, f"{UP} | 10 a b is cut | 15 b crashes | 99 time | 100 b opens | 199 time"),
    (Crossed, f"{UP} | 10 s ended at a | 100 b shows"),
    (Healthy, f"{UP} | 5 s is ill | 100 a has critical | 100 b shows critical"),
    (Healthy, f"{UP} | 5 s is ill | 6 s is well | 100 a has passing"),
    (CalledOnce, f"{SERVED} | 3 c called kind@a 1: 1 by s"),
    (CalledOnce, f"{SERVED} | 3 s serves 2"),
    (Tapped, f"{SERVED} | 3 copy 1 of 1 | 3 copy 2 of | 4 counts 5 = 2 1 2 | 5 ends 5 = 2 1 2"),
]
BAD: list[tuple[type[Checker], str]] = [
    (Crossed, f"{UP} | 4 a imports kind@a active"),
    (Crossed, f"{UP} | 4 b imports kind@c active"),
    (Crossed, f"{UP} | 4 b imports other@a active"),
    (Crossed, f"{UP} | 10 a b is cut | 32 time"),
    (Crossed, f"{UP} | 1 c opens | 10 a b is cut | 12 b c is cut | 34 time"),
    (Crossed, f"{UP} | 10 a b is cut | 15 b pauses | 100 b resumes | 122 time"),
    (Crossed, f"{UP} | 100 b shows"),
    (Crossed, f"{UP} | 10 s ended at a | 100 b shows passing"),
    (Crossed, f"{UP} | 100 a shows passing"),
    (Healthy, f"{UP} | 5 s is ill | 100 a has passing"),
    (Healthy, f"{UP} | 100 b shows unknown"),
    (CalledOnce, f"{SERVED} | 3 s serves 1"),
    (CalledOnce, f"{SERVED} | 3 c called kind@a 2: 2 by s"),
    (CalledOnce, f"{SERVED} | 3 c called kind@a 2: 1 by s"),
    (CalledOnce, f"{SERVED} | 3 c called kind@b 1: 1 by s"),
    (Tapped, f"{SERVED} | 3 copy 1 of 2"),
    (Tapped, f"{SERVED} | 3 copy 1 of 1 | 3 copy 1 of 1"),
    (Tapped, f"{SERVED} | 3 copy 2 of 1 | 4 counts 1 = 1 0 0"),
    (Tapped, "4 counts 5 = 2 1 1"),
    (Tapped, "4 ends 5 = 2 1 1"),
]


def history(text: str) -> list[Fact]:
    """`AT WHO WHAT …`, a fact each, in the first form that it has."""
    facts = []
    for line in text.split("|"):
        at, _, said = line.strip().partition(" ")
        facts.append(next(fact for form in FORMS if (fact := _fact(int(at) * SECOND, said, form)) is not None))
    return facts


def _fact(at: int, said: str, form: Form) -> Fact | None:
    pattern, node, kind, what, value = form
    match = re.fullmatch(pattern, said)
    return None if match is None else Fact(at, node or match[1], 1, kind, what, value(match))


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize(("kind", "text"), GOOD)
def test_a_right_history_of_bridges_passes(kind: type[Checker], text: str) -> None:
    assert judge(kind(), history(text)) is None


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize(("kind", "text"), BAD)
def test_a_wrong_history_of_bridges_does_not(kind: type[Checker], text: str) -> None:
    verdict = judge(kind(), history(text))
    assert isinstance(verdict, Violation)
    assert kind.rule == verdict.rule
