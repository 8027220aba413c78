"""Reads the fleet's file, which says what every machine measures, and which machines form groups (CFG-070..074).

    [fleet]
    name = "lab"
    heartbeat = "2s"
    [metric.net]
    detail = "NET_IF"
    rate = "1s"
    [group.web]
    members = ["web*.lab"]
    metrics = ["net"]

Pure functions: from a text they make a fleet, or a list of all its mistakes. A file with an error gives no fleet (CFG-071).
"""

import math
import re
from typing import Any, Final

from weft.base.endpoints import is_endpoint
from weft.base.errors import UserError
from weft.base.paths import is_key
from weft.base.settings import Table, is_plain_name, nearest
from weft.cores.chains.settings import parse_filters
from weft.cores.measurement.settings import parse_metrics
from weft.node import installed
from weft.node.fleetalerts import alerts_of, shared_alerts
from weft.node.fleetchecks import between_groups
from weft.node.fleetparts import (
    ALERTS_MAX,
    DEAD_AFTER_MAX,
    DEAD_AFTER_MIN,
    EVERYBODY,
    FANOUT_MAX,
    FILTERS_MAX,
    GROUPS_MAX,
    LABEL_BYTES_MAX,
    LABELS_MAX,
    MEMBERS_MAX,
    METRICS_MAX,
    RESERVED,
    SPAN_MAX_NS,
    SPAN_MIN_NS,
    SPANS,
    Fleet,
    Group,
    Mistake,
    Reading,
    in_seconds,
    placed,
    reading_of,
    refusal,
)
from weft.node.settings import DEFAULT_METRICS, ChainsTable, read_document
from weft.node.tomllines import lines_of

__all__ = ["Fleet", "Group", "Mistake", "Reading", "fleet_of", "read_fleet"]

TABLES: Final = ("fleet", "global", "metric", "alert", "chains", "group", "security", "chp")
OF_NODES: Final = ("node", "lake", "journal", "limits", "store", "catalog", "doc", "notify", "export")
OF_ONE: Final = " belongs into the file of one node, which weft up FILE --check checks"
MOST: Final = {"metrics": METRICS_MAX, "filters": FILTERS_MAX, "alerts": ALERTS_MAX}
"""The largest numbers in one group."""
_LINE: Final = re.compile(r"line (\d+)")
_TWICE: Final = ("twice", "Cannot overwrite", "Cannot mutate")
"""Words in the TOML parser's errors about a key that is there twice."""


def read_fleet(text: str, *, is_of_root: bool = False) -> Reading:
    """The fleet that a TOML text describes, or everything that is wrong with it, in the order of its lines (CFG-071).

    `is_of_root`: it is a root's own file, which may describe the fleet, too; tables about the root itself are skipped.
    """
    try:
        document = read_document(text, "it")
    except UserError as error:
        return Reading(None, (_syntax(error.text.removeprefix("it is not TOML: "), text),))
    mistakes: list[str] = []
    document = _sane(_without_node(document) if is_of_root else document, "", mistakes)
    fleet = _fleet(document, mistakes)
    mistakes += between_groups(fleet, _shared_metrics(document))
    return reading_of(fleet, placed(mistakes, lines_of(text) if mistakes else {}))


def fleet_of(text: str, where: str, *, is_of_root: bool = False) -> Fleet:
    """As `read_fleet`; UserError `bad-settings` names every error."""
    fleet, errors, _ = read_fleet(text, is_of_root=is_of_root)
    if fleet is None:
        raise refusal(errors, where)
    return fleet


def _is_of_node(name: str) -> bool:
    """Whether a table belongs to one node: Weft's own tables, or that of an annex."""
    return name in OF_NODES or (name not in TABLES and name in installed.names())


def _without_node(document: dict[str, Any]) -> dict[str, Any]:
    kept = {name: table for name, table in document.items() if not _is_of_node(name)}
    times = document.get("fleet")
    if isinstance(times, dict):
        kept["fleet"] = {name: value for name, value in times.items() if name in ("name", "dead_after", *SPANS)}
    return kept


def _syntax(problem: str, text: str) -> Mistake:
    match = _LINE.search(problem)
    last = text.count("\n") + 1 if "end of document" in problem else 1
    code = "E14" if any(word in problem for word in _TWICE) else "E01"
    return Mistake(code, "-", int(match[1]) if match else last, problem)


