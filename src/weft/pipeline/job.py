"""The job of a stream: micro-batch after micro-batch, restartable at any instant (PIP-020..025, PIP-100).

```
1  coverage/N       the offset at which batch N ends, and the coverage after it: from now on the batch has begun
2  tables           `Batch` writes them, each in one transaction that names the batch
3  meta.progress    from now on the batch is in all tables
```

So the log of `meta.progress` says which batch is next; a batch that had begun before a crash is repeated with the same
input.
When they are due, the gold tables of samples are folded beside the batches (`folding`). Retention is told what is no
longer needed.
"""

import json
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft import __version__
from weft.lake import consumers
from weft.lake.layout import Layout
from weft.lake.offsets import At, Offset, parse
from weft.lake.reader import ROWS_MAX, SEGMENTS_MAX, Limits, Source, position
from weft.pipeline.anomalies import EVERY_S as JUDGED_EVERY_S
from weft.pipeline.anomalies import Anomalies
from weft.pipeline.batch import Batch, Outcome
from weft.pipeline.checkpoint import Carried, Checkpoint
from weft.pipeline.counting import Counting
from weft.pipeline.coverage import Coverage
from weft.pipeline.delta import Tables
from weft.pipeline.fold import Fold
from weft.pipeline.folding import Folding, session_beside
from weft.pipeline.intake import intake_between
from weft.pipeline.kinds import SAMPLES, Kind
from weft.pipeline.marks import newest_mark
from weft.pipeline.quarantined import refused_before
from weft.pipeline.releasing import Releasing, Wanted, note_released, wanted_of
from weft.pipeline.remote import is_remote
from weft.pipeline.ruleset import Rules
from weft.pipeline.sampled import Known, SampleBatch
from weft.pipeline.session import PARTITIONS
from weft.pipeline.settings import MuteTable
from weft.pipeline.steps import NOBODY, Steps, Watcher
from weft.pipeline.tables import COMPLETENESS, PROGRESS, Table
from weft.pipeline.upkeep.forgotten import refused
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLD_EVERY_S: Final = 60.0  # between two folds of gold tables
USUAL: Final = Limits(ROWS_MAX, SEGMENTS_MAX, is_whole=True)
"""Limits of a batch. It takes whole segments only, because these become files of bronze without being copied."""


class JobOptions(NamedTuple):
    """The options of a job."""

    rules: Rules = Rules()
    streams: tuple[str, ...] = ()
    """The streams for which a driver makes tables; empty: all."""
    gold_every_s: float = GOLD_EVERY_S
    """Seconds between folds of gold tables; infinite: never."""
    mutes: tuple[MuteTable, ...] = ()
    """Anomalies that the user has muted."""
    anew: tuple[Table, ...] = ()
    """Tables that are about to be rebuilt: they may lack batches, or all."""
    watcher: Watcher = NOBODY
    clock: Callable[[], int] = time.time_ns
    """Wall-clock nanoseconds; recorded as the time of a batch."""


class Done(NamedTuple):
    """A batch that is in all its tables."""

    job: str
    number: int
    outcome: Outcome
    segments: int
    freshness_ms: int | None
    """Time from its newest arrival to its commit."""
    seconds: float
    steps: dict[str, float]
    missing: int
    """Numbers that are missing now, of all origins."""
    behind: int
    """Segments that exist by now but are not taken yet."""
    run: int = 0
    """The epoch of the driver's lease."""
    bytes: int = 0
    """Bytes of the segments that it took completely."""
    commit_s: float = 0.0
    """How long its transactions took."""


