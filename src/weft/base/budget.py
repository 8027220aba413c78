"""How many bytes a core may hold, how many it holds, and what it refused for lack of room (FLD-032, SEC-041).

A budget has parts, each with a fixed share of it. The owner of a part keeps its sum up to date as things come and go,
and asks `has_room` before it takes something new. If there is none, it either refuses in the way of its protocol, or
drops its oldest. The node sets the bytes of each core at the start, and freezes all parts while the whole process is
near its limit.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

UNLIMITED: Final = 1 << 60
"""Bytes of a core without a budget: in tests, and in programs that run a core by themselves."""
WHOLE: Final = 100
"""Percent of all parts together, at most."""


class Part:
    """One kind of thing that a core holds."""

    __slots__ = ("bytes_max", "cap", "full_max", "held", "is_frozen", "name", "percent", "refused")

    def __init__(self, name: str, held: Callable[[], int], percent: int = WHOLE, cap: int = UNLIMITED) -> None:
        """`held`: how many bytes it holds, in O(1). A part that is made alone has no limit but `cap`."""
        self.name, self.percent, self.held, self.cap = name, percent, held, cap
        self.full_max = self.bytes_max = cap
        """How much it may hold by its share, and how much now, which is less while the process is near its limit."""
        self.is_frozen = False
        """The process is near its limit: only what makes the part smaller is taken."""
        self.refused = 0
        """How often something was refused for lack of room."""

    def has_room(self, more: int) -> bool:
        """Whether something may be taken that makes the part larger by `more` bytes; what makes it smaller always may.

        While the part is frozen, not even something that leaves its size unchanged is taken: such things lie in queues
        of sockets on their way.
        """
        if self.is_frozen:
            return more < 0
        return more <= 0 or self.held() + more <= self.bytes_max

    def refuse(self) -> None:
        """Count a refusal for lack of room."""
        self.refused += 1

    @property
    def is_over(self) -> bool:
        """Whether it holds more than it may; then its owner has to drop what can be dropped."""
        return self.held() > self.bytes_max


class Budget:
    """What one core may hold."""

    __slots__ = ("bytes_max", "parts")

    def __init__(self) -> None:
        self.bytes_max = UNLIMITED
        self.parts: dict[str, Part] = {}

    def part(self, name: str, percent: int, held: Callable[[], int], cap: int = UNLIMITED) -> Part:
        """A share of the budget for one thing; never more than `cap` bytes, however large the budget is.

        `held`: how many bytes it holds, in O(1).
        """
        part = self.parts[name] = Part(name, held, percent, cap)
        assert sum(each.percent for each in self.parts.values()) <= WHOLE, self.parts
        self._share(part)
        return part

    def give(self, bytes_max: int) -> None:
        """Let the core hold so many bytes."""
        self.bytes_max = bytes_max
        for part in self.parts.values():
            self._share(part)

    def _share(self, part: Part) -> None:
        part.full_max = part.bytes_max = min(part.cap, self.bytes_max * part.percent // WHOLE)

    def freeze(self, *, is_frozen: bool) -> None:
        """Let no part hold more than it does now, until it is thawed."""
        for part in self.parts.values():
            part.is_frozen = is_frozen
            part.bytes_max = min(part.full_max, part.held()) if is_frozen else part.full_max

    @property
    def refused(self) -> dict[str, int]:
        """How often something was refused for lack of room, by part; only parts that refused."""
        return {part.name: part.refused for part in self.parts.values() if part.refused}

    @property
    def held(self) -> int:
        """Bytes in all parts."""
        return sum([part.held() for part in self.parts.values()])

    def gauges(self, core: str) -> Iterator[tuple[str, int, int]]:
        """What each part of this core holds, and may hold."""
        for part in self.parts.values():
            yield f"{core} {part.name} bytes", part.held(), part.full_max

    def facts(self) -> dict[str, Any]:
        """For status and metrics; plain data."""
        return {
            "bytes": self.held,
            "budget_bytes": self.bytes_max,
            "parts": {
                part.name: {
                    "bytes": part.held(),
                    "budget_bytes": part.full_max,
                    "refused": part.refused,
                }
                for part in self.parts.values()
            },
        }
