"""What two samples of one series give together (MEA-001). Raw values travel; whoever looks at them calculates.

Thresholds at the sensor, filters of the chains and live views use this one function; the pipeline has it as column
expressions (PIP-040), and the same vectors check both.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

Number = int | float
Point = tuple[int, Number, Number | None]
"""Wall-clock milliseconds, value, base."""


class Calculated(NamedTuple):
    """A result, or why there is none: `reset`, `base-reset`, `clock`, or `first` (nothing to compare with yet)."""

    result: Number | None
    reason: str | None = None


FIRST: Final = Calculated(None, "first")
RESET: Final = Calculated(None, "reset")
BASE_RESET: Final = Calculated(None, "base-reset")
CLOCK: Final = Calculated(None, "clock")


def calculate(kind: str, before: Point | None, after: Point) -> Calculated:
    """The value of the series at `after`, by its type (MEA-001).

    basic: V2. delta: V2-V1. rate: 1000(V2-V1)/(t2-t1), per second. average: (V2-V1)/(B2-B1), 0 if B is equal.
    percent: 100*average. Integers are subtracted as integers, so 64-bit counters lose nothing. A counter that ran
    backwards has no result. Every other type (`once`, `aggregate-*`) counts as basic.

    >>> calculate("percent", (0, 95133, 217439), (631, 95253, 217563)).result
    96.7741935483871
    """
    formula = FORMULAS.get(kind)
    if formula is None:
        return Calculated(after[1])
    if before is None:
        return FIRST
    return RESET if after[1] < before[1] else formula(before, after)


def _delta(before: Point, after: Point) -> Calculated:
    return Calculated(after[1] - before[1])


def _rate(before: Point, after: Point) -> Calculated:
    span_ms = after[0] - before[0]
    return Calculated(1000.0 * (after[1] - before[1]) / span_ms) if span_ms > 0 else CLOCK


def _average(before: Point, after: Point) -> Calculated:
    if before[2] is None or after[2] is None or after[2] < before[2]:
        return BASE_RESET
    span = after[2] - before[2]
    return Calculated((after[1] - before[1]) / span if span else 0.0)


def _percent(before: Point, after: Point) -> Calculated:
    if before[2] is None or after[2] is None or after[2] < before[2]:
        return BASE_RESET
    span = after[2] - before[2]
    return Calculated(100.0 * ((after[1] - before[1]) / span) if span else 0.0)


FORMULAS: Final[dict[str, Callable[[Point, Point], Calculated]]] = {
    "delta": _delta,
    "rate": _rate,
    "average": _average,
    "percent": _percent,
}
