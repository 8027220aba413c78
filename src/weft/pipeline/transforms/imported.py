"""Imported logs, where several files may tell of one sample (PIP-097), and order is that of time (PIP-099).

An origin of an import is a dataset and a source, so (origin, config_name, detail, param, labels, at) is what makes a
sample one sample, whichever files and lines it stands in. Of equal ones the first line that was imported counts.
"""

from functools import cache

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from weft.pipeline.transforms import values
from weft.pipeline.transforms.columns import is_paired, value_of

_BEFORE = ("sequence", "at_ns", "value", "value_long", "base", "base_long", "lost", "was")


def twins(rows: DataFrame) -> DataFrame:
    """Imported rows of bronze with `twin`, 1 for the one of equal samples that counts, and `is_ambiguous`.

    Grain and key unchanged. Columns: those of the input, then these two. Equal is also value and base; where only those
    differ, all are kept and `is_ambiguous`. Rows of our own, and rows with an error, are all 1 and not ambiguous.
    """
    return rows.select("*", *_twins())


def in_time_order(samples: DataFrame, batch: Column) -> DataFrame:
    """The calculated values of whole imported series, from one of each sample: neighbours by time, across files.

    Grain: one pair, or one sample that needs none. Key: id of the later sample. Columns: `silver.values`.
    """
    nothing = F.lit(None).cast("bigint")
    points = samples.select("*", F.lit(0).cast("bigint").alias("lost"), nothing.alias("was"))
    paired = values.paired(points.where(is_paired()).select("*", _before()), batch)
    return paired.unionByName(values.alone(samples))


def _key() -> tuple[Column | str, ...]:
    return ("origin", "config_name", "detail", "param", F.array_sort(F.map_entries("labels")), "at_ns")


@cache
def _twins() -> tuple[Column, ...]:
    is_imported = F.col("attributes")["dataset"].isNotNull() & F.col("error").isNull()
    said = F.xxhash64(value_of("value"), "value_long", value_of("base"), "base_long", "text")
    natural: WindowSpec = Window.partitionBy(*_key())
    equal = Window.partitionBy(*_key(), said).orderBy("lsn")
    return (
        F.when(is_imported, F.row_number().over(equal)).otherwise(F.lit(1)).alias("twin"),
        (is_imported & (F.min(said).over(natural) != F.max(said).over(natural))).alias("is_ambiguous"),
    )


def _before() -> Column:
    *series, at_ns = _key()
    line = Window.partitionBy(*series).orderBy(at_ns, "era", "sequence")
    return F.lag(F.struct(*_BEFORE)).over(line).alias("before")
