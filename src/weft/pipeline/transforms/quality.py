"""Decides which rows silver refuses, and why (PIP-031): a table of reasons, tried from top to bottom.

A reason is a column expression over bronze. The first one that is true applies; `because` states it with the row's own
numbers. User rules are data: a name and a Spark SQL expression, checked when the driver starts (`weft.pipeline.rules`).
"""

from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.pipeline.judging import (
    ANCIENT_NS,
    FROM_RECORDER,
    FUTURE_MS,
    KEY_MAX,
    LABELS_MAX,
    ORIGIN_BYTES_MAX,
    PAIRED,
    TEXT_MAX,
    UNNAMED,
    UNTIMED,
)
from weft.pipeline.ruleset import Rules
from weft.pipeline.transforms import catalog, configuration, documents, logs
from weft.pipeline.transforms.columns import columns, milliseconds

MISFITS: Final = {
    "catalog": catalog.misfits,
    "logs": logs.misfits,
    "documents": documents.misfits,
    "configuration": configuration.misfits,
}
"""Additional reasons of some streams, with their conditions."""


def ruled(rows: DataFrame, rules: Rules, stream: str) -> DataFrame:
    """Every row of a stream with the results of the user's rules.

    Grain and key unchanged. Columns: those of the input, then `rule`, the reason of the first rule that refuses the row
    or null, and `marks`, with an element for each rule that only flags, null where it does not apply.
    """
    return rows.select("*", *_ruled(rules, stream))


def judged(rows: DataFrame, rules: Rules, stream: str) -> DataFrame:
    """Every row of a stream with the reason why silver refuses it, null if it does not.

    Grain and key unchanged. Columns: those of the input, then `reason`. The user's rules count if `rows` come from `ruled`.
    """
    names = [name for name in rows.columns if name != "reason"]
    return rows.select(*columns(*names), _verdict(rules, stream, is_ruled="rule" in names).alias("reason"))


def explained(rows: DataFrame) -> DataFrame:
    """Refused rows with a sentence that states the reason and the row's numbers.

    Grain and key unchanged. Columns: those of the input, then `because`.
    """
    words = {
        "no-sequence": F.concat(F.lit("sequence "), F.coalesce(F.col("sequence").cast("string"), F.lit("null"))),
        "future": F.concat(
            (milliseconds("at_ns") - milliseconds("received_ns")).cast("string"), F.lit(" ms ahead of its arrival")
        ),
        "ancient": F.concat(F.lit("stamp "), F.col("at_ns").cast("string"), F.lit(" ns is before 2000-01-01")),
        "changed": F.lit("its number is in silver with other content"),
    }
    if "series" in rows.columns:
        numbers = (F.lit("value"), F.col("value_double"), F.lit("base"), F.col("base_double"))
        words["bad-number"] = F.concat_ws(" ", *numbers)
        words["series-collision"] = F.concat(F.lit("key "), F.col("series"), F.lit(" stands for another definition"))
    sentence = F.coalesce(*[F.when(F.col("reason") == reason, text) for reason, text in words.items()], F.col("error"))
    return rows.select("*", F.coalesce(sentence, F.col("reason")).alias("because"))


@cache
def flags_of(rules: Rules) -> tuple[Column, ...]:
    """One flag, or null, per rule that only flags samples; for rows that come from `ruled`."""
    return tuple(F.get("marks", F.lit(place)) for place, _ in enumerate(rules.of("samples", "flag")))


@cache
def _ruled(rules: Rules, stream: str) -> tuple[Column, ...]:
    refusing, marking = (
        [F.when(F.expr(rule.when), F.lit(f"rule:{rule.name}")) for rule in rules.of(stream, then)]
        for then in ("quarantine", "flag")
    )
    no_text = F.lit(None).cast("string")
    return F.coalesce(*refusing, no_text).alias("rule"), F.array(*marking, no_text).alias("marks")


@cache
def _verdict(rules: Rules, stream: str, *, is_ruled: bool) -> Column:
    conditions = _of_samples() if stream == "samples" else _of_others(stream)
    if rules.known_nodes is not None and stream not in UNNAMED:
        conditions.append(("unknown-node", ~F.col("origin").isin(*rules.known_nodes)))
    verdicts = [F.when(condition, F.lit(reason)) for reason, condition in conditions]
    return F.coalesce(_from_recorder(), *verdicts, *([F.col("rule")] if is_ruled else []))


def _from_recorder() -> Column:
    """The error that the recorder has stored, as a reason; an error outside the closed list becomes `undecodable`."""
    code = F.substring_index("error", ":", 1)
    known = F.when(code.isin(*FROM_RECORDER), code).otherwise(F.lit("undecodable"))
    return F.when(F.col("error").isNotNull(), known)


def _of_samples() -> list[tuple[str, Column]]:
    """Reasons and their conditions, tried in this order."""
    numbers = F.expr("int(value_long is not null) + int(value_double is not null) + int(text is not null)")
    return [
        ("no-sequence", _has_no_sequence()),
        ("missing-field", F.greatest(_is_absent("series", "config_name", "type"), numbers == 0)),
        ("bad-type", (numbers > 1) | (F.col("text").isNotNull() & F.col("type").isin(*PAIRED))),
        ("bad-number", _is_no_number("value_double") | _is_no_number("base_double")),
        ("too-long", _is_too_long()),
        *_of_stamps(),
    ]


def _of_others(stream: str) -> list[tuple[str, Column]]:
    """The same for streams other than samples."""
    is_cut = F.col("attributes")["raw_bytes"].isNotNull()
    is_long = F.length("key") > KEY_MAX.get(stream, TEXT_MAX)
    long_ones = [is_cut, is_long, F.octet_length("origin") > ORIGIN_BYTES_MAX]
    return [
        ("no-sequence", _has_no_sequence()),
        ("missing-field", _is_absent("key")),
        *MISFITS.get(stream, list)(),
        ("too-long", F.coalesce(F.greatest(*long_ones), F.lit(False))),
        *([] if stream in UNTIMED else _of_stamps()),
    ]


def _has_no_sequence() -> Column:
    return F.coalesce(F.col("sequence") < 1, F.lit(True))


def _is_absent(*names: str) -> Column:
    """Whether one of these columns, or of those that every row needs, is null."""
    return F.greatest(*[F.col(name).isNull() for name in ("origin", "at_ns", "received_ns", *names)])


def _of_stamps() -> list[tuple[str, Column]]:
    return [
        ("future", milliseconds("at_ns") - milliseconds("received_ns") > FUTURE_MS),
        ("ancient", F.col("at_ns") < ANCIENT_NS),
    ]


def _is_no_number(name: str) -> Column:
    """NaN or infinite; false for null."""
    column = F.col(name)
    return F.coalesce(F.isnan(column) | (F.abs(column) == float("inf")), F.lit(False))


def _is_too_long() -> Column:
    texts = [F.length(name) > TEXT_MAX for name in ("config_name", "detail", "type", "param")]
    label = F.exists(F.map_values("labels"), lambda text: F.length(text) > TEXT_MAX)
    long_ones = [*texts, label, F.size("labels") > LABELS_MAX, F.octet_length("origin") > ORIGIN_BYTES_MAX]
    return F.coalesce(F.greatest(*long_ones), F.lit(False))
