"""What waits for an answer of another core or of the shell, by the number that the answer brings back."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Tickets(Generic[T]):
    """Open tickets, from 1 in every start; a number is never given twice.

    >>> tickets = Tickets[str]()
    >>> tickets.open("a write")
    1
    >>> tickets.close(1), tickets.close(1)
    ('a write', None)
    """

    __slots__ = ("_last", "_open")

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __getitem__(self, number: int) -> T:
        """What waits under a number; KeyError: nothing does."""
        return self._open[number]

    def open(self, waiting: T) -> int:
        """The number under which this waits."""
        self._last += 1
        self._open[self._last] = waiting
        return self._last

    def close(self, number: int) -> T | None:
        """What waited under a number, once; None: nothing does, or not any more."""
        return self._open.pop(number, None)

    def clear(self) -> None:
        """Nobody waits any more; numbers go on."""
        self._open.clear()
