"""Quantiles that merge exactly: counts of values in bins of relative width (CHN-067; DDSketch, VLDB 2019).

    {a: accuracy, z: zeros, p: [[bin, count] …], n: [[bin, count] …]}      p: positive values, n: negative ones by size

A value x > 0 is in bin ceil(ln x / ln g), g = (1 + a) / (1 - a); every value in a bin is reported as 2 g^bin / (g + 1),
whose relative error is at most `a`. Counts of bins add up, so sketches of parts can be merged in any order. Beyond
2,048 bins the lowest ones are merged, which also gives the same result in any order. The library `ddsketch` has the
same bins; it takes 2 µs for a value and 3 kB for six, which is why this module is here (a test compares the two
formulas).
"""

from collections import Counter
from collections.abc import Iterable
from math import ceil, exp, log, log2
from typing import Any, Final

ACCURACY: Final = 0.01
TINY: Final = 1e-9
"""Smaller values count as zero."""
BINS_MAX: Final = 2_048
"""Of each sign: they span a factor of e^40."""
COUNT_MAX: Final = 1 << 53
INDEX_MAX: Final = 40_000
"""No double has a higher bin."""
_RATIO: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG: Final = log(_RATIO)
_LOG2: Final = log2(_RATIO)
"""For bins: to base 2 a logarithm takes half the time of a natural one. The quotient is the same but for 1e-12 of a bin."""
_HALF: Final = 2 / (1 + _RATIO)
Bins = dict[int, int]


def index_of(size: float) -> int:
    """The bin of a size above TINY.

    >>> index_of(1.0), index_of(2.0), index_of(100.0), index_of(0.001)
    (0, 35, 231, -345)
    """
    return ceil(log2(size) / _LOG2)


def value_of(index: int) -> float:
    """The value reported for a bin.

    >>> round(value_of(231), 9)
    100.494567709
    """
    return _HALF * exp(_LOG * index)


class Sketch:
    """Counts of values by bin."""

    __slots__ = ("negative", "positive", "zeros")

    def __init__(self) -> None:
        self.zeros = 0
        self.positive: Counter[int] = Counter()
        self.negative: Counter[int] = Counter()

    def add(self, values: list[float], least: float) -> None:
        """Add finite numbers, many at once; `least` is the least of them."""
        above = values if least > TINY else [value for value in values if value > TINY]
        self.positive.update(_bins(above))
        if len(above) < len(values):
            below = [-value for value in values if value < -TINY]
            self.negative.update(_bins(below))
            self.zeros += len(values) - len(above) - len(below)
        _narrow(self.positive)
        _narrow(self.negative)

    def merge(self, zeros: int, positive: Iterable[list[int]], negative: Iterable[list[int]]) -> None:
        """Add the counts of another sketch, which `flaw` has checked."""
        self.zeros += zeros
        for index, count in positive:
            self.positive[index] += count
        for index, count in negative:
            self.negative[index] += count
        _narrow(self.positive)
        _narrow(self.negative)

    def quantile(self, share: float) -> float:
        """The value below which this share of all values lies, within the accuracy; 0 if there are none."""
        below = self.negative.total()
        rank = share * (below + self.zeros + self.positive.total() - 1)
        if self.negative and rank < below:
            return -value_of(_at(self.negative, sorted(self.negative, reverse=True), rank))
        rank -= below + self.zeros
        if rank < 0 or not self.positive:
            return 0.0
        return value_of(_at(self.positive, sorted(self.positive), rank))

    def wire(self) -> dict[str, Any]:
        """The sketch in wire format."""
        return {"a": ACCURACY, "z": self.zeros, "p": _listed(self.positive), "n": _listed(self.negative)}


def flaw(sketch: Any, count: int) -> str:
    """What is wrong with a received sketch of `count` values; empty: nothing."""
    if not isinstance(sketch, dict) or set(sketch) != {"a", "z", "p", "n"}:
        return "no sketch"
    if sketch["a"] != ACCURACY:
        return "another accuracy"
    zeros, positive, negative = sketch["z"], sketch["p"], sketch["n"]
    if not _is_count(zeros, 0) or not (_are_bins(positive) and _are_bins(negative)):
        return "no bins"
    total = zeros + sum([pair[1] for pair in positive]) + sum([pair[1] for pair in negative])
    return "" if total == count else "another count"


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= COUNT_MAX


def _are_bins(pairs: Any) -> bool:
    return (
        isinstance(pairs, list)
        and len(pairs) <= BINS_MAX
        and all(
            isinstance(pair, list)
            and len(pair) == len(("index", "count"))
            and type(pair[0]) is int
            and abs(pair[0]) <= INDEX_MAX
            and _is_count(pair[1], 1)
            for pair in pairs
        )
    )


def _bins(sizes: list[float]) -> list[int]:
    return [ceil(log2(size) / _LOG2) for size in sizes]


def _narrow(bins: Bins) -> None:
    """Merge the lowest bins if there are too many."""
    if len(bins) > BINS_MAX:
        lowest = sorted(bins)[: len(bins) - BINS_MAX]
        keeps = sorted(bins)[len(lowest)]
        bins[keeps] += sum([bins.pop(index) for index in lowest])


def _at(bins: Bins, order: list[int], rank: float) -> int:
    """The bin in which the value of this rank, from 0, lies."""
    for index in order:
        rank -= bins[index]
        if rank < 0:
            return index
    return order[-1]


def _listed(bins: Bins) -> list[list[int]]:
    return [[index, bins[index]] for index in sorted(bins)]
