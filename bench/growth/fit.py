"""Exponents of cost curves: cost ~ n ** exponent, by least squares of the logarithms."""

from math import log
from typing import Final, NamedTuple

FLOORS: Final = {"CPU s": 0.001, "MB": 4.0}
"""By unit: what is smaller says nothing."""
MARGIN: Final = 0.1
"""Exponents scatter by so much, and caches of a processor that become too small add to them."""
Points = dict[int, float]
"""Costs by size."""


class Fit(NamedTuple):
    """How a cost grows."""

    exponent: float
    last: float
    """From the last size but one to the last."""
    linearithmic: float
    """The exponent that n log n has over the same sizes."""
    linearithmic_last: float

    @property
    def is_more(self) -> bool:
        """Whether it grows faster than n log n, by more than it scatters."""
        return self.exponent > self.linearithmic + MARGIN or self.last > self.linearithmic_last + MARGIN


def unit_of(what: str) -> str:
    """The unit of a cost: it stands behind the last comma.

    >>> unit_of("set, CPU s")
    'CPU s'
    """
    return what.rpartition(", ")[2]


def fit_of(what: str, points: Points) -> Fit | None:
    """None: fewer than two sizes cost more than nothing.

    >>> fit = fit_of("heard, messages", {10: 200.0, 100: 20_000.0})
    >>> fit is not None and (round(fit.exponent, 3), fit.is_more)
    (2.0, True)
    """
    floor = FLOORS.get(unit_of(what), 0.0)
    kept = {size: cost for size, cost in points.items() if cost > floor}
    if len(kept) < 2:
        return None
    last = dict(sorted(kept.items())[-2:])

    def plain(size: int) -> float:
        return size * log(size)

    return Fit(
        _slope(kept),
        _slope(last),
        _slope({size: plain(size) for size in kept}),
        _slope({size: plain(size) for size in last}),
    )


def _slope(points: Points) -> float:
    """Least squares of log(cost) on log(size)."""
    pairs = [(log(size), log(cost)) for size, cost in points.items()]
    middle, height = (sum(each[place] for each in pairs) / len(pairs) for place in (0, 1))
    spread = sum((x - middle) ** 2 for x, _ in pairs)
    return sum((x - middle) * (y - height) for x, y in pairs) / spread
