"""The streaming query around a job: triggers, stop, and what it says of each batch (PIP-020, PIP-027, PIP-080)."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.lake.layout import Layout
from weft.pipeline.job import JOB, Done, JobOptions, SamplesJob
from weft.pipeline.lease import Lease
from weft.pipeline.session import Options, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER: Final = "1 second"
POLL_S: Final = 1


class Runner:
    """Runs the samples job of a lake until it is stopped, or until everything that exists is in the tables."""

    def __init__(self, lake: Layout, on_batch: Callable[[Done], None], options: JobOptions | None = None) -> None:
        self.lake, self.on_batch = lake, on_batch
        self.options = options or JobOptions()
        self._stop = threading.Event()

    def stop(self) -> None:
        """Finish the batch, fold, and end."""
        self._stop.set()

    def run(self, spark_options: Options, *, once: bool = False) -> None:
        """Run. UserError `lease-held`, `no-java`, `checkpoint-missing`; a failed batch raises what failed it."""
        with Lease(self.lake, JOB) as lease:
            spark = session(spark_options._replace(inherited=(lease.descriptor,)))
            job = SamplesJob(self.lake, spark, lease.epoch, self.options)
            stream = spark.readStream.format("weft").option("lake", str(self.lake.root)).option("stream", JOB)
            writer = stream.option("consumer", JOB).load().writeStream.foreachBatch(self._each(job))
            writer = writer.option("checkpointLocation", str(self.lake.checkpoint(JOB)))
            writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
            self._follow(writer.start())
            job.fold()
            spark.stop()

    def _each(self, job: SamplesJob) -> Callable[["DataFrame", int], None]:
        def each(_: "DataFrame", batch_id: int) -> None:
            self.on_batch(job.batch(batch_id))

        return each

    def _follow(self, query: "StreamingQuery") -> None:
        while not query.awaitTermination(POLL_S):
            if self._stop.is_set():
                query.stop()
                return
