"""The entries, by path and by the change that heads them (STO-003).

A trie: finding a path takes one step per element. Elements are compared by their wire form, since Python treats `1`,
`True` and `1.0` as one key (R4).
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from weft.base.changes import Element, Event, Link, Path
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.wire.store.path import normal, pack_path

Key = str | bytes
"""An element's identity: text as it is, everything else in packed form."""
_TEXT: Final = frozenset((str,))


class Twig(msgspec.Struct, gc=False):
    """One element of a path, and what is below it."""

    element: Element
    event: Event | None = None
    children: dict[Key, "Twig"] | None = None
    live: int = 0
    """Number of entries with a value here and below."""


class Tree:
    """All entries. Tombstones are entries without a value."""

    def __init__(self, keys: str) -> None:
        self._keys = keys
        self._root = Twig(None)
        self._heads: dict[str, dict[int, Event]] = {}
        self._clashes: dict[Link, list[Event]] = {}
        """Further entries with one head change, which only a faulty peer can cause (STO-016)."""
        self.entries = 0
        """Number of entries with a value."""
        self.tombstones = 0
        self.bytes = 0
        """Bytes of all values."""
        self.cost = 0
        """Estimated bytes of memory of all entries, including deleted ones."""

    # Asking

    def get(self, path: Path) -> Event | None:
        """The latest change of an entry, deletions included; PeerError `bad-path`. O(path)."""
        twig = self._find(path)
        return twig.event if twig else None

    def at(self, path: Path) -> Event | None:
        """The same for a path that is already normal."""
        twig = self._at(path)
        return twig.event if twig else None

    def by_link(self, link: Link) -> Event | None:
        """The entry whose head is this change."""
        return self._heads.get(link[0], {}).get(link[1])

    def live(self, path: Path) -> int:
        """Number of entries with a value there and below. O(path)."""
        twig = self._find(path)
        return twig.live if twig else 0

    def children(self, path: Path) -> list[Path]:
        """The paths one level below, with or without a value, tombstones included."""
        twig = self._find(path)
        return [(*path, child.element) for child in (twig.children or {}).values()] if twig else []

    def walk(self, path: Path = (), min_depth: int = 0, max_depth: int | None = None) -> Iterator[Event]:
        """All changes there and below, parents first; depths count from `path`. The tree may change meanwhile."""
        top = self._find(path)
        if top is None:
            return
        yield from _descend(top, min_depth, max_depth, is_sorted=False)

    def sorted(self) -> Iterator[Event]:
        """All changes in a fixed order that depends only on the changes."""
        return _descend(self._root, 0, None, is_sorted=True)

    def heads_of(self, node: str) -> Iterable[int]:
        """The ticks of a node that head an entry, in no particular order."""
        return self._heads.get(node, {}).keys()

    def heads_within(self, node: str, ticks: RangeSet) -> list[Event]:
        """The entries with these head changes, by tick. O(the fewer of ticks and heads)."""
        heads = self._heads.get(node)
        if not heads:
            return []
        if ticks.count <= len(heads):
            found = [heads[tick] for first, last in ticks for tick in range(first, last + 1) if tick in heads]
        else:
            found = [heads[tick] for tick in sorted(heads) if tick in ticks]
        return found

    # Changing

    def clear(self) -> None:
        """Forget everything."""
        self._root = Twig(None)
        self._heads.clear()
        self._clashes.clear()
        self.entries = self.tombstones = self.bytes = self.cost = 0

    def put(self, event: Event) -> Event:
        """Put a change at its (normal) path; returns it as it is kept."""
        trail = self._trail(event.path)
        twig = trail[-1]
        before = twig.event
        kept = event if before is not None else _sharing(event, trail)
        if before is not None:
            self._unlink(before)
        twig.event = kept
        self._link(kept)
        self._weigh(trail, before, kept)
        return kept

    def remove(self, event: Event) -> None:
        """Remove the entry with this head change, and all steps that lead nowhere else."""
        trail = self._trail(event.path)
        assert trail[-1].event is event, event.path
        trail[-1].event = None
        self._unlink(event)
        self._weigh(trail, event, None)
        self._prune(trail, [key_of_element(element) for element in event.path])

    def _prune(self, trail: list[Twig], keys: list[Key]) -> None:
        """Remove the last steps while they are empty."""
        while keys and trail[-1].event is None and not trail[-1].children:
            trail.pop()
            children = trail[-1].children
            assert children is not None, "its last step hung on it"
            del children[keys.pop()]

    def _find(self, path: Path) -> Twig | None:
        return self._at(path if _is_plain(path) else normal(path, self._keys))

    def _at(self, path: Path) -> Twig | None:
        twig = self._root
        for element in path:
            if twig.children is None:
                return None
            child = twig.children.get(element if type(element) is str else key_of_element(element))
            if child is None:
                return None
            twig = child
        return twig

    def _trail(self, path: Path) -> list[Twig]:
        """The steps to a normal path, from the root; missing ones are created."""
        twig = self._root
        trail = [twig]
        for element in path:
            children = twig.children
            if children is None:
                children = twig.children = {}
            key = element if type(element) is str else key_of_element(element)
            twig = children.get(key) or children.setdefault(key, Twig(element))
            trail.append(twig)
        return trail

    def _link(self, event: Event) -> None:
        node, tick = event.chain.links[0]
        heads = self._heads.get(node)
        if heads is None:
            heads = self._heads[node] = {}
        twin = heads.get(tick)
        if twin is not None:
            self._clashes.setdefault((node, tick), []).append(twin)
        heads[tick] = event

    def _unlink(self, event: Event) -> None:
        node, tick = link = event.chain.links[0]
        clashes = self._clashes.get(link)
        if clashes is None:
            del self._heads[node][tick]
            return
        if self._heads[node][tick] is event:
            self._heads[node][tick] = clashes.pop()
        else:
            clashes[:] = [other for other in clashes if other is not event]
        if not clashes:
            del self._clashes[link]

    def _weigh(self, trail: list[Twig], before: Event | None, now: Event | None) -> None:
        """Update the counts after a change of one entry."""
        was_live, was_gone, was_bytes = _weight(before)
        is_live, is_gone, is_bytes = _weight(now)
        self.tombstones += is_gone - was_gone
        self.bytes += is_bytes - was_bytes
        self.cost += is_bytes - was_bytes if before and now else cost_of(now) - cost_of(before)
        more = is_live - was_live
        if more:
            self.entries += more
            for twig in trail:
                twig.live += more


