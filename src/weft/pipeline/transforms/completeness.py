"""The part of `gold.completeness` (PIP-060) that needs the rows: counts per table, and the range of time stamps."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TALLY = ("rows", "silver", "quarantined", "node", "first_at", "last_at", "last_received")


def tallies(bronze: DataFrame, silver: DataFrame, quarantine: DataFrame, seen: tuple[str, str, str]) -> DataFrame:
    """How many rows of some batches are in each table, and their first and last time stamps.

    Grain and key: (origin, era). Columns: origin, era, then `TALLY`. `seen` has the SQL for a row's owner, time stamp
    and arrival in silver.
    """
    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    no_time, no_text = F.lit(None).cast("timestamp"), F.lit(None).cast("string")
    node, at, received = (F.expr(text) for text in seen)
    parts = (
        bronze.select("origin", "era", one, none, none, no_text, no_time, no_time, no_time),
        silver.select("origin", "era", none, one, none, node, at, at, received),
        quarantine.select("origin", "era", none, none, one, no_text, no_time, no_time, no_time),
    )
    named = [part.toDF("origin", "era", *TALLY) for part in parts]
    sums = [F.sum(name).alias(name) for name in TALLY[:3]]
    bounds = [F.max("node").alias("node"), F.min("first_at").alias("first_at")]
    bounds += [F.max(name).alias(name) for name in TALLY[5:]]
    every = named[0].union(named[1]).union(named[2])
    return every.groupBy("origin", "era").agg(*sums, *bounds).select("origin", "era", *TALLY)
