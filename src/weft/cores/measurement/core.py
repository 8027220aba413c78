"""Measures by a plan, and turns the readings into numbered samples in the journal.

The path of one sample: a tick is due, the shell gets `Measure` and answers with `Measured`; the sample passes its
metric's threshold into the open batch. A second later, or when the batch is full, it leaves as `BatchTaken`, passes the
chain of filters outside this core, comes back with `NumberBatch`, and is numbered and persisted. So neither a threshold
nor a filter leaves a gap in the numbers.

Samples of foreign nodes (MEA-020) join this path at the batch.

Intervals are monotonic, stamps are wall-clock milliseconds (MEA-005); a metric that hangs or fails costs only itself
(MEA-006); nothing here knows how anything is measured.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.budget import Budget
from weft.base.calculated import Calculated, Point
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import earliest
from weft.cores.measurement import limits
from weft.cores.measurement.alarms import Alarms
from weft.cores.measurement.batch import OpenBatch
from weft.cores.measurement.details import Place
from weft.cores.measurement.foreign import Foreign
from weft.cores.measurement.gates import gate_of
from weft.cores.measurement.lines import Line, labels_fault, series_of
from weft.cores.measurement.messages import (
    BatchNumbered,
    BatchTaken,
    ClockStepped,
    KnowRoot,
    Measure,
    Measured,
    MeasurementSettings,
    MeasureNow,
    MetricFailed,
    MetricUnsupported,
    NumberBatch,
    PlanMetrics,
    Reading,
    Stop,
    TellAlerts,
    Verdict,
)
from weft.cores.measurement.numbering import NAME, Numbering
from weft.cores.measurement.schedule import next_tick, origin_at, phase_of
from weft.cores.measurement.settings import MetricSpec
from weft.cores.measurement.states import TABLE, On, State
from weft.cores.measurement.tasks import Task
from weft.wire.data import Data, DataHugz
from weft.wire.samples import Labels, SampleBatch, Series

HEARD: Final = {Verdict.READ: On.READ, Verdict.FAILED: On.FAILED, Verdict.UNSUPPORTED: On.UNSUPPORTED}


class Counters(msgspec.Struct):
    """Counts since the start."""

    taken: int = 0
    """Samples that passed their threshold, and foreign ones."""
    numbered: int = 0
    """Samples that also passed the chain."""
    batches: int = 0
    readings: int = 0
    skipped_ticks: int = 0
    failed: int = 0
    timed_out: int = 0
    unsupported: int = 0
    stale: int = 0
    """Answers that were no longer expected."""
    refused_series: int = 0
    steps: int = 0
    foreign: int = 0
    """Accepted samples of foreign nodes."""
    foreign_repeated: int = 0
    foreign_refused: int = 0
    foreign_beats: int = 0
    foreign_sources: int = 0
    """Foreign nodes known now, and their series."""
    foreign_series: int = 0


class Measurement:
    """The measurement core of one start of a node (`node`: its UUID, `era`: the start)."""

    name = NAME

    def __init__(self, settings: MeasurementSettings, node: bytes, era: int) -> None:
        self.settings = settings
        self.state = State.PLANNED
        self.budget = Budget()
        self.counters = Counters()
        self.tasks: dict[str, Task] = {}
        self.numbering = Numbering(node, era)
        self._phase_ns = phase_of(node)
        self._started = Now(0, 0)
        self._batch = OpenBatch(settings.rows_max, settings.bytes_max)
        self.foreign = Foreign(settings.rows_max, settings.bytes_max, settings.flush_ns, self._tell_batch)
        foreign = self.foreign
        foreign.room = self.budget.part("foreign", limits.FOREIGN_PERCENT, lambda: foreign.bytes)
        self._flush_at: int | None = None
        self._configuration: int | None = None
        self._serial = 0
        self._offset_ns = 0  # wall clock minus monotonic clock, when last compared
        self._checked_at = 0
        self._step_ns = 0  # noticed, and not yet in a batch
        self._step_told_ns = 0  # in a batch that is passing the chain
        self._outbox = Outbox()
        self.alarms = Alarms(settings.node_name, self._outbox, is_waiting=settings.is_followed)
        self._deadline: int | None = None
        self._is_settled = False  # whether `_deadline` is up to date
        self._now_mono = 0

    # The verbs of every core.

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        entries = list(entries)
        self.numbering.restore(entries)
        self.alarms.restore(entries)

    def condense(self) -> Iterable[CoreRecord]:
        yield from self.numbering.condense()
        yield from self.alarms.condense()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """A message of a foreign node (MEA-020); PeerError if a limit leaves no room, and then nothing is kept."""
        counters, foreign = self.counters, self.foreign
        if type(message) is DataHugz:
            counters.foreign_beats += 1
            foreign.beat(message, now.mono)
        elif self.state is State.STOPPED:
            counters.foreign_refused += 1
        elif type(message) is Data:
            self._take_foreign(message, now)
        else:
            raise PeerError("not-spoken", "the measurement core hears DATA only")

    def _take_foreign(self, message: Data, now: Now) -> None:
        counters, foreign = self.counters, self.foreign
        try:
            is_new = foreign.take(message, now.mono)
        except PeerError:
            counters.foreign_refused += 1
            raise
        counters.foreign += is_new
        counters.foreign_repeated += not is_new
        counters.foreign_sources, counters.foreign_series = len(foreign.sources), foreign.series
        self._is_settled = False

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of messages.py."""
        self._begin(now)
        self._ORDERS[type(order)](self, order, now)
        self._is_settled = False

    def wake(self, now: Now) -> None:
        self._begin(now)
        self._measure_due(now)
        for task in self.tasks.values():
            if task.late_at is not None and task.late_at <= now.mono:
                self._turn(task, On.TIMED_OUT, f"no answer within {task.spec.timeout_ns // MILLISECOND} ms")
            gate = task.gate
            if gate is not None and gate.opens_at is not None and gate.opens_at + task.spec.timeout_ns <= now.mono:
                gate.open(now.mono)
        if self._flush_at is not None and self._flush_at <= now.mono:
            self._flush()
        if self.foreign.flush_at is not None and self.foreign.flush_at <= now.mono:
            self.foreign.flush()
        self._is_settled = False

    def deadline(self) -> int | None:
        if self.state is State.PLANNED:
            return 0
        if not self._is_settled:
            self._deadline, self._is_settled = self._earliest(), True
        return self._deadline

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    def values(self) -> list[tuple[Series, int, Calculated]]:
        """The latest calculated value of every series, with its wall-clock ms, for live views of this node."""
        return [
            (line.series, at, line.calculated()) for task in self.tasks.values() for line, (at, _, _) in task.latest()
        ]

    # Time.

    def _begin(self, now: Now) -> None:
        """Compare the clocks; the first time, apply the plan of the settings."""
        self._now_mono = now.mono
        if self.state is State.PLANNED:
            self.state, self._started = State.RUNNING, now
            self._offset_ns, self._checked_at = now.wall - now.mono, now.mono
            self.plan(PlanMetrics(self.settings.metrics, alerts=self.settings.alerts), now)
        else:
            self._look_at_clocks(now)

    def _look_at_clocks(self, now: Now) -> None:
        """Tell a step of the wall clock, and mark the next batch with it; slow drift is not a step (MEA-005)."""
        by_ns = now.wall - now.mono - self._offset_ns
        weather_ns = limits.STEP_MIN_NS + (now.mono - self._checked_at) // limits.STEP_SHARE
        self._offset_ns += by_ns
        self._checked_at = now.mono
        if abs(by_ns) > weather_ns:
            self._flush()  # samples from before the step get a batch of their own
            self._step_ns += by_ns
            self.counters.steps += 1
            self._outbox.tell(ClockStepped(by_ns))

    def _earliest(self) -> int | None:
        of_tasks = [at for task in self.tasks.values() for at in task.deadlines()]
        return earliest(self._flush_at, self.foreign.flush_at, *of_tasks)

    # The plan.

    def plan(self, order: PlanMetrics, now: Now) -> None:
        """Apply a new plan: unchanged metrics keep their ticks (CFG-051)."""
        if self.state is State.STOPPED:
            return
        self._configuration = order.number
        before, self.tasks = self.tasks, {}
        for spec in order.specs:
            old = before.get(spec.name)
            if old is None or old.spec.measures != spec.measures:
                self.tasks[spec.name] = self._task(spec, now)
                continue
            self.tasks[spec.name] = before.pop(spec.name)
            if old.spec != spec:
                self._retune(old, spec, now)
        for gone in before.values():
            if gone.gate is not None:
                gone.gate.drain()
        self.alarms.plan(order.alerts, self.tasks, now)
        self._measure_due(now)

    def _task(self, spec: MetricSpec, now: Now) -> Task:
        """A new metric: its first sample is taken at once."""
        origin = origin_at(self._started, self._phase_ns if spec.phase_ns is None else spec.phase_ns)
        gate = gate_of(spec.threshold, self._put, origin, now.mono)
        return Task(spec, origin, gate, now.mono if spec.rate_ns >= 0 else None)

    def _retune(self, task: Task, spec: MetricSpec, now: Now) -> None:
        """Another rate or threshold: next sample at min(old next, now + new rate), no sample lost or doubled."""
        fresh = self._task(spec, now)
        if spec.rate_ns > 0:
            later = now.mono + spec.rate_ns
            fresh.due_at = later if task.due_at is None else min(task.due_at, later)
        else:
            fresh.due_at = None
        if task.gate is not None and spec.threshold == task.spec.threshold and fresh.origin == task.origin:
            fresh.gate = task.gate
        elif task.gate is not None:
            task.gate.drain()
        task.spec, task.origin, task.gate, task.due_at = spec, fresh.origin, fresh.gate, fresh.due_at

    def measure_now(self, order: MeasureNow, now: Now) -> None:
        """Measure the named metrics in addition to their ticks; unknown names belong to another plan."""
        asked = [self.tasks[name] for name in order.names if name in self.tasks]
        self._issue([task for task in asked if self._turn(task, On.DUE, "")], now)

    def stop(self, order: Stop, now: Now) -> None:
        """Take no more samples, and release those that are held."""
        self.state = State.STOPPED
        for task in self.tasks.values():
            if task.gate is not None:
                task.gate.drain()
        self.tasks = {}
        self._flush()
        self.foreign.flush()

    # Ticks.

    def _measure_due(self, now: Now) -> None:
        due = [task for task in self.tasks.values() if task.due_at is not None and task.due_at <= now.mono]
        issued = []
        for task in due:
            rate_ns = task.spec.rate_ns
            task.due_at = next_tick(now.mono, rate_ns, task.origin) if rate_ns > 0 else None
            if self._turn(task, On.DUE, ""):
                issued.append(task)
        self._issue(issued, now)

    def _issue(self, tasks: list[Task], now: Now) -> None:
        """Order measurements: metrics that may hang alone, all others together, so that one scan serves a tick."""
        groups = [[task for task in tasks if task.place is place] for place in (Place.INLINE, Place.PROCESSES)]
        groups += [[task] for task in tasks if task.place is Place.APART]
        for group in groups:
            if not group:
                continue
            self._serial += 1
            for task in group:
                task.issued = self._serial
                task.late_at = now.mono + task.spec.timeout_ns
            specs = tuple([task.spec for task in group])
            self._outbox.perform(Measure(specs, self._serial, group[0].place))

    def _turn(self, task: Task, on: On, heard: Any) -> bool:
        """Apply an input to a metric by the table; returns whether a row changed its phase."""
        cell = TABLE.get((task.phase, on))
        if cell is None:
            self.counters.stale += 1
            return False
        before, task.phase = task.phase, cell.then
        getattr(self, cell.do)(task, heard)
        return before is not cell.then

    def measure(self, task: Task, heard: str) -> None:
        """Include it in the order of this tick."""

    def skip_tick(self, task: Task, heard: str) -> None:
        """The preceding tick has not finished."""
        self.counters.skipped_ticks += 1

    # Readings.

    def measured(self, order: Measured, now: Now) -> None:
        """Process readings. Those of another plan are only counted."""
        for reading in order.readings:
            task = self.tasks.get(reading.name)
            if task is None or task.issued != order.number:
                self.counters.stale += 1
                continue
            self._turn(task, HEARD[reading.verdict], reading)

    def take(self, task: Task, reading: Reading) -> None:
        """Add the samples to their lines, and to the batch if their threshold lets them pass."""
        task.late_at, task.told_why = None, ""
        self.counters.readings += 1
        for labels, value, base in reading.samples:
            line = task.lines.get(labels) or self._new_line(task, labels)
            if line is None:
                continue
            point = (reading.at_ms, value, base)
            line.add(point)
            if task.gate is None:
                self._put(line, point)
            else:
                task.gate.take(line, point)
        self._judge(task, reading)
        if len(task.lines) > 2 * len(reading.samples) + limits.LINES_SPARE:
            self._forget_lines(task, reading)
        gate = task.gate
        if gate is not None and gate.opens_at is not None and gate.opens_at <= self._now_mono:
            gate.open(self._now_mono)

    def _judge(self, task: Task, reading: Reading) -> None:
        """Compare a reading with its alerts (MET-004)."""
        if self.alarms.judges(task.spec.name):
            lines = [task.lines[labels] for labels, _, _ in reading.samples if labels in task.lines]
            self.alarms.read(task.spec.name, lines, reading.at_ms, self._now_mono)

    def report_failure(self, task: Task, heard: Reading | str) -> None:
        """Tell the failure, once per reason until the metric succeeds again."""
        is_late = isinstance(heard, str)
        task.late_at = None
        self.counters.timed_out += is_late
        self.counters.failed += not is_late
        why = heard if isinstance(heard, str) else heard.why
        if task.told_why != why:
            task.told_why = why
            self._outbox.tell(MetricFailed(task.spec.name, _short(why)))

    def report_unsupported(self, task: Task, reading: Reading) -> None:
        """Tell it once; ticks continue, since a source may appear later (a sensor's driver is loaded)."""
        task.late_at = None
        self.counters.unsupported += 1
        self._judge(task, reading)
        if not task.is_unsupported:
            task.is_unsupported = True
            self._outbox.tell(MetricUnsupported(task.spec.name, _short(reading.why)))

    def _new_line(self, task: Task, labels: Labels) -> Line | None:
        """A new series; None, with an event, if a limit forbids it."""
        fault = labels_fault(labels)
        if fault is None and sum(len(other.lines) for other in self.tasks.values()) >= self.settings.series_max:
            fault = f"more than {self.settings.series_max} series on this node"
        if fault is not None:
            self.counters.refused_series += 1
            if not task.is_refused:
                task.is_refused = True
                self._outbox.tell(MetricFailed(task.spec.name, fault))
            return None
        spec = task.spec
        line = task.lines[labels] = Line(series_of(spec.name, spec.detail, task.type, spec.param, labels))
        return line

    def _forget_lines(self, task: Task, reading: Reading) -> None:
        """Drop the lines of vanished series, unless a threshold still holds samples of them."""
        present = {labels: None for labels, _, _ in reading.samples}
        task.lines = {labels: line for labels, line in task.lines.items() if labels in present or line.sums is not None}

    # Batches.

    def _put(self, line: Line, point: Point) -> None:
        if not self._batch.has_room_for(line):
            self._flush()
        if self._flush_at is None:
            self._flush_at = self._now_mono + self.settings.flush_ns
        self._batch.add(line, point)

    def _flush(self) -> None:
        """Emit the open batch, if it is not empty."""
        self._flush_at = None
        if not len(self._batch):
            return
        self._step_told_ns += self._step_ns
        self._step_ns = 0
        self._tell_batch(self._batch.close())

    def _tell_batch(self, batch: SampleBatch) -> None:
        self.counters.taken += len(batch.rows)
        self.counters.batches += 1
        self._outbox.tell(BatchTaken(batch))

    def number(self, order: NumberBatch, now: Now) -> None:
        """Number and persist the samples that passed the chain: from here on they are never lost (MEA-023)."""
        if not order.batch.rows:
            return
        first, rows = self.numbering.last + 1, len(order.batch.rows)
        extra: dict[str, Any] = {"node": self.settings.node_name} if self.settings.node_name else {}
        if self._step_told_ns:
            extra["step"] = self._step_told_ns // MILLISECOND
            self._step_told_ns = 0
        if self._configuration is not None:
            extra["cfg"] = self._configuration
        self._outbox.persist(self.numbering.records(order.batch, extra, now))
        self._outbox.tell(BatchNumbered(first, rows))
        self.counters.numbered += rows

    def know_root(self, order: KnowRoot, now: Now) -> None:
        """Tell a new root the firing alerts."""
        self.alarms.know_root(order.node, order.epoch)

    def tell_alerts(self, order: TellAlerts, now: Now) -> None:
        """Tell the firing alerts again."""
        self.alarms.tell_all()

    _ORDERS: Final[dict[type, Callable[..., None]]] = {
        PlanMetrics: plan,
        MeasureNow: measure_now,
        Measured: measured,
        NumberBatch: number,
        Stop: stop,
        KnowRoot: know_root,
        TellAlerts: tell_alerts,
    }


def _short(why: str) -> str:
    return why[: limits.WHY_BYTES_MAX]
