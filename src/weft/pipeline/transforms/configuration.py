"""From bronze to `silver.configuration`: every write of a root, each once (PIP-052)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.judging import COUNTERS, EPOCHS
from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("key", "value", "by", "at_ns")
"""The columns by which a repeated write is compared with the first one."""


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be a write; the first match counts."""
    epoch, counter = F.col("era"), F.col("sequence")
    return [
        ("missing-field", epoch.isNull()),
        ("out-of-range", (epoch >= EPOCHS) | (counter >= COUNTERS)),
    ]


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a write. Grain: one write. Key: (origin, era, sequence), hence (epoch, counter)."""
    is_deleted = F.coalesce(F.col("attributes")["deleted"] == "true", F.lit(False))
    return {
        "epoch": F.col("era"),
        "counter": F.col("sequence"),
        "value": F.when(~is_deleted, F.col("body")),  # whatever its payload is
        "by": F.nullif(F.col("attributes")["who"], F.lit("")),
        "at": instant_of("at_ns"),
        "day": day_of("at_ns"),
    }
