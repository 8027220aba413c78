"""Holds evictions when so many instances fall silent at once that the fault may be here (BEA-023).

Normally an instance that is due is evicted at once. During a hold, due instances wait. The hold ends when enough
instances are heard again, or after its maximum time. Those that still wait are then evicted, a few per second. If the
hold ended because instances were heard again, each waiting one first gets the time of a normal silence, since not all
are heard at the same instant.
"""

from itertools import islice
from typing import Final

from weft.base.now import SECOND
from weft.cores.catalog import limits
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import EvictionsHeld
from weft.cores.catalog.states import State

CALM, HELD, LETTING_GO = "calm", "held", "letting go"
LEAST_PER_SECOND: Final = 10
PARTS: Final = 10  # of a second, over which evictions are spread: all at once would make a long turn (CAT-081)


class Holding:
    """Instants are those of the clock of `liveness.Liveness`."""

    def __init__(self, context: Context, book: Book) -> None:
        self._context, self._book = context, book
        self.state = CALM
        self._waiting: dict[Instance, int] = {}
        """Due instances in order, each with the instant from which it may be evicted."""
        self._next_at = 0
        """HELD: when the hold ends at the latest. LETTING_GO: when the next eviction may happen."""
        self._per_second = 0

    def __len__(self) -> int:
        """How many instances wait."""
        return len(self._waiting)

    @property
    def due_at(self) -> int | None:
        """When the hold or the next eviction is due; None: nothing is."""
        return None if self.state == CALM else self._next_at

    def lets_go(self, instance: Instance, clock: int) -> bool:
        """Whether a due instance becomes INACTIVE now; if not, it waits here until `released` or `forget`."""
        if self.state == CALM:
            if not self._context.settings.hold or not self._is_blind():
                return True
            self.state, self._next_at = HELD, clock + self._context.settings.hold_max_ns
            self._context.count("holds")
            self._tell()
        self._waiting[instance] = clock
        return False

    def forget(self, instance: Instance) -> None:
        """The instance was heard, or is removed: it does not wait any more."""
        self._waiting.pop(instance, None)

    def look(self, clock: int) -> None:
        """An instance was heard or has gone: check whether the hold still applies. O(1), unless that ends the hold."""
        if self.state == HELD and not self._is_blind():
            self._end(clock)
            self._next_at = clock + SECOND
            most = self._context.settings.hold_max_ns
            for instance in self._waiting:
                self._waiting[instance] = clock + min(instance.interval_ns * 3 // 2, most)

    def released(self, clock: int) -> list[Instance]:
        """The instances to evict now."""
        if self.state == HELD and clock >= self._next_at:
            self._end(clock)
        if self.state != LETTING_GO or clock < self._next_at:
            return []
        if not self._waiting:
            self.state = CALM
            return []
        parts = PARTS if self._per_second >= PARTS * LEAST_PER_SECOND else 1
        may_go = (instance for instance, since in self._waiting.items() if since <= clock)
        due = list(islice(may_go, self._per_second // parts))
        for instance in due:
            del self._waiting[instance]
        self._next_at = clock + SECOND // parts
        return due

    def _is_blind(self) -> bool:
        """Whether most live instances (at least 10) are SUSPECT, and all of them at most addresses (at least 3)."""
        suspects, addresses = self._book.counts[State.SUSPECT], self._book.silent_addresses
        return (
            suspects >= limits.HOLD_INSTANCES
            and suspects > self._book.counts[State.ACTIVE]
            and addresses >= limits.HOLD_ADDRESSES
            and 2 * addresses > self._book.live_addresses
        )

    def _end(self, clock: int) -> None:
        self.state, self._next_at = LETTING_GO, clock
        live = self._book.counts[State.ACTIVE] + self._book.counts[State.SUSPECT]
        self._per_second = max(LEAST_PER_SECOND, live * limits.HOLD_SHARE // 100)
        self._tell()

    def _tell(self) -> None:
        suspects = self._book.counts[State.SUSPECT]
        self._context.tell(EvictionsHeld(self.state == HELD, suspects, suspects + self._book.counts[State.ACTIVE]))
