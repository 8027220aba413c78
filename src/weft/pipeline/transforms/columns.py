"""Column expressions that several transformations share: instants, identities, contents.

Each part of an expression costs a call into the JVM, and a few hundred calls are most of the time of a small batch. So
expressions that every batch uses are built once and cached.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.judging import PAIRED

DAY_NS: Final = 86_400_000_000_000


@cache
def columns(*names: str) -> tuple[Column, ...]:
    """Columns by their names, cached."""
    return tuple(F.col(name) for name in names)


def with_others(names: Iterable[str], **made: Column) -> tuple[Column, ...]:
    """The named columns in order, with those of `made` in their place: a `select` that guarantees the schema."""
    return tuple(made[name].alias(name) if name in made else F.col(name) for name in names)


def batch_mark(number: int) -> Column:
    """The number of a batch as a column that Spark's code generator does not take for a constant.

    A constant would be part of the generated code, so Spark would compile classes for every batch. Instead the number is
    in an array of two equal elements, and each row selects one by a condition that Spark cannot compute in advance.
    """
    here = F.lit(number).cast("bigint")
    return F.get(F.array(here, here), F.isnull("origin").cast("int"))


@cache
def batch_in_name() -> Column:
    """The batch of a row of bronze: column `batch`, or for an adopted segment the batch in the file's name."""
    return F.coalesce("batch", F.expr("try_cast(substring(_metadata.file_name, 2, 10) as bigint)"))


def day_of(nanoseconds: str) -> Column:
    """UTC day of an instant in nanoseconds, also before 1970 (rounded down)."""
    whole = F.expr(f"{nanoseconds} div {DAY_NS} - if({nanoseconds} % {DAY_NS} < 0, 1, 0)")
    return F.date_from_unix_date(whole.cast("int"))


def instant_of(nanoseconds: str) -> Column:
    """A timestamp, in microseconds, from an instant in nanoseconds."""
    return F.timestamp_micros(F.expr(f"{nanoseconds} div 1000"))


def milliseconds(nanoseconds: str) -> Column:
    """Milliseconds, as an integer, from an instant in nanoseconds."""
    return F.expr(f"{nanoseconds} div 1000000")


def hashed(rows: DataFrame, key: Sequence[Column | str], added: Sequence[Column]) -> DataFrame:
    """Rows aggregated by key with a hash map, without sorting.

    Grain: one group. Key: `key`. Columns: those of the key, then `added`. Aggregates of text and structs would make Spark
    sort all rows by key; with a list among them it uses a hash map. So a list that stays empty is added and dropped.
    """
    made = rows.groupBy(*key).agg(*added, F.collect_list(F.lit(None)).alias("_nothing"))
    return made.where(F.size("_nothing") == 0).select(*made.columns[:-1])


def is_paired() -> Column:
    """A condition: the value of the sample is calculated from it and its earlier neighbour."""
    return F.col("type").isin(*PAIRED)


def definition_hash() -> Column:
    """A hash of the definition of a series key, to detect collisions."""
    labels = F.sort_array(F.map_entries("labels"))
    return F.xxhash64("config_name", "detail", "type", "param", labels)


def content_hash(content: Iterable[str], made: Mapping[str, Column]) -> Column:
    """A hash of some columns of silver: equal for a repeated row, by whatever way it came.

    `made`: for a row of bronze, those of the columns that it lacks, as expressions; for a row of silver, nothing.
    """
    return F.xxhash64(*[made.get(name, name) for name in content])


def value_of(name: str) -> Column:
    """The value or the base as a double, from whichever column holds it."""
    return F.coalesce(F.col(f"{name}_double"), F.col(f"{name}_long").cast("double"))


def same_number(left: str, right: str) -> Column:
    """Join condition: equal (origin, era, sequence)."""
    return same_origin(left, right) & (F.col(f"{left}.sequence") == F.col(f"{right}.sequence"))


def same_origin(left: str, right: str) -> Column:
    """Join condition: equal (origin, era). An era that is null equals null."""
    return (F.col(f"{left}.origin") == F.col(f"{right}.origin")) & F.col(f"{left}.era").eqNullSafe(
        F.col(f"{right}.era")
    )
