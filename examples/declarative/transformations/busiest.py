"""Two datasets over a lake: hours of each series with their names, and of them the busiest by day."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

import weft.pipeline as weft

LAKE = os.environ.get("WEFT_LAKE", "/data/lake")


@dp.materialized_view
def named_hours() -> DataFrame:
    """Grain: an hour of a series on a node, with what the series stands for."""
    spark = SparkSession.active()
    hours = weft.table(spark, LAKE, "rollup_1h").where("n > 0")
    return hours.join(weft.table(spark, LAKE, "series"), "series").selectExpr(
        "node", "config_name", "labels", "window_start", "n", "sum / n as mean", "max"
    )


@dp.materialized_view
def busiest() -> DataFrame:
    """Grain: a day, a metric and a node; the greatest mean of its hours."""
    spark = SparkSession.active()
    return (
        spark.read.table("named_hours")
        .groupBy("config_name", "node", F.to_date("window_start").alias("day"))
        .agg(F.max("mean").alias("mean"))  # `.max("mean")` would look at the columns, which is not allowed here
    )
