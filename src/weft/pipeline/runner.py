"""The streaming query around a job: triggers, the end, and what it says of each batch (PIP-020, PIP-023, PIP-080).

Batches run in a thread of Spark's; folds while nothing arrives, and the end, come from the thread that called `run`.
A lock keeps them apart: whoever stops waits for the batch that is running, and the next one is left undone, to be
repeated at the next start.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from weft.base.errors import UserError, WeftError
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.delta import LeaseLost
from weft.pipeline.job import JOB, Done, JobOptions, SamplesJob
from weft.pipeline.lease import Lease
from weft.pipeline.session import Options, is_running, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER: Final = "1 second"
POLL_S: Final = 0.25
AGAIN: Final = "weft lake run again, it goes on where it was; why it ended may stand in {}"
ENDING_S: Final = 2.0  # a process that was killed closes its sockets some time before it has ended
FINISH_S: Final = 30.0  # how long a batch that is running may still take


class Stopped(Exception):
    """A batch that was not begun, because the end had come."""


class Runner:
    """Runs the samples job of a lake until it is stopped, or until everything that exists is in the tables."""

    def __init__(self, lake: Layout, on_batch: Callable[[Done], None], options: JobOptions | None = None) -> None:
        self.lake, self.on_batch = lake, on_batch
        self.options = options or JobOptions()
        self._ending = threading.Event()
        self._busy = threading.Lock()
        self._failure: BaseException | None = None

    def stop(self) -> None:
        """Finish the batch, fold, and end. May be called from a signal handler, and before `run`."""
        self._ending.set()

    def run(self, spark_options: Options, *, once: bool = False) -> None:
        """Run; returns when stopped, with `once` when everything that was there at the start is done.

        UserError `lease-held` (75), `lost-lease` (76), `no-java` (78), `checkpoint-missing`, `segment-gone`,
        `segment-changed`, `offset-mismatch`, `newer-lake`, `unavailable` (69; Spark's Java has ended). Whatever else
        fails a batch is raised as it is.
        """
        with Lease(self.lake, JOB) as lease:
            spark = session(spark_options._replace(inherited=(lease.descriptor,)))
            try:
                self._run(spark, lease.epoch, once=once)
            except (LeaseLost, SegmentFault) as error:
                raise _explained(error) from error
            except UserError:
                raise
            except Exception as error:
                if is_running(ENDING_S):
                    raise
                again = AGAIN.format(spark_options.log)
                raise UserError("unavailable", "Spark's Java process has ended", again) from error
            finally:
                if is_running():
                    spark.stop()

    def _run(self, spark: "SparkSession", epoch: int, *, once: bool) -> None:
        with ThreadPoolExecutor(1, "stream") as beside:  # Python's workers of the source start meanwhile
            stream = beside.submit(self._load, spark)
            job = SamplesJob(self.lake, spark, epoch, self.options)
        self._follow(self._start(stream.result(), job, once=once), job)
        if self._failure is not None:
            raise self._failure
        job.fold_if_behind()

    def _load(self, spark: "SparkSession") -> "DataFrame":
        start = Checkpoint(self.lake, JOB).start()
        stream = spark.readStream.format("weft").option("lake", str(self.lake.root)).option("stream", JOB)
        return stream.option("consumer", JOB).option("start", start).load()

    def _start(self, stream: "DataFrame", job: SamplesJob, *, once: bool) -> "StreamingQuery":
        writer = stream.writeStream.foreachBatch(self._each(job))
        writer = writer.option("checkpointLocation", str(self.lake.checkpoint(JOB)))
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)).start()

    def _each(self, job: SamplesJob) -> Callable[["DataFrame", int], None]:
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

    def _follow(self, query: "StreamingQuery", job: SamplesJob) -> None:
        """Until the query has ended, or has been told to."""
        while query.isActive and not self._ending.wait(POLL_S):
            self._fold_when_idle(job)
        if query.isActive:
            if self._busy.acquire(timeout=FINISH_S):
                self._busy.release()
            query.stop()
        elif self._failure is None and not self._ending.is_set():
            query.awaitTermination()  # raises what ended it, if anything did

    def _fold_when_idle(self, job: SamplesJob) -> None:
        """Gold tables follow when nothing arrives any more; and time alone makes a hole overdue."""
        if job.is_fold_due(time.monotonic()) and self._busy.acquire(blocking=False):
            try:
                job.fold()
            finally:
                self._busy.release()


def _explained(error: WeftError) -> UserError:
    if isinstance(error, SegmentFault):
        return UserError(error.code, str(error), "weft lake check, and put the segment back from a copy")
    return UserError("lost-lease", str(error), "weft lake run again, when the other driver has ended")
