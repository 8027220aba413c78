"""The seven rows of the walk-through: which programs run where, and what must come of it (DEM-006, DEM-007).

The tree is A below B below C, the root. Each detector reports at every tick, each aggregator after the detectors.
What arrives is written as labels (`report.label`): `B[A:0+100]` is B's accumulated report with A's report 0 inside,
which has passed the rewriter with process number 100.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from weft.cli.demos.programs import IN, OUT, READS, REWRITES

PARENTS: Final = {"A": "B", "B": "C", "C": ""}
FIRST_PID: Final = 100
HELD: Final = 3
DETECTOR, RESPONDER, AGGREGATOR, REWRITER = "detector", "responder", "aggregator", "rewriter"
OK, DELETED = "ok", "deleted"
_LEAF: Final = re.compile(r"[^\[\],+]+:\d+(?:\+\d+)*")


class Act(NamedTuple):
    """One program beside one node."""

    program: str
    node: str
    on: str = IN
    access: str = READS
    hold: int = 0
    is_outbound: bool = False
    sends: int | None = None
    """How many reports a detector sends; None: one at every tick."""


class Outcome(NamedTuple):
    """The result of a row."""

    received: dict[str, list[str]]
    """Labels by node of a responder, in order of arrival."""
    statuses: dict[str, dict[str, int]]
    """Final statuses of the detectors by node: `ok`, or the reason."""


class Row(NamedTuple):
    """One set-up; `expected` gives the result for a number of ticks."""

    number: int
    words: str
    acts: tuple[Act, ...]
    expected: Callable[[int], Outcome]

    @property
    def holder(self) -> Act | None:
        """The program that holds messages and is killed with them."""
        return next((act for act in self.acts if act.hold), None)


WATCHED: Final = (Act(RESPONDER, "B"), Act(RESPONDER, "C"))
BELOW: Final = Act(DETECTOR, "A")
BESIDE: Final = Act(DETECTOR, "B")
TAGS: Final = Act(REWRITER, "A")


def _leaves(ticks: int) -> list[str]:
    return [f"A:{tick}" for tick in range(ticks)]


def _all_ok(ticks: int) -> dict[str, int]:
    return {OK: ticks}


def _rewritten(ticks: int, rewriters: int) -> Outcome:
    """The result when each rewriter lets the first of two reports pass, with its tag."""
    passed = range(0, ticks, 2**rewriters)
    tags = "".join(f"+{FIRST_PID + number}" for number in range(rewriters))
    statuses = {OK: len(passed), DELETED: ticks - len(passed)}
    return Outcome({"B": [f"A:{tick}{tags}" for tick in passed], "C": []}, {"A": statuses})


ROWS: Final = (
    Row(
        1,
        "detector on A, responder on B and C",
        (*WATCHED, BELOW),
        lambda ticks: Outcome({"B": _leaves(ticks), "C": []}, {"A": _all_ok(ticks)}),
    ),
    Row(
        2,
        "+ aggregator on B",
        (*WATCHED, Act(AGGREGATOR, "B"), BELOW),
        lambda ticks: Outcome(
            {"B": _leaves(ticks), "C": [f"B[A:{tick}]" for tick in range(ticks)]}, {"A": _all_ok(ticks)}
        ),
    ),
    Row(
        3,
        "+ detector on B",
        (*WATCHED, Act(AGGREGATOR, "B"), BELOW, BESIDE),
        lambda ticks: Outcome(
            {"B": _leaves(ticks), "C": [one for tick in range(ticks) for one in (f"B:{tick}", f"B[A:{tick}]")]},
            {"A": _all_ok(ticks), "B": _all_ok(ticks)},
        ),
    ),
    Row(
        4,
        "as 3, aggregator --outbound",
        (*WATCHED, Act(AGGREGATOR, "B", is_outbound=True), BELOW, BESIDE),
        lambda ticks: Outcome(
            {"B": _leaves(ticks), "C": [f"B[A:{tick},B:{tick}]" for tick in range(ticks)]},
            {"A": _all_ok(ticks), "B": {DELETED: ticks}},
        ),
    ),
    Row(5, "detector and one rewriter on A", (*WATCHED, TAGS, BELOW), lambda ticks: _rewritten(ticks, 1)),
    Row(6, "+ second rewriter on A", (*WATCHED, TAGS, TAGS, BELOW), lambda ticks: _rewritten(ticks, 2)),
    Row(
        7,
        f"client on A holds {HELD} messages and dies",
        (WATCHED[0], Act(RESPONDER, "A", OUT, REWRITES, hold=HELD), Act(DETECTOR, "A", sends=HELD)),
        lambda _: Outcome({"B": _leaves(HELD)}, {"A": _all_ok(HELD)}),
    ),
)


def differences(expected: Outcome, actual: Outcome) -> list[str]:
    """All differences (DEM-006)."""
    found = [
        f"{node} received {_shown(actual.received.get(node, []))}, not {_shown(labels)}"
        for node, labels in expected.received.items()
        if labels != actual.received.get(node)
    ]
    return found + _other_statuses(expected, actual, 0)


def large_differences(expected: Outcome, actual: Outcome) -> list[str]:
    """Differences that a real clock does not explain: counts may differ by 1, the order must be exact (DEM-007).

    A tick of an aggregator may come just before or after a report. So reports are counted by sender and kind, and their
    order is judged by the leaves, alone or inside another report.
    """
    found = []
    for node, labels in expected.received.items():
        came = actual.received.get(node, [])
        if _is_off(Counter(map(_kind, labels)), Counter(map(_kind, came)), 1):
            found.append(f"{node} received {len(came)}, not {len(labels)}: {_shown(came)}")
        elif not _is_one_order(_leaves_by_origin(labels), _leaves_by_origin(came)):
            found.append(f"{node} received another order: {_shown(came)}, not {_shown(labels)}")
    return found + _other_statuses(expected, actual, 1)


def _other_statuses(expected: Outcome, actual: Outcome, slack: int) -> list[str]:
    return [
        f"the detector of {node} was told {actual.statuses.get(node)}, not {statuses}"
        for node, statuses in expected.statuses.items()
        if _is_off(Counter(statuses), Counter(actual.statuses.get(node, {})), slack)
    ]


def _is_off(expected: Counter[str], actual: Counter[str], slack: int) -> bool:
    return any(abs(expected[name] - actual[name]) > slack for name in expected | actual)


def _kind(label: str) -> str:
    """The sender of a report, and whether it is accumulated."""
    origin = re.split(r"[:\[]", label, maxsplit=1)[0]
    return f"{origin} accumulated" if "[" in label else origin


def _leaves_by_origin(labels: Iterable[str]) -> dict[str, list[str]]:
    by_origin: dict[str, list[str]] = {}
    for label in labels:
        for leaf in _LEAF.findall(label):
            by_origin.setdefault(leaf.partition(":")[0], []).append(leaf)
    return by_origin


def _is_one_order(expected: dict[str, list[str]], actual: dict[str, list[str]]) -> bool:
    return all(
        _is_close(expected.get(origin, []), actual.get(origin, [])) for origin in expected.keys() | actual.keys()
    )


def _is_close(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether one list is the beginning of the other, and at most one shorter."""
    short = min(len(expected), len(actual))
    return abs(len(expected) - len(actual)) <= 1 and expected[:short] == actual[:short]


def _shown(labels: Sequence[str]) -> str:
    return f"{len(labels)} ({' '.join(labels[:6])}{' …' if len(labels) > 6 else ''})" if labels else "nothing"
