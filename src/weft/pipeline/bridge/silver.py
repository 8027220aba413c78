"""Turns received rows into rows of silver with DuckDB, as the modules of `transforms` do with Spark (PIP-102).

The SQL here repeats Spark's column expressions; `tests/pipeline/test_bridge.py` compares the two. A column that is not
named here is copied; `batch` is null, because no batch has taken the row.
"""

from typing import Final

from weft.pipeline import judging
from weft.pipeline.bridge.verdicts import attribute, double_of, long_of
from weft.pipeline.schemas.table import Table

LATE: Final = "is_late"
"""Input column: whether the number of a sample had been announced lost."""
DAY_NS: Final = 86_400_000_000_000


def day_of(nanoseconds: str) -> str:
    """UTC day of an instant, rounded down."""
    below = f"({nanoseconds} % {DAY_NS} < 0)::BIGINT"
    return f"DATE '1970-01-01' + ({nanoseconds} // {DAY_NS} - {below})::INTEGER"


def columns_of(table: Table) -> dict[str, str]:
    """For each column of a table of silver, the expression that computes it from an accepted row."""
    made = {"batch": "NULL", **MADE[table.name]}
    return {name: made.get(name, f'"{name}"') for name in table.schema.names}


def _instant(nanoseconds: str) -> str:
    return f"make_timestamptz({nanoseconds} // 1000)"


def _nonempty(name: str) -> str:
    """An attribute; null if it is empty."""
    return f"nullif({attribute(name)}, '')"


def _json(text: str, form: str) -> str:
    """Text parsed as JSON of a type, like `["VARCHAR"]`; null if the text is not valid JSON."""
    return f"CASE WHEN json_valid({text}) THEN from_json({text}, '{form}') END"


STAMPED: Final = {"at": _instant("at_ns"), "received": _instant("received_ns"), "day": day_of("at_ns")}
NAMED: Final = {"node": f"coalesce({attribute('node')}, origin)", "group": attribute("group")}
_FLAGS: Final = (
    f"CASE WHEN {attribute('volatile')} = 'true' THEN 'volatile' END",
    f"CASE WHEN {attribute('step')} IS NOT NULL THEN 'step' END",
    f"CASE WHEN {LATE} THEN 'after-lost' END",
)
_SAMPLES: Final = {
    **STAMPED,
    **NAMED,
    "value": "coalesce(value_double, value_long::DOUBLE)",
    "base": "coalesce(base_double, base_long::DOUBLE)",
    "delay_ms": "received_ns // 1000000 - at_ns // 1000000",
    "flags": f"list_filter([{', '.join(_FLAGS)}], lambda flag: flag IS NOT NULL)",
    "dataset": "NULL",
}
_FORMAT: Final = f"coalesce({attribute('fmt')}, 'raw')"
_VIA: Final = attribute("via")
_FRAMES: Final = attribute("frames")
_MESSAGES: Final = {
    **STAMPED,
    **NAMED,
    "mid": "concat_ws('/', origin, era, sequence)",
    "type": "key",
    "fmt": _FORMAT,
    "depth": f"coalesce({long_of(attribute('depth'))}, 0)",
    "unsure": f"coalesce({attribute('unsure')} = 'true', false)",
    "payload": "raw",
    "body": f"CASE WHEN {_FORMAT} IN ('text', 'xml') THEN TRY(decode(raw)) ELSE body END",
    "via": _json(_VIA, '["VARCHAR"]'),
    "frames": _json(_FRAMES, '["BIGINT"]'),
}


def _field(*names: str) -> str:
    """The first of these fields that a body has, as text."""
    found = ", ".join(f"json_extract_string(body, '$.{name}')" for name in names)
    return f"coalesce({found})"


