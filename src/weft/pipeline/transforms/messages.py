"""From bronze to `silver.messages`: the messages in the root's journal, each once (CHN-036)."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.lake.body import RAW
from weft.pipeline.tables import MESSAGES
from weft.pipeline.transforms.columns import day_of, instant_of, with_others


def to_messages(rows: DataFrame) -> DataFrame:
    """Accepted rows of bronze as messages.

    Grain: one message. Key: (origin, era, sequence). Columns: `silver.messages`.
    """
    return rows.select(*_messages())


def bronze_hash() -> Column:
    """A hash of the content of a message, from a row of bronze: not of its way and how often it was forwarded."""
    return F.xxhash64(F.col("key"), _format(), F.col("raw"), F.col("at_ns"))


def silver_hash() -> Column:
    """The same hash, from a row of silver."""
    return F.xxhash64("type", "fmt", "payload", "at_ns")


def _format() -> Column:
    return F.coalesce(F.col("attributes")["fmt"], F.lit(RAW))


@cache
def _messages() -> tuple[Column, ...]:
    attribute = F.col("attributes")
    # A node may write anything into attributes: what is not a number or a list becomes null, never an error.
    depth = F.expr("try_cast(attributes['depth'] AS bigint)")
    is_text = _format().isin("text", "xml")
    return with_others(
        MESSAGES.schema.names,
        node=F.coalesce(attribute["node"], F.col("origin")),
        group=attribute["group"],
        mid=F.concat_ws("/", "origin", "era", "sequence"),
        type=F.col("key"),
        at=instant_of("at_ns"),
        received=instant_of("received_ns"),
        fmt=_format(),
        depth=F.coalesce(depth, F.lit(0).cast("bigint")),
        unsure=F.coalesce(attribute["unsure"] == "true", F.lit(False)),
        payload=F.col("raw"),
        body=F.when(is_text, F.col("raw").cast("string")).otherwise(F.col("body")),
        via=F.from_json(attribute["via"], "array<string>"),
        frames=F.from_json(attribute["frames"], "array<bigint>"),
        day=day_of("at_ns"),
    )
