"""The streaming queries around the jobs: triggers, the end, what they say of each batch (PIP-020, PIP-023, PIP-080).

All queries share one session. That of the samples begins at once, that of another stream when its first segment is
there: an idle machine pays for the triggers of those streams only that it has. Each has its own offsets, so a stream
that is new changes nothing for the others; one lease stands for all of them.

Batches run in threads of Spark's; folds while nothing arrives, and the end, come from the thread that called `run`.
A lock keeps all of these apart: one batch runs at a time, whoever stops waits for it, and the next one is left undone,
to be repeated at the next start.

Behind a server of Spark Connect there are no such threads: the driver takes the batches itself, in turn (`turns`). So it
does with the first samples where tasks run in its own JVM, while Spark's query is still being made.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from weft.base.errors import UserError, WeftError
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.lake.reader import SEGMENTS_MAX, Limits
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.delta import LeaseLost
from weft.pipeline.executors import Executors
from weft.pipeline.job import Done, Job, JobOptions, SamplesJob
from weft.pipeline.kinds import KINDS
from weft.pipeline.lease import Lease
from weft.pipeline.remote import answers, is_remote
from weft.pipeline.rules import verify
from weft.pipeline.session import Options, is_local, is_running, session
from weft.pipeline.settings import settings_of
from weft.pipeline.turns import Turns
from weft.pipeline.upkeep.keeper import Upkeep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LEASE: Final = "samples"
"""Whose lease a driver takes: one drives all jobs of a lake."""
FIRST_S: Final = 15.0  # how long samples alone have the machine, which is busiest while it starts
FIRST: Final = Limits(20_000, SEGMENTS_MAX)
"""Of the first batch, which the driver takes itself."""
TRIGGER: Final = "1 second"
TURN_S: Final = 1.0  # the same, where this thread asks
POLL_S: Final = 0.25
AGAIN: Final = "weft lake run again, it goes on where it was; why it ended may stand in {}"
GONE_AGAIN: Final = (
    "weft lake check, and put the segment back from a copy,"
    " or give it up: weft lake skip DRAIN:N --stream S --reason TEXT"
)
REMOTE_AGAIN: Final = "look whether the server runs; then weft lake run again, it goes on where it was"
WITHOUT_PYTHON: Final = ("Python worker ", "terminated with exception:  SQLSTATE")
"""What Spark says when the process that plans a stream is gone: that, or an exception without a word."""
BEGUN_MAX: Final = 3
ENDING_S: Final = 2.0  # a process that was killed closes its sockets some time before it has ended
ODD: Final = frozenset("[]{}*?%#\\\n\r\t")
"""Patterns to Spark, or parts of a URL to Delta."""
FINISH_S: Final = 30.0  # how long a batch that is running may still take


class Stopped(Exception):
    """A batch that was not begun, because the end had come."""


class Runner:
    """Runs the jobs of a lake until it is stopped, or until everything that exists is in the tables."""

    def __init__(self, lake: Layout, on_batch: Callable[[Done], None], options: JobOptions | None = None) -> None:
        self.lake, self.on_batch = lake, on_batch
        self.options = options or JobOptions()
        self._ending = threading.Event()
        self._busy = threading.Lock()
        self._failure: BaseException | None = None
        self._has_first = False
        """Whether samples were taken before their query stood."""
        self._is_cut = False
        """Whether a batch that took too long to end was broken off; the next driver repeats it."""
        self._queries: dict[str, StreamingQuery] = {}
        self._writers: dict[str, tuple[DataStreamWriter, Job]] = {}
        self._begun: dict[str, tuple[int, int]] = {}
        """Of queries that were begun again: behind which batch, and how often."""
        self._jobs: list[Job] = []
        self._upkeep: Upkeep | None = None

    def stop(self) -> None:
        """Finish the batch, fold, and end. May be called from a signal handler, and before `run`."""
        self._ending.set()

    def run(self, spark_options: Options, *, once: bool = False, wait_s: float = 0.0) -> None:
        """Run; returns when stopped, with `once` when everything that was there at the start is done.

        `wait_s`: how long a driver that is there already is waited for.

        UserError `bad-directory`, `lease-held` (75), `lost-lease` (76), `no-java` (78), `checkpoint-missing`, `segment-gone`,
        `segment-changed`, `offset-mismatch`, `newer-lake`, `unavailable` (3; Spark's Java has ended, or a cluster has
        nobody left). Whatever else fails a batch is raised as it is.
        """
        refuse_odd(self.lake)
        with Lease(self.lake, LEASE, wait_s, self._ending) as lease:
            partitions = Checkpoint(self.lake, LEASE).partitions()
            spark = session(spark_options._replace(inherited=(lease.descriptor,), partitions=partitions))
            try:
                self._run(spark, lease.epoch, once=once)
            except (LeaseLost, SegmentFault) as error:
                raise _explained(error) from error
            except UserError:
                raise
            except Exception as error:
                if (why := _lost(error, spark, spark_options)) is None:
                    raise
                raise why from error
            finally:
                if self._upkeep is not None:
                    self._upkeep.close()
                if is_running():
                    spark.stop()

    def _run(self, spark: "SparkSession", epoch: int, *, once: bool) -> None:
        verify(spark, self.options.rules)
        self._upkeep = Upkeep(self.lake, epoch, settings_of(self.lake).keep)
        if is_remote(spark):
            self._take_turns(spark, epoch, once=once)
            spark.stop()  # its session in the server; where the server is gone there is none
            return
        self._executors = Executors(spark, str(spark.sparkContext.master))
        wanted = self.options.streams or tuple(KINDS)
        samples = self._begin_samples(spark, epoch, once=once) if LEASE in wanted else None

        def join() -> None:
            for name in [name for name in wanted if name not in self._queries]:
                if self.lake.drains(name).is_dir():
                    job = Job(KINDS[name], self.lake, spark, epoch, self.options)
                    self._start(self._load(spark, name), job, once=once)

        self._follow(samples, join, once=once)
        if self._is_cut:
            return
        if self._failure is not None:
            raise self._failure
        for job in self._jobs:
            job.fold_if_behind()

    def _begin_samples(self, spark: "SparkSession", epoch: int, *, once: bool) -> SamplesJob:
        with ThreadPoolExecutor(1, "stream") as beside:  # Python's workers of the source start meanwhile
            stream = beside.submit(self._load, spark, LEASE)
            samples = SamplesJob(self.lake, spark, epoch, self.options)
            if is_local(str(spark.sparkContext.master)):  # a cluster may have nobody, for whom only `_follow` looks
                self._take_first(samples)
        self._start(stream.result(), samples, once=once)
        return samples

    def _take_first(self, samples: SamplesJob) -> None:
        """A small batch before Spark's own query stands, which takes as long again: its rows can be asked for meanwhile.

        One that was begun is left to the query: it may be large, and whoever stops waits for what runs here.
        """
        turns = Turns(samples, FIRST)
        if turns.is_between_batches and self.lake.drains(LEASE).is_dir() and not self._ending.is_set():
            done = turns.take()
            if done is not None:
                self._has_first = True
                self.on_batch(done)

    def _take_turns(self, spark: "SparkSession", epoch: int, *, once: bool) -> None:
        """All streams one after the other, in this thread: a server cannot call back."""
        turns: dict[str, Turns] = {}
        while not self._ending.is_set():
            for name in [name for name in self.options.streams or KINDS if name not in turns]:
                if self.lake.drains(name).is_dir():
                    turns[name] = self._turns_of(name, spark, epoch, once=once)
            is_idle = True
            for turn in turns.values():
                done = None if self._ending.is_set() else turn.take()
                if done is not None:
                    is_idle = False
                    self.on_batch(done)
            self._fold_when_idle()
            if is_idle and (once or self._ending.wait(TURN_S)):
                break
        for job in self._jobs:
            job.fold_if_behind()

    def _turns_of(self, name: str, spark: "SparkSession", epoch: int, *, once: bool) -> Turns:
        kind = SamplesJob if name == LEASE else partial(Job, KINDS[name])
        job = kind(self.lake, spark, epoch, self.options)
        self._jobs.append(job)
        turns = Turns(job)
        if once:
            turns.until_now()
        return turns

    def _load(self, spark: "SparkSession", name: str) -> "DataFrame":
        start = Checkpoint(self.lake, name).start()
        stream = spark.readStream.format("weft").option("lake", str(self.lake.root)).option("stream", name)
        return stream.option("consumer", name).option("start", start).load()

    def _start(self, stream: "DataFrame", job: Job, *, once: bool) -> None:
        name = job.kind.stream
        self._jobs.append(job)
        writer = stream.writeStream.foreachBatch(self._each(job))
        writer = writer.option("checkpointLocation", str(self.lake.checkpoint(name)))
        timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
        self._writers[name] = timed, job
        self._queries[name] = timed.start()

    def _each(self, job: Job) -> Callable[["DataFrame", int], None]:
        def each(_: "DataFrame", batch_id: int) -> None:
            with self._busy:
                if self._ending.is_set():
                    raise Stopped
                try:
                    done = job.batch(batch_id)
                except BaseException as error:
                    self._failure = error
                    raise
            self.on_batch(done)

        return each

    def _follow(self, samples: SamplesJob | None, join: Callable[[], None], *, once: bool) -> None:
        """Until a query has ended (with `once` all), or has been told to.

        `join` starts the queries of other streams; the first batch of samples, if they are wanted, goes before them.
        """
        began, upto = time.monotonic(), -1 if samples is None else samples.last_number
        is_first_done = samples is None or self._has_first or not self.lake.drains(LEASE).is_dir()
        while not self._ending.is_set():
            if samples is not None and not is_first_done:
                is_active = self._queries[LEASE].isActive
                is_first_done = samples.last_number > upto or not is_active or time.monotonic() - began > FIRST_S
            if is_first_done and self._failure is None:
                join()
            self._begin_again()
            if (is_first_done and self._is_over(once=once)) or self._ending.wait(POLL_S):
                break
            self._executors.look(time.monotonic())
            self._fold_when_idle()
        self._end()

    def _begin_again(self) -> None:
        """Start a query anew whose Python process has ended, or came too late: a few times between two batches."""
        for name, (writer, job) in self._writers.items():
            query = self._queries[name]
            if self._failure is not None or query.isActive or not _is_without_python(query.exception()):
                continue
            behind, times = self._begun.get(name, (job.last_number, 0))
            times = times if behind == job.last_number else 0
            if times < BEGUN_MAX:
                self._begun[name] = job.last_number, times + 1
                self._queries[name] = writer.start()

    def _end(self) -> None:
        """Let every query finish its batch; whatever ended one of them by itself is raised."""
        was_told, has_failed = self._ending.is_set(), self._failure is not None
        self._ending.set()
        have_ended = [query for query in self._queries.values() if not query.isActive]
        for query in self._queries.values():
            if query.isActive:
                if self._busy.acquire(timeout=FINISH_S):
                    self._busy.release()
                elif was_told:
                    self._is_cut = True
                query.stop()
        if not (was_told or has_failed):  # a batch that was broken off meanwhile is a consequence
            for query in have_ended:
                query.awaitTermination()

    def _is_over(self, *, once: bool) -> bool:
        have_ended = [not query.isActive for query in self._queries.values()]
        return self._failure is not None or (all(have_ended) if once else any(have_ended))

    def _fold_when_idle(self) -> None:
        """Gold tables follow when nothing arrives any more; and time alone makes a hole overdue. Then upkeep has its turn."""
        for job in self._jobs:
            if job.is_fold_due(time.monotonic()) and self._busy.acquire(blocking=False):
                try:
                    job.fold()
                finally:
                    self._busy.release()
        if self._upkeep is not None:
            self._upkeep.turn(self._busy)


def refuse_odd(lake: Layout) -> None:
    """UserError `bad-directory` for a lake whose path has characters that Spark or Delta take for something else."""
    root = str(lake.root.absolute())
    if odd := sorted(set(root) & ODD):
        raise UserError(
            "bad-directory",
            f"{root!r} has {' '.join(map(repr, odd))} in its name",
            "move the lake, or mount it elsewhere",
        )


def _lost(error: Exception, spark: "SparkSession", options: Options) -> UserError | None:
    """Which process of Spark's is gone, if that is what ended the driver; None: something else did."""
    again = AGAIN.format(options.log)
    if options.remote is not None:
        gone = UserError("unavailable", f"{options.remote} answers no more", REMOTE_AGAIN)
        return None if answers(spark) else gone
    if not is_running(ENDING_S):
        return UserError("unavailable", "Spark's Java process has ended", again)
    if _is_without_python(error):
        return UserError("unavailable", "a Python process of Spark's has ended, or did not start in time", again)
    return None


def _is_without_python(error: BaseException | None) -> bool:
    return error is not None and any(words in str(error) for words in WITHOUT_PYTHON)


def _explained(error: WeftError) -> UserError:
    if isinstance(error, SegmentFault):
        return UserError(error.code, str(error), GONE_AGAIN)
    return UserError("lost-lease", str(error), "weft lake run again, when the other driver has ended")
