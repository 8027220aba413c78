"""Orders of many writes, made in portions, one order after the other.

A root that made them all in one turn would be silent for so long that its fleet elects another (CFG-045).
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.messages import Write, WriteKeys
from weft.wire.replication import chain_of


class Batch(NamedTuple):
    """The writes of an order that are still to be made."""

    order: WriteKeys
    total: int
    """Number of all its writes."""
    left: deque[Write]
    of_chain: Counter[str]
    """How many of them are left in each chain."""
    dead: tuple[str, ...] = ()
    """Alerts that can never fire after it, if it is a rollback."""


def batch_of(order: WriteKeys, writes: list[Write], dead: tuple[str, ...] = ()) -> Batch:
    """An order of which nothing is made yet."""
    return Batch(order, len(writes), deque(writes), Counter([chain_of(write.key) for write in writes]), dead)


class LargeOrders:
    """The queue of a root. `begin` and `make` are the root's: find what an order changes, and make some of it."""

    def __init__(
        self,
        begin: Callable[[WriteKeys, tuple[Write, ...], Now], Batch | None],
        make: Callable[[Batch, int, Now], None],
    ) -> None:
        self._begin, self._make = begin, make
        self._waiting: deque[tuple[WriteKeys, Callable[[], tuple[Write, ...]]]] = deque()
        self._batch: Batch | None = None
        """The order under way."""
        self._due_at = 0

    @property
    def is_full(self) -> bool:
        """Whether no further order may wait."""
        return len(self._waiting) >= limits.LARGE_MAX

    def add(self, order: WriteKeys, find: Callable[[], tuple[Write, ...]], now: Now) -> None:
        """Begin it as soon as those before it are done: `find` compares with the store as it is then."""
        self._waiting.append((order, find))
        if self._batch is None:
            self.wake(now)

    def wake(self, now: Now) -> None:
        """Make the next portion of the order under way, or the first one of the next."""
        self._due_at = now.mono
        if self._batch is None and self._waiting:
            order, find = self._waiting.popleft()
            self._batch = self._begin(order, find(), now)
        if self._batch is not None:
            self._make(self._batch, limits.WRITES_PER_TURN, now)
            self._batch = self._batch if self._batch.left else None

    def deadline(self) -> int | None:
        """At once, as long as something is left."""
        return self._due_at if self._batch is not None or self._waiting else None

    def give_up(self) -> Iterator[tuple[WriteKeys, str]]:
        """Forget what is left: each order that was not finished, and how far it came."""
        batch, self._batch = self._batch, None
        if batch is not None:
            yield batch.order, f" after {batch.total - len(batch.left)} of {batch.total} writes"
        while self._waiting:
            yield self._waiting.popleft()[0], ""
