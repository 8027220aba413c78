"""Measures durations and sizes of a node's recurring work, all the time (OBS-004)."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from weft.base.histograms import Histogram, of_spans
from weft.base.now import MILLISECOND, SECOND

LONG_SPANS_NS: Final = tuple(
    span * MILLISECOND for span in (10, 50, 100, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000)
)
"""Bounds from 10 ms to an hour, for records that wait until they are safe."""
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096)
SAFE_MARKS_MAX: Final = 1_000  # positions that wait; no more are added then
SAFE_EVERY_NS: Final = 100 * MILLISECOND  # between two positions: a busy node writes thousands of turns per second


def _sizes() -> Histogram:
    return Histogram(SIZES)


@dataclass
class Timings:
    """The histograms of one start of a node."""

    turn_seconds: Histogram = field(default_factory=of_spans)
    sync_seconds: Histogram = field(default_factory=of_spans)
    loop_lag_seconds: Histogram = field(default_factory=of_spans)
    turn_messages: Histogram = field(default_factory=_sizes)
    turn_records: Histogram = field(default_factory=_sizes)
    safe_seconds: Histogram = field(default_factory=lambda: Histogram(LONG_SPANS_NS, SECOND))
    _written: deque[tuple[int, int]] = field(default_factory=deque)
    """Positions of the journal that are not released yet, and when they were written, oldest first."""

    def wrote(self, records: int, next_lsn: int, mono_ns: int) -> None:
        """Note that a turn has written records; every tenth of a second its position waits until it is released."""
        self.turn_records.observe(records)
        written = self._written
        if not written or (mono_ns - written[-1][1] >= SAFE_EVERY_NS and len(written) < SAFE_MARKS_MAX):
            written.append((next_lsn - 1, mono_ns))

    def released(self, upto: int, mono_ns: int) -> None:
        """Note that the journal's records up to `upto` are released: they are safe further up."""
        while self._written and self._written[0][0] <= upto:
            self.safe_seconds.observe(mono_ns - self._written.popleft()[1])

    def facts(self) -> dict[str, Any]:
        return {name: histogram.facts() for name, histogram in vars(self).items() if isinstance(histogram, Histogram)}
