"""`gold.completeness` (PIP-060..062): what the driver knows of the numbers, and what the tables know of the rows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import COMPLETENESS

TALLY = ("rows", "silver", "quarantined", "node", "first_at", "last_at", "last_received")


def tallies(bronze: DataFrame, samples: DataFrame, quarantine: DataFrame) -> DataFrame:
    """How many rows of some batches went where, and between which stamps.

    Grain and key: (origin, era). Columns: origin, era, then `TALLY`.
    """
    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    no_time, no_text = F.lit(None).cast("timestamp"), F.lit(None).cast("string")
    parts = (
        bronze.select("origin", "era", one, none, none, no_text, no_time, no_time, no_time),
        samples.select("origin", "era", none, one, none, "node", "at", "at", "received"),
        quarantine.select("origin", "era", none, none, one, no_text, no_time, no_time, no_time),
    )
    named = [part.toDF("origin", "era", *TALLY) for part in parts]
    return summed(named[0].union(named[1]).union(named[2]))


def tallies_of(table: DataFrame) -> DataFrame:
    """What `gold.completeness` has counted so far, in the columns of `tallies`."""
    silver = F.col("silver_rows")
    rows = silver + F.col("quarantined") + F.col("duplicates")
    return table.select(
        "origin", "era", rows.alias("rows"), silver.alias("silver"), *[F.col(name) for name in TALLY[2:]]
    )


def summed(parts: DataFrame) -> DataFrame:
    """Tallies added up. Grain and key: (origin, era). Columns unchanged."""
    sums = [F.sum(name).alias(name) for name in TALLY[:3]]
    bounds = [F.max("node").alias("node"), F.min("first_at").alias("first_at")]
    bounds += [F.max(name).alias(name) for name in TALLY[5:]]
    return parts.groupBy("origin", "era").agg(*sums, *bounds)


def completeness(ranges: DataFrame, counted: DataFrame, silent_before: Column) -> DataFrame:
    """What has arrived of each origin's era, and what has not.

    Grain and key: (stream, origin, era). Columns: `gold.completeness`. `ranges` is what the driver knows of the
    numbers (state without silence included), `counted` are `tallies`; an era that is not closed and has not been
    heard of since `silent_before` is silent, since its last numbers cannot be known (PIP-062).
    """
    same = (F.col("r.origin") == F.col("c.origin")) & F.col("r.era").eqNullSafe(F.col("c.era"))
    joined = ranges.alias("r").join(counted.alias("c"), same, "left")
    lag = F.expr("unix_millis(last_received) - unix_millis(last_at)")
    is_silent = (F.col("state") == "complete") & ~F.col("closed") & (F.col("last_received") < silent_before)
    counts = {
        "node": F.coalesce("node", "r.origin"),
        "silver_rows": F.coalesce("silver", F.lit(0)),
        "quarantined": F.coalesce("quarantined", F.lit(0)),
        "duplicates": F.coalesce(F.col("rows") - F.col("silver") - F.col("quarantined"), F.lit(0)),
        "state": F.when(is_silent, F.lit("silent")).otherwise(F.col("state")),
        "lag_ms": lag,
    }
    kept = [f"r.{name}" for name in ranges.columns if name != "state"]
    named = [
        "first_at", "last_at", "last_received",
        *[column.alias(name) for name, column in counts.items()],
    ]  # fmt: skip
    return joined.select(*kept, *named).select(*COMPLETENESS.schema.names)
