"""The promises of the store, judged by the journals of its nodes and the answers to clients.

A change is known by its link, node and tick. Of two changes of one entry the greater one stands (STO-010).
"""

from bisect import bisect_right
from functools import lru_cache
from typing import ClassVar, NamedTuple

from weft.base.ranges import RangeSet
from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation

Link = tuple[str, int]
ANY = "any"
LSN_MAX = 1 << 62


def order_of(tock: int, link: Link) -> tuple[int, int, bytes]:
    """Sort key: tock, then tick, then the lower name (STO-010)."""
    node, tick = link
    return tock, tick, bytes(255 - byte for byte in node.encode()) + b"\xff"


class Change(NamedTuple):
    """A change as it stands in a journal."""

    lsn: int
    path: str
    tock: int
    value: str | None
    chain: tuple[Link, ...]
    is_own: bool
    is_shown: bool
    before: Link | None
    fact: Fact

    @property
    def link(self) -> Link:
        return self.chain[0]

    @property
    def order(self) -> tuple[int, int, bytes]:
        """The greatest change is in force (STO-010)."""
        return order_of(self.tock, self.chain[0])

    def covers(self, link: Link) -> bool:
        """Whether its author had seen that change."""
        return any(node == link[0] and tick >= link[1] for node, tick in self.chain)


@lru_cache(1)
def _change_of(key: "FactKey") -> Change:
    return change_of(key.fact)


class FactKey:
    """A fact, compared by identity: several checkers get the same fact, and its change is read only once."""

    __slots__ = ("fact",)

    def __init__(self, fact: Fact) -> None:
        self.fact = fact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FactKey) and other.fact is self.fact

    def __hash__(self) -> int:
        return self.fact.at


def change_of(fact: Fact) -> Change:
    """The change in a fact."""
    lsn, path, tock, value, chain, is_own, is_shown, before = fact.value
    links = tuple((node, tick) for node, tick in chain)
    return Change(lsn, path, tock, value, links, is_own, is_shown, None if before is None else tuple(before), fact)


class StoreChecker(Checker):
    """Keeps track of all journals: which changes each has, and which no journal has any more."""

    HEARS: ClassVar = {("durable", "change"): "note_change", ("info", "journal"): "note_journal"}

    def __init__(self) -> None:
        self.journals: dict[str, list[Change]] = {}
        self.holders: dict[Link, set[str]] = {}
        """The nodes whose journals have a change; none: it was lost with a disk."""
        self.changes: dict[Link, Change] = {}
        """All changes that ever were; of each, the copy with the longest chain."""

    def note_change(self, fact: Fact) -> None:
        """A journal has one more change."""
        change = _change_of(FactKey(fact))
        self.judge(change)
        self.journals.setdefault(fact.node, []).append(change)
        known, holders = self.changes.get(change.link), self.holders.setdefault(change.link, set())
        if known is None or not holders or len(change.chain) > len(known.chain):
            self.changes[change.link] = change
        holders.add(fact.node)

    def judge(self, change: Change) -> None:
        """The change is about to be appended to the journal."""

    def note_journal(self, fact: Fact) -> None:
        """A disk was restored from an older copy, or its journal was harmed."""
        first, *rest = fact.value
        end = rest[0] if rest else LSN_MAX
        journal = self.journals.get(fact.node, [])
        gone = [change for change in journal if first <= change.lsn < end]
        self.journals[fact.node] = [change for change in journal if change not in gone] if gone else journal
        left = {change.link for change in self.journals[fact.node]}
        for change in gone:
            if change.link not in left:
                self.holders[change.link].discard(fact.node)


class StoreTicks(StoreChecker):
    """Each tick has one change: none is used again while any node has the first, and none is left out (P11)."""

    rule = "ticks"

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], Change] = {}
        """The highest tick in a journal, by machine and name."""

    def note_change(self, fact: Fact) -> None:
        super().note_change(fact)
        self._note_last(self.journals[fact.node][-1])

    def note_journal(self, fact: Fact) -> None:
        super().note_journal(fact)
        self._last = {key: change for key, change in self._last.items() if key[0] != fact.node}
        for change in self.journals.get(fact.node, []):
            self._note_last(change)

    def _note_last(self, change: Change) -> None:
        key = (change.fact.node, change.link[0])
        last = self._last.get(key)
        if last is None or change.link[1] > last.link[1]:
            self._last[key] = change

    def judge(self, change: Change) -> None:
        known = self.changes.get(change.link)
        if known and self.holders[change.link] and (known.path, known.value) != (change.path, change.value):
            self.broken(f"two changes are called {change.link}", known.fact, change.fact)
        if not change.is_own:
            return
        node, tick = change.link
        last = self._last.get((change.fact.node, node))
        if last is not None and tick <= last.link[1]:
            self.broken(f"{change.fact.node} takes tick {tick} behind {last.link[1]}", last.fact, change.fact)
        if tick > 1 and (node, tick - 1) not in self.changes:
            self.broken(f"{change.fact.node} takes tick {tick}, and nobody ever saw {tick - 1}", change.fact)


