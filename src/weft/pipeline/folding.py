"""A fold beside the batches, in a thread and a Spark session of its own (PIP-045): no batch waits for it.

A batch commits to bronze and silver, a fold to gold. The fold reads files of batches that are in all their tables; no batch
deletes a file, and upkeep waits for the end of the fold. One fold runs at a time in a process, because jobs share a table of
gold.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.pipeline.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POOL: Final = "folds"
"""Spark's scheduler shares the cores fairly between the tasks of this pool and those of batches."""
_ALONE: Final = threading.Lock()


def session_beside(spark: "SparkSession") -> "SparkSession":
    """A session for folds, whose settings no batch changes. Spark Connect makes none, so there it is the same one."""
    return spark if is_remote(spark) else spark.newSession()


class Folding:
    """A fold up to batch `upto`, begun by making it."""

    def __init__(self, spark: "SparkSession", upto: int, fold: Callable[[], None]) -> None:
        from pyspark import InheritableThread

        self.upto = upto
        self._spark, self._fold = spark, fold
        self._trouble: BaseException | None = None
        self._thread = InheritableThread(target=self._run, session=spark, name="fold", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """Wait for its end. Raises what ended it early; what it has committed by then stays."""
        self._thread.join()
        if self._trouble is not None:
            raise self._trouble

    def _run(self) -> None:
        try:
            if not is_remote(self._spark):
                self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
            with _ALONE:
                self._fold()
        except BaseException as error:  # noqa: BLE001  # raised by `end`
            self._trouble = error
