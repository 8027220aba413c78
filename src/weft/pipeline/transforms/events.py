"""From bronze to `silver.events`: events that nodes reported about themselves, each once."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import EVENTS
from weft.pipeline.transforms.columns import day_of, instant_of, with_others


def to_events(rows: DataFrame) -> DataFrame:
    """Accepted rows of bronze as events.

    Grain: one event. Key: (origin, era, sequence). Columns: `silver.events`.
    """
    return rows.select(*_events())


def bronze_hash() -> Column:
    """A hash of the content of an event, from a row of bronze."""
    return F.xxhash64("key", "body", "at_ns")


def silver_hash() -> Column:
    """The same hash, from a row of silver."""
    return F.xxhash64("event", "fields", "at_ns")


@cache
def _events() -> tuple[Column, ...]:
    attribute = F.col("attributes")

    def field(*names: str) -> Column:
        return F.coalesce(*[F.get_json_object("body", f"$.{name}") for name in names])

    return with_others(
        EVENTS.schema.names,
        node=F.coalesce(attribute["node"], F.col("origin")),
        group=attribute["group"],
        event=F.col("key"),
        subsystem=F.substring_index("key", ".", 1),
        severity=attribute["level"],
        at=instant_of("at_ns"),
        received=instant_of("received_ns"),
        peer=field("node"),
        subject=field("name", "key", "filter"),
        number=field("number").try_cast("bigint"),
        fields=F.col("body"),
        day=day_of("at_ns"),
    )
