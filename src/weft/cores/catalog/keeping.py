"""Last values that outlive a restart of the broker, with `lvc_persist` (LVC-008).

Every 10 s, and when the node stops, what was heard since is journaled, newest first, within bounds: nothing is ever
said below that wall, so a flood of values costs the journal no more than 0.4 MiB a second. A restored value counts as
stale until its topic is heard again: while the broker was away there may have been a newer one.
"""

from collections.abc import Iterable, Iterator

from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.catalog import limits
from weft.cores.catalog.context import Context
from weft.cores.catalog.memory import ValueKept, memory_of, value_of
from weft.cores.catalog.topics import Value
from weft.cores.catalog.values import Values


class Keeping:
    """Writes values down, and finds them again."""

    def __init__(self, context: Context, values: Values) -> None:
        self._context, self._values = context, values
        self._is_on = context.settings.lvc_persist
        self._saved = 0
        """Number of the last value that was looked at."""
        self._saved_at = 0

    # Memory

    def noting(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yields the same entries, and takes the values in them."""
        if not self._is_on:
            yield from entries
            return
        for lsn, record in entries:
            memory = memory_of(record, self._context.node)
            if isinstance(memory, ValueKept):
                self._values.restore(memory)
            elif isinstance(memory, tuple):
                self._values.forget(memory)  # removed: what it said goes with it
            yield lsn, record

    def condense(self) -> Iterator[CoreRecord]:
        """The newest values within the limit, oldest first, as they are restored."""
        if self._is_on:
            yield from map(value_of, self._newest(-1, limits.SAVED_BYTES_MAX)[0][::-1])

    # Time

    def open(self, now: Now) -> None:
        """The broker begins; values of instances that are no longer there are dropped."""
        self._saved_at = now.mono
        self._values.opened()

    def wake(self, now: Now) -> None:
        self.save()

    def save(self) -> None:
        """Journal what was heard since the last time."""
        self._saved_at = self._context.now.mono
        if not self._is_on or self._context.is_full:
            return
        newest, left = self._newest(self._saved, limits.SAVED_TURN_BYTES)
        for value in reversed(newest):  # as they are restored: the last one is the newest
            self._context.keep(value_of(value))
        if left:
            self._context.count("lvc_dropped", "unsaved", left)
        self._saved = self._values.heard

    def deadline(self) -> int | None:
        return self._saved_at + limits.SAVE_NS if self._is_on and self._values.heard > self._saved else None

    def _newest(self, after: int, room: int) -> tuple[list[Value], int]:
        """The values heard after that number, newest first, as many as there is room for; and how many are left out.

        Values of other networks are never kept (BRI-005).
        """
        chosen: list[Value] = []
        left = 0
        for value in self._values.newest():
            if value.number <= after:
                break
            if "@" in value.publisher.key[0]:
                continue
            cost = value.size + limits.SAVED_COST
            if value.size > limits.SAVED_VALUE_MAX or cost > room:
                left += 1
            else:
                room -= cost
                chosen.append(value)
        return chosen, left
