"""Virtual time: a queue of future events, ordered by (instant, serial), and the trace of past ones.

Nothing here knows nodes or links. An entry is a plain tuple; to cancel one, its owner remembers what it was for and
ignores it when it comes. The same calls give the same order, whatever the machine (SIM-003, SIM-012).
"""

from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, Final

TRACE_PIECES_MAX: Final = 4_096  # joined before hashing: one call for many small pieces
EVENTS_AT_ONCE_MAX: Final = 100_000  # events without time passing, over all nodes


class Spinning(Exception):
    """Events go on, and time does not (SIM-004)."""


class World:
    """The clock of a run, true time in nanoseconds from 0, and a hash of everything that has happened."""

    def __init__(self) -> None:
        self.at = 0
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[Any], Any], Any]] = []
        self._serial = 0
        self._pieces: list[bytes] = []
        self._hash = blake2b(digest_size=16)

    def call_at(self, at: int, do: Callable[[Any], Any], what: Any = None) -> None:
        """Let `do(what)` happen at the true instant `at`, not before now; equal instants keep the order of calls."""
        self._serial += 1
        heappush(self._queue, (max(self.at, at), self._serial, do, what))

    def run(self, until: int) -> None:
        """Run everything that is due up to and including `until`; then it is `until`."""
        queue = self._queue
        at_once = 0
        while queue and queue[0][0] <= until:
            at, _, do, what = heappop(queue)
            if at == self.at:
                at_once += 1
                if at_once > EVENTS_AT_ONCE_MAX:
                    raise Spinning(f"{at_once} events at {at / 1e9:.9f} s")
            else:
                at_once = 0
                self.at = at
            self.events += 1
            do(what)
        self.at = until

    @property
    def next_at(self) -> int | None:
        """When the next entry is due; None: never."""
        return self._queue[0][0] if self._queue else None

    def trace(self, piece: bytes) -> None:
        """Add a piece to the trace."""
        self._pieces.append(piece)
        if len(self._pieces) >= TRACE_PIECES_MAX:
            self._fold()

    def _fold(self) -> None:
        self._hash.update(b"".join(self._pieces))
        self._pieces.clear()

    def trace_hash(self) -> str:
        """BLAKE2b-128 over all that has happened so far, hex."""
        self._fold()
        return self._hash.hexdigest()
