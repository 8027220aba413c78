"""Histograms of whole numbers: how many observations were at most of a given size (OBS-004).

An observation costs one search among a dozen bounds and two additions.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from weft.base.now import MILLISECOND, SECOND

SPANS_NS: Final = tuple(
    span * MILLISECOND // 10 for span in (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000)
)
"""0.1 ms to 5 s: a sync takes a tenth of a millisecond on a good disk, and a turn of a second is a fault."""


@dataclass
class Histogram:
    """Counts observations by size; `bounds` ascend, each is the largest of its bucket."""

    bounds: tuple[int, ...]
    unit: int = 1
    """Observed units in one shown unit."""
    counts: list[int] = field(default_factory=list)
    total: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: int) -> None:
        """Count one observation, in the unit of `bounds`."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def facts(self) -> dict[str, Any]:
        """Count, sum, and for each bound that many observations were at most as large."""
        below = list(accumulate(self.counts))
        buckets = [[bound / self.unit, count] for bound, count in zip(self.bounds, below, strict=False)]
        return {"count": below[-1], "sum": self.total / self.unit, "buckets": buckets}


def of_spans() -> Histogram:
    """For spans of some milliseconds: observed in nanoseconds, shown in seconds."""
    return Histogram(SPANS_NS, SECOND)