_EVENTS: Final = {
    **STAMPED,
    **NAMED,
    "event": "key",
    "subsystem": "split_part(key, '.', 1)",
    "severity": attribute("level"),
    "peer": _field("node"),
    "subject": _field("name", "key", "filter"),
    "number": long_of(_field("number")),
    "fields": "body",
}
_LINK: Final = f"{{'node': link[1], 'tick': {long_of('link[2]')}}}"
_CHAIN: Final = _json(attribute("chain"), '[["VARCHAR"]]')
_STORE: Final = {
    **STAMPED,
    "node": "origin",
    "tick": "sequence",
    "path_text": "key",
    "deleted": f"{attribute('deleted')} = 'true'",
    "tock": long_of(attribute("tock")),
    "by": _nonempty("by"),
    "value": "body",
    "path": _json(attribute("path"), '["VARCHAR"]'),
    "chain": f"list_transform({_CHAIN}, lambda link: {_LINK})",
}
_SINCE: Final = f"trunc(({double_of(attribute('since'))}) * 1e6)"
_CATALOG: Final = {
    **STAMPED,
    "broker": "origin",
    "index": "sequence",
    "name": "key",
    "since": f"make_timestamptz(TRY_CAST({_SINCE} AS BIGINT))",
    "metadata": "TRY_CAST(json_extract(body, '$.metadata') AS MAP(VARCHAR, VARCHAR))",
    "record": "body",
    **{name: attribute(name) for name in judging.OF_CHANGES},
    **{name: _nonempty(name) for name in ("reason", "health", "owner", "observed_ip", "net")},
}


def _text(name: str) -> str:
    return f"json_extract_string(body, '$.{name}')"


def _integer(path: str) -> str:
    """An integer field of a body; null for a text of digits."""
    is_whole = f"json_type(body, '$.{path}') IN ('BIGINT', 'UBIGINT')"
    return f"CASE WHEN {is_whole} THEN TRY_CAST(json_extract_string(body, '$.{path}') AS BIGINT) END"


_TS: Final = (
    "CASE WHEN json_type(body, '$.ts') IN ('BIGINT', 'UBIGINT', 'DOUBLE')"
    " THEN TRY_CAST(json_extract_string(body, '$.ts') AS DOUBLE) END"
)
_LOGS: Final = {
    **STAMPED,
    "broker": "origin",
    **{name: _text(name) for name in (*judging.OF_LOGS, "logger", "net", "fields")},
    "seq": _integer("seq"),
    "repeated": _integer("repeated"),
    "ts": f"make_timestamptz(TRY_CAST(trunc(({_TS}) * 1000000) AS BIGINT))",
    "lost_from": _integer("lost.from"),
    "lost_to": _integer("lost.to"),
}
_INERT: Final = _nonempty("inert")
_DOCUMENTS: Final = {
    "session": "left(origin, length(origin) - 33)",
    "source": "right(origin, 32)",
    "eff": double_of(attribute("eff")),
    "timestamp_raw": f"coalesce({attribute('ts')}, '')",
    "verb": "key",
    "reference": f"coalesce({attribute('ref')}, '')",
    "by": _nonempty("by"),
    "origsource": attribute("osource"),
    "origsequence": long_of(attribute("oseq")),
    "inert_reason": _INERT,
    "signer": "NULL",
    "received_at": _instant("received_ns"),
    "received_from": attribute("from"),
    "body": "raw",
    "outcome": f"'inert:' || {_INERT}",
    "schema": attribute("schema"),
    "day": day_of("received_ns"),
}
_CONFIGURATION: Final = {
    "epoch": "era",
    "counter": "sequence",
    "value": f"CASE WHEN NOT coalesce({attribute('deleted')} = 'true', false) THEN body END",
    "by": _nonempty("who"),
    "at": _instant("at_ns"),
    "day": day_of("at_ns"),
}
MADE: Final[dict[str, dict[str, str]]] = {
    "samples": _SAMPLES,
    "messages": _MESSAGES,
    "events": _EVENTS,
    "store": _STORE,
    "catalog": _CATALOG,
    "logs": _LOGS,
    "documents": _DOCUMENTS,
    "configuration": _CONFIGURATION,
}
"""By stream: the columns that are not copied, and their expressions."""
