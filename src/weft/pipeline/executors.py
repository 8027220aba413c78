"""Whether a driver on a cluster has somebody to work for it (PIP-081).

Spark waits for ever where a cluster has gone away or has no room, and says nothing. A driver without executors for a
minute ends with one sentence; what it had begun is repeated at the next start, as after any crash.
"""

from typing import TYPE_CHECKING, Any, Final

from weft.base.errors import UserError
from weft.pipeline.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S: Final = 2.0
PATIENCE_S: Final = 60.0  # a worker that died is back with an executor within seconds, on a busy machine in thirty


class Executors:
    """Counts them, from time to time."""

    def __init__(self, spark: "SparkSession", master: str) -> None:
        self.spark, self.master = spark, master
        self._looked_at = self._seen_at = -1.0

    def look(self, now: float) -> None:
        """UserError `unavailable` (3) if there has been none for too long; `now` is monotonic, in seconds."""
        if is_local(self.master) or now - self._looked_at < EVERY_S:
            return
        self._looked_at = now
        if self._seen_at < 0 or self._count() > 0:
            self._seen_at = now
        if now - self._seen_at > PATIENCE_S:
            raise UserError(
                "unavailable",
                f"nobody works for this driver at {self.master}: no executor for {PATIENCE_S:.0f} s",
                "look whether the cluster is there and has free cores; then weft lake run again",
            )

    def _count(self) -> int:
        context: Any = self.spark.sparkContext._jsc  # PySpark has no name for it
        return int(context.sc().getExecutorMemoryStatus().size()) - 1  # the driver is one of them
