"""Decides what a node does about its memory use (SEC-014, FLD-032). Pure: the shell measures the resident memory.

    tight      the process is near its limit: no core may grow until there is room again
    exceeded   it is above the limit for 5 s, or by a quarter, and cores hold only a small part of that: the node ends,
               because a restart frees the rest
    refused    a core has refused something for lack of memory: reported at most once a minute

A restart restores what the cores hold. So a node whose cores are the reason does not end: it continues, refuses new data,
and reports that it is degraded.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from weft.base.budget import Budget
from weft.base.now import SECOND, Now

TIGHT_PERCENT: Final = 90  # of the limit: from here on no core grows; the rest is for what sockets still deliver
NEAR_PERCENT: Final = 60  # of the limit: from here on memory is checked more often
FAR_PERCENT: Final = 125  # of the limit: above it the node ends at once, because something grows without bound
ABOVE_NS: Final = 5 * SECOND  # that a peak may last, such as while a segment of the lake is written
RELIEF_PERCENT: Final = 80  # of the limit: below it cores may grow again
TOLD_NS: Final = 60 * SECOND  # between two events about the same part of a core; all refusals are counted
SHOWN_NS: Final = 60 * SECOND  # that a refusal affects the node's health


class MemoryExceeded(msgspec.Struct, frozen=True, gc=False):
    """Event: the process holds more memory than it may (SEC-014)."""

    resident_bytes: int
    limit_bytes: int


class MemoryTight(msgspec.Struct, frozen=True, gc=False):
    """Event: the process is near its memory limit, so no core may grow; or there is room again (FLD-032)."""

    is_tight: bool
    resident_bytes: int
    limit_bytes: int
    held_bytes: int
    """The part of `resident_bytes` that cores have counted."""


class BudgetReached(msgspec.Struct, frozen=True, gc=False):
    """Event: a core has refused something because its memory budget is used up (FLD-032).

    At most one a minute and part.
    """

    core: str
    part: str
    held_bytes: int
    budget_bytes: int
    refused: int
    """Number of refusals since the start."""


class MemoryGuard:
    """Watches the memory of one node."""

    def __init__(self, limit_bytes: int, budgets: Mapping[str, Budget]) -> None:
        self.limit_bytes, self._budgets = limit_bytes, dict(budgets)
        self.is_tight = self.is_near = False
        """Whether the last memory use was above `TIGHT_PERCENT` of the limit, and above `NEAR_PERCENT` of it."""
        self._above_since: int | None = None
        self._seen: dict[tuple[str, str], int] = {}
        """Number of refusals at the last look, by core and part."""
        self._refused_at: dict[str, int] = {}
        """When new refusals of a core were seen last, in monotonic ns."""
        self._told_at: dict[tuple[str, str], int] = {}

    @property
    def held_bytes(self) -> int:
        """Bytes held by all cores."""
        return sum([budget.held for budget in self._budgets.values()])

    def look(self, resident_bytes: int, now: Now) -> list[Any]:
        """The events that follow from this memory use. Also freezes the cores, or lets them grow again."""
        self.is_near = resident_bytes * 100 >= self.limit_bytes * NEAR_PERCENT
        events = [*self._judge(resident_bytes), *self._refusals(now)]
        if self._is_exceeded(resident_bytes, now):
            events.append(MemoryExceeded(resident_bytes, self.limit_bytes))
        return events

    def _is_exceeded(self, resident_bytes: int, now: Now) -> bool:
        """Whether memory is above the limit, for long or by far, and cores hold so little of it that a restart helps."""
        limit = self.limit_bytes
        if resident_bytes <= limit or resident_bytes - self.held_bytes <= limit // 2:
            self._above_since = None
            return False
        if self._above_since is None:
            self._above_since = now.mono
        return now.mono - self._above_since >= ABOVE_NS or resident_bytes * 100 > limit * FAR_PERCENT

    def _judge(self, resident_bytes: int) -> Iterator[Any]:
        percent = RELIEF_PERCENT if self.is_tight else TIGHT_PERCENT
        is_tight = resident_bytes * 100 >= self.limit_bytes * percent
        if is_tight is self.is_tight:
            return
        self.is_tight = is_tight
        for budget in self._budgets.values():
            budget.freeze(is_frozen=is_tight)
        yield MemoryTight(is_tight, resident_bytes, self.limit_bytes, self.held_bytes)

    def _refusals(self, now: Now) -> Iterator[Any]:
        for core, budget in self._budgets.items():
            for name, count in budget.refused.items():
                key = (core, name)
                if count == self._seen.get(key, 0):
                    continue
                self._seen[key] = count
                self._refused_at[core] = now.mono
                told_at = self._told_at.get(key)
                if told_at is None or now.mono >= told_at + TOLD_NS:
                    self._told_at[key] = now.mono
                    part = budget.parts[name]
                    yield BudgetReached(core, name, part.held(), part.bytes_max, count)

    def short(self, now: Now) -> list[str]:
        """Cores that hold more than their budget, or have refused something recently."""
        lately = {core for core, at in self._refused_at.items() if now.mono < at + SHOWN_NS}
        return [core for core, budget in self._budgets.items() if core in lately or budget.held > budget.bytes_max]

    def facts(self) -> dict[str, Any]:
        """The figures for status and metrics, as plain data."""
        return {
            "limit_bytes": self.limit_bytes,
            "tight": self.is_tight,
            "held_bytes": self.held_bytes,
            "cores": {name: budget.facts() for name, budget in self._budgets.items()},
        }
