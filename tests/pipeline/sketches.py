"""What a sketch must be, in plain Python: a count per bucket, made of all values at once (PIP-047)."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

GAMMA: Final = 1.01 / 0.99
MOST: Final = 2_048

Sketch = dict[str, Any]


def index_of(size: float) -> int:
    return math.ceil(math.log(size) / math.log(GAMMA))


def estimate(index: int) -> float:
    return 2 * GAMMA**index / (GAMMA + 1)


def sketch_of(values: Iterable[float]) -> Sketch:
    """The sketch of all of these."""
    sides: dict[str, Counter[int]] = {"positive": Counter(), "negative": Counter()}
    zero = 0
    for value in values:
        if abs(value) < 1e-9:
            zero += 1
        else:
            sides["positive" if value > 0 else "negative"][index_of(abs(value))] += 1
    is_over = any(len(side) > MOST for side in sides.values())
    return {"zero": zero, **{name: _listed(side) for name, side in sides.items()}, "collapsed": is_over}


def _listed(side: Counter[int]) -> list[dict[str, int]]:
    least = sorted(side)[-MOST:][:1]
    joined: Counter[int] = Counter()
    for index, count in side.items():
        joined[max(index, *least)] += count
    return [{"index": index, "count": count} for index, count in sorted(joined.items())]


def quantile(values: Iterable[float], q: float) -> float:
    """The value itself that stands at this rank."""
    ordered = sorted(values)
    return ordered[math.floor(q * (len(ordered) - 1))]