class Job:
    """Makes the tables of one stream. One at a time per lake: the caller holds the lease of `epoch`."""

    def __init__(
        self, kind: Kind, lake: Layout, spark: "SparkSession", epoch: int, options: JobOptions | None = None
    ) -> None:
        self.kind, self.lake, self.spark, self.epoch = kind, lake, spark, epoch
        self.options = options or JobOptions()
        self.checkpoint = Checkpoint(lake, kind.stream, is_dense=kind.is_dense, runs_on=kind.runs_on)
        is_empty = Tables(lake, spark).is_empty(kind.bronze)
        partitions = int(spark.conf.get(PARTITIONS) or 0)
        self.record = self.checkpoint.open(has_rows=not is_empty, partitions=partitions)
        self.tables = Tables(lake, spark, Writer(kind.stream, self.record.id, epoch))
        for table in kind.tables:
            self.tables.handle(table)
        for table in kind.own:  # not the tables that several jobs write: another one may be writing them just now
            self.tables.sweep(table)
        self.rules = self.options.rules
        """The rules of the batch that is being done."""
        self.source = Source(lake, kind.stream)
        self._coverage: tuple[int, Coverage] | None = None
        self._at: At | None = None
        """Where the next batch begins; None: not read from the checkpoint yet."""
        self.last_number = self.tables.committed(PROGRESS)
        """The last batch that is in all tables, -1 before the first."""
        self.checkpoint.prove(self.record, self._carried())
        self._folded_at = time.monotonic()
        self.fold_upto = -1
        """The last batch that a fold of this driver has included, -1 before the first."""
        self._folding: Folding | None = None
        """The fold that has begun, until its end has been noted."""

    def _carried(self) -> Carried:
        """How far the tables are, for the comparison with the checkpoint."""
        highest = max(self.tables.committed(table) for table in self.kind.tables)
        marks = [newest_mark(self.tables.path(table), self.kind.stream) for table in (self.kind.bronze, PROGRESS)]
        others = [mark.checkpoint for mark in marks if mark is not None and mark.checkpoint != self.record.id]
        return Carried(self.last_number, highest, next(iter(others), None), self._lacking())

    def _lacking(self) -> tuple[str, ...]:
        """The tables that lack the last batch although `meta.progress` counts rows of it there."""
        import pyarrow.compute as pc

        if self.last_number < 0:
            return ()
        last = self.tables.dataset(PROGRESS, self.tables.files(PROGRESS, f"batch = {self.last_number}"))
        mine = (pc.field("job") == self.kind.stream) & (pc.field("batch") == self.last_number)
        rows = last.to_table(filter=mine).to_pylist()
        return tuple(
            table.full_name
            for table, column in self.kind.counted
            if table not in self.options.anew
            and any((row[column] or 0) > 0 for row in rows)
            and self.tables.committed(table) < self.last_number
        )

    def take(self, limits: Limits = USUAL, until: At | None = None) -> Done | None:
        """Do the batch that has begun, else the next one within the limits; None if there is nothing to do.

        `until`: take nothing after this position. Raises what `process` raises; SegmentFault `offset-mismatch` if the lake holds
        other segments than the tables were made of.
        """
        number, start = self.last_number + 1, self._reached()
        begun = self.checkpoint.begun(number)
        wanted = wanted_of(self.checkpoint, number) if begun is None or begun.at == start else None
        if wanted is not None:
            return self.take_back(wanted, self.source.offset(start))
        if begun is not None:
            return self.process(number, start, begun)
        end = self.source.advance(start, limits, until)
        return None if end == start else self.process(number, start, self.source.offset(end))

    def _reached(self) -> At:
        """Where the next batch begins.

        The first call verifies that the lake still has what the tables were made of, and registers the job as a consumer,
        so that retention keeps the segments after this position.
        """
        if self._at is not None:
            return self._at
        if self.last_number < 0:
            offset = self.source.offset(position(self.source, self.record.start))
        else:
            offset = parse(self.checkpoint.coverage(self.last_number).offset)
            self.source.prove(offset)
            self._at = offset.at
        consumers.register(self.lake, self.kind.stream, self.kind.stream, offset, time.time_ns())
        return offset.at

    def _note_done(self, number: int, coverage: Coverage, end: Offset) -> None:
        """A batch is in all tables: the next one begins after it, and retention may delete its segments (PIP-024)."""
        self._coverage, self.last_number, self._at = (number, coverage), number, end.at
        consumers.commit(self.lake, self.kind.stream, self.kind.stream, end, time.time_ns())
        self.source.forget(end.at)

    def take_back(self, wanted: Wanted, end: Offset) -> Done:
        """Do the batch that releases rows from quarantine; repeating it changes nothing (PIP-033)."""
        steps, number, began = Steps(self.options.watcher), wanted.number, time.perf_counter()
        coverage = self._state_after(number - 1)
        with steps("coverage"):
            recorded = self.checkpoint.recorded_now(number)
            self.rules = self.checkpoint.rules(self.options.rules, is_repeated=recorded is not None)
            coverage.now = self.options.clock() if recorded is None else recorded
            note_released(coverage, wanted.vector())
            coverage.offset = end.text()
            self.checkpoint.save(number, coverage)
        about = self._about(0, coverage) | {"weft.returned": wanted.reason}
        outcome = Releasing(self.kind, self.tables, number, about, self.rules).take(self, wanted, steps)
        seconds = round(time.perf_counter() - began, 3)
        done = Done(
            self.kind.stream, number, outcome, 0, None, seconds, dict(steps.seconds), coverage.missing, 0, self.epoch
        )
        with steps("progress"):
            self._note(done, coverage, about)
        self._note_done(number, coverage, end)
        return done

    def process(self, number: int, start: At, end: Offset) -> Done:
        """Do batch `number`; repeating it changes nothing.

        Raises SegmentFault if a segment is gone or changed, OurFault `conservation` if rows were lost or invented on the
        way, LeaseLost if another driver has taken over. Some tables may then have the batch; it must be repeated.
        """
        began, committed_s = time.perf_counter(), self.tables.commit_s
        steps = Steps(self.options.watcher)
        coverage = self._state_after(number - 1)
        intake = intake_between(self.source, start, end.at)
        with steps("coverage"):
            recorded = self.checkpoint.recorded_now(number)
            self.rules = self.checkpoint.rules(self.options.rules, is_repeated=recorded is not None)
            plan = coverage.advance(intake, self.options.clock() if recorded is None else recorded)
            coverage.offset = end.text()
            self.checkpoint.save(number, coverage)
        about = self._about(intake.rows, coverage)
        outcome = self._steps_of(number, about).run(intake, plan, coverage, steps)
        behind = sum(tip - end.at.get(drain, (1, 0))[0] for drain, (tip, _) in self.source.latest().items())
        done = Done(
            job=self.kind.stream,
            number=number,
            outcome=outcome,
            segments=len(intake.slices),
            freshness_ms=None if intake.newest is None else (time.time_ns() - intake.newest) // 1_000_000,
            seconds=round(time.perf_counter() - began, 3),
            steps=dict(steps.seconds),
            missing=coverage.missing,
            behind=behind,
            run=self.epoch,
            bytes=sum(piece.bytes for piece in intake.slices if piece.is_whole),
            commit_s=round(self.tables.commit_s - committed_s, 4),
        )
        with steps("progress"):
            self._note(done, coverage, about)
        self._note_done(number, coverage, end)
        return done

    def _steps_of(self, number: int, about: Mapping[str, str]) -> Batch:
        """The steps of the batch to run."""
        return Batch(self.kind, self.tables, number, about, self.rules)

    def fold(self) -> None:
        """Bring the gold tables up to the last batch (PIP-045, PIP-060); a fold under way is finished first."""
        self._end_fold()
        if self.last_number >= 0:
            self._begin_fold()
            self._end_fold()

    def fold_on(self) -> None:
        """Begin a fold that goes on beside the batches, or note that it has ended. Raises what ended it early.

        A server of Spark Connect has one session with one set of settings, which a batch may change for a moment
        (`rules.lenient`): there the batches wait for the fold.
        """
        folding = self._folding or self._begin_fold()
        if is_remote(self.spark) or not folding.is_running:
            self._end_fold()

    @property
    def is_folding(self) -> bool:
        """Whether a fold has begun and not ended. Files that it has read must then not be replaced."""
        return self._folding is not None

    def _begin_fold(self) -> Folding:
        """Begin to fold up to the batch that is the last one now."""
        state, upto = deepcopy(self._current_state()), self.last_number
        self._folding = Folding(self.spark, upto, partial(self._fold, state, upto))
        return self._folding

    def _end_fold(self) -> None:
        """Wait for the end of a fold that has begun."""
        folding, self._folding = self._folding, None
        if folding is not None:
            folding.end()
            self._folded_at, self.fold_upto = time.monotonic(), folding.upto

    @cached_property
    def _gold_tables(self) -> Tables:
        """The tables for the threads that fold, one after the other: opened once, as those of the batches."""
        return self.tables.beside(session_beside(self.spark))

    def _fold(self, state: Coverage, upto: int) -> None:
        """Fold up to batch `upto`, after which the state was `state`; runs in a thread of its own."""
        tables, about = self._gold_tables, self._folded_as(state)
        self._fold_gold(tables, about, upto)
        Counting(self.kind, tables, about).bring(state, upto, max(self.options.clock(), state.now))

    def _fold_gold(self, _tables: Tables, _about: Mapping[str, str], _upto: int) -> None:
        """Fold the gold tables that only this stream has."""

    def _current_state(self) -> Coverage:
        """The state after the last batch; it stays in memory."""
        coverage = self._state_after(self.last_number)
        self._coverage = (self.last_number, coverage)
        return coverage

    def _folded_as(self, coverage: Coverage) -> dict[str, str]:
        """The properties of every commit of a fold."""
        return {"weft.version": __version__, "weft.offset": coverage.offset}

    def is_fold_due(self, now: float) -> bool:
        """Whether a fold is due or under way; `now` is monotonic, in seconds.

        Without a new batch a fold only notices that holes have become overdue; once a minute is enough for that.
        """
        if self.is_folding:
            return True
        every_s = self.options.gold_every_s
        if self.fold_upto == self.last_number:
            every_s = max(every_s, GOLD_EVERY_S)
        return self.last_number >= 0 and now - self._folded_at >= every_s

    def fold_if_behind(self) -> None:
        """Fold the batches since the last fold, unless `gold_every_s` is infinite."""
        if self.options.gold_every_s != float("inf") and self.fold_upto < self.last_number:
            self.fold()

    def _state_after(self, number: int) -> Coverage:
        """The state after a batch, from memory or as saved. It leaves the memory, because the caller may change it."""
        kept, self._coverage = self._coverage, None
        if kept is not None and kept[0] == number:
            return kept[1]
        coverage = self.checkpoint.coverage(number)
        coverage.refuse(refused_before(self.tables, self.kind.quarantine, number + 1))
        coverage.refuse(refused(self.lake, self.kind.stream))
        return coverage

    def _about(self, rows: int, coverage: Coverage) -> dict[str, str]:
        """The properties of every commit of the batch (LAK-035)."""
        return {
            "weft.offset": coverage.offset,
            "weft.rows": str(rows),
            "weft.vec": coverage.covered.digest(),
            "weft.version": __version__,
        }

    def _note(self, done: Done, coverage: Coverage, about: Mapping[str, str]) -> None:
        if self.tables.committed(PROGRESS) < done.number:
            row = _progress(done, coverage.offset, about["weft.vec"])
            self.tables.append_rows(PROGRESS, done.number, [row], about)


