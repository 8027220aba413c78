"""Windows of calculated values (PIP-044, PIP-045): partial aggregates that add up in any order.

Every field is a commutative monoid: n, sum, sum_sq, min, max, first and last by (at, era, sequence), resets. So late
data is one more part, and folding is the same function as merging.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M, Table

KEY: Final = ("node", "series", "window_start")
RESETS: Final = ("reset", "base-reset")
WIDTHS: Final[dict[str, str]] = {
    ROLLUP_1M.full_name: "minute",
    ROLLUP_1H.full_name: "hour",
    ROLLUP_1D.full_name: "day",
}
FILE_WIDTHS: Final[dict[str, str]] = {
    ROLLUP_1M.full_name: "hour",
    ROLLUP_1H.full_name: "day",
    ROLLUP_1D.full_name: "month",
}
"""How much time one file of a roll-up holds: what a fold replaces when one window of it is touched."""


def parts_of(values: DataFrame) -> DataFrame:
    """Values as parts of one row each: what `merged` adds up.

    Grain: one value. Columns: those of a roll-up but its partition; `window_start` is the exact instant.
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
    )


def merged(parts: DataFrame, table: Table) -> DataFrame:
    """Parts, or finished windows, or both, as one row per key of a roll-up table.

    Grain: one window. Key: (node, series, window_start). Columns: those of the table.
    """
    width = WIDTHS[table.full_name]
    folded = parts.groupBy("node", "series", F.date_trunc(width, "window_start").alias("window_start")).agg(
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
    return folded.withColumn(str(table.partition), partition_of(table)).select(*table.schema.names)


def partition_of(table: Table) -> Column:
    """The partition of a window: its day, or the first day of its month."""
    return F.to_date(F.date_trunc(str(table.partition), "window_start"))


def file_of(table: Table) -> Column:
    """Which file of its partition a window belongs to, as text that sorts by time."""
    return F.date_format(F.date_trunc(FILE_WIDTHS[table.full_name], "window_start"), "yyyyMMddHH")
