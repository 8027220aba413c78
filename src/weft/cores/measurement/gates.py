"""Thresholds (MEA-010): which samples of a metric leave the core, and when. Each sample leaves at most once.

A gate stands before the numbering, so samples that it drops leave no gap in the numbers. Timed gates open on the grid
of the metric's ticks, when the sample of that tick has come; if it does not come, the core opens them itself.
"""

from collections.abc import Callable
from typing import Final

from weft.base.calculated import Point
from weft.cores.measurement import limits
from weft.cores.measurement.lines import Line, Sums
from weft.cores.measurement.schedule import next_tick
from weft.cores.measurement.settings import Threshold

Put = Callable[[Line, Point], None]


class Gate:
    """Without a timer, nothing is ever held."""

    opens_at: int | None = None
    """Monotonic ns at which held samples leave; None: this gate has no timer."""

    def take(self, line: Line, point: Point) -> None:
        """A new sample, which is already the last one of its line."""

    def open(self, now_mono: int) -> None:
        """Release held samples, and set the timer again."""

    def drain(self) -> None:
        """Release held samples: the metric changes or ends, or the node stops."""


class Timed(Gate):
    """Opens every span."""

    def __init__(self, put: Put, span_ns: int, origin: int, now_mono: int) -> None:
        self._put, self._span_ns, self._origin = put, span_ns, origin
        self.opens_at: int = next_tick(now_mono, span_ns, origin)

    def open(self, now_mono: int) -> None:
        """Release held samples; the next time is on the grid."""
        self.drain()
        self.opens_at = next_tick(now_mono, self._span_ns, self._origin)


class Hold(Timed):
    """`*Ns`: holds all samples, and sends all by timer. A full store is sent early."""

    def __init__(self, put: Put, span_ns: int, origin: int, now_mono: int) -> None:
        super().__init__(put, span_ns, origin, now_mono)
        self._held: list[tuple[Line, Point]] = []

    def take(self, line: Line, point: Point) -> None:
        """Hold a sample."""
        self._held.append((line, point))
        if len(self._held) >= limits.HELD_ROWS_MAX:
            self.drain()

    def drain(self) -> None:
        """Send all held samples, in the order in which they came."""
        samples, self._held = self._held, []
        for line, point in samples:
            self._put(line, point)


class Thin(Timed):
    """`+Ns`: one sample per span: for basic values mean, min and max; for counters the last one, which includes all."""

    def __init__(self, put: Put, span_ns: int, origin: int, now_mono: int) -> None:
        super().__init__(put, span_ns, origin, now_mono)
        self._touched: list[Line] = []

    def take(self, line: Line, point: Point) -> None:
        """Add it to the sums of its line."""
        if line.sums is None:
            line.sums = Sums(point[1])
            self._touched.append(line)
        else:
            line.sums.add(point[1])

    def drain(self) -> None:
        """Send one sample, or three, for every line that had any."""
        touched, self._touched = self._touched, []
        for line in touched:
            sums, line.sums = line.sums, None
            assert sums is not None, line.series
            assert line.last is not None, line.series
            if line.series.type != "basic":
                self._put(line, line.last)
                continue
            at_ms = line.last[0]
            for name, value in (("mean", sums.total / sums.count), ("min", sums.least), ("max", sums.greatest)):
                self._put(line.as_aggregate(name), (at_ms, value, None))


class Limit(Gate):
    """`<X`, `>X`: sends while the calculated value fulfils the condition, and the sample before if unsent.

    So a receiver can calculate the first value too.
    """

    def __init__(self, put: Put, threshold: Threshold) -> None:
        self._put = put
        self._sign = 1 if threshold.kind == ">" else -1
        self._limit = threshold.limit * self._sign
        self._clear = None if threshold.clear is None else threshold.clear * self._sign

    def take(self, line: Line, point: Point) -> None:
        """Send it if its value fulfils the condition, else keep it as the sample before the next one."""
        value = line.calculated().result
        if value is not None:
            line.is_sending = self._is_there(value * self._sign, line.is_sending)
        if value is None or not line.is_sending:
            line.unsent = point
            return
        if line.unsent is not None:
            self._put(line, line.unsent)
            line.unsent = None
        self._put(line, point)

    def _is_there(self, value: float, was_there: bool) -> bool:  # noqa: FBT001  # one of two states of a line
        return value >= self._limit or (was_there and self._clear is not None and value > self._clear)


TIMED: Final[dict[str, type[Timed]]] = {"*": Hold, "+": Thin}


def gate_of(threshold: Threshold | None, put: Put, origin: int, now_mono: int) -> Gate | None:
    """The gate for a threshold; None: every sample leaves at once."""
    if threshold is None:
        return None
    timed = TIMED.get(threshold.kind)
    return Limit(put, threshold) if timed is None else timed(put, threshold.every_ns, origin, now_mono)
