"""Own changes that are durable, and that no other node is known to have received (FLD-021).

A real MoaT-KV server reports as deleted everything that it does not know. So changes that a crash kept from being sent
are sent again as soon as the broker is connected, before anything else; until they are received, no other node can
settle them.

A change counts as received once it comes back: from the broker, or from a node that repeats it. How far all own changes
are received is journaled now and then, so a start repeats the last few hundred, not all.
"""

from weft.base.changes import Event
from weft.base.ranges import RangeSet
from weft.cores.store import limits, memory
from weft.cores.store.context import Context
from weft.cores.store.ticks import TickBook
from weft.wire.store.messages import Ticks


class Unsaid:
    """This node's own changes that may not have left it.

    Only for the dialect `moat`: a Weft node settles nothing that it has not seen.
    """

    def __init__(self, context: Context, book: TickBook) -> None:
        self._context, self._book = context, book
        self._is_on = "moat" in context.settings.dialects
        self._ticks = RangeSet()
        self._kept = 0
        """Durable: everything up to this tick was received."""
        self._is_begun = False

    def begin(self) -> None:
        """After a restore: changes that head an entry, and are not known to be received, may not have left."""
        if self._is_on and not self._is_begun:
            self._is_begun = True
            self._ticks.update(
                self._book.present(self._context.name) - RangeSet([(1, self._kept)] if self._kept else [])
            )

    def pending(self) -> Ticks:
        """Changes to send again, by node; those replaced meanwhile are left out."""
        self.begin()
        if self._ticks:
            self._ticks = self._ticks & self._book.present(self._context.name)
        return {self._context.name: self._ticks.copy()} if self._ticks else {}

    def wrote(self, tick: int, before: Event | None) -> None:
        """One more own change becomes durable in this turn; now and then, so does how far the others were received."""
        if not self._is_on:
            return
        self.begin()
        self._ticks.add(tick)
        if before is not None and before.node == self._context.name:
            self._ticks.remove(before.tick)  # replaced: it is no longer needed
        heard = next(iter(self._ticks))[0] - 1
        if heard - self._kept >= limits.HEARD_KEPT_EVERY:
            self._kept = heard
            self._context.keep(memory.record_of(memory.Heard(self._context.name, heard)))

    def heard(self, tick: int) -> None:
        """An own change came back."""
        if self._ticks:
            self._ticks.remove(tick)

    def spared(self, ticks: Ticks) -> Ticks:
        """Of these ticks, those that others may settle: all but own changes that they cannot have received."""
        self.begin()
        own = ticks.get(self._context.name)
        if not own or not self._ticks:
            return ticks
        return {**ticks, self._context.name: own - self._ticks}

    def forget(self) -> None:
        """The node has another name, or was emptied."""
        self._ticks, self._kept = RangeSet(), 0

    def restore(self, kept: memory.Heard) -> None:
        """Restore what an earlier start knew."""
        if kept.name == self._context.name:
            self._kept = max(self._kept, kept.tick)

    def condense(self) -> list[memory.MemoryKind]:
        """The same, for a snapshot."""
        return [memory.Heard(self._context.name, self._kept)] if self._kept else []
