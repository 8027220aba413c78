"""One link of a chain: where it stands, what stands there, and what it has done.

A link is whatever answers `offer` with a verdict. Filters from configuration answer at once; a client's link, which
lets a message wait, will stand in the same order with the same counters.
"""

from typing import Protocol

import msgspec

from weft.base.errors import WeftError
from weft.base.now import Now
from weft.cores.chains.filters import Filter, make
from weft.cores.chains.order import Key, by_filter, covers
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.states import Verdict
from weft.cores.chains.view import View


class LinkCounters(msgspec.Struct):
    """Rows, since the link is there (CHN-082): offered = passed + dropped."""

    offered: int = 0
    passed: int = 0
    changed: int = 0
    """Batches that left it with fewer rows than they came with."""
    dropped: int = 0
    failed: int = 0
    """Rows that the filter could not judge; they are among the passed or the dropped, as `on_error` says."""


class Link(Protocol):
    """What a chain is made of."""

    key: Key
    name: str
    direction: str
    counters: LinkCounters

    def covers(self, kind: str) -> bool:
        """Whether it stands on the chain of this type."""

    def offer(self, view: View, now: Now) -> Verdict:
        """Let it act on a batch."""


class FilterLink:
    """A built-in filter at its place."""

    def __init__(self, spec: FilterSpec) -> None:
        self.spec = spec
        self.key: Key = by_filter(spec.place, spec.name)
        self.name, self.direction = spec.name, spec.direction
        self.counters = LinkCounters()
        self.filter: Filter = make(spec)
        self._sees = None if spec.kind == "match" or not spec.where else spec.compiled()

    def covers(self, kind: str) -> bool:
        return any(covers(pattern, kind) for pattern in self.spec.types)

    def follow(self, old: "FilterLink") -> None:
        """Stand in for the filter of the same name: its counters go on, and its state if that still means the same."""
        self.counters = old.counters
        if self.spec.state == old.spec.state:
            self.filter.inherit(old.filter)

    def offer(self, view: View, now: Now) -> Verdict:
        """Take out what the filter says; rows that it cannot judge stay, go, or fail the batch (`on_error`)."""
        offered = len(view.kept)
        self.counters.offered += offered
        seen = view.kept if self._sees is None else view.matching(self._sees)
        if not seen:
            return self._pass(offered)
        dropped, erred = self.filter.judge(view, seen, now)
        self.counters.failed += len(erred)
        if erred and self.spec.on_error == "fail":
            self.counters.dropped += offered
            return Verdict.FAILED
        if erred and self.spec.on_error == "drop":
            dropped = dropped + erred
        if not dropped:
            return self._pass(offered)
        return self._take_out(view, dropped)

    def _pass(self, rows: int) -> Verdict:
        self.counters.passed += rows
        return Verdict.PASSED

    def _take_out(self, view: View, dropped: list[int]) -> Verdict:
        view.take_out(dropped)
        self.counters.dropped += len(dropped)
        self.counters.passed += len(view.kept)
        self.counters.changed += 1
        return Verdict.CHANGED if view.kept else Verdict.DROPPED


class ChainFull(WeftError):
    """A node has no place for a further link."""
