"""From bronze to `silver.store`: every change of the store once, even if several nodes delivered it (PIP-051)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("path_text", "deleted", "value")
"""The columns by which a repeated change is compared with the first one; its time and its chain are not among them.

Changes of foreign servers are reported by every node that receives them, each with its own clock, and with the tock
and the part of the chain that reached it (STO-016).
"""


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a change. Grain: one change. Key: (origin, era, sequence)."""
    attribute = F.col("attributes")
    links = F.from_json(attribute["chain"], "array<array<string>>")

    def link(pair: Column) -> Column:
        return F.struct(F.get(pair, 0).alias("node"), F.get(pair, 1).try_cast("bigint").alias("tick"))

    return {
        "node": F.col("origin"),
        "tick": F.col("sequence"),
        "path_text": F.col("key"),
        "at": instant_of("at_ns"),
        "received": instant_of("received_ns"),
        "deleted": attribute["deleted"] == "true",
        "tock": attribute["tock"].try_cast("bigint"),
        "by": F.nullif(attribute["by"], F.lit("")),
        "value": F.col("body"),
        "path": F.from_json(attribute["path"], "array<string>"),
        "chain": F.transform(links, link),
        "day": day_of("at_ns"),
    }
