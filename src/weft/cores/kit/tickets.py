"""Requests that wait for an answer of another core or of the shell, by the number that the answer carries."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Tickets(Generic[T]):
    """Open tickets. Numbers begin at 1 in every start and are never reused within it.

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
        """What waits under this number; KeyError: nothing."""
        return self._open[number]

    def open(self, waiting: T) -> int:
        """Keep `waiting` under a new number, and return the number."""
        self._last += 1
        self._open[self._last] = waiting
        return self._last

    def close(self, number: int) -> T | None:
        """Remove and return what waits under this number; None: nothing, or it was removed already."""
        return self._open.pop(number, None)

    def clear(self) -> None:
        """Drop all open tickets; numbers go on."""
        self._open.clear()
