"""Late data (PIP-046): rows over an hour older than the newest of their node, and published windows that they changed."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from weft.pipeline.tables import CORRECTIONS, LATE

BEHIND: Final = "interval 1 hour"
KEY: Final = ("node", "series", "window_start")
CHANGED: Final = "n_before <> n_after or abs(mean_after - mean_before) > 1e-9 * abs(mean_after)"
"""A condition: the window has changed.

If a day is computed anew, most windows stay the same, but sums of doubles may differ by rounding; that does not count.
"""


def stamps(samples: DataFrame, values: DataFrame) -> DataFrame:
    """The newest time stamp of each node in each batch, among samples and newly calculated values.

    Grain and key: (node, batch). Columns: node, batch, newest.
    """
    both = samples.select("node", "batch", "at").unionByName(values.select("node", "batch", "at"))
    return both.groupBy("node", "batch").agg(F.max("at").alias("newest")).select("node", "batch", "newest")


def newest_as_of(latest: DataFrame, fresh: DataFrame) -> DataFrame:
    """The newest time stamp of each node up to and including each batch, starting from `gold.latest`.

    Grain and key: (node, batch). Columns: node, batch, newest.
    """
    known = latest.groupBy("node").agg(F.lit(-1).cast("bigint").alias("batch"), F.max("at").alias("newest"))
    both = fresh.unionByName(known)
    so_far = Window.partitionBy("node").orderBy("batch").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    return both.select("node", "batch", F.max("newest").over(so_far).alias("newest"))


def late_samples(samples: DataFrame, newest: DataFrame) -> DataFrame:
    """How many samples of each batch were late.

    Grain and key: (origin, era, node, late_day, batch). Columns: `meta.late`.
    """
    late = samples.join(F.broadcast(newest), ["node", "batch"]).where(_is_late())
    counted = late.groupBy("origin", "era", "node", F.to_date("at").alias("late_day"), "batch").agg(
        F.count(F.lit(1)).alias("late"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        F.max("newest").alias("newest"),
    )
    return counted.select(*LATE.schema.names)


def late_windows(values: DataFrame, newest: DataFrame) -> DataFrame:
    """The hourly windows that contain late values, and the last batch that brought some.

    Grain and key: (node, series, window_start). Columns: those, then batch.
    """
    late = values.join(F.broadcast(newest), ["node", "batch"]).where(_is_late() & F.col("result").isNotNull())
    hour = F.date_trunc("hour", "at").alias("window_start")
    return late.groupBy("node", "series", hour).agg(F.max("batch").alias("batch")).select(*KEY, "batch")


def corrections(before: DataFrame, after: DataFrame, late: DataFrame, published: Column) -> DataFrame:
    """The published and the current contents of windows with late values, if these differ.

    `published` is the latest published window; later ones are left out. Grain and key: (node, series, window_start). Columns:
    `gold.corrections`. `before` and `after` are rows of `gold.rollup_1h`.
    """
    was = before.select(*KEY, F.col("n").alias("n_before"), _mean().alias("mean_before"))
    now = after.select(*KEY, "group", F.col("n").alias("n_after"), _mean().alias("mean_after"))
    touched = F.broadcast(late.where(F.col("window_start") <= published))
    joined = now.join(touched, list(KEY)).join(was, list(KEY), "left")
    counted = joined.withColumn("n_before", F.coalesce("n_before", F.lit(0).cast("bigint")))
    return counted.where(CHANGED).select(*CORRECTIONS.schema.names)


def _is_late() -> Column:
    return F.col("at") < F.col("newest") - F.expr(BEHIND)


def _mean() -> Column:
    return F.try_divide("sum", "n")
