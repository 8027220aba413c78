"""When a core wants to be woken: deadlines by name, and the parts that have deadlines.

All instants are monotonic nanoseconds. A deadline that follows from other state (last heard plus the silence limit) is
not stored: it is computed when asked for and combined with others by `earliest`, so that no second copy can go stale.
"""

from collections.abc import Iterator
from typing import Protocol

from weft.base.now import Now


def earliest(*instants: int | None) -> int | None:
    """The earliest of these instants; None means never.

    >>> earliest(7, None, 5)
    5
    >>> earliest(None) is None
    True
    """
    first: int | None = None
    for at in instants:  # runs after every turn: `min` of a list takes four times as long
        if at is not None and (first is None or at < first):
            first = at
    return first


class Timers:
    """Deadlines by name. The owner has a table from each name to the action that is then due.

    >>> timers = Timers()
    >>> timers.set("beat", 5)
    >>> timers.set("give up", 9)
    >>> timers.earliest()
    5
    >>> list(timers.due(Now(8, 0)))
    ['beat']
    >>> timers.earliest()
    9
    """

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    def set(self, name: str, at: int) -> None:
        """Set the deadline `name`, replacing an earlier setting."""
        self._at[name] = at

    def start(self, name: str, at: int) -> None:
        """Set the deadline `name`, unless it is set already."""
        self._at.setdefault(name, at)

    def stop(self, *names: str) -> None:
        """Remove these deadlines; names without a deadline are ignored."""
        for name in names:
            self._at.pop(name, None)

    def clear(self) -> None:
        """Remove all deadlines."""
        self._at.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def __getitem__(self, name: str) -> int:
        """When this deadline is due; KeyError: it is not set."""
        return self._at[name]

    def earliest(self) -> int | None:
        """When the first deadline is due; None: none is set."""
        return min(self._at.values(), default=None)

    def due(self, now: Now) -> Iterator[str]:
        """Names of the deadlines that are due, in the order in which they were set.

        Each is removed before it is yielded.

        A deadline that the action for an earlier name removed or postponed is not yielded.
        """
        for name in [name for name, at in self._at.items() if at <= now.mono]:
            if self._at.get(name, now.mono + 1) <= now.mono:
                del self._at[name]
                yield name


class Part(Protocol):
    """A part of a core that has deadlines."""

    def wake(self, now: Now) -> None:
        """Do what is due."""

    def deadline(self) -> int | None:
        """When to be woken; None: never."""


class Parts:
    """The parts of a core that have deadlines, in the order in which they are woken."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Part) -> None:
        self._parts = parts

    def wake(self, now: Now) -> None:
        """Wake the parts whose deadline has come."""
        for part in self._parts:
            due = part.deadline()
            if due is not None and due <= now.mono:
                part.wake(now)

    def deadline(self) -> int | None:
        """When the first part wants to be woken; None: never."""
        first: int | None = None
        for part in self._parts:
            at = part.deadline()
            if at is not None and (first is None or at < first):
                first = at
        return first