class StoreCausal(StoreChecker):
    """A change is greater than all that its author had seen, and its chain names the one it replaced (STO-007, STO-006)."""

    rule = "causal"
    HEARS: ClassVar = {**StoreChecker.HEARS, ("ok", "stored"): "note_stored"}

    def __init__(self) -> None:
        super().__init__()
        self._tocks: dict[str, int] = {}

    def judge(self, change: Change) -> None:
        node = change.fact.node
        seen = self._tocks.get(node, 0)
        if change.is_own and change.tock <= seen:
            self.broken(f"{node} writes at tock {change.tock}, and had seen {seen}", change.fact)
        self._tocks[node] = max(seen, change.tock)
        if change.is_own and change.before is not None and not change.covers(change.before):
            self.broken(f"{node} writes over {change.before}, and its chain does not say so", change.fact)

    def note_journal(self, fact: Fact) -> None:
        super().note_journal(fact)
        self._tocks[fact.node] = max((change.tock for change in self.journals.get(fact.node, [])), default=0)

    def note_stored(self, fact: Fact) -> None:
        """A conditional write takes effect only where its condition holds (P9)."""
        _, node, tick, wanted = fact.value
        change = self.changes.get((node, tick))
        if wanted == ANY or change is None:
            return
        before = self.changes.get(change.before) if change.before is not None else None
        is_free = before is None or before.value is None
        if (wanted is None and not is_free) or (wanted is not None and change.before != tuple(wanted)):
            self.broken(f"{node}:{tick} was written over {change.before}, not over {wanted}", fact, change.fact)


