"""Numbers by time window and group, summed so that partial results merge exactly (CHN-067).

A window is open until its end plus `grace` by the node's clock; then its groups are emitted, in the order of (due,
start, group). A record for a closed window opens a correction, which is emitted `grace` later. An aggregate of
aggregates equals the aggregate of all records: counts and bins add up, sums are compensated, a mean is a sum divided by
a count.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from math import fsum, hypot
from typing import Any, Final

from weft.cores.chains import limits
from weft.cores.chains.fields import Fields, place_of
from weft.cores.chains.options import AggregateOptions
from weft.cores.chains.sketch import Sketch, flaw

FOLD_AT: Final = 1_024  # values that wait to be added together: fewer is slower, more only takes memory
NUMBER_MAX: Final = 1e300  # beyond, sums and bins of doubles are meaningless
SKETCH: Final = "sketch"
"""The field that only aggregates have."""
CellKey = tuple[bool, int, str, str, bytes]
"""Correction or not, start, type, format, and the group as bytes."""


class Cell:
    """One group of one window."""

    __slots__ = (
        "_waiting",
        "count",
        "depth",
        "due",
        "group",
        "holds",
        "is_partial",
        "key",
        "last",
        "last_at",
        "least",
        "most",
        "rest",
        "sketch",
        "sum",
    )

    def __init__(self, key: CellKey, group: list[Any], due: int) -> None:
        self.key, self.group, self.due = key, group, due
        self.count, self.sum, self.rest = 0, 0.0, 0.0
        self.least, self.most = float("inf"), float("-inf")
        self.last: float = 0.0
        self.last_at = -(1 << 63)
        self.depth = 0
        self.is_partial = False
        self.holds: list[Any] = []
        """Messages that are kept while this window is open."""
        self.sketch = Sketch()
        self._waiting: list[float] = []

    def add(self, values: list[float], last_at: int, last: float) -> None:
        """Add finite numbers; of equal times, the later arrival counts as the last one."""
        self._waiting += values
        if last_at >= self.last_at:
            self.last_at, self.last = last_at, last
        if len(self._waiting) >= FOLD_AT:
            self.fold()

    def merge(self, part: Fields) -> None:
        """Add an aggregate that `is_aggregate` has checked."""
        sketch = part["sketch"]
        self.count += part["count"]
        self._sum(part["sum"])
        self.least, self.most = min(self.least, part["min"]), max(self.most, part["max"])
        self.sketch.merge(sketch["z"], sketch["p"], sketch["n"])
        self.add([], part["last_t"], part["last"])

    def fold(self) -> None:
        """Add the waiting values to the sums."""
        values, self._waiting = self._waiting, []
        if values:
            self.count += len(values)
            self._sum(fsum(values))
            values_least, values_most = min(values), max(values)
            self.least, self.most = min(self.least, values_least), max(self.most, values_most)
            self.sketch.add(values, values_least)

    def _sum(self, value: float) -> None:
        total = fsum((self.sum, self.rest, value))
        self.rest = fsum((self.sum, self.rest, value, -total))
        self.sum = total

    def result(self, options: AggregateOptions) -> Fields:
        """The result to emit."""
        self.fold()
        is_late, start = self.key[:2]
        record: Fields = {"t": start}
        for field, value in zip(options.group, self.group, strict=True):
            _put(record, field, value)
        record |= {"start": start, "end": start + options.window_ns, "count": self.count, "sum": self.sum}
        record |= {"min": self.least, "max": self.most, "last": self.last, "last_t": self.last_at, "late": is_late}
        for function in options.functions:
            record[function] = self._function(function)
        if self.is_partial:
            record["partial"] = True
        record["sketch"] = self.sketch.wire()
        return record

    def _function(self, name: str) -> float:
        if name == "mean":
            return self.sum / self.count
        return min(max(self.sketch.quantile(float(name[1:]) / 100), self.least), self.most)


def _put(record: Fields, field: str, value: Any) -> None:
    place = place_of(record, field, make=True)
    if place is not None and value is not None:
        place[0][place[1]] = value


class Windows:
    """All open windows of one aggregate."""

    def __init__(self, options: AggregateOptions) -> None:
        self.options = options
        self._open: dict[CellKey, Cell] = {}
        self._due: list[tuple[int, int, bytes, CellKey]] = []

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._open.values())

    def cell(self, at: int, which: tuple[str, str, bytes], group: list[Any], wall: int) -> Cell:
        """The window and group for a record of this time."""
        options = self.options
        start = at - at % options.window_ns
        due = start + options.window_ns + options.grace_ns
        is_late = due <= wall
        key = (is_late, start, *which)
        cell = self._open.get(key)
        if cell is None:
            cell = self._open[key] = Cell(key, group, wall + options.grace_ns if is_late else due)
            heappush(self._due, (cell.due, start, which[2], key))
            self._make_room(wall)
        return cell

    def _make_room(self, wall: int) -> None:
        """If too many are open, emit the oldest early."""
        if len(self._open) > limits.GROUPS_OPEN_MAX:
            due, start, group, key = heappop(self._due)
            cell = self._open[key]
            cell.is_partial = cell.is_partial or due > wall
            cell.due = min(due, wall)
            heappush(self._due, (cell.due, start, group, key))

    def close(self, wall: int) -> Iterator[Cell]:
        """The results that are due, in the order of emission."""
        while self._due and self._due[0][0] <= wall:
            yield self._open.pop(heappop(self._due)[3])

    def close_all(self) -> Iterator[Cell]:
        """All open results, before their time."""
        while self._due:
            cell = self._open.pop(heappop(self._due)[3])
            cell.is_partial = True
            yield cell

    @property
    def due(self) -> int | None:
        """When the next result is due, by the wall clock."""
        return self._due[0][0] if self._due else None


def number(value: Any) -> float | None:
    """The value as a double that can be summed; None: it is not a number."""
    if type(value) is float:
        return value if -NUMBER_MAX < value < NUMBER_MAX else None
    if type(value) is int and -NUMBER_MAX < value < NUMBER_MAX:
        return float(value)
    return None


def are_plain(values: list[Any]) -> bool:
    """Whether all are doubles that can be summed, which is the usual case and needs no check of each."""
    return set(map(type, values)) <= {float} and can_be_summed(values)


def can_be_summed(values: list[float]) -> bool:
    """Whether no double is too large, or none at all: their length as a vector is then too large, infinite or NaN."""
    return hypot(*values) < NUMBER_MAX


def is_aggregate(record: Fields) -> bool:
    """Whether a record claims to be an aggregate."""
    return SKETCH in record and "count" in record and "start" in record


def why_no_aggregate(record: Fields) -> str:
    """What is wrong with a record that claims to be an aggregate; empty: nothing."""
    if any(type(record.get(name)) is not int for name in ("count", "start", "last_t")) or record["count"] < 1:
        return "no count, start or last_t"
    if any(number(record.get(name)) is None for name in ("sum", "min", "max", "last")):
        return "no sum, min, max or last"
    return flaw(record["sketch"], record["count"])
