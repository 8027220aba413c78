"""One link of a chain: its place, its filter or client, and its counters.

A link answers `offer` with a verdict. Filters from configuration answer at once. A client's link, which lets a message
wait, stands in the same order and has the same counters.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from weft.base.errors import WeftError
from weft.base.now import Now
from weft.cores.chains.edit import Edit
from weft.cores.chains.expression import Expression
from weft.cores.chains.filters import (
    FINE,
    NOWHERE,
    Dedupe,
    Filter,
    HandOver,
    House,
    Judgement,
    Match,
    Python,
    RateLimit,
    Sample,
    Threshold,
)
from weft.cores.chains.order import Key, by_filter, covers
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.states import Verdict
from weft.cores.chains.viewed import Viewed

MAKERS: Final[dict[str, Callable[..., Filter]]] = {
    "match": Match,
    "sample": Sample,
    "rate-limit": RateLimit,
    "dedupe": Dedupe,
    "edit": Edit,
    "threshold": Threshold,
    "forward": HandOver,
    "journal": HandOver,
    "aggregate": HandOver,
    "batch": HandOver,
    "route": HandOver,
    "absorb": HandOver,
    "stdout": HandOver,
    "python": Python,
}


def make(spec: FilterSpec, house: House = NOWHERE) -> Filter:
    """The filter for a specification, with fresh state."""
    return MAKERS[spec.kind](spec, spec.options, house)


class LinkCounters(msgspec.Struct):
    """Rows, since the link is there (CHN-082): offered = passed + dropped."""

    offered: int = 0
    passed: int = 0
    changed: int = 0
    """Batches that left with fewer rows than they came with."""
    dropped: int = 0
    failed: int = 0
    """Rows that the filter could not judge; they are among the passed or dropped ones, by `on_error`."""


class Link(Protocol):
    """One place in a chain."""

    key: Key
    name: str
    direction: str
    counters: LinkCounters

    def covers(self, kind: str) -> bool:
        """Whether it stands on the chain of this type."""

    def offer(self, view: Viewed, now: Now) -> Verdict:
        """Process a batch."""


PASSED: Final = Verdict.PASSED  # looked up once: reading a member of an Enum takes as long as a link that does nothing
NOBODY: Final[list[int]] = []


class FilterLink:
    """A built-in filter at its place. It works on views: of samples, or of a message."""

    def __init__(self, spec: FilterSpec, house: House = NOWHERE) -> None:
        self.spec = spec
        self.key: Key = by_filter(spec.place, spec.name)
        self.name, self.direction = spec.name, spec.direction
        self.counters = LinkCounters()
        self.filter: Filter = make(spec, house)
        self._where = spec.compiled() if spec.where else None
        self._when = Expression(spec.when, spec.direction) if spec.when else None
        self._reads = spec.reads_fields or (self._when is not None and self._when.reads_fields)
        self._sees_all = self._where is None and self._when is None
        self._is_match = spec.kind == "match"
        self._judge = self.filter.judge

    def covers(self, kind: str) -> bool:
        return any(covers(pattern, kind) for pattern in self.spec.types)

    def follow(self, old: "FilterLink") -> None:
        """Replace the old filter of the same name: take over its counters, and its state if that is still valid."""
        self.counters = old.counters
        if self.spec.state == old.spec.state:
            self.filter.inherit(old.filter)

    def offer(self, view: Viewed, now: Now) -> Verdict:
        """Drop or change records as the filter says.

        What it cannot judge stays, is dropped, or fails all (`on_error`).
        """
        kept, counters = view.kept, self.counters
        counters.offered += len(kept)
        if self._reads and not view.is_readable:
            return self._settle(view, FINE, kept)
        seen, unsure = (kept, NOBODY) if self._sees_all else self._seen(view)
        judgement = self._judge(view, seen, now) if seen or self._is_match else FINE
        if judgement is FINE and not unsure:
            counters.passed += len(kept)
            return PASSED
        return self._settle(view, judgement, unsure)

    def takes(self, view: Viewed) -> Verdict | None:
        """For `forward` and `journal`: None if the message is to be taken, else what becomes of it here.

        It is taken if the filter selects one of its records. A message that cannot be judged is taken as well, unless
        `on_error` says otherwise: a mistake in an expression must not keep an alert from the parent.
        """
        self.counters.offered += len(view.kept)
        readable = view.is_readable or not self._reads
        seen, unsure = self._seen(view) if readable else ([], view.kept)
        if unsure and self.spec.on_error == "keep":
            self.counters.failed += len(unsure)
            seen = seen or unsure
        elif unsure:
            verdict = self._settle(view, FINE, unsure)
            if verdict in (Verdict.FAILED, Verdict.DROPPED):
                return verdict
            return None if seen else verdict
        self.counters.passed += len(view.kept)
        return None if seen else Verdict.PASSED

    def _seen(self, view: Viewed) -> tuple[list[int], list[int]]:
        """The records that `where` and `when` select, and those for which `when` gives no answer."""
        seen = view.kept if self._where is None else view.matching(self._where)
        if self._when is None or not seen:
            return seen, []
        return self._when.parted(view, seen)

    def _settle(self, view: Viewed, judgement: Judgement, unsure: list[int]) -> Verdict:
        offered = len(view.kept)
        dropped, erred, is_changed = judgement
        if unsure:
            spared = dict.fromkeys(unsure)
            dropped = [index for index in dropped if index not in spared]
            erred = erred + unsure
        self.counters.failed += len(erred)
        if erred and self.spec.on_error == "fail":
            self.counters.dropped += offered
            return Verdict.FAILED
        if erred and self.spec.on_error == "drop":
            dropped = dropped + erred
        if dropped:
            return self._take_out(view, dropped)
        if not is_changed:
            return self._pass(offered)
        self.counters.passed += offered
        self.counters.changed += 1
        return Verdict.CHANGED

    def _pass(self, count: int) -> Verdict:
        self.counters.passed += count
        return Verdict.PASSED

    def _take_out(self, view: Viewed, dropped: list[int]) -> Verdict:
        view.take_out(dropped)
        self.counters.dropped += len(dropped)
        self.counters.passed += len(view.kept)
        self.counters.changed += 1
        return Verdict.CHANGED if view.kept else Verdict.DROPPED


class ChainFull(WeftError):
    """The node has no room for another link."""
