"""Bad rows that stand for several numbers each, in all of bronze at once (PIP-026)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.pipeline.intake import SPREAD
from weft.pipeline.transforms.columns import same_origin


def spreads(rows: DataFrame) -> DataFrame:
    """Bad rows that stand for several numbers each.

    Grain: such a row. Key: (origin, era, first). Columns: origin, era, first, last, batch. `rows` are of `dedup.numbered`.
    """
    wide = rows.where(F.col("error").isNotNull() & F.col("attributes")[SPREAD].isNotNull() & (F.col("copy") == 1))
    last = F.col("sequence") + F.col("attributes")[SPREAD].cast("bigint") - 1
    return wide.select("origin", "era", F.col("sequence").alias("first"), last.alias("last"), "batch")


def hidden(rows: DataFrame, wide: DataFrame) -> DataFrame:
    """Rows of bronze, in which a row is a duplicate if a bad row of an earlier batch stands for its number.

    Grain and key as bronze. Columns: those of the input; `copy` of such a row is at least 2. `wide` is made by `spreads`.
    """
    number = F.col("r.sequence")
    is_in = number.between(F.col("w.first"), F.col("w.last")) & (F.col("r.batch") > F.col("w.batch"))
    marked = rows.alias("r").join(F.broadcast(wide.alias("w")), same_origin("r", "w") & is_in, "left")
    copy = F.when(F.col("w.first").isNull(), F.col("r.copy")).otherwise(F.greatest("r.copy", F.lit(2)))
    names = [f"r.{name}" for name in rows.columns if name != "copy"]
    return marked.dropDuplicates(["drain", "segment", "row"]).select(*names, copy.alias("copy"))
