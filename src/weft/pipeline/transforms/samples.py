"""From bronze to `silver.samples`: typed, each number once, with flags."""

from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.tables import SAMPLES
from weft.pipeline.transforms.columns import day_of, instant_of, milliseconds, value_of, with_others

CONTENT: Final = ("series", "at_ns", "value", "value_long", "base", "base_long", "text")
"""The columns by which a repeated sample is compared with the first one."""


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a sample of a node, on time. Grain: one sample. Key: (origin, era, sequence)."""
    return _samples((), is_late=False) | {"dataset": F.lit(None).cast("string")}


def to_samples(rows: DataFrame, flags: tuple[Column, ...] = (), *, is_late: bool = False) -> DataFrame:
    """Accepted rows of bronze as samples.

    Grain: one sample. Key: (origin, era, sequence). Columns: `silver.samples`. `is_late`: their numbers had been
    announced lost. `flags` are more flags, null if they do not apply. If `rows` lacks `dataset`, it is null.
    """
    if "dataset" in rows.columns:
        return rows.select(*with_others(SAMPLES.schema.names, **_samples(flags, is_late=is_late)))
    return rows.select(*(_measured(_samples(flags, is_late=is_late)) if flags else _unflagged(is_late)))


@cache
def _unflagged(is_late: bool) -> tuple[Column, ...]:  # noqa: FBT001  # a key of the cache
    return _measured(_samples((), is_late=is_late))


def _measured(made: dict[str, Column]) -> tuple[Column, ...]:
    """The columns of samples from nodes."""
    return with_others(SAMPLES.schema.names, **made, dataset=F.lit(None).cast("string"))


def _samples(flags: tuple[Column, ...], *, is_late: bool) -> dict[str, Column]:
    attribute = F.col("attributes")
    all_flags = [
        F.when(attribute["volatile"] == "true", F.lit("volatile")),
        F.when(attribute["step"].isNotNull(), F.lit("step")),
        *([F.lit("after-lost")] if is_late else []),
        *flags,
    ]
    return {
        "node": F.coalesce(attribute["node"], F.col("origin")),
        "group": attribute["group"],
        "value": value_of("value"),
        "base": value_of("base"),
        "at": instant_of("at_ns"),
        "received": instant_of("received_ns"),
        "delay_ms": milliseconds("received_ns") - milliseconds("at_ns"),
        "flags": F.array_compact(F.array(*all_flags)),
        "day": day_of("at_ns"),
    }
