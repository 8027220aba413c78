"""Log records on their way into the journal: bounded, severe ones with priority."""

from collections import deque
from collections.abc import Callable

from weft.base.budget import Part
from weft.cores.catalog import limits
from weft.cores.catalog.logforms import SEVERE, Line


class LogQueue:
    """Records in the order of arrival; each step is O(1)."""

    def __init__(self, dropped: Callable[[Line], None]) -> None:
        self._dropped = dropped
        self._lines: tuple[deque[tuple[int, Line]], deque[tuple[int, Line]]] = (deque(), deque())
        """Records below WARNING, and the others; each with its number."""
        self._number = 0
        self._bytes = 0
        self.room = Part("logs-queued", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return self._bytes + limits.LOG_COST * len(self)

    def __len__(self) -> int:
        return len(self._lines[0]) + len(self._lines[1])

    def put(self, entry: Line) -> None:
        """Add a record. Beyond the limits the oldest one below WARNING is dropped, or else the oldest."""
        self._number += 1
        self._lines[entry.log.severity >= SEVERE].append((self._number, entry))
        self._bytes += len(entry.data)
        while len(self) > limits.LOGS_MAX or self._bytes > limits.LOGS_BYTES_MAX or (len(self) and self.room.is_over):
            self._dropped(self._pop(self._lines[0] or self._lines[1]))

    def next(self) -> Line:
        """Remove the record that has waited longest."""
        low, high = self._lines
        return self._pop(low if low and (not high or low[0][0] < high[0][0]) else high)

    def _pop(self, line: deque[tuple[int, Line]]) -> Line:
        entry = line.popleft()[1]
        self._bytes -= len(entry.data)
        return entry
