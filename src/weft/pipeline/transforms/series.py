"""The definitions of series keys, and rows whose definition differs from that of their key (LAK-019)."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import SERIES
from weft.pipeline.transforms.columns import definition_hash, hashed, with_others


def definitions(rows: DataFrame) -> DataFrame:
    """The definition of each key in some rows, from the row with the lowest (drain, segment, row).

    Grain and key: series. Columns: `silver.series`, then `is_one`: all rows with the key have the same definition.
    """
    definition = definition_hash()
    about = F.struct("config_name", "detail", "type", "param", "labels", definition.alias("definition"))
    first = F.min_by(about, F.struct("drain", "segment", "row"))
    is_one = F.min(definition) == F.max(definition)
    added = (first.alias("first"), F.min("batch").alias("batch"), is_one.alias("is_one"))
    made = hashed(rows, ("series",), added).select("series", "first.*", "batch", "is_one")
    return made.select(*SERIES.schema.names, "is_one")


def recognised(rows: DataFrame, known: DataFrame | None) -> DataFrame:
    """Judged rows, compared with known definitions: `reason` is series-collision if the key has another definition.

    Grain and key unchanged. Columns: those of the input, then `is_new`: the row is good and its key is not known yet.
    `known` has series and definition; None: no key is known.
    """
    if known is None:
        return rows.select("*", F.col("reason").isNull().alias("is_new"))
    joined = rows.join(F.broadcast(known.toDF("series", "_known")), "series", "left")
    return joined.select(*_recognised(tuple(rows.columns)))


@cache
def _recognised(names: tuple[str, ...]) -> tuple[Column, ...]:
    known = F.col("_known")
    is_other = F.coalesce(known != definition_hash(), F.lit(False))
    reason = F.coalesce("reason", F.when(is_other, F.lit("series-collision")))
    is_new = F.col("reason").isNull() & known.isNull()
    return (*with_others(names, reason=reason), is_new.alias("is_new"))
