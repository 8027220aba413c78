"""Folds new values into the gold tables (PIP-045, PIP-050): a commit replaces rows by rows that have old and new values.

The commit also records the last batch that was folded (the *mark*), as an app transaction in the table's log. So a fold
that is repeated after a crash adds nothing twice. Answers of `weft sql` include batches that are not folded yet: it adds
the rows of silver after the mark.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from weft.pipeline.delta import DataFile, Tables
from weft.pipeline.late import Late
from weft.pipeline.tables import (
    CORRECTIONS,
    LATEST,
    ROLLUP_1D,
    ROLLUP_1H,
    ROLLUP_1M,
    SAMPLES,
    VALUES,
    Table,
)
from weft.pipeline.transforms.imported import days_of, of_days, outside_days
from weft.pipeline.transforms.latest import latest, newest
from weft.pipeline.transforms.rollup import (
    FILE_WIDTHS,
    counted,
    file_of,
    merged,
    parts_of,
    windows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECOMPUTED_SMALL_BYTES_MAX: Final = 8 << 20  # of Parquet; up to this size one task computes the days
FRESH: Final = "dataset IS NOT NULL AND batch > {mark} AND batch <= {upto}"
"""A condition on Delta's log: files with fresh values of datasets."""


class Recomputed(NamedTuple):
    """Days of roll-ups that are computed anew from all their values, because an import changed some (PIP-099).

    Samples of nodes are only added, so a roll-up is its old rows plus the new values. An import of a dataset may bring
    a sample between two others. The value of the later one is then replaced, and the old value cannot be removed from a
    minimum, maximum, first or sum. So for each series and day with a fresh value of a dataset, the windows are computed
    from all values of that day, and the old ones are dropped. Delta's log shows whether there are such values: its
    statistics count the nulls of `dataset`.
    """

    days: "DataFrame"
    """Columns: node, series, day."""
    values: "DataFrame"
    """All values of these series on these days."""
    is_small: bool

    def all_of(self, fresh: "DataFrame") -> "DataFrame":
        """The fresh values of other days, and all values of the days that are computed anew."""
        return outside_days(fresh, self.days, F.col("r.day")).unionByName(self.values)

    def other_windows(self, windows: "DataFrame") -> "DataFrame":
        """The old windows of the other days."""
        return outside_days(windows, self.days, F.to_date("r.window_start"))


def recomputed_since(tables: Tables, mark: int, upto: int) -> Recomputed | None:
    """The days that must be computed anew because of batches `mark + 1` to `upto`; None if these imported nothing."""
    files = tables.files(VALUES, FRESH.format(mark=mark, upto=upto))
    if not files:
        return None
    days = days_of(tables.read(VALUES, files).where(F.col("batch").between(mark + 1, upto)))
    first, last = days.agg(F.min("day"), F.max("day")).collect()[0]
    if first is None:
        return None
    there = tables.files(VALUES, f"day >= CAST('{first}' AS DATE) AND day <= CAST('{last}' AS DATE)")
    values = tables.read(VALUES, there).where(F.col("batch") <= upto)
    is_small = sum(Path(file).stat().st_size for file in there) < RECOMPUTED_SMALL_BYTES_MAX
    return Recomputed(days, of_days(values, days), is_small)


ROLLUPS: Final = (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D)
SPANS_MAX: Final = 24  # time ranges in a search for files; more are merged into one
SMALL_BYTES_MAX: Final = 2 << 20  # of Parquet, some 200,000 rows; up to this size one task is faster than several
STEP_ROWS: Final = 1_000_000  # values of one step, but for a single batch: each may be a window of its own
_SPLIT: Final = "_file"


