"""The last values of each machine whose records pass this node, and what is missing of them (CON-001).

It gets the records that are durable here. Most are not decoded: for each machine at most one batch of samples in 400 ms, of
which four metrics are kept. The numbers of all records are counted.
"""

from array import array
from collections import deque
from collections.abc import Iterable
from math import isfinite, nan
from typing import Any, Final, NamedTuple

from weft.base.calculated import Point, calculate
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.base.ranges import RangeSet
from weft.base.records import CARRIED, EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.shell.console import limits
from weft.wire import samples

METRIC: Final = "weft.metric"
METRICS: Final = {"CPU": "cpu", "MEMORY_PERCENT": "memory", "DISK_PERCENT": "disk", "NETWORK": "net"}
"""Names of details, and their names in the console. Of several disks, cores or devices the fullest is shown."""
PROCESSES: Final = "PROC_CPU"
PROCESS: Final = "process"
"""The label of a metric with `per = "name"`."""
NAMES: Final = tuple(METRICS.values())
NOT_KNOWN: Final = -1
"""In the place of whole percents."""
SHOWN_MAX: Final = (1 << 31) - 1
SHOWN: Final = ("cpu", "memory", "disk")
"""The metrics in the picture; the others are shown only for a single machine."""


class Loss(NamedTuple):
    """Numbers that will never arrive, as announced by their machine."""

    first: int
    last: int
    why: str
    at_ms: int
    """Time of the last sample before them."""


class Ring:
    """A value for each slot of five seconds, the last 120 of them.

    >>> ring = Ring()
    >>> ring.put(7, 1.6), ring.put(9, 2.0)
    (None, None)
    >>> ring.packed(0), ring.since(8)
    ([7, 2, None, 2], [(9, 2)])
    """

    __slots__ = ("fresh", "head", "shown", "values")

    def __init__(self) -> None:
        self.head = 0
        """Number of the newest slot, since 1970."""
        self.fresh: int | None = None
        """The oldest slot that was set since the last `take`."""
        self.values = array("f", [nan]) * limits.POINTS
        self.shown = array("i", [NOT_KNOWN]) * limits.POINTS
        """The same in whole percents, half of the bytes of tenths; rounded once, and not for each picture (CON-003)."""

    def put(self, slot: int, value: float) -> None:
        """Set the value of a slot; one that is too old is ignored."""
        if slot <= self.head - limits.POINTS:
            return
        for between in range(max(self.head + 1, slot - limits.POINTS + 1), slot + 1):
            self.values[between % limits.POINTS] = nan
            self.shown[between % limits.POINTS] = NOT_KNOWN
        self.head = max(self.head, slot)
        self.values[slot % limits.POINTS] = value
        self.shown[slot % limits.POINTS] = min(round(value), SHOWN_MAX)
        self.fresh = slot if self.fresh is None else min(self.fresh, slot)

    def take(self) -> list[int | None]:
        """The values set since the last call, packed."""
        if self.fresh is None:
            return []
        found, self.fresh = self.packed(self.fresh), None
        return found

    def packed(self, slot: int) -> list[int | None]:
        """The first slot from that one on that has a value, then the value of each slot from there: a third of the bytes of pairs."""
        first = max(slot, self.head - limits.POINTS + 1)
        begin, end = first % limits.POINTS, self.head % limits.POINTS + 1
        found = (self.shown[begin:end] if begin < end else self.shown[begin:] + self.shown[:end]).tolist()
        if NOT_KNOWN not in found:
            return [first, *found]
        known = [at for at, value in enumerate(found) if value != NOT_KNOWN]
        some = found[known[0] : known[-1] + 1] if known else []
        return [first + known[0], *(None if value == NOT_KNOWN else value for value in some)] if known else []

    def since(self, slot: int) -> list[tuple[int, int]]:
        """All values from that slot on, oldest first."""
        found = self.packed(slot)
        return [(found[0] + at, value) for at, value in enumerate(found[1:]) if value is not None] if found else []  # type: ignore[operator]  # the first is a slot


