"""Puts one publisher's log records in order and finds missing ones (LOG-006, LOG-009).

Records behind a hole wait until the one answer to the one request fills the hole, or its time is over. So records leave
in order, and each number at most once. Numbers count within one run of the publisher: a number that is lower than
expected and lies in no hole starts a new run.
"""

from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

from weft.cores.catalog import limits
from weft.cores.catalog.logforms import Line


class Lost(NamedTuple):
    """Numbers of records that will not come."""

    first: int
    last: int


class Hole:
    """Consecutive numbers that have not been received yet."""

    __slots__ = ("due_at", "first", "found", "is_closed", "last", "owner", "peer")

    def __init__(self, first: int, last: int, due_at: int) -> None:
        self.first, self.last, self.due_at = first, last, due_at
        self.found: dict[int, Any] = {}
        self.is_closed = False
        """No longer waited for."""
        self.peer = b""
        """The peer that was asked for it."""
        self.owner: Any = None
        """The owner of the records; set by the part that keeps the hole."""

    @property
    def is_over(self) -> bool:
        return self.is_closed or len(self.found) > self.last - self.first

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def take(self) -> list[Any]:
        """The records found, in order, with `Lost` for the numbers between them."""
        done: list[Any] = []
        expected = self.first
        for number in sorted(self.found):
            if number > expected:
                done.append(Lost(expected, number - 1))
            done.append(self.found[number])
            expected = number + 1
        if expected <= self.last:
            done.append(Lost(expected, self.last))
        return done


class Run:
    """The numbers of one run of a publisher. The next number in order costs O(1)."""

    def __init__(self, top: int = 0, *, is_old: bool = False) -> None:
        self.is_old = is_old
        """The publisher existed before the broker started: earlier records that are not known do not belong to this
        start.
        """
        self.top = top
        """The highest number received in this run; 0: none yet."""
        self.held = 0
        """Number of waiting records."""
        self.held_bytes = 0
        self.newest_hole: Hole | None = None
        self._waiting: deque[Hole | list[Any]] = deque()
        """Holes, and behind each hole the records that came after it."""

    @property
    def settled(self) -> int:
        """Everything up to this number has left."""
        head = self._waiting[0] if self._waiting else None
        return head.first - 1 if isinstance(head, Hole) else self.top

    def holes(self) -> list[Hole]:
        """Open holes, lowest numbers first."""
        return [part for part in self._waiting if isinstance(part, Hole) and not part.is_over]

    def hear(self, number: int, item: Any, now: int) -> list[Any]:
        """Add a record. Returns what may leave now: records, and `Lost` between them."""
        if number == self.top + 1 and not self._waiting:
            self.top = number
            return [item]
        if number <= self.top:
            return self._hear_again(number, item, now)
        if self.top == 0 and (self.is_old or number > limits.REFILL_MAX):
            self.top = number
            return [item]
        if number > self.top + 1:
            self.newest_hole = Hole(self.top + 1, number - 1, now + limits.GAP_NS)
            self._waiting.append(self.newest_hole)
        self._wait(item)
        self.top = number
        holes = self.holes()
        if len(holes) > limits.HOLES_MAX:
            holes[0].is_closed = True
        return self.drain()

    def _wait(self, item: Any) -> None:
        last = self._waiting[-1]
        if isinstance(last, Hole):
            self._waiting.append([item])
        else:
            last.append(item)
        self._hold(item)

    def _hold(self, item: Any) -> None:
        self.held += 1
        self.held_bytes += _size(item)

    def _hear_again(self, number: int, item: Any, now: int) -> list[Any]:
        """A number not above the highest: it fills a hole, or starts a new run."""
        for hole in self.holes():
            if number in hole:
                return self.fill(hole, {number: item})
        done = self.end()
        self.top, self.is_old = 0, False
        return done + self.hear(number, item, now)

    def fill(self, hole: Hole, found: dict[int, Any]) -> list[Any]:
        """Add records to a hole; a number that is already filled keeps its record."""
        for number, item in found.items():
            if number in hole and number not in hole.found:
                hole.found[number] = item
                self._hold(item)
        return self.drain()

    def close(self, hole: Hole) -> list[Any]:
        """Stop waiting for this hole."""
        hole.is_closed = True
        return self.drain()

    def end(self) -> list[Any]:
        """Stop waiting for all holes; returns everything that waited."""
        for hole in self.holes():
            hole.is_closed = True
        return self.drain()

    def drain(self) -> list[Any]:
        """Everything that has no open hole in front of it."""
        done: list[Any] = []
        while self._waiting:
            head = self._waiting[0]
            if isinstance(head, Hole):
                if not head.is_over:
                    break
                self._release(head.found.values())
                done += head.take()
            else:
                self._release(head)
                done += head
            self._waiting.popleft()
        return done

    def _release(self, items: Collection[Any]) -> None:
        self.held -= len(items)
        self.held_bytes -= sum(map(_size, items))


def _size(item: Any) -> int:
    """The bytes of a record; 0 for one that was not sampled."""
    return len(item.data) if isinstance(item, Line) else 0
