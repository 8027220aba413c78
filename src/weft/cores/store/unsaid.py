"""Own changes that are durable, and that nobody is known to have heard (FLD-021).

A real MoaT-KV server calls everything deleted that it does not know. So what a crash kept from leaving is said again as
soon as the broker is there, before anything else is said or asked; until it was heard, nobody's word settles it.

A change is heard once it comes back: from the broker, or from a node that repeats it. How far all own changes are heard
is kept now and then, so a start repeats the last few hundred, not all.
"""

from weft.base.changes import Event
from weft.base.ranges import RangeSet
from weft.cores.store import limits, memory
from weft.cores.store.context import Context
from weft.cores.store.ticks import TickBook
from weft.wire.store.messages import Ticks


class Unsaid:
    """Of this node's own changes, those that may not have left it.

    Only with the dialect `moat`: among Weft nodes, nobody settles what it has not seen.
    """

    def __init__(self, context: Context, book: TickBook) -> None:
        self._context, self._book = context, book
        self._is_on = "moat" in context.settings.dialects
        self._ticks = RangeSet()
        self._kept = 0
        """Durable: up to there everything was heard."""
        self._is_begun = False

    def begin(self) -> None:
        """After restore: whatever still heads an entry, and is not known to have been heard, may not have left."""
        if self._is_on and not self._is_begun:
            self._is_begun = True
            self._ticks.update(
                self._book.present(self._context.name) - RangeSet([(1, self._kept)] if self._kept else [])
            )

    def pending(self) -> Ticks:
        """What to say again, by node; what was replaced meanwhile need not be."""
        self.begin()
        if self._ticks:
            self._ticks = self._ticks & self._book.present(self._context.name)
        return {self._context.name: self._ticks.copy()} if self._ticks else {}

    def wrote(self, tick: int, before: Event | None) -> None:
        """One more own change is durable with this turn; now and then, so is how far the others were heard."""
        if not self._is_on:
            return
        self.begin()
        self._ticks.add(tick)
        if before is not None and before.node == self._context.name:
            self._ticks.remove(before.tick)  # replaced: nobody needs it any more
        heard = next(iter(self._ticks))[0] - 1
        if heard - self._kept >= limits.HEARD_KEPT_EVERY:
            self._kept = heard
            self._context.keep(memory.record_of(memory.Heard(self._context.name, heard)))

    def heard(self, tick: int) -> None:
        """An own change came back."""
        if self._ticks:
            self._ticks.remove(tick)

    def spared(self, ticks: Ticks) -> Ticks:
        """What others may settle of these: all but own changes that they cannot have heard of."""
        self.begin()
        own = ticks.get(self._context.name)
        if not own or not self._ticks:
            return ticks
        return {**ticks, self._context.name: own - self._ticks}

    def forget(self) -> None:
        """The node has another name, or nothing."""
        self._ticks, self._kept = RangeSet(), 0

    def restore(self, kept: memory.Heard) -> None:
        """What an earlier start knew."""
        if kept.name == self._context.name:
            self._kept = max(self._kept, kept.tick)

    def condense(self) -> list[memory.MemoryKind]:
        """The same, for a snapshot."""
        return [memory.Heard(self._context.name, self._kept)] if self._kept else []
