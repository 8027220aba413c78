"""From bronze to `silver.store`: every change of the store once, even if several nodes delivered it (PIP-051)."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import STORE
from weft.pipeline.transforms.columns import day_of, instant_of, with_others


def to_store(rows: DataFrame) -> DataFrame:
    """Accepted rows of bronze as changes.

    Grain: one change. Key: (origin, era, sequence). Columns: `silver.store`.
    """
    return rows.select(*_changes())


def bronze_hash() -> Column:
    """A hash of the content of a change, from a row of bronze: not of its time and its chain.

    Changes of foreign servers are reported by every node that receives them, each with its own clock, and with the tock
    and the part of the chain that reached it (STO-016).
    """
    return F.xxhash64(F.col("key"), _is_deletion(), F.col("body"))


def silver_hash() -> Column:
    """The same hash, from a row of silver."""
    return F.xxhash64("path_text", "deleted", "value")


def _is_deletion() -> Column:
    return F.col("attributes")["deleted"] == "true"


@cache
def _changes() -> tuple[Column, ...]:
    attribute = F.col("attributes")
    links = F.from_json(attribute["chain"], "array<array<string>>")

    def link(pair: Column) -> Column:
        return F.struct(F.get(pair, 0).alias("node"), F.get(pair, 1).try_cast("bigint").alias("tick"))

    return with_others(
        STORE.schema.names,
        node=F.col("origin"),
        tick=F.col("sequence"),
        path_text=F.col("key"),
        at=instant_of("at_ns"),
        received=instant_of("received_ns"),
        deleted=_is_deletion(),
        tock=attribute["tock"].try_cast("bigint"),
        by=F.nullif(attribute["by"], F.lit("")),
        value=F.col("body"),
        path=F.from_json(attribute["path"], "array<string>"),
        chain=F.transform(links, link),
        day=day_of("at_ns"),
    )
