"""Records of one publisher in the order of their numbers, and what is missing of them (LOG-006, LOG-009).

What comes behind a hole waits until the hole is filled by the one answer to the one request, or its time is over: so what
leaves here is in order, and each number leaves at most once. Numbers count per run of the publisher: one that is lower
than expected, and in no hole, is of a new run.
"""

from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

from weft.cores.catalog import limits
from weft.cores.catalog.logforms import Line


class Lost(NamedTuple):
    """Numbers whose records nobody has."""

    first: int
    last: int


class Hole:
    """Numbers that were not heard, yet."""

    __slots__ = ("due_at", "first", "found", "is_closed", "last", "owner", "peer")

    def __init__(self, first: int, last: int, due_at: int) -> None:
        self.first, self.last, self.due_at = first, last, due_at
        self.found: dict[int, Any] = {}
        self.is_closed = False
        """Nothing more is hoped for."""
        self.peer = b""
        """Who was asked for it."""
        self.owner: Any = None
        """Whose records they are; its keeper says who."""

    @property
    def is_over(self) -> bool:
        return self.is_closed or len(self.found) > self.last - self.first

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def take(self) -> list[Any]:
        """What was found, in order, and between it what was lost."""
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
    """The numbers of one publisher. Hearing the next one costs O(1)."""

    def __init__(self, top: int = 0, *, is_old: bool = False) -> None:
        self.is_old = is_old
        """It was there before the broker started: what it said before, and is not known of, is none of this start's."""
        self.top = top
        """The highest number of this run that was heard; 0: none yet."""
        self.held = 0
        """How many records wait."""
        self.held_bytes = 0
        self.newest_hole: Hole | None = None
        self._waiting: deque[Hole | list[Any]] = deque()
        """Holes, and behind each what came after it."""

    @property
    def settled(self) -> int:
        """Up to here everything has left."""
        head = self._waiting[0] if self._waiting else None
        return head.first - 1 if isinstance(head, Hole) else self.top

    def holes(self) -> list[Hole]:
        """What is hoped for, first numbers first."""
        return [part for part in self._waiting if isinstance(part, Hole) and not part.is_over]

    def hear(self, number: int, item: Any, now: int) -> list[Any]:
        """What may leave now that this number came: items, and `Lost` between them."""
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
        """A number that is no news: of a hole, or of a new run."""
        for hole in self.holes():
            if number in hole:
                return self.fill(hole, {number: item})
        done = self.end()
        self.top, self.is_old = 0, False
        return done + self.hear(number, item, now)

    def fill(self, hole: Hole, found: dict[int, Any]) -> list[Any]:
        """Some of a hole's records came; who has already one of a number keeps that."""
        for number, item in found.items():
            if number in hole and number not in hole.found:
                hole.found[number] = item
                self._hold(item)
        return self.drain()

    def close(self, hole: Hole) -> list[Any]:
        """Nothing more comes for this hole."""
        hole.is_closed = True
        return self.drain()

    def end(self) -> list[Any]:
        """All that waits, since nothing more comes at all."""
        for hole in self.holes():
            hole.is_closed = True
        return self.drain()

    def drain(self) -> list[Any]:
        """What nothing is missing in front of."""
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
    """The bytes of a record; of one that was not sampled, none."""
    return len(item.data) if isinstance(item, Line) else 0