class Cells:
    """The records of each ten seconds, the last 60: first and last number, how many arrived and how many are lost."""

    __slots__ = ("first", "head", "last", "lost", "received", "strip", "turns")

    def __init__(self) -> None:
        self.head = 0
        self.turns = 0
        """How often the look of a cell has changed."""
        self.strip: tuple[int, int, str] = 0, 0, ""
        """The strip that was made last, with the newest cell and `turns` at that time."""
        self.first, self.last, self.received, self.lost = (array("Q", [0]) * limits.CELLS for _ in range(4))

    def add(self, cell: int, first: int, last: int, count: int, *, is_lost: bool = False) -> None:
        """Note numbers of a cell; one that is too old is ignored."""
        if cell <= self.head - limits.CELLS:
            return
        for between in range(max(self.head + 1, cell - limits.CELLS + 1), cell + 1):
            for column in (self.first, self.last, self.received, self.lost):
                column[between % limits.CELLS] = 0
        self.head, at = max(self.head, cell), cell % limits.CELLS
        self.turns += not (self.lost if is_lost else self.received)[at]
        if is_lost:
            self.lost[at] += count
            return
        self.received[at] += count
        self.first[at] = min(self.first[at] or first, first)
        self.last[at] = max(self.last[at], last)

    def of(self, cell: int) -> tuple[int, int, int, int]:
        """First and last number, received, lost; zeros for what is not known."""
        if not self.head - limits.CELLS < cell <= self.head:
            return 0, 0, 0, 0
        at = cell % limits.CELLS
        return self.first[at], self.last[at], self.received[at], self.lost[at]


class Start:
    """The numbers of one start of a machine, from the first that arrived here."""

    __slots__ = ("base", "last", "lost", "seen")

    def __init__(self, base: int) -> None:
        self.base = self.last = base
        self.seen, self.lost = RangeSet(), RangeSet()

    def add(self, seen: RangeSet, first: int, last: int) -> None:
        """Note numbers as seen, or as lost."""
        if last <= self.base:
            return
        seen.add(max(first, self.base + 1), last)
        self.last = max(self.last, last)
        if len(seen) > limits.RANGES_MAX:
            oldest, self.base = next(iter(seen))
            seen.remove(oldest, self.base)


