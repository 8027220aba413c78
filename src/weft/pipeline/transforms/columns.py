"""Column expressions that several transformations share: instants, identities, contents.

Building an expression costs a call into the JVM per node of it, a few hundred in all, which is what a small batch
mostly consists of. Expressions never change; so lists of them that every batch selects are built once and kept.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.judging import PAIRED

DAY_NS: Final = 86_400_000_000_000


@cache
def columns(*names: str) -> tuple[Column, ...]:
    """Columns by their names, made once."""
    return tuple(F.col(name) for name in names)


def with_others(names: Iterable[str], **made: Column) -> tuple[Column, ...]:
    """The named columns in order, those of `made` in their place: a `select` that is the contract of a table."""
    return tuple(made[name].alias(name) if name in made else F.col(name) for name in names)


def batch_mark(number: int) -> Column:
    """The number of a batch as a column that is not a constant to the code generator.

    A number would stand in the generated code, and every batch would compile its own classes; an array is handed over,
    and only a row tells which of its places is meant.
    """
    here = F.lit(number).cast("bigint")
    return F.get(F.array(here, here), F.isnull("origin").cast("int"))


@cache
def batch_in_name() -> Column:
    """The batch of a row of bronze: its own, or, in a segment that is a file of bronze, what the file's name says."""
    return F.coalesce("batch", F.expr("try_cast(substring(_metadata.file_name, 2, 10) as bigint)"))


def day_of(nanoseconds: str) -> Column:
    """UTC day of an instant; floor division that no stamp can overflow."""
    whole = F.expr(f"{nanoseconds} div {DAY_NS} - if({nanoseconds} % {DAY_NS} < 0, 1, 0)")
    return F.date_from_unix_date(whole.cast("int"))


def instant_of(nanoseconds: str) -> Column:
    """An instant in microseconds."""
    return F.timestamp_micros(F.expr(f"{nanoseconds} div 1000"))


def milliseconds(nanoseconds: str) -> Column:
    """An instant in whole milliseconds."""
    return F.expr(f"{nanoseconds} div 1000000")


def hashed(rows: DataFrame, key: Sequence[Column | str], added: Sequence[Column]) -> DataFrame:
    """Rows added up by key in a hash map, and in no order.

    Grain: one group. Key: `key`. Columns: those of the key, then `added`. Where only text and structs are added up, Spark
    sorts all rows by key; beside a list it does not, even beside one of nothing, if somebody asks for it.
    """
    made = rows.groupBy(*key).agg(*added, F.collect_list(F.lit(None)).alias("_nothing"))
    return made.where(F.size("_nothing") == 0).select(*made.columns[:-1])


def is_paired() -> Column:
    """Whether a sample's value is calculated with the neighbour before."""
    return F.col("type").isin(*PAIRED)


def definition_hash() -> Column:
    """One number for what a series key stands for, to see a collision."""
    labels = F.sort_array(F.map_entries("labels"))
    return F.xxhash64("config_name", "detail", "type", "param", labels)


def content_hash(value: Column | str = "value", base: Column | str = "base") -> Column:
    """One number for what a sample says: equal for a repeated row, whatever way it came."""
    return F.xxhash64("series", "at_ns", value, "value_long", base, "base_long", "text")


def value_of(name: str) -> Column:
    """Value or base as a double, whichever column of the segment holds it."""
    return F.coalesce(F.col(f"{name}_double"), F.col(f"{name}_long").cast("double"))


def same_origin(left: str, right: str) -> Column:
    """Join condition on (origin, era); a name without era equals itself."""
    return (F.col(f"{left}.origin") == F.col(f"{right}.origin")) & F.col(f"{left}.era").eqNullSafe(
        F.col(f"{right}.era")
    )
