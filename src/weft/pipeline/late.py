"""Which fresh rows are late, and what they have changed of what was published (PIP-046).

A row is late if its stamp lies over an hour behind the newest of its node, as of the batch that brought it. Nothing in the
tables depends on that: late values are parts like any other. It is counted (`meta.late`), and of each window of an hour
that the last fold could have shown, and that is another one now, a row in `gold.corrections` says how it was.

The usual fold brings nothing late, and the ranges in the Delta log prove that without a look at any row.
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

BEHIND: Final = timedelta(hours=1)


class Late:
    """What is late among the rows that the gold tables do not hold yet, up to and with batch `upto`."""

    def __init__(self, tables: Tables, about: "Mapping[str, str]", upto: int) -> None:
        self.tables, self.about, self.upto = tables, about, upto
        self.mark = tables.committed(LATEST)

    def may_be(self) -> bool:
        """Whether there can be late rows at all, as far as the ranges of the files say."""
        fresh = [bounds for table in (SAMPLES, VALUES) for bounds in self._bounds(table, "at", self.mark)]
        known = [high for _, high in self._bounds(LATEST, "at")]
        lows, highs = [low for low, _ in fresh], [*known, *(high for _, high in fresh)]
        if None in lows or None in highs:
            return True
        return bool(lows) and min(lows) < max(highs) - BEHIND

    def count(self) -> None:
        """`meta.late` of the batches that it does not count yet."""
        mark = max(self.mark, self.tables.committed(LATE))
        if mark < self.upto and self.may_be():
            samples = self._since(SAMPLES, mark)
            files = self.tables.write(LATE, late_samples(samples, self._newest()).coalesce(1), self.upto, is_small=True)
            self.tables.commit(LATE, self.upto, files, self.about)

    def correct(self, mark: int, before: list[str], after: list[str]) -> None:
        """`gold.corrections` of a fold of `gold.rollup_1h` behind `mark`: its files before, and those that replace them."""
        known = (high for _, high in self._bounds(ROLLUP_1H, "window_start") if high is not None)
        published = max(known, default=None)
        if published is None or self.tables.committed(CORRECTIONS) >= self.upto or not self.may_be():
            return
        late = late_windows(self._since(VALUES, mark), self._newest())
        was, now = (self.tables.read(ROLLUP_1H, files) for files in (before, after))
        rows = corrections(was, now, late, F.lit(published.astimezone(UTC)))
        files = self.tables.write(CORRECTIONS, rows.coalesce(1), self.upto, is_small=True)
        self.tables.commit(CORRECTIONS, self.upto, files, self.about)

    def _newest(self) -> "DataFrame":
        brought = stamps(self._since(SAMPLES, self.mark), self._since(VALUES, self.mark))
        return newest_as_of(self.tables.read(LATEST), brought)

    def _since(self, table: Table, mark: int) -> "DataFrame":
        files = self.tables.files(table, f"batch > {mark} AND batch <= {self.upto}")
        return self.tables.read(table, files).where(F.col("batch").between(mark + 1, self.upto))

    def _bounds(self, table: Table, column: str, mark: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Least and greatest of a column in each file, of those that hold batches behind `mark`; as the log has them."""
        for _, low, high, batch in self.tables.told(table, f"min.{column}", f"max.{column}", "max.batch"):
            if mark is None or batch is None or batch > mark:
                yield low, high
