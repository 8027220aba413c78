"""From bronze to `silver.events`: events that nodes reported about themselves, each once."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("event", "fields", "at_ns")
"""The columns by which a repeated event is compared with the first one."""


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes an event. Grain: one event. Key: (origin, era, sequence)."""
    attribute = F.col("attributes")

    def field(*names: str) -> Column:
        return F.coalesce(*[F.get_json_object("body", f"$.{name}") for name in names])

    return {
        "node": F.coalesce(attribute["node"], F.col("origin")),
        "group": attribute["group"],
        "event": F.col("key"),
        "subsystem": F.substring_index("key", ".", 1),
        "severity": attribute["level"],
        "at": instant_of("at_ns"),
        "received": instant_of("received_ns"),
        "peer": field("node"),
        "subject": field("name", "key", "filter"),
        "number": field("number").try_cast("bigint"),
        "fields": F.col("body"),
        "day": day_of("at_ns"),
    }
