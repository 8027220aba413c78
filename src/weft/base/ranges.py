"""Sets of sequence numbers, kept as ranges: what has been seen, and what is missing.

A sequence starts at 1. A `RangeSet` holds disjoint, maximal, ascending, inclusive ranges in two parallel
lists; the common case, one more number at the end, costs O(1), everything else a binary search. Everything
that Weft promises about completeness (the carrier's duplicates, the journal's footers, the lake's table of
what is missing) is computed here and nowhere else.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Self

Range = tuple[int, int]


class RangeSet:
    """A mutable set of integers >= 1 as maximal inclusive ranges. Equal sets are equal values."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def add(self, first: int, last: int | None = None) -> int:
        """Add `first..last` (one number without `last`); returns how many of them were new.

        >>> seen = RangeSet([(1, 3)])
        >>> seen.add(2, 5)
        2
        >>> seen
        RangeSet([(1, 5)])
        """
        last = first if last is None else last
        assert 1 <= first <= last, (first, last)
        lasts = self._lasts
        if lasts:
            end = lasts[-1]
            if first == end + 1:
                lasts[-1] = last
                return last - end
            if first <= end:
                return self._merge(first, last)
        self._firsts.append(first)
        lasts.append(last)
        return last - first + 1

    def _merge(self, first: int, last: int) -> int:
        low = bisect_left(self._lasts, first - 1)
        high = bisect_right(self._firsts, last + 1)
        swallowed = sum(self._lasts[i] - self._firsts[i] + 1 for i in range(low, high))
        if low < high:
            first = min(first, self._firsts[low])
            last = max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]
        return last - first + 1 - swallowed

    def remove(self, first: int, last: int | None = None) -> None:
        """Take `first..last` out, whether or not they are in."""
        last = first if last is None else last
        assert 1 <= first <= last, (first, last)
        low = bisect_left(self._lasts, first)
        high = bisect_right(self._firsts, last)
        kept = [
            (a, b)
            for i in range(low, high)
            for a, b in ((self._firsts[i], first - 1), (last + 1, self._lasts[i]))
            if a <= b
        ]
        self._firsts[low:high] = [a for a, _ in kept]
        self._lasts[low:high] = [b for _, b in kept]

    def covers(self, first: int, last: int) -> bool:
        """Whether every number of `first..last` is in; nothing (`last < first`) always is. O(log ranges)."""
        if last < first:
            return True
        index = bisect_left(self._lasts, first)
        return index < len(self._firsts) and self._firsts[index] <= first and last <= self._lasts[index]

    def overlap(self, first: int, last: int) -> list[Range]:
        """The parts of `first..last` that are in, ascending; none of nothing (`last < first`)."""
        if last < first:
            return []
        low = bisect_left(self._lasts, first)
        high = bisect_right(self._firsts, last)
        return [(max(first, self._firsts[i]), min(last, self._lasts[i])) for i in range(low, high)]

    def gaps(self, upto: int, since: int = 1) -> list[Range]:
        """Which of `since..upto` are missing, smallest first. O(ranges between).

        The completeness table and every resend come from this one function (CHK-009).

        >>> RangeSet([(1, 3), (6, 6)]).gaps(upto=8)
        [(4, 5), (7, 8)]
        >>> RangeSet().gaps(upto=0)
        []
        """
        missing: list[Range] = []
        expected = since
        for first, last in self.overlap(since, upto):
            if first > expected:
                missing.append((expected, first - 1))
            expected = last + 1
        if expected <= upto:
            missing.append((expected, upto))
        return missing

    def prefix(self) -> int:
        """The highest n such that all of 1..n are in; 0 if 1 is missing."""
        return self._lasts[0] if self._firsts and self._firsts[0] == 1 else 0

    @property
    def highest(self) -> int:
        """The greatest number in, 0 when empty."""
        return self._lasts[-1] if self._lasts else 0

    def update(self, other: "RangeSet") -> int:
        """Add all of `other`; returns how many numbers were new."""
        return sum(self.add(first, last) for first, last in other)

    def copy(self) -> Self:
        """An equal set that shares nothing with this one. O(ranges)."""
        twin = type(self)()
        twin._firsts, twin._lasts = self._firsts.copy(), self._lasts.copy()
        return twin

    def __or__(self, other: "RangeSet") -> Self:
        both = self.copy()
        both.update(other)
        return both

    def __sub__(self, other: "RangeSet") -> Self:
        rest = self.copy()
        for first, last in other:
            rest.remove(first, last)
        return rest

    def __and__(self, other: "RangeSet") -> Self:
        return type(self)(part for first, last in other for part in self.overlap(first, last))

    def __contains__(self, number: int) -> bool:
        return self.covers(number, number)

    def __iter__(self) -> Iterator[Range]:
        return iter(zip(self._firsts, self._lasts, strict=True))

    def __len__(self) -> int:
        """How many ranges; `count` says how many numbers."""
        return len(self._firsts)

    @property
    def count(self) -> int:
        """How many numbers are in."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._firsts == other._firsts and self._lasts == other._lasts

    __hash__ = None  # type: ignore[assignment]  # mutable: must not be a key

    def __repr__(self) -> str:
        return f"RangeSet({list(self)})"
