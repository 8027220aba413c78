"""Days of roll-ups that are made anew, since values of them were replaced (PIP-099).

What is measured here is only ever added, so a roll-up is its old rows and the new parts. Of a dataset a later import may
bring a sample between two others; the value of the later one is then replaced, and what was folded of the old one
cannot be taken out of a least, a greatest, a first or a sum. So for each series and day of which a fresh value belongs to a
dataset, the windows are made of all values of that day, and the old ones are dropped.

Whether there are such values is seen from the log: its statistics count the nulls of `dataset`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from weft.pipeline.delta import Tables
from weft.pipeline.tables import VALUES
from weft.pipeline.transforms.imported import days_of, of_days, outside_days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_BYTES_MAX: Final = 8 << 20
FRESH: Final = "dataset IS NOT NULL AND batch > {mark} AND batch <= {upto}"
"""Files with fresh values of datasets, for Delta's log."""


class Redone(NamedTuple):
    """Which windows are to be made anew, and of what."""

    days: "DataFrame"
    """node, series, day."""
    values: "DataFrame"
    """All values of these."""
    is_small: bool

    def all_of(self, fresh: "DataFrame") -> "DataFrame":
        """Fresh values, and old ones of the days that are made anew, each once."""
        return outside_days(fresh, self.days, F.col("r.day")).unionByName(self.values)

    def kept(self, windows: "DataFrame") -> "DataFrame":
        """Old windows of other days."""
        return outside_days(windows, self.days, F.to_date("r.window_start"))


def redone_since(tables: Tables, mark: int, upto: int) -> Redone | None:
    """What batches `mark + 1` to `upto` make necessary; None: nothing, as long as nothing is imported."""
    files = tables.files(VALUES, FRESH.format(mark=mark, upto=upto))
    if not files:
        return None
    days = days_of(tables.read(VALUES, files).where(F.col("batch").between(mark + 1, upto)))
    first, last = days.agg(F.min("day"), F.max("day")).collect()[0]
    if first is None:
        return None
    there = tables.files(VALUES, f"day >= CAST('{first}' AS DATE) AND day <= CAST('{last}' AS DATE)")
    values = tables.read(VALUES, there).where(F.col("batch") <= upto)
    is_small = sum(Path(file).stat().st_size for file in there) < SMALL_BYTES_MAX
    return Redone(days, of_days(values, days), is_small)
