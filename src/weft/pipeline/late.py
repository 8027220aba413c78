"""Counts late rows, and records which published values they changed (PIP-046).

A row is late if its time stamp is more than an hour older than the newest of its node, counted up to the batch that
brought it. Late values are folded like any other. They are counted in `meta.late`; for each hourly window that was
published and has changed, a row in `gold.corrections` has its former values. Usually nothing is late; the ranges in the
Delta log then prove that without reading a row.
"""

from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from weft.pipeline.delta import Tables
from weft.pipeline.tables import CORRECTIONS, LATE, LATEST, ROLLUP_1H, SAMPLES, VALUES, Table
from weft.pipeline.transforms.late import corrections, late_samples, late_windows, newest_as_of, stamps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

BEHIND: Final = timedelta(hours=1)  # a row that is further behind is late


class Late:
    """The late rows among those that the gold tables do not hold yet, up to and including batch `upto`."""

    def __init__(self, tables: Tables, about: "Mapping[str, str]", upto: int) -> None:
        self.tables, self.about, self.upto = tables, about, upto
        self.mark = tables.committed(LATEST)

    def is_possible(self) -> bool:
        """Whether there can be late rows, judged by the ranges of the files. False is certain, True is not."""
        fresh = [bounds for table in (SAMPLES, VALUES) for bounds in self._bounds(table, "at", self.mark)]
        known = [high for _, high in self._bounds(LATEST, "at")]
        lows, highs = [low for low, _ in fresh], [*known, *(high for _, high in fresh)]
        if None in lows or None in highs:
            return True
        return bool(lows) and min(lows) < max(highs) - BEHIND

    def count(self) -> None:
        """Add rows to `meta.late` for the batches that are not counted yet."""
        mark = max(self.mark, self.tables.committed(LATE))
        if mark < self.upto and self.is_possible():
            samples = self._since(SAMPLES, mark)
            files = self.tables.write(LATE, late_samples(samples, self._newest()).coalesce(1), self.upto, is_small=True)
            self.tables.commit(LATE, self.upto, files, self.about)

    def correct(self, mark: int, before: list[str], after: list[str]) -> None:
        """Add rows to `gold.corrections`: which windows a fold of `gold.rollup_1h` changes, by its old and its new files."""
        known = (high for _, high in self._bounds(ROLLUP_1H, "window_start") if high is not None)
        published = max(known, default=None)
        if published is None or self.tables.committed(CORRECTIONS) >= self.upto or not self.is_possible():
            return
        late = late_windows(self._since(VALUES, mark), self._newest())
        was, now = (self.tables.read(ROLLUP_1H, files) for files in (before, after))
        rows = corrections(was, now, late, F.lit(published.astimezone(UTC)))
        files = self.tables.write(CORRECTIONS, rows.coalesce(1), self.upto, is_small=True)
        self.tables.commit(CORRECTIONS, self.upto, files, self.about)

    def _newest(self) -> "DataFrame":
        fresh = stamps(self._since(SAMPLES, self.mark), self._since(VALUES, self.mark))
        return newest_as_of(self.tables.read(LATEST), fresh)

    def _since(self, table: Table, mark: int) -> "DataFrame":
        files = self.tables.files(table, f"batch > {mark} AND batch <= {self.upto}")
        return self.tables.read(table, files).where(F.col("batch").between(mark + 1, self.upto))

    def _bounds(self, table: Table, column: str, mark: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Minimum and maximum of a column in each file that holds batches after `mark`, according to the log."""
        for _, low, high, batch in self.tables.statistics(table, f"min.{column}", f"max.{column}", "max.batch"):
            if mark is None or batch is None or batch > mark:
                yield low, high