class Fold:
    """Brings the gold tables up to a batch."""

    def __init__(self, tables: Tables, about: Mapping[str, str]) -> None:
        self.tables, self.about = tables, about

    def bring(self, upto: int) -> None:
        """Fold every gold table, up to and including batch `upto`."""
        for step in self._steps(upto):
            self.rollups(step)
            Late(self.tables, self.about, step).count()
            self.latest(step)

    def _steps(self, upto: int) -> Iterator[int]:
        """The batches up to which to fold, one after the other: a driver has no memory for all values of a long backlog."""
        mark = min(self.tables.committed(table) for table in (*ROLLUPS, LATEST))
        fresh: Counter[int] = Counter()
        for _, batch, rows in self.tables.statistics(VALUES, "max.batch", "num_records"):
            if batch is not None and mark < batch <= upto:
                fresh[batch] += rows or 0
        rows, last = 0, mark
        for batch in sorted(fresh):
            if rows and rows + fresh[batch] > STEP_ROWS:
                yield last
                rows = 0
            rows, last = rows + fresh[batch], batch
        yield upto

    def rollups(self, upto: int) -> None:
        """Fold roll-ups of all widths: files that new values concern are replaced.

        If a fold was interrupted after its corrections and before its hourly windows, it is finished first, up to the
        same batch: else the corrections would not fit the windows.
        """
        begun = self.tables.committed(CORRECTIONS)
        if self.tables.committed(ROLLUP_1H) < begun < upto:
            self.rollups(begun)
        behind: dict[int, list[Table]] = {}
        for table in ROLLUPS:
            behind.setdefault(self.tables.committed(table), []).append(table)
        for mark, same in behind.items():
            if mark < upto:
                self._roll_up(same, self._of_values(mark, upto), upto)

    def _roll_up(self, behind: list[Table], fresh: "Fresh", upto: int) -> None:
        parts = counted(parts_of(fresh.rows), ROLLUP_1M).persist()
        hours = [row[0] for row in parts.select(file_of(ROLLUP_1M)).distinct().collect()]
        for table in behind:
            self._replace_windows(table, fresh._replace(rows=parts), hours, upto)
        parts.unpersist()

    def _replace_windows(self, table: Table, parts: "Fresh", hours: list[str], upto: int) -> None:
        old = self._files_between(table, hours)
        is_small = parts.is_small and bytes_of(old) < SMALL_BYTES_MAX
        rows = windows_of(parts.rows.coalesce(1) if is_small else parts.rows, table)
        if old:
            held = self.tables.read(table, old).select(*table.file_columns())
            rows = rows.unionByName(held if parts.recomputed is None else parts.recomputed.other_windows(held))
        folded = merged(rows.coalesce(1) if is_small else rows, table).withColumn(_SPLIT, file_of(table))
        added = self.tables.write(table, folded.coalesce(1), upto, split=_SPLIT, is_small=is_small)
        if table is ROLLUP_1H:
            self._correct(old, added, upto)
        self.tables.commit(table, upto, added, self.about, remove=self.tables.relative(table, old))

    def _correct(self, old: list[str], added: "Sequence[DataFile]", upto: int) -> None:
        """Record which hourly windows late values are about to change."""
        new = [str(self.tables.path(ROLLUP_1H) / file.path) for file in added]
        Late(self.tables, self.about, upto).correct(self.tables.committed(ROLLUP_1H), old, new)

    def _files_between(self, table: Table, hours: list[str]) -> list[str]:
        """The files that may hold windows of the time ranges that contain these hours."""
        found: dict[str, None] = {}
        for start, end in _spans(hours, FILE_WIDTHS[table.full_name]):
            window = [("window_start", ">=", start), ("window_start", "<", end)]
            found.update(dict.fromkeys(self.tables.files(table, window)))
        return list(found)

    def latest(self, upto: int) -> None:
        """Rewrite `gold.latest`: one row per series and node."""
        mark = self.tables.committed(LATEST)
        if mark < upto:
            samples, values = self._since(SAMPLES, mark, upto), self._since(VALUES, mark, upto)
            self._replace(LATEST, latest(self.tables.read(LATEST), newest(samples.rows, values.rows)), upto)

    def _of_values(self, mark: int, upto: int) -> "Fresh":
        """The values that the roll-ups lack: fresh ones, and all values of days that must be computed anew."""
        fresh, recomputed = self._since(VALUES, mark, upto), recomputed_since(self.tables, mark, upto)
        if recomputed is None:
            return fresh
        return Fresh(recomputed.all_of(fresh.rows), fresh.is_small and recomputed.is_small, recomputed)

    def _since(self, table: Table, mark: int, upto: int) -> "Fresh":
        return fresh_of(self.tables, table, mark, upto)

    def _replace(self, table: Table, rows: "DataFrame", upto: int) -> None:
        old = self.tables.files(table)
        added = self.tables.write(table, rows.coalesce(1), upto, is_small=bytes_of(old) < SMALL_BYTES_MAX)
        self.tables.commit(table, upto, added, self.about, remove=self.tables.relative(table, old))


class Fresh(NamedTuple):
    """The new rows of a table."""

    rows: "DataFrame"
    is_small: bool
    recomputed: Recomputed | None = None
    """The days whose windows are computed from `rows` alone, without the old windows; None: no such days."""


def fresh_of(tables: Tables, table: Table, mark: int, upto: int) -> Fresh:
    """The rows that batches `mark + 1` to `upto` appended to a table."""
    files = tables.files(table, f"batch > {mark} AND batch <= {upto}")
    is_small = bytes_of(files) < SMALL_BYTES_MAX
    rows = tables.read(table, files)
    if not _hold_only(tables, table, files, range(mark + 1, upto + 1)):
        rows = rows.where(F.col("batch").between(mark + 1, upto))
    return Fresh(rows.coalesce(1) if is_small else rows, is_small)


def _hold_only(tables: Tables, table: Table, files: list[str], batches: range) -> bool:
    """Whether the log proves that all rows of these files belong to these batches. Then rows need no filter by batch.

    That saves time: a filter would have different numbers in each batch, and Spark would generate and compile code for
    each.
    """
    bounds = {path: (low, high) for path, low, high in tables.statistics(table, "min.batch", "max.batch")}
    unknown = (None, None)
    return all(bound in batches for path in tables.relative(table, files) for bound in bounds.get(path, unknown))


def bytes_of(files: list[str]) -> int:
    """The total size of some files."""
    return sum(Path(file).stat().st_size for file in files)


def _spans(hours: Iterable[str], width: str) -> list[tuple[datetime, datetime]]:
    """The time ranges of a width that contain these hours; adjacent ones are joined, and too many are merged into one."""
    starts = {_floor(datetime.strptime(hour, "%Y%m%d%H").replace(tzinfo=UTC), width) for hour in hours}
    spans: list[tuple[datetime, datetime]] = []
    for start in sorted(starts):
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], _after(start, width))
        else:
            spans.append((start, _after(start, width)))
    return spans if len(spans) <= SPANS_MAX else [(spans[0][0], spans[-1][1])]


def _floor(hour: datetime, width: str) -> datetime:
    """The start of the time range that contains an hour."""
    if width == "hour":
        return hour
    return hour.replace(hour=0) if width == "day" else hour.replace(hour=0, day=1)


def _after(start: datetime, width: str) -> datetime:
    """The end of the time range that begins at `start`."""
    if width == "hour":
        return start + timedelta(hours=1)
    if width == "day":
        return start + timedelta(days=1)
    return (start + timedelta(days=32)).replace(day=1)