def _sane(value: Any, path: str, mistakes: list[str]) -> Any:
    """The document without values that JSON cannot hold: dates, infinities, integers beyond 64 bits."""
    if isinstance(value, dict):
        pairs = ((key, _sane(item, f"{path}.{key}".lstrip("."), mistakes)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not None}
    if isinstance(value, list):
        items = [_sane(item, f"{path}[{index}]", mistakes) for index, item in enumerate(value)]
        return [item for item in items if item is not None]
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    mistakes.append(f"E04 {path}: {str(value)[:40]} is neither a text, nor true or false, nor a number of 64 bits")
    return None


def _fleet(document: dict[str, Any], mistakes: list[str]) -> Fleet:
    for name in document:
        if name not in TABLES:
            hint = OF_ONE if _is_of_node(name) else f" is no table{nearest(name, TABLES)}"
            mistakes.append(f"E02 {name}: [{name}]{hint}")
    times = _times(Table(document.get("fleet", {}), "fleet", mistakes))
    metrics = _metrics(document, mistakes)
    filters = _filters(document, mistakes)
    everywhere = _filters_of_all(Table(document.get("global", {}), "global", mistakes))
    alerts = shared_alerts(document, metrics, mistakes)
    _security(Table(document.get("security", {}), "security", mistakes))
    _chp(Table(document.get("chp", {}), "chp", mistakes))
    if "group" not in document:
        alerts, wrong = alerts_of(metrics, alerts, {}, "")
        mistakes += wrong
        everybody = Group(name=EVERYBODY, members=("*",), metrics=metrics, filters=filters, alerts=alerts)
        return Fleet(times=times, filters=everywhere, groups={EVERYBODY: everybody})
    return Fleet(
        times=times, filters=everywhere, groups=_groups(document["group"], (metrics, filters, alerts), mistakes)
    )


def _times(table: Table) -> dict[str, Any]:
    times: dict[str, Any] = {}
    name = table.text("name")
    if name and not is_plain_name(name):
        table.say("E15", "name", "1 to 63 letters, digits, `_`, `.`, `-`")
    if name:
        times["name"] = name
    for key in SPANS:
        span = table.span(key, 0)
        if key in table and span and not SPAN_MIN_NS <= span <= SPAN_MAX_NS:
            table.say("E04", key, f'{table.raw(key)!r} is not a time from "50ms" to "1h"')
        elif key in table:
            times[key] = in_seconds(span)
    if "dead_after" in table:
        times["dead_after"] = table.whole("dead_after", 0, DEAD_AFTER_MIN, DEAD_AFTER_MAX)
    else:
        table.raw("dead_after")
    table.end()
    return times


def _shared_metrics(document: dict[str, Any]) -> dict[str, Any]:
    default = {} if "group" in document else DEFAULT_METRICS
    metrics = document.get("metric", default)
    return metrics if isinstance(metrics, dict) else {}


def _metrics(document: dict[str, Any], mistakes: list[str]) -> dict[str, dict[str, Any]]:
    _, wrong = parse_metrics(document.get("metric", {}))
    mistakes += wrong
    return {name: table for name, table in _shared_metrics(document).items() if isinstance(table, dict)}


def _filters(document: dict[str, Any], mistakes: list[str]) -> dict[str, dict[str, Any]]:
    chains = Table(document.get("chains", {}), "chains", mistakes)
    tables = chains.raw("filter")
    for own in ChainsTable.__struct_fields__:
        chains.raw(own)  # tables of the root itself, if this is its own file
    chains.end()
    if tables is None:
        return {}
    _, wrong = parse_filters(tables)
    mistakes += wrong
    found = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    return {str(table.get("name")): {key: table[key] for key in table if key != "name"} for table in found}


Tables = dict[str, dict[str, Any]]
Shared = tuple[Tables, Tables, Tables]
"""Metrics and filters that groups refer to, and alerts that belong to groups by their metrics."""


def _groups(tables: Any, shared: Shared, mistakes: list[str]) -> dict[str, Group]:
    if not isinstance(tables, dict):
        mistakes.append("E04 group: must be tables, one per group")
        return {}
    if len(tables) > GROUPS_MAX:
        mistakes.append(f"E04 group: {len(tables)} groups, {GROUPS_MAX} at most")
    return {name: _group(name, values, shared, mistakes) for name, values in tables.items()}


def _group(name: str, values: Any, shared: Shared, mistakes: list[str]) -> Group:
    table = Table(values, f"group.{name}", mistakes)
    if not is_plain_name(name):
        table.say("E15", "", "a name is 1 to 63 letters, digits, `_`, `.`, `-`")
    elif name in RESERVED:
        table.say("E15", "", f"`{name}` cannot name a group")
    metrics = {**_named(table, "metrics", shared[0]), **_own_metrics(table)}
    alerts, wrong = alerts_of(metrics, shared[2], _own(table, "alert"), f"{table.path}.alert")
    mistakes += wrong
    group = Group(
        name=name,
        parent=table.text("parent"),
        members=_list(table, "members"),
        exclude=_list(table, "exclude"),
        collectors=_list(table, "collectors"),
        fanout=table.whole("fanout", 0, 1, FANOUT_MAX) or None,
        prefer=table.flag("prefer"),
        labels=_labels(table),
        metrics=metrics,
        filters={**_named(table, "filters", shared[1]), **_own_filters(table)},
        alerts=alerts,
    )
    for what, most in MOST.items():
        if (count := len(getattr(group, what))) > most:
            table.say("E04", what, f"{count} of them, {most} at most")
    table.end()
    return group


def _list(table: Table, key: str) -> tuple[str, ...]:
    texts = table.texts(key)
    if len(texts) > MEMBERS_MAX:
        table.say("E04", key, f"{len(texts)} of them, {MEMBERS_MAX} at most")
    seen: dict[str, int] = {}
    for index, text in enumerate(texts):
        if seen.setdefault(text, index) != index:
            table.say("E14", f"{key}[{index}]", f"{text!r} is in this list twice")
    return texts


def _named(table: Table, key: str, shared: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for index, name in enumerate(_list(table, key)):
        if name in shared:
            found[name] = shared[name]
        else:
            what = "[metric.…]" if key == "metrics" else "[[chains.filter]]"
            table.say("E07", f"{key}[{index}]", f"there is no {what} {name!r}{nearest(name, shared)}")
    return found


def _own_metrics(table: Table) -> dict[str, dict[str, Any]]:
    """`[group.NAME.metric.X]`: a metric that only this group has, or has with other settings."""
    tables = _own(table, "metric", "metrics")
    _, wrong = parse_metrics(tables)
    table.mistakes += [line.replace(" metric", f" {table.path}.metric", 1) for line in wrong]
    return tables


def _own_filters(table: Table) -> dict[str, dict[str, Any]]:
    """`[group.NAME.filter.X]`: filters of this group only; their name is in the header."""
    tables = _own(table, "filter", "filters")
    for name, values in tables.items():
        path = f"{table.path}.filter.{name}"
        if "name" in values:
            table.mistakes.append(f"E02 {path}.name: the name is in the header already")
        _, wrong = parse_filters([{**values, "name": name}])
        table.mistakes += [line.replace("chains.filter[0]", path, 1) for line in wrong]
    return tables


def _filters_of_all(table: Table) -> dict[str, dict[str, Any]]:
    """`[global.filter.X]`: filters of all nodes."""
    filters = _own_filters(table)
    table.end()
    return filters


def _own(table: Table, key: str, listed: str = "") -> dict[str, dict[str, Any]]:
    tables = table.raw(key)
    if tables is None:
        return {}
    if not isinstance(tables, dict) or not all(isinstance(values, dict) for values in tables.values()):
        table.say("E04", key, f"must be tables, [{table.path}.{key}.NAME]")
        return {}
    for name in tables:
        if listed and name in table.texts(listed):
            table.say("E14", f"{key}.{name}", f"is in `{listed}`, too: remove one of the two")
    return tables


def _labels(table: Table) -> dict[str, str]:
    labels = table.raw("labels")
    if labels is None:
        return {}
    texts = [*labels, *labels.values()] if isinstance(labels, dict) else [None]
    is_good = all(isinstance(text, str) and len(text.encode()) <= LABEL_BYTES_MAX for text in texts)
    if not is_good or len(labels) > LABELS_MAX:
        table.say("E04", "labels", f"must be a table of at most {LABELS_MAX} texts of {LABEL_BYTES_MAX} bytes")
        return {}
    return dict(labels)


def _security(table: Table) -> None:
    table.choice("mode", ("curve", "none"), "curve")
    table.flag("allow_insecure")
    table.end()


def _chp(table: Table) -> None:
    table.whole("port", 0, 1024, 65_533)
    for index, prefix in enumerate(table.texts("writable")):
        if not is_key(prefix.rstrip("/")) or prefix.endswith("//"):
            table.say("E04", f"writable[{index}]", f'{prefix!r} is neither a key nor a prefix such as "/client/"')
    for key in ("loose_prefix", "import_prefix"):
        prefix = table.text(key)
        if prefix and not (prefix.endswith("/") and is_key(prefix[:-1])):
            table.say("E04", key, f'{prefix!r} is not a prefix such as "/client/"')
    source = table.text("import")
    if source and not is_endpoint(source):
        table.say("E05", "import", f"{source!r} is not host:port")
    table.end()
