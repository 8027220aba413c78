"""The driver: runs batches until it is stopped or everything is in the tables (PIP-020, PIP-023, PIP-080, PIP-100).

One thread takes batches, stream after stream, on this machine, on a cluster, or through Spark Connect. The job of the
samples starts at once, with a small batch; the job of another stream starts when the samples have had their first batch
and a segment of that stream exists. Each stream has its own offsets, so a new stream does not affect the others; one
lease covers all of them. The gold tables are folded beside the batches, in another thread. The thread that called `run`
takes no batch. It checks that a cluster has executors, and after `stop` it waits at most 30 s for the batch; a batch that
is broken off is repeated at the next start.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weft.base.errors import UserError, WeftError
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.lake.offsets import At
from weft.lake.reader import SEGMENTS_MAX, Limits, Source
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.eventlog import FULL, note
from weft.pipeline.job import USUAL, Done, Job, JobOptions, SamplesJob
from weft.pipeline.kinds import KINDS
from weft.pipeline.lease import Lease, LeaseLost
from weft.pipeline.logtail import remove_torn
from weft.pipeline.remote import answers, is_remote
from weft.pipeline.rules import verify
from weft.pipeline.session import Options, is_local, is_running, session
from weft.pipeline.settings import settings_of
from weft.pipeline.upkeep.keeper import Upkeep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S: Final = 2.0  # between two looks at the executors
PATIENCE_S: Final = (
    60.0  # without executors; a worker that died has one again within seconds, or 30 s on a busy machine
)


class Executors:
    """Watches whether a driver on a cluster has executors (PIP-081).

    If a cluster is gone or full, Spark waits for ever without an error. So a driver that has no executors for a minute
    ends with an error; the next start repeats the batch, as after any crash.
    """

    def __init__(self, spark: "SparkSession", master: str) -> None:
        self.spark, self.master = spark, master
        self._looked_at = self._seen_at = -1.0

    def look(self, now: float) -> None:
        """Raise UserError `unavailable` (3) if there was no executor for too long; `now` is monotonic, in seconds."""
        if is_local(self.master) or now - self._looked_at < EVERY_S:
            return
        self._looked_at = now
        if self._seen_at < 0 or self._count() > 0:
            self._seen_at = now
        if now - self._seen_at > PATIENCE_S:
            raise UserError(
                "unavailable",
                f"the cluster at {self.master} has given this driver no executor for {PATIENCE_S:.0f} s",
                "check that the cluster runs and has free cores; then weft lake run again",
            )

    def _count(self) -> int:
        context: Any = self.spark.sparkContext._jsc  # PySpark has no method for it
        return int(context.sc().getExecutorMemoryStatus().size()) - 1  # the list includes the driver


LEASE: Final = "samples"
"""The name of the lease: one driver runs all jobs of a lake."""
FIRST: Final = Limits(20_000, SEGMENTS_MAX, is_whole=True)
"""Limit of the first batch of samples: its rows can be queried before everything else is compiled and started."""
TURN_S: Final = 1.0  # from the start of a batch to that of the next of its stream, unless the batch takes longer
POLL_S: Final = 0.25  # between two looks for new segments
AGAIN: Final = "weft lake run again, which continues where it was; why Java ended may be in {}"
GONE_AGAIN: Final = (
    "weft lake check, and put the segment back from a copy,"
    " or give it up: weft lake skip DRAIN:N --stream S --reason TEXT"
)
REMOTE_AGAIN: Final = "check that the server runs; then weft lake run again, which continues where it was"
ROOM: Final = "make room on it, or look for its errors (dmesg); then weft lake run, which continues where it was"
ENDING_S: Final = 2.0  # wait for Java's end: a killed process closes its sockets some time before it has ended
STOPPING_S: Final = 15.0  # the same if Java may have been stopped by a signal: then it runs its hooks first
ODD: Final = frozenset("[]{}*?%#\\\n\r\t")
"""Characters in a path that Spark takes for a pattern, or Delta for a part of a URL."""
FINISH_S: Final = 30.0  # time of a running batch to finish after `stop`


class Runner:
    """Runs the jobs of a lake until it is stopped, or until everything that exists is in the tables."""

    def __init__(self, lake: Layout, on_batch: Callable[[Done], None], options: JobOptions | None = None) -> None:
        self.lake, self.on_batch = lake, on_batch
        self.options = options or JobOptions()
        self._ending = threading.Event()
        self._is_cut = False
        """Whether a batch that took too long to end was broken off; the next driver repeats it."""
        self._jobs: dict[str, Job] = {}
        self._until: dict[str, At] = {}
        """With `once`: the end of each stream when the driver began; nothing after it is taken."""
        self._due: dict[str, float] = {}
        """When a stream may have its next batch, monotonic seconds."""
        self._upkeep: Upkeep | None = None

    def stop(self) -> None:
        """Finish the batch, fold, and end. May be called from a signal handler, and before `run`."""
        self._ending.set()

    def run(self, spark_options: Options, *, once: bool = False, wait_s: float = 0.0, takes_over: bool = False) -> None:
        """Run until stopped; with `once`, until everything is done that existed when Spark had started.

        `wait_s`: how many seconds to wait for another driver to end. `takes_over`: kill one that hangs (`Lease`).

        UserError `bad-directory`, `lease-held` (75), `lost-lease` (76), `no-java` (78), `checkpoint-missing`,
        `segment-gone`, `segment-changed`, `segment-unreadable`, `offset-mismatch`, `newer-lake`, `storage-failed` (74),
        `unavailable` (3; Spark's Java has ended, or a cluster has no executor left). Any other error of a batch is raised unchanged.
        """
        refuse_odd(self.lake)
        with Lease(self.lake, LEASE, wait_s, self._ending, takes_over=takes_over) as lease:
            partitions = Checkpoint(self.lake, LEASE).partitions()
            spark = session(spark_options._replace(inherited=(lease.descriptor,), partitions=partitions))
            try:
                self._run(spark, lease.epoch, once=once)
            except (LeaseLost, SegmentFault) as error:
                raise _explained(error) from error
            except UserError:
                raise
            except Exception as error:
                is_stopping = self._ending.is_set()
                lost = _lost(spark, spark_options, STOPPING_S if is_stopping else ENDING_S)
                if (why := lost or _of_disk(self.lake, error)) is None:
                    raise
                if not (
                    lost and is_stopping
                ):  # else the signal that stopped this driver also ended its Java: not an error
                    raise why from error
            finally:
                if self._upkeep is not None:
                    self._upkeep.close()
                if is_running():
                    spark.stop()

    def _run(self, spark: "SparkSession", epoch: int, *, once: bool) -> None:
        verify(spark, self.options.rules)
        for name, files in remove_torn(self.lake).items():
            note(self.lake, "log-mended", table=name, files=files)
        self._upkeep = Upkeep(self.lake, epoch, settings_of(self.lake).keep)
        self._follow(spark, partial(self._take_turns, spark, epoch, once=once))
        if self._is_cut:
            return
        for job in self._jobs.values():
            job.fold_if_behind()
        if is_remote(spark):
            spark.stop()  # ends the session in the server

    def _follow(self, spark: "SparkSession", take: Callable[[], None]) -> None:
        """Let a thread take batches until it ends; the error that ended it is raised here."""
        failures: list[BaseException] = []

        def taking() -> None:
            try:
                take()
            except BaseException as error:  # noqa: BLE001  # raised below, in the waiting thread
                failures.append(error)

        thread = threading.Thread(target=taking, name="batches", daemon=True)
        thread.start()
        executors = None if is_remote(spark) else Executors(spark, str(spark.sparkContext.master))
        stopped_at: float | None = None
        while thread.is_alive():
            thread.join(POLL_S)
            now = time.monotonic()
            if executors is not None:
                executors.look(now)
            if self._ending.is_set():
                stopped_at = now if stopped_at is None else stopped_at
                if now - stopped_at >= FINISH_S and thread.is_alive():
                    self._is_cut = True
                    return
        if failures:
            raise failures[0]

    def _take_turns(self, spark: "SparkSession", epoch: int, *, once: bool) -> None:
        """Batch after batch, the streams one after the other."""
        wanted = self.options.streams or tuple(KINDS)
        if once:
            wanted = self._note_ends(wanted)
        streams, limits = [name for name in wanted if name == LEASE] or wanted, FIRST
        while not self._ending.is_set():
            for name in [name for name in streams if name not in self._jobs and self.lake.drains(name).is_dir()]:
                self._begin(name, spark, epoch)
            idle = [job for job in self._jobs.values() if not self._take(job, limits, once=once)]
            self._beside_batches()
            is_first, streams, limits = streams != wanted, wanted, USUAL
            if not is_first and len(idle) == len(self._jobs) and (once or self._ending.wait(POLL_S)):
                break

    def _note_ends(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Note where each stream ends now: what comes later is not taken. Returns the streams that exist."""
        drained = tuple(name for name in wanted if self.lake.drains(name).is_dir())
        self._until = {name: Source(self.lake, name).latest() for name in drained}
        return drained

    def _begin(self, name: str, spark: "SparkSession", epoch: int) -> None:
        kind = SamplesJob if name == LEASE else partial(Job, KINDS[name])
        self._jobs[name] = kind(self.lake, spark, epoch, self.options)

    def _take(self, job: Job, limits: Limits, *, once: bool) -> bool:
        """Do the next batch of a stream if it is due and there is input; returns whether it was done."""
        name, now = job.kind.stream, time.monotonic()
        if self._ending.is_set() or (not once and now < self._due.get(name, now)):
            return False
        done = job.take(limits, self._until.get(name))
        if done is None:
            return False
        self._due[name] = now + TURN_S
        self.on_batch(done)
        return True

    def _beside_batches(self) -> None:
        """See to the folds, which go on beside the batches; then let upkeep run, but never while a fold has begun."""
        for job in self._jobs.values():
            if job.is_fold_due(time.monotonic()):
                job.fold_on()
        if self._upkeep is not None and not any(job.is_folding for job in self._jobs.values()):
            self._upkeep.turn()


def refuse_odd(lake: Layout) -> None:
    """UserError `bad-directory` for a lake whose path has characters of `ODD`."""
    root = str(lake.root.absolute())
    if odd := sorted(set(root) & ODD):
        raise UserError(
            "bad-directory",
            f"{root!r} has {' '.join(map(repr, odd))} in its name",
            "move the lake, or mount it elsewhere",
        )


def _lost(spark: "SparkSession", options: Options, patience_s: float = ENDING_S) -> UserError | None:
    """The error to report if Spark's process has ended, or does within `patience_s` seconds; None if it has not."""
    if options.remote is not None:
        gone = UserError("unavailable", f"{options.remote} does not answer any more", REMOTE_AGAIN)
        return None if answers(spark) else gone
    if not is_running(patience_s):
        return UserError("unavailable", "Spark's Java process has ended", AGAIN.format(options.log))
    return None


def _explained(error: WeftError) -> UserError:
    if isinstance(error, SegmentFault):
        return UserError(error.code, str(error), GONE_AGAIN)
    return UserError("lost-lease", str(error), LeaseLost.mend)


def _of_disk(lake: Layout, error: Exception) -> UserError | None:
    """The error to report if the disk has refused to read or to write; None if it has not."""
    is_told = getattr(error, "errno", None) is not None or FULL not in str(error)
    why = " ".join(str(error).split()) if is_told else FULL  # Spark and deltalake wrap it in many lines
    is_of_system = isinstance(error, OSError) and not isinstance(error, ConnectionError | TimeoutError)
    if not is_of_system and FULL not in str(error):
        return None
    return UserError("storage-failed", f"the disk of {lake.root} refuses: {why}", ROOM)
