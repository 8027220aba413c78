"""Windows of calculated values (PIP-044, PIP-045, PIP-047): partial aggregates that add up in any order.

Every field of a window can be merged in any order: n, sum, sum_sq, min, max, first and last by (at, era, sequence),
resets, and the sketch, whose counts are added bucket by bucket. So late data is added like all other data, and a fold only
merges old and new windows. A sketch is made in two steps: values are counted by (key, bucket), then the counts of a key
become its sketch. No step needs a costly count of distinct values (PIP-048).
"""

from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.sketch import bucket_of, sketch_merge, sketch_of
from weft.pipeline.tables import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M, Table
from weft.pipeline.transforms.columns import hashed
from weft.pipeline.views.folded import WIDTHS

KEY: Final = ("node", "series", "window_start")
RESETS: Final = ("reset", "base-reset")
"""Reasons of values without a result that count as resets."""
FILE_WIDTHS: Final[dict[str, str]] = {
    ROLLUP_1M.full_name: "hour",
    ROLLUP_1H.full_name: "day",
    ROLLUP_1D.full_name: "month",
}
"""The time range of one file of a roll-up: a fold replaces the whole file if one of its windows changes."""


def parts_of(values: DataFrame) -> DataFrame:
    """Values as windows of a single value, for `counted` to add up.

    Grain: one value. Key: its id. Columns: those of a roll-up but its partition and sketch, then `bucket` and `count`;
    `window_start` is the exact instant.
    """
    has_result = F.col("result").isNotNull()
    point = F.when(has_result, F.struct("at", "era", "sequence", F.col("result").alias("value")))
    return values.select(
        "node",
        "group",
        "series",
        F.col("at").alias("window_start"),
        has_result.cast("bigint").alias("n"),
        F.col("result").alias("sum"),
        (F.col("result") * F.col("result")).alias("sum_sq"),
        F.col("result").alias("min"),
        F.col("result").alias("max"),
        point.alias("first"),
        point.alias("last"),
        F.coalesce(F.col("reason").isin(*RESETS), F.lit(False)).cast("bigint").alias("resets"),
        bucket_of(F.col("result")).alias("bucket"),
        has_result.cast("bigint").alias("count"),
    )


def counted(parts: DataFrame, table: Table) -> DataFrame:
    """Parts added up: one row per window with all fields but the sketch, and one row per bucket with its count.

    Grain: one window, or one bucket of one. Key: (node, series, window_start, bucket). Columns: those of `parts_of`.
    """
    key = ("node", "series", _window(table))
    whole = hashed(parts, key, _added())
    tallies = parts.where("bucket is not null").groupBy(*key, "bucket").agg(F.sum("count").alias("count"))
    return whole.unionByName(tallies, allowMissingColumns=True).select(*parts.columns)


def windows_of(counts: DataFrame, table: Table) -> DataFrame:
    """Finished windows of a roll-up table, from the counts by minute.

    Grain: one window. Key: (node, series, window_start). Columns: those of the table but its partition.
    """
    by_window = counts if table is ROLLUP_1M else counted(counts, table)
    bucket = F.when(F.col("bucket").isNotNull(), F.struct("bucket", "count"))
    made = by_window.groupBy(*KEY).agg(*_added(), F.collect_list(bucket).alias("buckets"))
    return made.withColumn("sketch", _made()).select(*table.file_columns())


def merged(windows: DataFrame, table: Table) -> DataFrame:
    """Finished windows, fresh and old, merged to one row per key.

    Grain: one window. Key: (node, series, window_start). Columns: those of the table.
    """
    sketches = F.collect_list(F.struct("sketch")).alias("sketches")
    added = windows.groupBy(*KEY).agg(*_added(), sketches)
    folded = added.withColumn("sketch", _united()).withColumn(str(table.partition), partition_of(table))
    return folded.select(*table.schema.names)


def partition_of(table: Table) -> Column:
    """The partition of a window: its day, or the first day of its month."""
    return F.to_date(F.date_trunc(str(table.partition), "window_start"))


def file_of(table: Table) -> Column:
    """Which file of its partition a window belongs to, as text that sorts by time."""
    return F.date_format(F.date_trunc(FILE_WIDTHS[table.full_name], "window_start"), "yyyyMMddHH")


def _window(table: Table) -> Column:
    return F.date_trunc(WIDTHS[table], "window_start").alias("window_start")


@cache
def _made() -> Column:
    return sketch_of(F.col("buckets"))


@cache
def _united() -> Column:
    """The sketch of a window: its only one, or all merged. Null if one is null, because its values were never counted."""
    alone = F.col("sketches")[0]["sketch"]
    return F.when(F.size("sketches") == 1, alone).otherwise(sketch_merge(F.col("sketches.sketch")))


@cache
def _added() -> tuple[Column, ...]:
    """The aggregates that merge the fields of windows, without the sketch."""
    return (
        F.max("group").alias("group"),
        F.sum("n").alias("n"),
        F.sum("sum").alias("sum"),
        F.sum("sum_sq").alias("sum_sq"),
        F.min("min").alias("min"),
        F.max("max").alias("max"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.sum("resets").alias("resets"),
    )
