"""From bronze to `silver.catalog`: every change of an instance of a service, each once (CAT-040)."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.judging import OF_CHANGES
from weft.pipeline.tables import CATALOG
from weft.pipeline.transforms.columns import day_of, instant_of, with_others


def to_catalog(rows: DataFrame) -> DataFrame:
    """Accepted rows of bronze as changes.

    Grain: one change of one instance. Key: (origin, era, sequence). Columns: `silver.catalog`.
    """
    return rows.select(*_changes())


def bronze_hash() -> Column:
    """A hash of the columns of a bronze row that make up a change."""
    attribute = F.col("attributes")
    return F.xxhash64(F.col("key"), F.col("body"), *[attribute[name] for name in OF_CHANGES], F.col("at_ns"))


def silver_hash() -> Column:
    """The same hash, from a row of silver."""
    return F.xxhash64("name", "record", *OF_CHANGES, "at_ns")


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be a change; the first match counts."""
    attribute = F.col("attributes")
    lacks = [attribute[name].isNull() for name in OF_CHANGES]
    return [
        ("missing-field", F.greatest(*lacks)),
        ("bad-type", F.coalesce(~F.col("body").startswith("{"), F.lit(False))),
    ]


@cache
def _changes() -> tuple[Column, ...]:
    attribute = F.col("attributes")
    texts = {name: attribute[name] for name in OF_CHANGES}
    rest = {name: F.nullif(attribute[name], F.lit("")) for name in ("reason", "health", "owner", "observed_ip", "net")}
    return with_others(
        CATALOG.schema.names,
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
