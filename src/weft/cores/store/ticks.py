"""Which changes of each node are known to exist, and which of them are settled (STO-020).

A tick is *seen* once its change was here, or once a node that had a greater change named it in a link, a `known` or a
`deleted`. A seen tick that heads no entry is *superseded*, or *deleted* if it was purged. A tick that is not seen is
*missing*.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

from weft.base.changes import Event, Link
from weft.base.errors import PeerError
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.context import Context
from weft.cores.store.memory import Claimed, MemoryKind, Settled, record_of
from weft.cores.store.messages import LimitExceeded
from weft.cores.store.tree import Tree
from weft.wire.store.messages import Info, Ticks


class NodeTicks:
    """What is known of one node's changes."""

    __slots__ = ("deleted", "name", "seen", "top")

    def __init__(self, name: str) -> None:
        self.name = name
        self.top = 0
        """The highest tick in any message."""
        self.seen = RangeSet()
        self.deleted = RangeSet()


class TickBook:
    """All known nodes. Work per tick does not grow with the number of ticks (STO-021)."""

    def __init__(self, context: Context, tree: Tree) -> None:
        self._context, self._tree = context, tree
        self._nodes: dict[str, NodeTicks] = {}
        self._open: dict[str, None] = {}
        """Nodes with missing changes."""
        self._is_ahead_untold = False
        self._exceeded: set[str] = set()
        self.caps: dict[str, int] = {}
        """The last tick of each dropped node: higher ones are refused (DEL-006)."""
        self.on_own_ahead: Callable[[int], None] | None = None
        """Called when another node knows a higher tick of this node than this node itself (STO-034)."""

    # Asking

    def top(self, node: str) -> int:
        """The highest known tick of a node; 0: none."""
        ticks = self._nodes.get(node)
        return ticks.top if ticks else 0

    def tops(self) -> dict[str, int]:
        """The highest tick by node, for nodes with a tick above 0."""
        return {name: ticks.top for name, ticks in self._nodes.items() if ticks.top}

    def nodes(self) -> list[str]:
        """All nodes with a tick above 0, in the order in which they became known."""
        return [name for name, ticks in self._nodes.items() if ticks.top]

    def is_seen(self, node: str, tick: int) -> bool:
        """Whether a change is here, or no longer needed."""
        ticks = self._nodes.get(node)
        return ticks is not None and tick in ticks.seen

    def is_deleted(self, node: str, tick: int) -> bool:
        """Whether a change was purged: it is never shown again (DEL-005)."""
        ticks = self._nodes.get(node)
        return ticks is not None and bool(ticks.deleted) and tick in ticks.deleted

    def seen(self, node: str) -> RangeSet:
        """All settled ticks of a node; a copy."""
        ticks = self._nodes.get(node)
        return ticks.seen.copy() if ticks else RangeSet()

    def present(self, node: str) -> RangeSet:
        """Ticks that head an entry. O(heads of the node)."""
        return _as_ranges(self._tree.heads_of(node))

    def deleted(self, node: str) -> RangeSet:
        """Ticks that were purged; a copy."""
        ticks = self._nodes.get(node)
        return ticks.deleted.copy() if ticks else RangeSet()

    def superseded(self, node: str) -> RangeSet:
        """Settled ticks that head no entry and were not purged. O(heads of the node)."""
        ticks = self._nodes.get(node)
        return ticks.seen - ticks.deleted - self.present(node) if ticks else RangeSet()

    def held(self, node: str, asked: RangeSet) -> tuple[list[Event], RangeSet, RangeSet]:
        """What is known of the asked ticks: heads, superseded, deleted. O(ranges + affected ticks)."""
        ticks = self._nodes.get(node)
        if ticks is None:
            return [], RangeSet(), RangeSet()
        seen = ticks.seen & asked
        deleted = ticks.deleted & seen
        heads = self._tree.heads_within(node, seen)
        superseded = seen - deleted - _as_ranges(event.tick for event in heads)
        return heads, superseded, deleted

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing. O(1)."""
        return not self._open

    def missing(self) -> Ticks:
        """Known ticks that are not settled, by node; nodes without any are absent."""
        return {name: self.missing_of(name) for name in self._open}

    def missing_of(self, node: str) -> RangeSet:
        """The same for one node. O(gaps)."""
        ticks = self._nodes.get(node)
        return RangeSet(ticks.seen.gaps(ticks.top)) if ticks and node in self._open else RangeSet()

    @property
    def has_room(self) -> bool:
        """Whether one more node may be noted."""
        return len(self._nodes) < limits.NODES_MAX

    @property
    def own_ahead(self) -> int:
        """The highest tick that others know of this node, if above its own; else 0 (STO-034)."""
        top = self.top(self._context.name)
        return top if top > self._context.tick else 0

    # Learning

    def check(self, links: Iterable[Link]) -> None:
        """PeerError `tick-jump` for ticks too far above the highest known ones of their nodes."""
        for node, tick in links:
            own = self._context.tick if node == self._context.name else 0
            self._context.check_tick(max(self.top(node), own), tick)

    def admit(self, links: Iterable[Link]) -> None:
        """Check that there is room to note these; PeerError `too-large` if not, and nothing has changed."""
        new = 0
        for node, tick in links:
            ticks = self._nodes.get(node)
            if ticks is None:
                new += 1
            elif len(ticks.seen) >= limits.RANGES_MAX and not _joins(ticks.seen, tick):
                self._exceed("ranges", limits.RANGES_MAX)
        if new and len(self._nodes) + new > limits.NODES_MAX:
            self._exceed("nodes", limits.NODES_MAX)

    def raise_top(self, node: str, tick: int) -> bool:
        """A tick of that node exists; returns whether that opens a new gap.

        New names beyond the limit are ignored: `admit` refuses them where refusing is possible.
        """
        ticks = self._nodes.get(node)
        if self.caps:
            tick = min(tick, self.caps.get(node, tick))
        if tick <= (ticks.top if ticks else 0) or (ticks is None and not self.has_room):
            return False
        ticks = ticks or self._of(node)
        self._rise(ticks, tick)
        self._judge(ticks)
        self.tell_ahead()
        return True

    def see(self, node: str, tick: int) -> bool:
        """A tick is settled; returns whether that is new. Call `tell_ahead` afterwards."""
        ticks = self._of(node)
        if tick > ticks.top:
            self._rise(ticks, tick)
        elif tick in ticks.seen:
            return False
        ticks.seen.add(tick)
        self._judge(ticks)
        return True

    def see_all(self, node: str, ranges: RangeSet) -> RangeSet:
        """Ticks are settled; returns the new ones. Call `tell_ahead` afterwards."""
        ticks = self._of(node)
        new = _lacking(ticks.seen, ranges)
        if new and self._fits(ticks, new):
            if new.highest > ticks.top:
                self._rise(ticks, new.highest)
            ticks.seen.update(new)
            self._judge(ticks)
            return new
        return RangeSet()

    def _fits(self, ticks: NodeTicks, new: RangeSet) -> bool:
        """Whether there is room: a message may name any scattered set of ticks."""
        most = max(limits.RANGES_MAX, len(ticks.seen))
        if len(ticks.seen) + len(new) <= most or len(ticks.seen | new) <= most:
            return True
        self._say_exceeded("ranges", limits.RANGES_MAX)
        return False

    def delete(self, node: str, ranges: RangeSet) -> RangeSet:
        """Ticks are purged, and so settled; returns the new ones."""
        ticks = self._of(node)
        if not self._fits(ticks, _lacking(ticks.seen, ranges)):
            return RangeSet()
        self.see_all(node, ranges)
        new = _lacking(ticks.deleted, ranges)
        ticks.deleted.update(new)
        return new

    def revive(self, links: Iterable[Link]) -> None:
        """These are links of an entry that is shown: superseded, even if they were purged (HEA-004)."""
        for node, tick in links:
            if self.is_deleted(node, tick):
                self._nodes[node].deleted.remove(tick)

    def tell_ahead(self) -> None:
        """Remember, and report once, that others know changes of this node that it does not know of (STO-034)."""
        if self._is_ahead_untold:
            self._is_ahead_untold = False
            if tick := self.own_ahead:
                self._context.keep(record_of(Claimed(self._context.name, tick)))
                if self.on_own_ahead is not None:
                    self.on_own_ahead(tick)

    def silence(self) -> None:
        """Restored ticks are no news; `own_ahead` shows whether they matter."""
        self._is_ahead_untold = False

    def clear(self) -> None:
        """Forget all ticks."""
        self._nodes.clear()
        self._open.clear()

    def condense(self) -> Iterator[MemoryKind]:
        """Records of everything; equal books give equal records."""
        for name in sorted(self._nodes):
            ticks = self._nodes[name]
            for known, deleted in zip_longest(_parts(ticks.seen), _parts(ticks.deleted)):
                yield Settled({name: known} if known else {}, {name: deleted} if deleted else {})
        if tick := self.own_ahead:
            yield Claimed(self._context.name, tick)

    def _of(self, node: str) -> NodeTicks:
        ticks = self._nodes.get(node)
        if ticks is None:
            ticks = self._nodes[node] = NodeTicks(node)
        return ticks

    def _rise(self, ticks: NodeTicks, tick: int) -> None:
        ticks.top = tick
        if ticks.name == self._context.name and tick > self._context.tick:
            self._is_ahead_untold = True

    def _judge(self, ticks: NodeTicks) -> None:
        if ticks.seen.prefix() >= ticks.top:
            self._open.pop(ticks.name, None)
        else:
            self._open[ticks.name] = None

    def _say_exceeded(self, what: str, limit: int) -> None:
        """Tell it once in a start, since the limit would be exceeded again and again."""
        if what not in self._exceeded:
            self._exceeded.add(what)
            self._context.tell(LimitExceeded(what, limit))

    def _exceed(self, what: str, limit: int) -> None:
        self._say_exceeded(what, limit)
        raise PeerError("too-large", f"more than {limit} {what}")


def named_by(info: Info) -> Iterator[Link]:
    """The highest changes whose existence a message states; what it asks for does not count."""
    yield info.node, info.tick
    yield from (info.ticks or {}).items()
    for ticks in (info.known or {}, info.deleted or {}):
        yield from ((node, ranges.highest) for node, ranges in ticks.items())


def _joins(ranges: RangeSet, tick: int) -> bool:
    """Whether a number extends an existing range."""
    return any(near in ranges for near in (tick - 1, tick, tick + 1) if near > 0)


def _lacking(present: RangeSet, wanted: RangeSet) -> RangeSet:
    """What of `wanted` is not present; the rest of `present` is not examined (STO-021)."""
    return RangeSet(gap for first, last in wanted for gap in present.gaps(last, first))


def _parts(ranges: RangeSet) -> Iterator[list[tuple[int, int]]]:
    """Split into pieces that fit into a record."""
    those = list(ranges)
    for start in range(0, len(those), limits.RANGES_PER_INFO):
        yield those[start : start + limits.RANGES_PER_INFO]


def _as_ranges(ticks: Iterable[int]) -> RangeSet:
    ranges = RangeSet()
    for tick in sorted(ticks):
        ranges.add(tick)
    return ranges


def in_parts(ticks: Ticks) -> list[Ticks]:
    """Sets of ticks split into pieces that fit into a message."""
    parts: list[Ticks] = []
    room = 0
    for node, ranges in ticks.items():
        for first, last in ranges:
            if not room:
                parts.append({})
                room = limits.RANGES_PER_INFO
            parts[-1].setdefault(node, RangeSet()).add(first, last)
            room -= 1
    return parts
