"""Finds numbers that were there before the batch, or that occur twice within it (PIP-030).

The numbers from before are known as ranges, by origin. A broadcast hash join on origin, era and bucket (`sequence >>
shift`) finds the ranges for a row: each row is compared with a few ranges, nothing is sorted, and memory is O(ranges).
Usually no number repeats, and then this code does not run.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.transforms.columns import same_number, same_origin


def bucketed(ranges: DataFrame, shift: int) -> DataFrame:
    """Ranges, one row per bucket of 2^shift numbers that a range overlaps.

    Grain and key: (range, bucket). Columns: those of the input (with origin, era, first, last), then `bucket`.
    """
    buckets = F.sequence(F.shiftright("first", shift), F.shiftright("last", shift))
    return ranges.select("*", F.explode(buckets).alias("bucket"))


def in_range(rows: str, ranges: str, shift: int) -> Column:
    """Join condition: a row's number lies in a range of `bucketed` (ranges of an origin do not overlap)."""
    number = F.col(f"{rows}.sequence")
    return (
        same_origin(rows, ranges)
        & (F.shiftright(number, shift) == F.col(f"{ranges}.bucket"))
        & (number >= F.col(f"{ranges}.first"))
        & (number <= F.col(f"{ranges}.last"))
    )


def within(rows: DataFrame, ranges: DataFrame, shift: int) -> DataFrame:
    """The rows whose number lies in a range. Grain, key and columns of `rows`."""
    pieces = F.broadcast(bucketed(ranges, shift)).alias("g")
    return rows.alias("r").join(pieces, in_range("r", "g", shift), "left_semi").select("r.*")


def outside(rows: DataFrame, ranges: DataFrame, shift: int) -> DataFrame:
    """The rows whose number lies in no range, and those without a number. Grain, key and columns of `rows`."""
    pieces = F.broadcast(bucketed(ranges, shift)).alias("g")
    return rows.alias("r").join(pieces, in_range("r", "g", shift), "left_anti").select("r.*")


def numbered(rows: DataFrame, *before: str) -> DataFrame:
    """Each row with `copy`: 1 for the least (drain, segment, row) of its number, then 2, 3 and on.

    Rows without a number are all 1: nothing repeats them. Rows of several batches are ordered by the columns `before` first.
    Grain and key unchanged. Columns: those of the input, then `copy`.
    """
    same = Window.partitionBy("origin", "era", "sequence").orderBy(*before, "drain", "segment", "row")
    has_number = F.coalesce(F.col("sequence") >= 1, F.lit(False)) & F.col("origin").isNotNull()
    copy = F.when(has_number, F.row_number().over(same)).otherwise(F.lit(1))
    return rows.select("*", copy.alias("copy"))


def changed(duplicates: DataFrame, held: DataFrame, bronze_hash: Column, silver_hash: Column) -> DataFrame:
    """The duplicates whose content differs from silver's row with the same number.

    Grain, key and columns of `duplicates` (bronze); `held` are rows of silver. The hashes are those of the content of a
    row of bronze and of silver. If the first row with the number is in quarantine, a duplicate is not compared.
    """
    columns = duplicates.columns
    here = duplicates.withColumn("_bronze", bronze_hash).alias("d")
    there = held.withColumn("_silver", silver_hash).select("origin", "era", "sequence", "_silver").alias("h")
    return here.join(there, same_number("d", "h") & (F.col("_bronze") != F.col("_silver"))).select(
        *[f"d.{name}" for name in columns]
    )
