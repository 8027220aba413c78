"""Which rows silver refuses, as SQL of DuckDB: the same table of reasons as `transforms.quality` (PIP-031, PIP-102).

This repeats Spark's column expressions, because `weft sql` has no Spark. Limits and names are shared
(`weft.pipeline.judging`); `tests/pipeline/test_bridge.py` compares both forms over generated rows of every stream.
The user's rules are Spark SQL and are not here: of a stream that has rules, only bronze is bridged.
"""

from collections.abc import Callable
from typing import Final

from weft.pipeline import judging
from weft.pipeline.scan import quoted

Reason = tuple[str, str]
"""A reason, and the condition under which it applies to a row."""
LONG: Final = r"\s*[+-]?[0-9]+\s*"
DOUBLE: Final = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\s*"
"""Numbers in the syntax that Spark reads. DuckDB alone would round `1.5` to an integer and accept `1_000`."""


def verdict(stream: str, known_nodes: tuple[str, ...] | None) -> str:
    """An expression over the columns of bronze: the reason why silver refuses a row, null if it does not."""
    conditions = _of_samples() if stream == "samples" else _of_others(stream)
    if known_nodes is not None and stream not in judging.UNNAMED:
        known = ", ".join(map(quoted, known_nodes))
        conditions.append(("unknown-node", f"origin NOT IN ({known})" if known else "origin IS NOT NULL"))
    words = ", ".join(map(quoted, judging.FROM_RECORDER))
    code = "split_part(error, ':', 1)"
    from_recorder = f"WHEN error IS NOT NULL THEN CASE WHEN {code} IN ({words}) THEN {code} ELSE 'undecodable' END"
    return f"CASE {from_recorder} {' '.join(f'WHEN {when} THEN {quoted(reason)}' for reason, when in conditions)} END"


def attribute(name: str) -> str:
    """An attribute of a record as text; null if the record lacks it."""
    return f"attributes['{name}']"


def long_of(text: str) -> str:
    """Text as an integer of 64 bits; null if it is not one."""
    return f"CASE WHEN regexp_full_match({text}, '{LONG}') THEN TRY_CAST({text} AS BIGINT) END"


def double_of(text: str) -> str:
    """Text as a double; null if it is not a number."""
    plain = rf"regexp_replace({text}, '[dDfF]?\s*$', '')"
    return f"CASE WHEN regexp_full_match({text}, '{DOUBLE}') THEN TRY_CAST({plain} AS DOUBLE) END"


def _of_samples() -> list[Reason]:
    paired = ", ".join(map(quoted, judging.PAIRED))
    numbers = "(value_long IS NOT NULL)::INT + (value_double IS NOT NULL)::INT + (text IS NOT NULL)::INT"
    return [
        ("no-sequence", NO_SEQUENCE),
        ("missing-field", f"{_is_absent('series', 'config_name', 'type')} OR {numbers} = 0"),
        ("bad-type", f"{numbers} > 1 OR (text IS NOT NULL AND type IN ({paired}))"),
        ("bad-number", f"{_is_no_number('value_double')} OR {_is_no_number('base_double')}"),
        ("too-long", _is_too_long()),
        *STAMPS,
    ]


def _of_others(stream: str) -> list[Reason]:
    key_max = judging.KEY_MAX.get(stream, judging.TEXT_MAX)
    too_long = f"{attribute('raw_bytes')} IS NOT NULL OR length(key) > {key_max} OR {LONG_ORIGIN}"
    return [
        ("no-sequence", NO_SEQUENCE),
        ("missing-field", _is_absent("key")),
        *MISFITS.get(stream, list)(),
        ("too-long", too_long),
        *([] if stream in judging.UNTIMED else STAMPS),
    ]


NO_SEQUENCE: Final = "coalesce(sequence < 1, true)"
LONG_ORIGIN: Final = f"strlen(origin) > {judging.ORIGIN_BYTES_MAX}"
STAMPS: Final[list[Reason]] = [
    ("future", f"at_ns // 1000000 - received_ns // 1000000 > {judging.FUTURE_MS}"),
    ("ancient", f"at_ns < {judging.ANCIENT_NS}"),
]


def _is_absent(*names: str) -> str:
    return " OR ".join(f"{name} IS NULL" for name in ("origin", "at_ns", "received_ns", *names))


def _is_no_number(name: str) -> str:
    return f"coalesce(isnan({name}) OR isinf({name}), false)"


def _is_too_long() -> str:
    texts = [f"length({name}) > {judging.TEXT_MAX}" for name in ("config_name", "detail", "type", "param")]
    label = f"len(list_filter(map_values(labels), lambda word: length(word) > {judging.TEXT_MAX})) > 0"
    return " OR ".join([*texts, label, f"cardinality(labels) > {judging.LABELS_MAX}", LONG_ORIGIN])


# Additional reasons of some streams.


def _of_catalog() -> list[Reason]:
    return [
        ("missing-field", " OR ".join(f"{attribute(name)} IS NULL" for name in judging.OF_CHANGES)),
        ("bad-type", "coalesce(NOT starts_with(body, '{'), false)"),
    ]


def _of_logs() -> list[Reason]:
    lacks = [f"json_extract_string(body, '$.{name}') IS NULL" for name in judging.OF_LOGS]
    return [("missing-field", " OR ".join(["body IS NULL", "NOT starts_with(body, '{')", *lacks]))]


def _of_documents() -> list[Reason]:
    eff = f"({double_of(attribute('eff'))})"
    return [
        ("missing-field", f"raw IS NULL OR {attribute('eff')} IS NULL"),
        ("bad-type", f"NOT regexp_full_match(origin, {quoted(judging.SOURCE)})"),
        ("bad-number", f"NOT coalesce({eff} >= 0 AND NOT isinf({eff}), false)"),
    ]


def _of_configuration() -> list[Reason]:
    out = f"era >= {judging.EPOCHS} OR sequence >= {judging.COUNTERS}"
    return [("missing-field", "era IS NULL"), ("out-of-range", out)]


MISFITS: Final[dict[str, Callable[[], list[Reason]]]] = {
    "catalog": _of_catalog,
    "logs": _of_logs,
    "documents": _of_documents,
    "configuration": _of_configuration,
}