class StoreDurable(StoreChecker):
    """An acknowledged change is in force, is covered by one in force, or has lost a reported conflict."""

    rule = "store_durable"
    HEARS: ClassVar = {
        **StoreChecker.HEARS,
        ("ok", "stored"): "note_stored",
        ("event", "conflict"): "note_conflict",
        ("info", "holding"): "note_holding",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[Link, Fact] = {}
        self.lost: set[Link] = set()
        self.holding: dict[str, Fact] = {}
        self.quiet: Fact | None = None
        self._cut: set[str] = set()
        """Nodes whose journals lost records: of what they had forgotten, they may know only that it is past."""

    def note_journal(self, fact: Fact) -> None:
        super().note_journal(fact)
        self._cut.add(fact.node)

    def note_stored(self, fact: Fact) -> None:
        _, node, tick, _ = fact.value
        self.stored[node, tick] = fact
        if fact.node not in self.holders.get((node, tick), ()):
            self.broken(f"{node}:{tick} was acknowledged before it was durable", fact)

    def note_conflict(self, fact: Fact) -> None:
        self.lost.add((fact.value[1], fact.value[2]))

    def note_holding(self, fact: Fact) -> None:
        self.holding[fact.node] = fact

    def note_quiet(self, fact: Fact) -> None:
        self.quiet = fact
        for holding in self.holding.values():
            self._judge_holding(holding)

    def _judge_holding(self, fact: Fact) -> None:
        _, entries, deleted, caps = fact.value
        there = {path: (node, tick) for path, node, tick, _, _ in entries}
        forgotten = _ranges(deleted)
        for path, greatest in greatest_of(self, caps).items():
            link = there.get(path)
            is_forgotten = greatest.value is None and _has(forgotten, greatest.link)
            if link != greatest.link and not (link is None and is_forgotten):
                self.broken(f"{fact.node} holds {link} of {path}, and not {greatest.link}", greatest.fact)
        for other in self.holding.values() if fact.node in self._cut else ():
            for node, ranges in _ranges(other.value[2]).items():
                forgotten.setdefault(node, RangeSet()).update(ranges)
        fine = self._explained(set(there.values()), forgotten)
        for link, stored in self.stored.items():
            is_capped = link[0] in caps and link[1] > caps[link[0]]
            if link not in fine and self.holders[link] and not is_capped:
                self.broken(f"{link[0]}:{link[1]} was acknowledged, and is lost without a word", stored)

    def _explained(self, there: set[Link], forgotten: dict[str, RangeSet]) -> set[Link]:
        """The changes whose outcome is known: each also explains those that its author had seen."""
        fine: set[Link] = set()
        by_path: dict[str, list[Change]] = {}
        for change in sorted(self.changes.values(), key=lambda change: change.order, reverse=True):
            link, later = change.link, by_path.setdefault(change.path, [])
            is_gone = change.value is None and _has(forgotten, link)
            if link in there or link in self.lost or is_gone or any(other.covers(link) for other in later):
                later.append(change)
                fine.add(link)
        return fine

    def end(self) -> Violation | Unknown | None:
        is_told = self.quiet is not None and bool(self.holding)
        return None if is_told else Unknown(self.rule, "the history does not say what the nodes hold in the end")


class NoResurrection(StoreChecker):
    """A deleted entry returns only by a greater change (CHK-011)."""

    rule = "no_resurrection"
    HEARS: ClassVar = {
        **StoreChecker.HEARS,
        ("info", "holding"): "note_holding",
        ("info", "quiet"): "note_quiet",
        ("durable", "emptied"): "note_emptied",
    }

    def __init__(self) -> None:
        super().__init__()
        self._holding: dict[str, Fact] = {}
        self._deleted: dict[str, dict[str, Change]] = {}

    def judge(self, change: Change) -> None:
        here = self._deleted.setdefault(change.fact.node, {})
        before = here.get(change.path)
        if not change.is_shown:
            return
        if change.value is not None and before is not None and change.order < before.order:
            self.broken(f"{change.path} was deleted, and is there again", before.fact, change.fact)
        if change.value is None and (before is None or change.order > before.order):
            here[change.path] = change

    def note_journal(self, fact: Fact) -> None:
        super().note_journal(fact)
        self._deleted.pop(fact.node, None)
        for change in self.journals.get(fact.node, []):
            if change.value is None and change.is_shown:
                self._deleted.setdefault(fact.node, {})[change.path] = change

    def note_emptied(self, fact: Fact) -> None:
        self._deleted.pop(fact.node, None)

    def note_holding(self, fact: Fact) -> None:
        self._holding[fact.node] = fact

    def note_quiet(self, _: Fact) -> None:
        for fact in self._holding.values():
            self._judge_holding(fact)

    def _judge_holding(self, fact: Fact) -> None:
        _, entries, _, caps = fact.value
        greatest = greatest_of(self, caps)
        for path, node, tick, _, is_deleted in entries:
            change, best = self.changes.get((node, tick)), greatest.get(path)
            if is_deleted or change is None or best is None or best.value is not None:
                continue
            if change.order < best.order:
                self.broken(f"{path} was deleted by {best.link}, and {fact.node} has it", best.fact, change.fact)


class StoreWatched(StoreChecker):
    """A watcher is shown the history of its node: nothing lost, nothing older after something newer (CLN-010)."""

    rule = "watched"
    HEARS: ClassVar = {
        **StoreChecker.HEARS,
        ("ok", "watching"): "note_watching",
        ("ok", "shown"): "note_shown",
        ("durable", "stale"): "note_stale",
        ("durable", "emptied"): "note_emptied",
        ("info", "holding"): "note_holding",
    }

    def __init__(self) -> None:
        super().__init__()
        self._views: dict[tuple[str, str], View] = {}
        self._live: dict[str, dict[str, Link]] = {}
        self._anew: dict[str, set[str]] = {}
        """Entries of nodes that began their store anew: watchers are not shown that these were removed."""

    def note_stale(self, fact: Fact) -> None:
        """An old copy is dropped: watchers see a deletion there."""
        lsn, path, node, tick = fact.value
        here = self.journals.setdefault(fact.node, [])
        here.append(Change(lsn, path, 0, None, ((node, tick),), False, True, None, fact))

    def note_emptied(self, fact: Fact) -> None:
        """Everything is dropped, and will be shown again."""
        for (node, _), view in self._views.items():
            if node == fact.node:
                view.seen.clear()
        self._anew.setdefault(fact.node, set()).update(change.path for change in self.journals.get(fact.node, []))

    def note_holding(self, fact: Fact) -> None:
        self._live[fact.node] = {path: (node, tick) for path, node, tick, _, is_gone in fact.value[1] if not is_gone}

    def note_watching(self, fact: Fact) -> None:
        name, what, lsn = fact.value
        view = self._views.setdefault((fact.node, name), View())
        if what in ("fresh", "gap"):
            view.seen.clear()
            view.settled = None
        elif what == "uptodate" and lsn:
            self._no_gap(view, lsn, fact)
            view.settled = lsn
        elif what == "rest":
            self._judge_rest(view, fact)

    def _shown_between(self, node: str, after: int, upto: int) -> list[Change]:
        journal = self.journals.get(node, [])
        begin = bisect_right(journal, after, key=lambda change: change.lsn)
        end = bisect_right(journal, upto, key=lambda change: change.lsn)
        return [change for change in journal[begin:end] if change.is_shown]

    def _no_gap(self, view: "View", upto: int, fact: Fact) -> None:
        if view.settled is None:
            return
        for change in self._shown_between(fact.node, view.settled, upto):
            self.broken(f"{fact.value[0]} of {fact.node} was not shown {change.link}", change.fact, fact)

    def note_shown(self, fact: Fact) -> None:
        name, lsn, path, node, tick, tock, is_deleted = fact.value
        view = self._views.setdefault((fact.node, name), View())
        if lsn:
            self._judge_shown(view, fact)  # after `uptodate` comes the node's history, whatever it is
        before = view.seen.get(path)
        now = Seen((node, tick), tock, is_deleted)
        if view.settled is None and before is not None and now.order < before.order:
            self.broken(f"{name} of {fact.node} was shown {path} of {now.link} behind {before.link}", fact)
        view.seen[path] = now

    def _judge_shown(self, view: "View", fact: Fact) -> None:
        name, lsn, _, node, tick, _, _ = fact.value
        here = self._shown_between(fact.node, lsn - 1, lsn)
        if [change.link for change in here] != [(node, tick)]:
            self.broken(f"{name} was shown {node}:{tick}, which does not stand at {lsn} of {fact.node}", fact)
        if view.settled is not None:
            self._no_gap(view, lsn - 1, fact)
            view.settled = lsn

    def _judge_rest(self, view: "View", fact: Fact) -> None:
        name = fact.value[0]
        if view.settled is None:
            self.broken(f"{name} of {fact.node} was never told that it is up to date", fact)
        self._no_gap(view, LSN_MAX, fact)
        anew = self._anew.get(fact.node, set())
        seen = {path: it.link for path, it in view.seen.items() if not it.is_deleted and path not in anew}
        live = {path: link for path, link in self._live.get(fact.node, {}).items() if path not in anew}
        if seen != live:
            wrong = min(path for path in {*seen, *live} if seen.get(path) != live.get(path))
            self.broken(
                f"{name} of {fact.node} thinks that {wrong} is {seen.get(wrong)}, it is {live.get(wrong)}", fact
            )


class Seen(NamedTuple):
    """An entry as a watcher knows it."""

    link: Link
    tock: int
    is_deleted: bool

    @property
    def order(self) -> tuple[int, int, bytes]:
        """The order of the change (STO-010)."""
        return order_of(self.tock, self.link)


class View:
    """What one watcher was shown."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.settled: int | None = None
        """Everything up to this lsn was shown; None: a snapshot is under way."""


def greatest_of(journals: StoreChecker, caps: dict[str, int]) -> dict[str, Change]:
    """The change that must be in force at each path: the greatest that any journal has."""
    found: dict[str, Change] = {}
    for link, change in journals.changes.items():
        if not journals.holders[link] or link[1] > caps.get(link[0], link[1]):
            continue
        best = found.get(change.path)
        if best is None or change.order > best.order:
            found[change.path] = change
    return found


def _ranges(deleted: dict[str, list[list[int]]]) -> dict[str, RangeSet]:
    return {node: RangeSet([(first, last) for first, last in ranges]) for node, ranges in deleted.items()}


def _has(ranges: dict[str, RangeSet], link: Link) -> bool:
    return link[0] in ranges and ranges[link[0]].covers(link[1], link[1])


STORE_RULES: tuple[type[Checker], ...] = (StoreTicks, StoreCausal, NoResurrection, StoreDurable, StoreWatched)
