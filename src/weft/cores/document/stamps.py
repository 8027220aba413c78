"""Timestamps of own operations: later than everything seen, so that a correction counts (GSP-002)."""

from math import nextafter
from typing import Final

from weft.base.now import SECOND
from weft.cores.document.context import Context
from weft.cores.document.limits import AHEAD_NS, TOLD_NS_MAX
from weft.cores.document.messages import TimeAhead
from weft.wire.document.operations import TIMESTAMP_MAX

STEP_S: Final = 1e-6
"""The smallest step of a timestamp, in seconds; a double of this century resolves 0.24 us."""


class Stamps:
    """The greatest timestamp in the log, unless it is far ahead of session time: then its source has a wrong clock."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen = self._own = 0.0  # tidy: seconds, as the wire has them
        self._ahead: dict[bytes, None] = {}
        """Sources reported as ahead that have not been in time since."""

    def see(self, source: bytes, sequence: int, timestamp: float, *, is_told: bool = True) -> None:
        """Note the timestamp of an operation."""
        ahead_ns = min(int((timestamp - self._context.time) * SECOND), TOLD_NS_MAX)
        if ahead_ns <= AHEAD_NS:
            self._ahead.pop(source, None)
            self._seen = max(self._seen, timestamp)
        elif is_told and source not in self._ahead:
            self._ahead[source] = None
            self._context.tell(TimeAhead(self._context.session, source, sequence, ahead_ns))

    def next(self, behind: float | None = None) -> float:
        """The timestamp for the next own operation; always greater than `behind`."""
        stamp = max(self._context.time, self._own, after(self._seen))
        if behind is not None:
            stamp = max(stamp, after(behind))
        return min(stamp, TIMESTAMP_MAX)

    def used(self, timestamp: float) -> None:
        """An own operation has this timestamp: later ones must not be before it."""
        self._own = max(self._own, timestamp)


def after(timestamp: float) -> float:
    """A microsecond later, or the next double if doubles are farther apart."""
    return max(round(timestamp + STEP_S, 6), nextafter(timestamp, TIMESTAMP_MAX))
