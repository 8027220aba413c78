"""Writes `gold.anomalies` (PIP-055): hours with fresh values are judged again, at most every ten minutes.

`weft.pipeline.transforms.anomalies` says what an hour is compared with. Of the last six hours, those with values of new
batches and the hours beside them are judged, because an anomaly can begin in one hour and end in the next. Their rows in
the table are replaced. Values that arrive later, and older hours whose usual values have changed since, are judged by `weft lake
anomalies --judge --since DAY`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from weft.pipeline.delta import Tables
from weft.pipeline.settings import MuteTable
from weft.pipeline.tables import ANOMALIES, LATEST, ROLLUP_1H, ROLLUP_1M, SERIES, VALUES, Table
from weft.pipeline.transforms.anomalies import (
    anomalies,
    bands,
    hours_of,
    odd_hours,
    stretches,
    unmuted,
    usual_hours,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVERY_S: Final = 600.0  # between two judgements
HOUR: Final = timedelta(hours=1)
BACK: Final = timedelta(hours=6)  # older hours cost as much each: they are compared with 2,000 means of each series
COMPARED: Final = timedelta(days=7)  # time before an hour that says what is usual
DAY: Final = timedelta(days=1)
_BACK_SQL: Final = f"interval {BACK // HOUR} hours"
_EVER_SQL: Final = "interval 100000 days"


class Anomalies:
    """Judges hours. Roll-ups and `gold.latest` must already be folded up to the requested batch.

    `about` is written into each commit.
    """

    def __init__(self, tables: Tables, about: Mapping[str, str], mutes: Sequence[MuteTable] = ()) -> None:
        self.tables, self.about, self.mutes = tables, about, mutes

    def bring(self, upto: int) -> None:
        """Judge the hours touched by new batches, up to and including `upto`."""
        mark = self.tables.committed(ANOMALIES)
        if mark >= upto:
            return
        newest = self._newest()
        if newest is not None:
            fresh = self._between(VALUES, "at", (newest - BACK - HOUR, newest + DAY))
            fresh = fresh.where(F.col("batch").between(mark + 1, upto))
            self._judge(hours_of(fresh.select("node", "at"), self._newest_of_nodes(), _BACK_SQL), upto)

    def since(self, day: datetime, upto: int) -> None:
        """Judge everything from this day (UTC) on, a day at a time."""
        newest, mark = self._newest(), self.tables.committed(ANOMALIES)
        while newest is not None and day <= newest:
            rows = self._between(ROLLUP_1H, "window_start", (day, day + DAY))
            hours = hours_of(rows.select("node", F.col("window_start").alias("at")), self._newest_of_nodes(), _EVER_SQL)
            self._judge(hours, upto if day + DAY > newest else mark)
            day += DAY

    def _judge(self, hours: "DataFrame", number: int) -> None:
        """Replace the table's rows for these hours; the commit carries the batch `number`."""
        judged = hours.coalesce(1).persist()
        try:
            first, last = judged.agg(F.min("hour"), F.max("hour")).collect()[0]
            if first is None:
                self.tables.mark(ANOMALIES, number, self.about)
                return
            start, end = first.astimezone(UTC), last.astimezone(UTC) + HOUR
            found = anomalies(self._find(judged, (start, end)), judged, number)
            self._replace(unmuted(found, self.tables.read(SERIES), self._is_muted()), judged, (start, end), number)
        finally:
            judged.unpersist()

    def _find(self, judged: "DataFrame", when: tuple[datetime, datetime]) -> "DataFrame":
        before = (when[0] - COMPARED, when[1])
        minutes, hours = (self._between(table, "window_start", before) for table in (ROLLUP_1M, ROLLUP_1H))
        rows = stretches(minutes.where(F.col("window_start") >= F.lit(when[0])), bands(minutes, judged))
        return rows.unionByName(odd_hours(hours, usual_hours(hours, judged)))

    def _replace(self, rows: "DataFrame", judged: "DataFrame", when: tuple[datetime, datetime], number: int) -> None:
        days = [("day", ">=", when[0].date().isoformat()), ("day", "<=", when[1].date().isoformat())]
        old = self.tables.files(ANOMALIES, days)
        if old:
            kept = F.broadcast(judged.where("is_kept").select("node", "hour"))
            rows = rows.unionByName(self.tables.read(ANOMALIES, old).join(kept, ["node", "hour"], "left_anti"))
        added = self.tables.write(ANOMALIES, rows.coalesce(1), number, is_small=True)
        if added or old:
            gone = self.tables.relative(ANOMALIES, old)
            self.tables.commit(ANOMALIES, number, added, self.about, remove=gone)
        else:
            self.tables.mark(ANOMALIES, number, self.about)

    def _between(self, table: Table, column: str, when: tuple[datetime, datetime]) -> "DataFrame":
        files = self.tables.files(table, [(column, ">=", when[0]), (column, "<", when[1])])
        rows = self.tables.read(table, files)
        return rows.where((F.col(column) >= F.lit(when[0])) & (F.col(column) < F.lit(when[1])))

    def _newest_of_nodes(self) -> "DataFrame":
        return (
            self.tables.read(LATEST).groupBy("node").agg(F.max("result_at").alias("newest")).where("newest is not null")
        )

    def _newest(self) -> datetime | None:
        (found,) = self._newest_of_nodes().agg(F.max("newest")).collect()
        return None if found[0] is None else found[0].astimezone(UTC)

    def _is_muted(self) -> "Column":
        return reduce(lambda one, other: one | other, map(muted_by, self.mutes), F.lit(False))


def muted_by(mute: MuteTable) -> "Column":
    """A condition: the row is muted. It compares node, config_name and kind, and the labels of the series."""
    wanted = {"node": mute.node, "config_name": mute.config_name, "kind": mute.kind}
    fits = [F.col(name) == value for name, value in wanted.items() if value]
    fits += [F.col("labels")[name] == value for name, value in mute.labels.items()]
    return reduce(lambda one, other: one & other, fits, F.lit(True))