class SamplesJob(Job):
    """The job of the samples. It also folds the gold tables of samples and looks for anomalies."""

    def __init__(self, lake: Layout, spark: "SparkSession", epoch: int, options: JobOptions | None = None) -> None:
        super().__init__(SAMPLES, lake, spark, epoch, options)
        self.known = Known(self.tables)
        self.tables.sweep(COMPLETENESS)  # safe: no other job has started yet
        self._judged_at = time.monotonic()

    def _steps_of(self, number: int, about: Mapping[str, str]) -> Batch:
        return SampleBatch(self.known, number, about, self.rules)

    def _fold_gold(self, tables: Tables, about: Mapping[str, str], upto: int) -> None:
        Fold(tables, about).bring(upto)
        if time.monotonic() - self._judged_at >= JUDGED_EVERY_S:
            Anomalies(tables, about, self.options.mutes).bring(upto)
            self._judged_at = time.monotonic()

    def judge(self, since: datetime | None = None) -> None:
        """Look for anomalies in folded values: in fresh ones, or in all from a day (UTC) on (PIP-055)."""
        if self.last_number < 0:
            return
        judge = Anomalies(self.tables, self._folded_as(self._current_state()), self.options.mutes)
        if since is None:
            judge.bring(self.last_number)
        else:
            judge.since(since, self.last_number)


def _progress(done: Done, offset: str, vec: str) -> dict[str, Any]:
    outcome = done.outcome
    return {
        "job": done.job,
        "batch": done.number,
        "at": datetime.now(UTC),
        "rows_in": outcome.rows,
        "rows_silver": outcome.silver,
        "rows_duplicate": outcome.duplicates,
        "rows_quarantine": outcome.quarantined,
        "rows_values": outcome.values,
        "segments": done.segments,
        "freshness_ms": done.freshness_ms,
        "seconds": done.seconds,
        "steps": json.dumps(done.steps),
        "offset": offset,
        "vec": vec,
        "run": done.run,
        "version": __version__,
        "missing": done.missing,
        "behind": done.behind,
    }
