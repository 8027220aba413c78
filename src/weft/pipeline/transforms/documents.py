"""From bronze to `silver.documents`: every operation of every session once, whichever nodes delivered it (GSP-034)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.judging import SOURCE
from weft.pipeline.transforms.columns import day_of, instant_of

CONTENT: Final = ("body",)
"""The column by which a repeated operation is compared with the first one: time of receipt and sender differ from node to node."""


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be an operation; the first match counts.

    Operations that are inert, or have no time, are valid (DOC-035).
    """
    eff = _eff()
    lacks = [F.col("raw").isNull(), F.col("attributes")["eff"].isNull()]
    is_time = F.coalesce((eff >= 0) & (eff < float("inf")), F.lit(False))
    return [
        ("missing-field", F.greatest(*lacks)),
        ("bad-type", ~F.col("origin").rlike(SOURCE)),
        ("bad-number", ~is_time),
    ]


def _eff() -> Column:
    return F.col("attributes")["eff"].try_cast("double")


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes an operation.

    Grain: one operation. Key: (origin, era, sequence), hence (session, source, sequence).
    """
    attribute = F.col("attributes")
    origin = F.col("origin")
    inert = F.nullif(attribute["inert"], F.lit(""))
    return {
        "session": F.expr("left(origin, length(origin) - 33)"),
        "source": F.substring_index(origin, "/", -1),
        "eff": _eff(),
        "timestamp_raw": F.coalesce(attribute["ts"], F.lit("")),
        "verb": F.col("key"),
        "reference": F.coalesce(attribute["ref"], F.lit("")),
        "by": F.nullif(attribute["by"], F.lit("")),
        "origsource": attribute["osource"],
        "origsequence": attribute["oseq"].try_cast("bigint"),
        "inert_reason": inert,
        "signer": F.lit(None).cast("string"),
        "received_at": instant_of("received_ns"),
        "received_from": attribute["from"],
        "body": F.col("raw"),
        "outcome": F.concat(F.lit("inert:"), inert),
        "schema": attribute["schema"],
        "day": day_of("received_ns"),
    }
