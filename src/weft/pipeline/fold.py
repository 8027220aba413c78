"""Gold tables that are folded, not appended (PIP-045, PIP-050, PIP-060): old rows and what is new since, in one commit.

Each table keeps in its own log up to which batch it is folded, as the app transaction of the commit that folded it. So
a fold that is repeated after a crash finds its mark and adds nothing twice. A batch that has not been folded is still
in every answer: `weft sql` adds what stands in silver behind the mark.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from weft.pipeline.completeness import COLUMNS, OVERDUE_NS, rows_of
from weft.pipeline.delta import Tables
from weft.pipeline.tables import (
    BRONZE_SAMPLES,
    COMPLETENESS,
    LATEST,
    QUARANTINE,
    ROLLUP_1D,
    ROLLUP_1H,
    ROLLUP_1M,
    SAMPLES,
    VALUES,
    Table,
)
from weft.pipeline.transforms.completeness import completeness, summed, tallies, tallies_of
from weft.pipeline.transforms.latest import latest, newest
from weft.pipeline.transforms.rollup import FILE_WIDTHS, file_of, merged, parts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from weft.pipeline.coverage import Coverage

ROLLUPS: Final = (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D)
SPANS_MAX: Final = 24  # touched stretches of time named one by one; more are taken as one
_SPLIT: Final = "_file"


class Fold:
    """Brings the gold tables up to a batch."""

    def __init__(self, tables: Tables, about: Mapping[str, str]) -> None:
        self.tables, self.about = tables, about

    def all(self, coverage: "Coverage", upto: int, now: int) -> None:
        """Every gold table, up to and with batch `upto`, whose state is `coverage`; `now` in nanoseconds."""
        self.rollups(upto)
        self.latest(upto)
        self.completeness(coverage, upto, now)

    def since(self, table: Table, mark: int, upto: int) -> "DataFrame":
        """The rows of a silver table that batches `mark + 1` to `upto` wrote."""
        files = self.tables.files(table, f"batch > {mark} AND batch <= {upto}")
        rows = self.tables.read(table, files)
        return rows.where(F.col("batch").between(mark + 1, upto))

    def rollups(self, upto: int) -> None:
        """Roll-ups of all widths: the files that a new value touches are replaced by old rows and new parts."""
        marks = {table.full_name: self.tables.committed(table) for table in ROLLUPS}
        for mark in set(marks.values()):
            behind = [table for table in ROLLUPS if marks[table.full_name] == mark and mark < upto]
            if not behind:
                continue
            parts = merged(parts_of(self.since(VALUES, mark, upto)), ROLLUP_1M).persist()
            for table in behind:
                self._rollup(table, merged(parts, table), upto)
            parts.unpersist()

    def _rollup(self, table: Table, parts: "DataFrame", upto: int) -> None:
        columns = table.schema.names
        touched = sorted(row[0] for row in parts.select(file_of(table)).distinct().collect())
        old = self._files_between(table, touched)
        rows = parts if not old else merged(self.tables.read(table, old).select(*columns).unionByName(parts), table)
        fresh = rows.withColumn(_SPLIT, file_of(table)).coalesce(1)
        added = self.tables.write(table, fresh, upto, split=_SPLIT) if touched else []
        self.tables.commit(table, upto, added, self.about, remove=self.tables.relative(table, old))

    def _files_between(self, table: Table, touched: list[str]) -> list[str]:
        """The files that may hold windows of these stretches of time."""
        width = FILE_WIDTHS[table.full_name]
        found: dict[str, None] = {}
        for start, end in _spans(touched, width):
            window = f"window_start >= '{start:%Y-%m-%dT%H:%M:%SZ}' AND window_start < '{end:%Y-%m-%dT%H:%M:%SZ}'"
            found.update(dict.fromkeys(self.tables.files(table, window)))
        return list(found)

    def latest(self, upto: int) -> None:
        """`gold.latest`, rewritten: one row per series and node."""
        mark = self.tables.committed(LATEST)
        if mark >= upto:
            return
        fresh = newest(self.since(SAMPLES, mark, upto), self.since(VALUES, mark, upto))
        self._replace(LATEST, latest(self.tables.read(LATEST), fresh), upto)

    def completeness(self, coverage: "Coverage", upto: int, now: int) -> None:
        """`gold.completeness`, rewritten: one row per origin and era. Again at the same batch if only time has passed."""
        mark = self.tables.committed(COMPLETENESS)
        fresh = tallies(
            self.since(BRONZE_SAMPLES, mark, upto), self.since(SAMPLES, mark, upto), self.since(QUARANTINE, mark, upto)
        )
        counted = summed(tallies_of(self.tables.read(COMPLETENESS)).unionByName(fresh))
        wanted = COMPLETENESS.spark()
        rows = [tuple(row[name] for name in COLUMNS) for row in rows_of(coverage, "samples", upto, now)]
        schema = type(wanted)([wanted[name] for name in COLUMNS])
        ranges = self.tables.spark.createDataFrame(rows, schema)
        silent_before = F.lit(datetime.fromtimestamp((now - OVERDUE_NS) / 1e9, UTC))
        self._replace(COMPLETENESS, completeness(ranges, counted, silent_before), upto)

    def _replace(self, table: Table, rows: "DataFrame", upto: int) -> None:
        old = self.tables.files(table)
        added = self.tables.write(table, rows.coalesce(1), upto)
        self.tables.commit(table, upto, added, self.about, remove=self.tables.relative(table, old))


def _spans(touched: list[str], width: str) -> list[tuple[datetime, datetime]]:
    """Stretches of time that these file names cover, neighbours joined; many are taken as one."""
    spans: list[tuple[datetime, datetime]] = []
    for name in touched:
        start = datetime.strptime(name, "%Y%m%d%H").replace(tzinfo=UTC)
        end = _after(start, width)
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans if len(spans) <= SPANS_MAX else [(spans[0][0], spans[-1][1])]


def _after(start: datetime, width: str) -> datetime:
    """The end of a file's stretch of time."""
    if width == "hour":
        return start + timedelta(hours=1)
    if width == "day":
        return start + timedelta(days=1)
    return (start + timedelta(days=32)).replace(day=1)
