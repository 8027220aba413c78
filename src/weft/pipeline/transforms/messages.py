"""From bronze to `silver.messages`: the messages in the root's journal, each once (CHN-036)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.lake.body import RAW
from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("type", "fmt", "payload", "at_ns")
"""The columns by which a repeated message is compared with the first one: not its way and how often it was forwarded."""


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a message. Grain: one message. Key: (origin, era, sequence)."""
    attribute = F.col("attributes")
    form = F.coalesce(attribute["fmt"], F.lit(RAW))
    # A node may write anything into attributes: what is not a number or a list becomes null, never an error.
    depth = F.expr("try_cast(attributes['depth'] AS bigint)")
    is_text = form.isin("text", "xml")
    return {
        "node": F.coalesce(attribute["node"], F.col("origin")),
        "group": attribute["group"],
        "mid": F.concat_ws("/", "origin", "era", "sequence"),
        "type": F.col("key"),
        "at": instant_of("at_ns"),
        "received": instant_of("received_ns"),
        "fmt": form,
        "depth": F.coalesce(depth, F.lit(0).cast("bigint")),
        "unsure": F.coalesce(attribute["unsure"] == "true", F.lit(False)),
        "payload": F.col("raw"),
        "body": F.when(is_text, F.col("raw").cast("string")).otherwise(F.col("body")),
        "via": F.from_json(attribute["via"], "array<string>"),
        "frames": F.from_json(attribute["frames"], "array<bigint>"),
        "day": day_of("at_ns"),
    }
