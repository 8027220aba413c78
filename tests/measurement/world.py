"""A measurement core in a world of its own: clocks that are set by hand, a machine that answers what a test says."""

from collections.abc import Callable, Iterable
from typing import Any

from weft.base.effects import Perform, Persist, Tell
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import CoreRecord, EraRecord, Record, StreamRecord
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import (
    BatchNumbered,
    BatchTaken,
    Measure,
    Measured,
    MeasurementSettings,
    NumberBatch,
    Reading,
    SampleBatch,
)
from weft.cores.measurement.settings import MetricSpec, parse_metrics
from weft.wire import samples

NODE = bytes.fromhex("0b9e4c1d7a224f539c105d6e7f8091a2")
EPOCH = 1_795_000_000 * SECOND
Taken = tuple[str, int, int | float]
"""Metric, wall-clock ms, value."""


def metrics(**tables: dict[str, Any]) -> tuple[MetricSpec, ...]:
    """The specs of tables that have no mistake."""
    specs, mistakes = parse_metrics(tables)
    assert [] == mistakes
    return tuple(specs)


class World:
    """Runs one core; what passes the chain is `let_pass(batch)`, the identity unless a test says otherwise."""

    def __init__(
        self,
        specs: Iterable[MetricSpec] = (),
        *,
        era: int = 7,
        kept: Iterable[Record] = (),
        settings: MeasurementSettings | None = None,
        node: bytes = NODE,
    ) -> None:
        self.mono, self.wall_ahead = 1_000 * SECOND, EPOCH
        self.core = Measurement(settings or MeasurementSettings(metrics=tuple(specs)), node, era)
        self.journal: list[Record] = list(kept)
        self.core.restore(enumerate(kept, 1), self.now)
        self.events: list[Any] = []
        self.works: list[tuple[int, Measure]] = []
        self.taken: list[Taken] = []
        self.batches: list[SampleBatch] = []
        self.hanging: dict[str, None] = {}
        self.answer: Callable[[MetricSpec, int], Reading] = self.count
        self.let_pass: Callable[[SampleBatch], SampleBatch | None] = lambda batch: batch
        self._counts: dict[str, int] = {}

    @property
    def now(self) -> Now:
        return Now(self.mono, self.mono + self.wall_ahead)

    def count(self, spec: MetricSpec, at_ms: int) -> Reading:
        """The usual answer: one sample, and no value twice."""
        value = self._counts[spec.name] = self._counts.get(spec.name, 0) + 1
        return Reading(spec.name, at_ms, (((), value, value),))

    def order(self, order: Any) -> None:
        self.core.command(order, self.now)
        self._settle()

    def wake(self) -> None:
        self.core.wake(self.now)
        self._settle()

    def sleep(self, seconds: float) -> None:
        """Let time pass without waking the core, as a suspended machine does."""
        self.mono += round(seconds * SECOND)

    def run(self, seconds: float) -> None:
        """Let time pass, waking the core whenever it asks for it."""
        end = self.mono + round(seconds * SECOND)
        while (due := self.core.deadline()) is not None and due <= end:
            self.mono = max(self.mono, due)
            self.wake()
        self.mono = end

    def _settle(self) -> None:
        for effect in self.core.effects():
            self._perform(effect)

    def _perform(self, effect: Any) -> None:
        if isinstance(effect, Perform):
            self.works.append((self.mono, effect.work))
            self.measure(effect.work)
        elif isinstance(effect, Persist):
            self.journal.extend(effect.records)
        elif isinstance(effect, Tell):
            self._hear(effect.event)

    def _hear(self, event: Any) -> None:
        if not isinstance(event, BatchTaken):
            if not isinstance(event, BatchNumbered):
                self.events.append(event)
            return
        self.batches.append(event.batch)
        passed = self.let_pass(event.batch)
        if passed is not None:
            self.order(NumberBatch(passed))

    def measure(self, work: Measure) -> None:
        """Answer for every metric that does not hang."""
        answering = [spec for spec in work.specs if spec.name not in self.hanging]
        readings = [self.answer(spec, self.now.wall // MILLISECOND) for spec in answering]
        for reading in readings:
            self.taken += [(reading.name, reading.at_ms, value) for _, value, _ in reading.samples]
        if readings:
            self.order(Measured(tuple(readings), work.number))

    # What came of it.

    @property
    def numbered(self) -> list[Taken]:
        """Every sample in the journal, in order."""
        return numbered(self.journal)

    def ticks(self, name: str) -> list[int]:
        """Monotonic ns of every time the metric was asked for."""
        return [at for at, work in self.works if any(spec.name == name for spec in work.specs)]

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def records(journal: Iterable[Record]) -> list[StreamRecord]:
    return [record for record in journal if isinstance(record, StreamRecord)]


def numbered(journal: Iterable[Record]) -> list[Taken]:
    found: list[Taken] = []
    for record in records(journal):
        batch = samples.decode(record.payload)
        assert record.last == record.sequence + len(batch.rows) - 1
        found += [
            (sample.series.config_name, batch.t0_ms + sample.offset_ms, sample.value)
            for sample in samples.explode(batch)
        ]
    return found


def check_numbers(journal: Iterable[Record]) -> None:
    """Every era counts from 1 without holes, once, and says where the one before it ended (MEA-023)."""
    ends: dict[int, int] = {}
    before = (0, 0)
    for record in journal:
        if isinstance(record, CoreRecord):
            continue
        if isinstance(record, EraRecord):
            assert before == (record.era_before, record.last_before), "the link between eras is wrong"
            assert record.era not in ends, "two links of one era"
            ends[record.era] = 0
            continue
        assert isinstance(record, StreamRecord), record
        assert record.era is not None, record
        if record.era not in ends:
            assert not ends, "an era without a link to the one before"
            ends[record.era] = 0
        assert record.era == max(ends), "an older era goes on"
        assert record.sequence == ends[record.era] + 1, "a hole, or a number twice"
        ends[record.era] = record.last
        before = (record.era, record.last)
