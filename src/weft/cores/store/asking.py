"""Changes that this node knows of but does not have: which nodes it asks for them, and when (HEA-010, HEA-012).

It asks for one slice at a time, and for the next slice while the rest of the current one is on its way. So however much
is missing, the amount in transit and in memory is bounded.
"""

from collections.abc import Callable

from weft.base.changes import Chain
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import StoreIncomplete
from weft.cores.store.replica import Replica
from weft.wire.store.messages import Ticks

Namers = dict[str, None]
"""Members of the mesh that named a change, in order."""


class Asking:
    """`clock_ns`: C, or the cycle of dialect moat. `prev`: the chain that marks a question to all nodes."""

    def __init__(self, context: Context, bus: Bus, replica: Replica, clock_ns: int, prev: Callable[[], Chain]) -> None:
        self._context, self._bus, self._book = context, bus, replica.book
        self._clock, self._prev = clock_ns, prev
        self.is_passive = True
        """A fresh node asks for nothing until it joins."""
        self.on_news: list[Callable[[], None]] = []
        self.on_stall: Callable[[], None] = lambda: None
        """Called when it has to ask again for changes that no reachable node has."""
        self._namers: dict[str, Namers] = {}
        """By node whose changes have a gap."""
        self._asked: Ticks = {}
        self._asked_count = 0
        self._slice_count = 0
        self._due_at: int | None = None
        self._is_refill = False
        """Most of what was asked for is here: ask for more while the rest arrives."""
        self._progress_at = 0
        """When the last change that was asked for arrived, or the first question was sent."""
        self._attempt = 0
        self._is_stalled = False
        self._weight = limits.ASK_WEIGHT
        """Average bytes of a missing change."""

    # What is known

    @property
    def is_complete(self) -> bool:
        """Nothing is missing, or the missing changes have not come for two clocks although all nodes were asked."""
        return self._book.is_whole or self._is_stalled

    @property
    def lacks(self) -> bool:
        return bool(self._namers)

    def begin(self) -> None:
        """Start with what was already missing in an earlier start."""
        for node in self._book.missing():
            self.open(node, "")

    def name(self, node: str, tick: int, peer: str) -> None:
        """A node states that this change exists."""
        top = self._book.top(node)
        if tick > top and self._book.raise_top(node, tick):
            self.open(node, peer, is_new=True)
        elif tick == top and node in self._namers and peer in self._bus.members:
            self._namers[node][peer] = None

    def open(self, node: str, peer: str, *, is_new: bool = False) -> None:
        """Changes of `node` are missing, and `peer` named the change behind the gap."""
        namers = self._namers.get(node)
        if namers is not None and not is_new:
            return
        is_member = peer in self._bus.members
        self._namers[node] = {peer: None} if is_member else namers or {}
        if not self._asked or self._is_stalled:
            self._attempt = 0
            self._ask_by(limits.GAP_WAIT_NS + (0 if is_member else self._spread()))
        for listener in self.on_news:
            listener()

    def check(self, node: str, tick: int, peer: str) -> None:
        """A change was merged: check whether the one before it is here."""
        if tick > 1 and node not in self._namers and not self._book.is_seen(node, tick - 1):
            self.open(node, peer)

    # What arrives

    def settled(self, node: str, tick: int, size: int) -> None:
        """A change of `size` bytes has arrived."""
        if self._namers and self._book.is_whole:
            self._look()
            return
        asked = self._asked.get(node)
        if asked is None or tick not in asked:
            return
        asked.remove(tick)
        self._weight += (size - self._weight) // 16
        self._progress(1)

    def settled_many(self, ticks: Ticks) -> None:
        """These have arrived, or are no longer needed."""
        if self._namers and self._book.is_whole:
            self._look()
            return
        done = 0
        for node, ranges in ticks.items():
            asked = self._asked.get(node)
            if asked:
                before = asked.count
                for first, last in ranges:
                    asked.remove(first, last)
                done += before - asked.count
        if done:
            if done * 2 > self._slice_count:
                self._weight = max(self._weight // 2, limits.ASK_WEIGHT_MIN)
            self._progress(done)

    def _progress(self, done: int) -> None:
        self._asked_count -= done
        self._progress_at = self._context.now.mono
        self._is_stalled = False
        self._is_refill = self._asked_count * 2 <= self._slice_count
        self._due_at = self._progress_at + (0 if self._is_refill else self._clock)

    def asked_by_another(self, missing: Ticks) -> None:
        """A node asks all nodes: for a clock, we need not ask again for what we miss of that."""
        if not self._namers or self._asked or self._due_at is None:
            return
        lacking = self._book.missing()
        if all(node in missing and not ranges - missing[node] for node, ranges in lacking.items()):
            self._remember(lacking)
            self._due_at = self._context.now.mono + self._clock

    # Asking

    def link_up(self) -> None:
        """Another node can be asked now."""
        is_flowing = self._context.now.mono - self._progress_at < limits.GAP_WAIT_NS and not self._is_stalled
        if self._namers and not (self._asked and is_flowing):
            self._attempt = 0
            self._forget()
            self._ask_by(limits.GAP_WAIT_NS)

    def missing(self, count: int) -> Ticks:
        """The next `count` missing changes that have not been asked for.

        Each author gets its share first: a node that claims to have endless changes does not delay the others.
        """
        part: Ticks = {}
        room = limits.RANGES_PER_INFO
        missing = self._book.missing()
        for share in (max(count // max(len(missing), 1), limits.ASK_TICKS_MIN), count):
            for node in missing:
                taken = self._some(node, missing[node], part, min(share, count), room)
                count -= taken.count
                room -= len(taken)
                if taken:
                    part.setdefault(node, RangeSet()).update(taken)
        return part

    def _some(
        self, node: str, ranges: RangeSet, part: Ticks, count: int, room: int
    ) -> RangeSet:  # tidy: bounds of two kinds
        """The first of one author's changes that are neither asked for nor in this slice yet."""
        for others in (self._asked, part):
            if others.get(node):
                ranges = ranges - others[node]
        taken = RangeSet()
        for first, last in ranges:
            if count <= 0 or room <= 0:
                break
            end = min(last, first + count - 1)
            taken.add(first, end)
            count -= end - first + 1
            room -= 1
        return taken

    def ask_all(self, *, if_any: bool = False) -> None:
        """Step 2 of a merge: tell all nodes what is missing and not asked for, even if that is nothing."""
        part = self.missing(self._slice())
        if if_any and not part:
            return
        self._remember(part)
        self._say(part, "")
        if part:
            self._due_at = self._context.now.mono + self._clock

    def wake(self) -> None:
        """Ask, if it is time."""
        now = self._context.now.mono
        if self._due_at is None or now < self._due_at or self.is_passive:
            return
        if self._asked and not self._is_refill:
            self._attempt += 1  # the last question had no answer: ask another node
            self._forget()
        self._is_refill = False
        if not self._look():
            return
        self._note_stall(now)
        if self._is_stalled:
            self.on_stall()
        self._due_at = now + self._clock * (10 if self._is_stalled else min(self._attempt + 1, 10))
        if self._bus.has_broker or self._bus.members:
            self._ask()

    def deadline(self) -> int | None:
        return None if self.is_passive else self._due_at

    def _look(self) -> bool:
        """Whether anything is still missing; removes gaps that are closed."""
        missing = self._book.missing()
        had = bool(self._namers)
        self._namers = {node: self._namers.get(node, {}) for node in missing}
        if missing:
            return True
        self._forget()
        self._due_at, self._attempt, self._is_stalled, self._progress_at = None, 0, False, 0
        if had:
            for listener in self.on_news:
                listener()
        return False

    def _note_stall(self, now: int) -> None:
        """HEA-012: two clocks without an answer, though all nodes were asked."""
        if not self._progress_at:
            self._progress_at = now
        if self._is_stalled or now - self._progress_at < 2 * self._clock:
            return
        self._is_stalled = True
        missing = self._book.missing()
        shown = {node: [list(part) for part in ranges][:100] for node, ranges in missing.items()}
        self._context.tell(StoreIncomplete(shown))
        for listener in self.on_news:
            listener()

    def _ask(self) -> None:
        parts: dict[str, Ticks] = {}
        for node, ranges in self.missing(self._slice()).items():
            parts.setdefault(self._target(node), {})[node] = ranges
        for target, part in parts.items():
            self._remember(part)
            self._say(part, target)

    def _target(self, node: str) -> str:
        """Ask the author, then the nodes that named it, the last one first; then all nodes.

        The author has all its changes. Of the others, one that named a change early may have only just heard of it.
        """
        members = self._bus.members
        named = [peer for peer in reversed(self._namers.get(node, {})) if peer in members and peer != node]
        ears = [node, *named] if node in members else named
        turn = self._attempt % (len(ears) + 1)
        return ears[turn] if turn < len(ears) else ""

    def _say(self, part: Ticks, target: str) -> None:
        prev = None if target else self._prev()
        self._bus.say(self._context.info(missing=part, prev=prev), target)
        self._context.count("recoveries", "missing")

    def _remember(self, part: Ticks) -> None:
        for node, ranges in part.items():
            self._asked.setdefault(node, RangeSet()).update(ranges)
        self._asked_count = self._slice_count = sum(ranges.count for ranges in self._asked.values())

    def _forget(self) -> None:
        self._asked = {}
        self._asked_count = self._slice_count = 0

    def _slice(self) -> int:
        return max(limits.ASK_BYTES // max(self._weight, limits.ASK_WEIGHT_MIN), limits.ASK_TICKS_MIN)

    def _ask_by(self, wait_ns: int) -> None:
        at = self._context.now.mono + wait_ns
        self._due_at = at if self._due_at is None else min(self._due_at, at)

    def _spread(self) -> int:
        return int(self._context.chance.random() * self._clock / 2)