class Machine:
    """What is known of one machine."""

    def __init__(self, now: Now) -> None:
        self.heard = now
        """When its last record became durable here."""
        self.gap_ns = 0
        """The usual time between two records."""
        self.newest_ms = 0
        """Time of its newest sample, by its own clock."""
        self.rings = {name: Ring() for name in NAMES}
        self.cells = Cells()
        self.since_cell = now.wall // MILLISECOND // limits.CELL_MS
        self.losses: deque[Loss] = deque(maxlen=limits.LOSSES_MAX)
        self.starts: dict[int, Start] = {}
        self.counted = [0, 0, 0]
        """Expected, received and lost numbers of earlier starts, which are no longer followed."""
        self.decoded_at = 0
        self.before: dict[Any, Point] = {}
        """The sample before, by detail and labels."""
        self.processes: dict[Any, Point] = {}
        """The last samples of processes, by labels."""
        self.busiest: tuple[str, float] | None = None
        """The process that used the processors most at the last measurement, and its share of all of them in percent."""

    def hear(self, now: Now) -> None:
        """Note that the machine has sent something."""
        gap = min(now.mono - self.heard.mono, limits.GAP_NS_MAX)
        self.gap_ns = max(gap, self.gap_ns * 7 // 8) if self.gap_ns else gap
        self.heard = now

    def start(self, era: int, base: int) -> Start:
        """The numbers of a start. If there are too many starts, the oldest is only counted."""
        if era not in self.starts:
            if len(self.starts) >= limits.STARTS_MAX:
                oldest = self.starts.pop(min(self.starts))
                self.counted = [a + b for a, b in zip(self.counted, _counts(oldest), strict=True)]
            self.starts[era] = Start(base)
        return self.starts[era]

    def counts(self) -> tuple[int, int, int]:
        """Numbers expected, received and lost since its first record here."""
        rows = [self.counted, *map(_counts, self.starts.values())]
        expected, received, lost = (sum(column) for column in zip(*rows, strict=True))
        return expected, received, lost

    def last(self, name: str) -> float | None:
        """The newest value of a metric."""
        ring = self.rings[name]
        value = ring.values[ring.head % limits.POINTS]
        return round(value, 1) if ring.head and isfinite(value) else None


def _counts(start: Start) -> tuple[int, int, int]:
    return start.last - start.base, start.seen.count, start.lost.count


class LastValues:
    """All machines whose records have passed here since this start; pure: time is an argument."""

    def __init__(self) -> None:
        self.machines: dict[bytes, Machine] = {}
        self._known: dict[bytes, tuple[samples.Series, ...]] = {}

    def note(self, records: Iterable[Record], now: Now) -> None:
        """Evaluate records that are durable here."""
        for record in records:
            if not isinstance(record, CARRIED) or type(record.origin) is not bytes:
                continue
            if isinstance(record, StreamRecord):
                self._note_row(record, now)
            elif record.stream == Stream.SAMPLES:
                self._note_lost(record, now) if isinstance(record, LostRecord) else self._note_era(record, now)

    def forget(self, node: bytes) -> None:
        """Drop a machine."""
        self.machines.pop(node, None)

    def _machine(self, origin: bytes, now: Now) -> Machine | None:
        machine = self.machines.get(origin)
        if machine is None and len(self.machines) < limits.NODES_MAX:
            machine = self.machines[origin] = Machine(now)
        if machine is not None and machine.heard.mono != now.mono:
            machine.hear(now)
        return machine

    def _note_row(self, record: StreamRecord, now: Now) -> None:
        machine = self._machine(record.origin, now)
        if machine is None:
            return
        if record.stream == Stream.SAMPLES and record.era is not None:
            self._count(machine, record, now)
            if record.key == METRIC and now.mono - machine.decoded_at >= limits.DECODED_EVERY_NS:
                machine.decoded_at = now.mono
                self._decode(machine, record, now)

    def _count(self, machine: Machine, record: StreamRecord, now: Now) -> None:
        start = machine.start(record.era or 0, record.sequence - 1)
        start.add(start.seen, record.sequence, record.last)
        at_ms = min(record.at, now.wall) // MILLISECOND
        machine.newest_ms = max(machine.newest_ms, at_ms)
        cell = at_ms // limits.CELL_MS
        machine.since_cell = min(machine.since_cell, cell)
        machine.cells.add(cell, record.sequence, record.last, record.last - record.sequence + 1)

    def _note_lost(self, record: LostRecord, now: Now) -> None:
        machine = self._machine(record.origin, now)
        if machine is None or record.era is None:
            return
        start = machine.start(record.era, record.first - 1)
        start.add(start.lost, record.first, record.last)
        at_ms = machine.newest_ms or now.wall // MILLISECOND
        machine.losses.append(Loss(record.first, record.last, record.why, at_ms))
        count = record.last - record.first + 1
        machine.cells.add(at_ms // limits.CELL_MS, record.first, record.last, count, is_lost=True)

    def _note_era(self, record: EraRecord, now: Now) -> None:
        """A new start states where the one before ended: numbers of that one that have not arrived are missing."""
        machine = self._machine(record.origin, now)
        if machine is not None:
            if (ended := machine.starts.get(record.era_before)) is not None:
                ended.last = max(ended.last, record.last_before)
            machine.start(record.era, 0)

    def _decode(self, machine: Machine, record: StreamRecord, now: Now) -> None:
        if len(self._known) > limits.BODIES_KNOWN_MAX:
            self._known.clear()
        try:
            batch = samples.decode(record.payload, self._known)
        except PeerError:
            return  # unreadable here; the lake quarantines it
        newest: dict[int, samples.Row] = {row.series: row for row in batch.rows}
        best: dict[str, tuple[int, float]] = {}
        for index, row in newest.items():
            series = batch.series[index]
            name = METRICS.get(series.detail)
            if name is None:
                continue
            at_ms = min(batch.t0_ms + row.offset_ms, now.wall // MILLISECOND)
            value = _value(machine, series, (at_ms, row.value, row.base))
            if value is not None and value > best.get(name, (0, -1.0))[1]:
                best[name] = at_ms // limits.POINT_MS, value
        for name, (slot, value) in best.items():
            machine.rings[name].put(slot, value)
        self._look_at_processes(machine, batch, newest)

    def _look_at_processes(self, machine: Machine, batch: samples.SampleBatch, newest: dict[int, samples.Row]) -> None:
        found: dict[Any, Point] = {}
        used: dict[str, float] = {}
        for index, row in newest.items():
            series = batch.series[index]
            if series.detail != PROCESSES or PROCESS not in series.labels or len(found) >= limits.PROCESSES_MAX:
                continue
            key, point = tuple(series.labels.items()), (batch.t0_ms + row.offset_ms, row.value, row.base)
            found[key] = point
            result = calculate(series.type, machine.processes.get(key), point).result
            if result is not None and isfinite(result):
                used[series.labels[PROCESS]] = round(float(result), 1)
        if found:
            machine.processes = found
        if used:
            machine.busiest = max(used.items(), key=lambda each: each[1])


def _value(machine: Machine, series: samples.Series, point: Point) -> float | None:
    """The value in percent, from this point and the one before; None: there is none."""
    key = series.detail, *series.labels.items()
    before = machine.before.get(key)
    if before is None and len(machine.before) >= limits.SERIES_MAX:
        return None
    machine.before[key] = point
    result = calculate(series.type, before, point).result
    return float(result) if result is not None and isfinite(result) else None
