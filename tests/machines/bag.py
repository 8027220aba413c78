"""What is under way in a net, message by message: any of it may arrive, be lost or be doubled (FUZ-005).

The nets of the cores' tests have a heap of entries `(due, number, …)`, in which messages stand beside timers. A bag takes single
messages out of that heap: time then finds only what was left in it.
"""

import heapq
from collections.abc import Callable, Hashable
from typing import Any, Final

from weft.base.now import MILLISECOND

ALONE: Final = ""
Entry = tuple[Any, ...]


def nothing(entry: Entry) -> None:
    """Nobody counts what is under way."""


class Bag:
    """The messages of one heap.

    `line_of`: None for a timer, `ALONE` for a message that nothing keeps in order, else the connection that carries it in order.
    """

    def __init__(
        self,
        heap: list[Any],
        line_of: Callable[[Entry], Hashable],
        arrive: Callable[[Entry], object],
        again: Callable[[Entry, int], object],
        lose: Callable[[Entry], object] = nothing,
    ) -> None:
        self._heap, self._line_of, self._arrive, self._again, self._lose = heap, line_of, arrive, again, lose

    def deliver(self, place: int, count: int) -> None:
        """One message arrives now, and so does what is then at its place; of a connection, the first that is under way."""
        for _ in range(count):
            if entries := self._from(place):
                self._take(entries[0])
                self._arrive(entries[0])

    def drop(self, place: int) -> None:
        """One message never arrives. A connection loses all that is under way, since it breaks."""
        lost = self._from(place)
        for entry in lost:
            self._take(entry)
        if lost:
            self._lose(lost[0])

    def double(self, place: int, after_ns: int) -> None:
        """One message arrives twice, the second time that much later; a connection doubles nothing."""
        entries = self._from(place)
        if entries and self._line_of(entries[0]) == ALONE:
            self._again(entries[0], after_ns)

    def _from(self, place: int) -> list[Entry]:
        """The message there; of a connection, all of it that is under way, in order."""
        messages = sorted(entry for entry in self._heap if self._line_of(entry) is not None)
        if not messages:
            return []
        chosen = messages[place % len(messages)]
        line = self._line_of(chosen)
        return [chosen] if line == ALONE else [entry for entry in messages if self._line_of(entry) == line]

    def _take(self, entry: Entry) -> None:
        self._heap.remove(entry)
        heapq.heapify(self._heap)


class Bagged:
    """What is under way is a bag: one message of it is delivered, dropped or doubled."""

    bag: Bag

    def deliver(self, place: int, count: int) -> None:
        self.bag.deliver(place, count)

    def drop(self, place: int) -> None:
        self.bag.drop(place)

    def double(self, place: int, to: int) -> None:
        self.bag.double(place, to * 100 * MILLISECOND)
