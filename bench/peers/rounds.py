"""Several ways of doing the same thing, taking turns in one run, and a table of their medians.

The ratio of medians is the result. If the raw baseline itself varied by more than 30 % from round to round, the machine
was not quiet enough for it to mean anything: the run is void, and says so.
"""

import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

VOID_OVER: Final = 0.30
Figures = dict[str, list[float]]


class Goal(NamedTuple):
    """`who` is to reach `times` what `peer` reaches; with `is_at_most`, to stay below it."""

    who: str
    peer: str
    times: float
    is_at_most: bool = False


def load() -> str:
    """The machine's load, as it stands beside every figure."""
    return f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores"


def take_turns(ways: Mapping[str, Callable[[], float]], rounds: int) -> Figures:
    """What each way comes to in each round."""
    figures: Figures = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            figures[name].append(way())
            print(f"# round {number + 1}: {name} {figures[name][-1]:,.1f}", file=sys.stderr, flush=True)
    return figures


def middle(figures: Figures, name: str) -> float:
    """The median of a way."""
    return statistics.median(figures[name])


def spread(figures: Figures, name: str) -> float:
    """How far its rounds lie apart, as a share of the median."""
    return (max(figures[name]) - min(figures[name])) / middle(figures, name)


def show(title: str, figures: Figures, unit: str, baseline: str, goals: Iterable[Goal] = ()) -> None:
    """Print the medians, and by how much each goal is met or missed."""
    rounds = max(map(len, figures.values()), default=0)
    print(f"{title} (median of {rounds}; {load()})\n")
    beside = f"of {baseline}" if baseline else ""
    print(f"| {unit} | median | lowest | highest | {beside} |\n|---|--:|--:|--:|--:|")
    for name, values in figures.items():
        share = f"{middle(figures, name) / middle(figures, baseline):.2f}" if baseline in figures else ""
        median, low, high = (f"{value:,.{_digits(value)}f}" for value in (middle(figures, name), *_ends(values)))
        print(f"| {name} | {median} | {low} | {high} | {share} |")
    print()
    for goal in goals:
        _judge(goal, figures)
    if baseline in figures and spread(figures, baseline) > VOID_OVER:
        print(f"VOID: {baseline} itself varied by {spread(figures, baseline):.0%}; {VOID_OVER:.0%} is the limit")
    print(flush=True)


def _judge(goal: Goal, figures: Figures) -> None:
    if goal.who not in figures or goal.peer not in figures:
        missing = goal.who if goal.who not in figures else goal.peer
        print(f"not judged: {goal.who} beside {goal.peer}: {missing} is absent")
        return
    ratio = middle(figures, goal.who) / middle(figures, goal.peer)
    is_met = ratio <= goal.times if goal.is_at_most else ratio >= goal.times
    sign = "≤" if goal.is_at_most else "≥"
    print(f"{'met' if is_met else 'MISSED'}: {goal.who} is {ratio:.2f} of {goal.peer}, goal {sign} {goal.times:.2f}")


def _ends(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _digits(value: float) -> int:
    return 0 if value >= 100 else 2
