"""From bronze to `silver.configuration`: every write of a root, each once (PIP-052)."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.judging import COUNTERS, EPOCHS
from weft.pipeline.tables import CONFIGURATION
from weft.pipeline.transforms.columns import day_of, instant_of, with_others


def to_configuration(rows: DataFrame) -> DataFrame:
    """Accepted rows of bronze as writes.

    Grain: one write. Key: (origin, era, sequence), hence (epoch, counter). Columns: `silver.configuration`.
    """
    return rows.select(*_writes())


def bronze_hash() -> Column:
    """A hash of the columns of a bronze row that make up a write."""
    return F.xxhash64("key", _value(), _who(), "at_ns")


def silver_hash() -> Column:
    """The same hash, from a row of silver."""
    return F.xxhash64("key", "value", "by", "at_ns")


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be a write; the first match counts."""
    epoch, counter = F.col("era"), F.col("sequence")
    return [
        ("missing-field", epoch.isNull()),
        ("out-of-range", (epoch >= EPOCHS) | (counter >= COUNTERS)),
    ]


def _value() -> Column:
    """The value of a write; null for a deletion, whatever its payload is."""
    is_deleted = F.coalesce(F.col("attributes")["deleted"] == "true", F.lit(False))
    return F.when(~is_deleted, F.col("body"))


def _who() -> Column:
    return F.nullif(F.col("attributes")["who"], F.lit(""))


@cache
def _writes() -> tuple[Column, ...]:
    return with_others(
        CONFIGURATION.schema.names,
        epoch=F.col("era"),
        counter=F.col("sequence"),
        value=_value(),
        by=_who(),
        at=instant_of("at_ns"),
        day=day_of("at_ns"),
    )