def key_of_element(element: Element) -> Key:
    """The identity of an element of a normal path."""
    return element if type(element) is str else pack_path((element,))


def _is_plain(path: Path) -> bool:
    """Whether it is certainly normal as it is: all elements are text."""
    return _TEXT.issuperset(map(type, path))


def cost_of(event: Event | None) -> int:
    """Estimated bytes of memory of an entry with this head change."""
    if event is None:
        return 0
    return limits.ENTRY_COST + len(event.value or b"") + path_cost(event.path)


def growth(path: Path, value: bytes, before: Event | None) -> int:
    """Estimated bytes of memory that a value takes beyond the head change of its entry."""
    if before is not None:
        return len(value) - len(before.value or b"")
    return limits.ENTRY_COST + path_cost(path) + len(value)


def path_cost(path: Path) -> int:
    """Bytes of memory of the names in a path."""
    return sum([len(element) for element in path if type(element) is str or type(element) is bytes])


def _weight(event: Event | None) -> tuple[int, int, int]:
    """Number of entries with a value, without one, and bytes."""
    if event is None:
        return 0, 0, 0
    return (0, 1, 0) if event.value is None else (1, 0, len(event.value))


def _sharing(event: Event, trail: list[Twig]) -> Event:
    """The event with path elements shared with the tree: that saves half of what a million paths weigh."""
    path = tuple([twig.element for twig in trail[1:]])
    return Event(event.chain, event.tock, path, event.value, event.at, event.by, event.until)


def _descend(top: Twig, min_depth: int, max_depth: int | None, *, is_sorted: bool) -> Iterator[Event]:
    waiting = [iter((top,))]
    while waiting:
        twig = next(waiting[-1], None)
        if twig is None:
            waiting.pop()
            continue
        depth = len(waiting) - 1
        if twig.event is not None and depth >= min_depth:
            yield twig.event
        children = twig.children
        if children and (max_depth is None or depth < max_depth):
            waiting.append(iter(_in_order(children) if is_sorted else list(children.values())))


def _in_order(children: dict[Key, Twig]) -> list[Twig]:
    return [children[key] for key in sorted(children, key=lambda key: (type(key) is str, key))]
