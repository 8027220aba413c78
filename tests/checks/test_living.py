"""What a broker says of services against what is true of them: histories that are right, and others that are not."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from weft.base.now import SECOND
from weft.checks import Checker, Fact, Violation, judge
from weft.checks.catalog import Departed, Living, SaidLater, Unforged

INTERVAL_NS = SECOND


def history(text: str) -> list[Fact]:
    """`AT WHO WHAT …`, a fact each: `1 s started`, `2 b lists s register`, `9 cut s b`, `9 b says 3`, `99 quiet s`."""
    facts = [Fact(0, "b", 1, "info", "start", ["root", "", 5 * SECOND])]
    for line in text.split("|"):
        at, *words = line.split()
        facts.append(_fact(round(float(at) * SECOND), words))
    return facts


def _fact(at: int, words: list[str]) -> Fact:
    """The first form that the line has."""
    line = " ".join(words)
    for pattern, node, kind, what, value in FORMS:
        match = re.fullmatch(pattern, line)
        if match:
            return Fact(at, node or match[1], 1, kind, what, value(match))
    raise ValueError(line)


FORMS: list[tuple[str, str, str, str, Callable[[re.Match[str]], Any]]] = [
    (r"(s) (\w+)", "", "info", "service", lambda said: [said[2], "kind", INTERVAL_NS, ["b"]]),
    (r"b lists (\w+) (\w+) ?(\w*)", "b", "durable", "listed", lambda said: ["e", "kind", said[1], said[2], said[3]]),
    (r"b announces (\d+)", "b", "durable", "announced", lambda said: ["e", int(said[1]), "register", "kind/s"]),
    (r"b says (\d+)", "b", "sent", "catalog", lambda said: ["e", int(said[1])]),
    (r"b crashed", "b", "info", "crash", lambda said: ["kept"]),
    (r"b starts", "b", "info", "start", lambda said: ["root", "", 5 * SECOND]),
    (r"b disk lost", "b", "info", "disk", lambda said: ["lost", [], []]),
    (r"b paused", "b", "info", "paused", lambda said: None),
    (r"b resumed", "b", "info", "resumed", lambda said: None),
    (r"(\w) (\w) is (\w+)", "", "info", "path", lambda said: [said[1], said[2], said[3]]),
    (r"gave-up", "s", "info", "gave-up", lambda said: ["broker"]),
    (r"shows ?(\w*)", "b", "info", "catalog", lambda said: ["e", 1, [["kind", said[1]]] if said[1] else []]),
    (r"time", "b", "info", "gauge", lambda said: ["queue", 0, 1]),
    (r"(quiet)", "", "info", "quiet", lambda said: None),
]
UP = "1 s started | 2 b lists s register"
GOOD: list[tuple[type[Checker], str]] = [
    (Living, f"{UP} | 300 time | 301 shows s | 302 quiet"),
    (Living, f"{UP} | 10 s ended | 14 b lists s inactive silent | 300 time | 301 shows | 302 quiet"),
    (Living, f"{UP} | 10 s paused | 14 b lists s inactive silent | 20 s resumed | 21 b lists s active"),
    (Living, f"{UP} | 10 s b is cut | 14 b lists s inactive silent"),
    (Living, f"{UP} | 10 s b is cut | 20 s b is open | 60 b lists s inactive silent"),
    (Living, f"{UP} | 10 gave-up | 30 b lists s inactive silent"),
    (Living, f"{UP} | 10 b lists s suspect | 11 b lists s active | 300 time"),
    (Living, f"{UP} | 9 s stopped | 9 s ended | 10 b lists s inactive left | 300 time"),
    (Living, f"{UP} | 10 b paused | 11 s ended | 100 time | 101 b resumed | 104 b lists s inactive silent"),
    (Living, f"{UP} | 10 s ended | 30 time"),
    (Living, f"{UP} | 10 b s is cut | 160 b lists s inactive silent"),
    (Living, f"{UP} | 22 b lists s inactive silent"),
    (Living, f"{UP} | 10 s ended | 31.15 time"),
    (Living, f"{UP} | 10 s ended | 11 b crashed | 100 time"),
    (Living, f"{UP} | 10 b crashed | 11 b disk lost | 12 b starts | 13 s ended | 100 time"),
    (Living, f"{UP} | 10 b crashed | 12 s ended | 20 b starts | 40 time"),
    (Living, f"{UP} | 10 s ended | 20 b paused | 100 time"),
    (Living, f"{UP} | 100 b lists s suspect silent"),
    (Living, f"{UP} | 100 b lists s inactive left"),
    (Living, f"{UP} | 5 b lists ghost inactive silent"),
    (SaidLater, "1 b announces 1 | 1 b says 1 | 2 b announces 2 | 3 b says 1 | 3 b says 2"),
    (Unforged, f"{UP} | 3 s stopped | 4 b lists s inactive left | 5 s started | 6 b lists s register"),
    (Unforged, f"{UP} | 3 s ended | 8 b lists s inactive silent"),
    (Unforged, f"{UP} | 4 b lists s active left"),
    (Unforged, f"{UP} | 3 s stopped | 4 s started | 5 b lists s inactive left"),
    (Departed, f"{UP} | 3 s stopped | 4 b lists s inactive silent | 6 b lists s active"),
    (Departed, f"{UP} | 3 s stopped | 4 b lists s active left | 6 b lists s active"),
    (Departed, f"{UP} | 3 s stopped | 4 b lists s active"),
    (Departed, f"{UP} | 3 s stopped | 3 s ended | 4 b lists s inactive left | 5 s started | 6 b lists s register"),
    (Departed, f"{UP} | 3 s stopped | 3 s ended | 4 s started | 5 b lists s inactive left | 6 b lists s register"),
    (Departed, f"{UP} | 3 b lists s inactive silent | 6 b lists s active"),
]
BAD: list[tuple[type[Checker], str]] = [
    (Living, f"{UP} | 100 b lists s inactive silent"),
    (Living, f"{UP} | 100 b paused | 130 b resumed | 131 b lists s inactive silent"),
    (Living, f"{UP} | 10 s b is cut | 20 s b is open | 160 b lists s inactive silent"),
    (Living, f"{UP} | 10 gave-up | 160 b lists s inactive silent"),
    (Living, f"{UP} | 10 s ended | 100 time"),
    (Living, f"{UP} | 10 s paused | 100 time"),
    (Living, f"{UP} | 10 s b is cut | 200 time"),
    (Living, f"{UP} | 10 s ended | 12 b lists s suspect | 100 time"),
    (Living, f"{UP} | 10 s ended | 100 s started"),
    (Living, f"{UP} | 10 b crashed | 12 s ended | 20 b starts | 50 time"),
    (Living, f"{UP} | 10 b paused | 20 b resumed | 30 s ended | 100 time"),
    (Living, f"{UP} | 301 shows | 302 quiet"),
    (Living, "1 s started | 1 s ended | 301 shows s | 302 quiet"),
    (SaidLater, "1 b says 1 | 2 b announces 1"),
    (SaidLater, "1 b announces 1 | 1 b says 2"),
    (Unforged, "1 s started | 2 b lists ghost register"),
    (Unforged, f"{UP} | 4 b lists s inactive left"),
    (Departed, f"{UP} | 3 s stopped | 3 s ended | 4 b lists s inactive left | 6 b lists s active"),
    (Departed, f"{UP} | 3 s stopped | 3 s ended | 4 b lists s inactive left | 6 b lists s register"),
]


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize(("kind", "text"), GOOD)
def test_a_right_history_passes(kind: type[Checker], text: str) -> None:
    assert judge(kind(), history(text)) is None


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize(("kind", "text"), BAD)
def test_a_wrong_history_does_not(kind: type[Checker], text: str) -> None:
    verdict = judge(kind(), history(text))
    assert isinstance(verdict, Violation)
    assert verdict.rule == kind.rule
