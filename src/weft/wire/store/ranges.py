"""Sets of ticks on the wire: lists of ticks and half-open pairs (COD-004).

    {5, 8, 9} = [5, [8, 10]]

They go out ascending, singles as integers; they come in by any order, and may overlap.
"""

from collections.abc import Mapping
from typing import Any, Final

from weft.base.errors import PeerError
from weft.base.ranges import RangeSet
from weft.wire.store.messages import Ticks

TICK_MAX: Final = (1 << 63) - 1  # STO-002
RANGES_MAX: Final = 100_000  # of one node: more than anybody keeps


def to_wire(ticks: RangeSet) -> list[int | list[int]]:
    """The list of a set.

    >>> to_wire(RangeSet([(5, 5), (8, 9)]))
    [5, [8, 10]]
    """
    return [first if first == last else [first, last + 1] for first, last in ticks]


def of_wire(ranges: Any) -> RangeSet:
    """The set of a list; PeerError `malformed` if a pair is empty or something is no tick, `bad-field` if it is no list."""
    if type(ranges) not in (list, tuple):
        raise PeerError("bad-field", "ranges are a list")
    if len(ranges) > RANGES_MAX:
        raise PeerError("too-large", f"{len(ranges)} ranges")
    return RangeSet(sorted(map(_range, ranges)))


def _range(item: Any) -> tuple[int, int]:
    if type(item) is int and 1 <= item <= TICK_MAX:
        return item, item
    if type(item) in (list, tuple) and len(item) == 2:
        first, end = item
        if type(first) is int and type(end) is int and 1 <= first < end <= TICK_MAX + 1:
            return first, end - 1
    raise PeerError("malformed", "a range that is no tick and no pair of ticks")


def ticks_to_wire(ticks: Ticks) -> dict[str, list[int | list[int]]]:
    """The map of sets by node; nodes without ticks are left out."""
    return {node: to_wire(of_node) for node, of_node in ticks.items() if of_node}


def ticks_of_wire(ranges: Mapping[str, Any]) -> Ticks:
    """The sets of a map by node; PeerError as `of_wire`."""
    return {node: of_wire(of_node) for node, of_node in ranges.items()}
