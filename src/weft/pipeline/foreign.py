"""The extra steps of a batch of samples that contains datasets (PIP-097, PIP-099).

Foreign logs are ordered by file, not by time, and several files may have the same sample. So their rows are compared
with silver's rows of the same sources and days, and values are calculated in time order over all samples that silver
has of these series. Rows of earlier batches may change: a sample that another line contradicts becomes `ambiguous`, and
a pair of samples is divided if a new sample lies between them. Both changes are part of the commits that add the
batch's own rows.

Cost: the comparison reads the batch's days of silver, the values read all samples of its sources. Batches without a
dataset skip all of this.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from weft.pipeline.delta import Tables
from weft.pipeline.rewriting import UNCHANGED, Replaced, rewritten
from weft.pipeline.tables import SAMPLES, VALUES, Table
from weft.pipeline.transforms import imported
from weft.pipeline.transforms.columns import day_of

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

NAMED_MAX: Final = 1_000  # sources that a filter lists; of more, only the range of their ids is used


class Foreign:
    """The rows of datasets among those that a batch has accepted."""

    def __init__(self, tables: Tables, number: int, accepted: "DataFrame") -> None:
        self.tables, self.number = tables, number
        self.rows = accepted.where("dataset is not null")
        self.twins: DataFrame | None = None
        """The rows of `compared`, once the batch has computed and kept them."""
        day = day_of("at_ns")
        bounds = self.rows.agg(F.collect_set("origin"), F.min(day), F.max(day)).collect()[0]
        self.origins: frozenset[str] = frozenset(bounds[0])
        self.days: tuple[date, date] = bounds[1], bounds[2]

    def compared(self) -> "DataFrame":
        """These rows compared by `imported.twins` with what silver had of their sources and days before the batch."""
        first, last = self.days
        within = [f"day >= CAST('{first}' AS DATE)", f"day <= CAST('{last}' AS DATE)", f"batch < {self.number}"]
        samples = self._of_ours(SAMPLES, within).where(F.col("batch") < self.number)
        return imported.twins(self.rows, imported.held(samples.where(F.col("day").between(first, last))))

    def doubted(self) -> Replaced:
        """Files of silver whose samples these rows contradict, rewritten with the flag."""
        assert self.twins is not None
        return rewritten(self.tables, SAMPLES, _places(imported.doubted(self.twins)), _flagged)

    def pairs(self, samples: "DataFrame", batch: "Column") -> "DataFrame":
        """The pairs that `samples` (of the batch) form within all samples of their series. Silver must already have them."""
        lines = imported.lines(samples)
        held = self._of_ours(SAMPLES, [f"batch <= {self.number}"]).where(F.col("batch") <= self.number)
        return imported.in_time_order(held, lines, batch, self.number - 1)

    def divided(self, pairs: "DataFrame") -> Replaced:
        """Files of values, rewritten without the pairs that a new sample divides."""
        ids = pairs.where(~F.col("is_new")).select("origin", "era", "sequence", "day")
        first, last = ids.agg(F.min("day"), F.max("day")).collect()[0]
        if first is None:
            return UNCHANGED
        within = [f"day >= CAST('{first}' AS DATE)", f"day <= CAST('{last}' AS DATE)", f"batch < {self.number}"]
        found = imported.among(self._of_ours(VALUES, within), ids)
        return rewritten(self.tables, VALUES, _places(found), _without)

    def _of_ours(self, table: Table, within: Sequence[str]) -> "DataFrame":
        """Rows of a table that belong to the sources of these rows, from files that may satisfy all of `within`.

        Columns: those of the table, then the name of the file (`file`) and the row's number in it (`place`).
        """
        bounds = [f"origin >= '{min(self.origins)}'", f"origin <= '{max(self.origins)}'"]
        files = self.tables.files(table, " AND ".join((*bounds, *within)))
        where = ("_metadata.file_name", "_metadata.row_index") if files else ("null", "null")
        file, place = F.expr(where[0]).cast("string"), F.expr(where[1]).cast("bigint")
        rows = self.tables.read(table, files).select("*", file.alias("file"), place.alias("place"))
        return rows.where(F.col("origin").isin(*self.origins)) if len(self.origins) <= NAMED_MAX else rows


def _places(rows: "DataFrame") -> dict[str, list[int]]:
    """Row numbers by file name, for some rows."""
    found: dict[str, list[int]] = {}
    table = rows.select("file", "place").toArrow()
    for file, place in zip(table.column("file").to_pylist(), table.column("place").to_pylist(), strict=True):
        found.setdefault(file, []).append(place)
    return found


def _flagged(rows: "pa.Table", mask: "pa.Array") -> "pa.Table":
    """The rows; those in the mask have one more flag, `ambiguous`."""
    import pyarrow as pa

    column = rows.schema.get_field_index("flags")
    marked = zip(rows.column(column).to_pylist(), mask.to_pylist(), strict=True)
    flags = [[*(flags or ()), imported.AMBIGUOUS] if is_chosen else flags for flags, is_chosen in marked]
    return rows.set_column(column, rows.schema.field(column), pa.array(flags, rows.schema.field(column).type))


def _without(rows: "pa.Table", mask: "pa.Array") -> "pa.Table":
    """The rows that are not in the mask."""
    import pyarrow.compute as pc

    return rows.filter(pc.invert(mask))
