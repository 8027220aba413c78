"""From bronze to `silver.logs`: every log record that a broker received, each once (LOG-005)."""

from functools import cache
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from weft.pipeline.judging import OF_LOGS
from weft.pipeline.transforms.columns import day_of, instant_of

FORM = (
    "ts double, net string, level string, service string, instance string, logger string, message string, seq bigint, "
    "fields string, repeated bigint, lost struct<`from`:bigint,to:bigint>"
)
"""The fields that silver takes from a record in normal form."""
CONTENT: Final = ("level", "service", "instance", "seq", "logger", "message", "repeated", "at_ns")
"""The columns by which a repeated record is compared with the first one."""


def misfits() -> list[tuple[str, Column]]:
    """Reasons why a row cannot be a record; the first match counts. A field of the wrong type counts as absent."""
    form = _form()
    lacks = [F.col("body").isNull(), form.isNull(), *[form[name].isNull() for name in OF_LOGS]]
    return [("missing-field", F.greatest(*lacks))]


@cache
def _form() -> Column:
    return F.from_json("body", FORM)


@cache
def silver_columns() -> dict[str, Column]:
    """How an accepted row of bronze becomes a log record. Grain: one record. Key: (origin, era, sequence)."""
    form = _form()
    fields = {name: form[name] for name in (*OF_LOGS, "seq", "logger", "net", "fields", "repeated")}
    return dict(
        broker=F.col("origin"),
        at=instant_of("at_ns"),
        received=instant_of("received_ns"),
        ts=F.timestamp_micros((form["ts"] * 1_000_000).try_cast("bigint")),
        lost_from=form["lost"]["from"],
        lost_to=form["lost"]["to"],
        day=day_of("at_ns"),
        **fields,
    )
