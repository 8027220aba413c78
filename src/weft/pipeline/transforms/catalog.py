"""From bronze to `silver.catalog`: every change of an instance of a service, each once (CAT-040)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.judging import OF_CHANGES
from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("name", "record", *OF_CHANGES, "at_ns")
"""The columns by which a repeated change is compared with the first one."""


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be a change; the first match counts."""
    attribute = F.col("attributes")
    lacks = [attribute[name].isNull() for name in OF_CHANGES]
    return [
        ("missing-field", F.greatest(*lacks)),
        ("bad-type", F.coalesce(~F.col("body").startswith("{"), F.lit(False))),
    ]


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a change of one instance. Grain: one change. Key: (origin, era, sequence)."""
    attribute = F.col("attributes")
    texts = {name: attribute[name] for name in OF_CHANGES}
    rest = {name: F.nullif(attribute[name], F.lit("")) for name in ("reason", "health", "owner", "observed_ip", "net")}
    return dict(
        broker=F.col("origin"),
        index=F.col("sequence"),
        at=instant_of("at_ns"),
        received=instant_of("received_ns"),
        name=F.col("key"),
        since=F.expr("timestamp_micros(try_cast(try_cast(attributes['since'] AS double) * 1e6 AS bigint))"),
        metadata=F.from_json(F.get_json_object("body", "$.metadata"), "map<string,string>"),
        record=F.col("body"),
        day=day_of("at_ns"),
        **texts,
        **rest,
    )
