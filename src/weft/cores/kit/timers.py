"""When a core wants to be woken: deadlines by name, and the parts that have some.

All instants are monotonic nanoseconds. A deadline that follows from other state (heard last, plus the silence limit) is
computed where it is asked for, and joined to others with `earliest`: a second copy of it could be forgotten.
"""

from collections.abc import Iterator
from typing import Protocol

from weft.base.now import Now


def earliest(*instants: int | None) -> int | None:
    """The first of these instants; None stands for never.

    >>> earliest(7, None, 5)
    5
    >>> earliest(None) is None
    True
    """
    first: int | None = None
    for at in instants:  # asked for after every turn: `min` of a list takes four times as long
        if at is not None and (first is None or at < first):
            first = at
    return first


class Timers:
    """Deadlines by name. Their owner has a table from each name to what is then done.

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
        """Let it be due at an instant, whenever it was due before."""
        self._at[name] = at

    def start(self, name: str, at: int) -> None:
        """Let it be due at an instant, unless it is due at one already."""
        self._at.setdefault(name, at)

    def stop(self, *names: str) -> None:
        """Let them not be due; nothing happens to those that are not."""
        for name in names:
            self._at.pop(name, None)

    def clear(self) -> None:
        """Let nothing be due."""
        self._at.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def __getitem__(self, name: str) -> int:
        """When it is due; KeyError: it is not."""
        return self._at[name]

    def earliest(self) -> int | None:
        """When the first is due."""
        return min(self._at.values(), default=None)

    def due(self, now: Now) -> Iterator[str]:
        """Names of what is due, in the order in which they were set; each is stopped before it is named.

        What was stopped or put off by the one before is not named.
        """
        for name in [name for name, at in self._at.items() if at <= now.mono]:
            if self._at.get(name, now.mono + 1) <= now.mono:
                del self._at[name]
                yield name


class Part(Protocol):
    """A part of a core that minds the time, as the core does."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken; None: never."""


class Parts:
    """The parts of a core that mind the time, in the order in which they are woken."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Part) -> None:
        self._parts = parts

    def wake(self, now: Now) -> None:
        """Wake those whose deadline has come."""
        for part in self._parts:
            due = part.deadline()
            if due is not None and due <= now.mono:
                part.wake(now)

    def deadline(self) -> int | None:
        """When the first of them wants to be woken."""
        return earliest(*[part.deadline() for part in self._parts])
