"""Makes the plan of a node, its metrics, filters and alerts, from the replicated pairs of its groups (CFG-051, CFG-091)."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.base.now import SECOND
from weft.base.settings import is_plain_name
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.measurement.alertsettings import AlertSpec, parse_alerts
from weft.cores.measurement.settings import MetricSpec, parse_metrics
from weft.node.fleetchecks import wrong_members
from weft.node.fleetkeys import GLOBAL, TABLES, Unusable, decoded, from_pairs, group_pairs, table_of
from weft.node.fleetparts import DEAD_AFTER_MAX, DEAD_AFTER_MIN, FANOUT_MAX, seconds_of

HEARTBEAT_NS: Final = 2 * SECOND  # CFG-074
DEAD_AFTER: Final = 5
EVERYWHERE: Final = "global"
"""In place of a group's name in a key: for all nodes."""
_ANY: Final = msgspec.json.Decoder(int | float)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a node of a group does; equal plans mean the same work."""

    metrics: tuple[MetricSpec, ...] = ()
    filters: tuple[FilterSpec, ...] = ()
    alerts: tuple[AlertSpec, ...] = ()
    heartbeat_ns: int = HEARTBEAT_NS
    dead_after: int = DEAD_AFTER
    """Heartbeats of silence after which a peer counts as dead."""
    mistakes: tuple[str, ...] = ()
    """Pairs that cannot be used, each as `key: sentence`; all others are used."""
    filter_mistakes: tuple[str, ...] = ()
    """Filters that cannot be used, each as `key: sentence`; then the node keeps the filters that it has (CHN-070)."""


def plan_of(pairs: Mapping[str, bytes], groups: Sequence[str]) -> Plan:
    """The plan of a node in `groups`, from all pairs that it has. Invalid values become mistakes, never exceptions.

    If two groups have a table of one name, that of the first group counts; filters of `/CONFIG/global/` apply unless a
    group has one of that name. Missing or invalid times are replaced by the defaults of CFG-074.
    """
    mistakes: list[str] = []
    metrics: dict[str, MetricSpec] = {}
    for group in groups:
        for name, value in group_pairs(pairs, group, "metric").items():
            metric = read_metric(f"/CONFIG/{group}/metric/{name}", name, value, mistakes)
            if metric is not None:
                metrics.setdefault(name, metric)
    wrong_filters: list[str] = []
    return Plan(
        metrics=tuple(metrics[name] for name in sorted(metrics)),
        filters=_filters(pairs, groups, wrong_filters),
        alerts=_alerts(pairs, groups, metrics, mistakes),
        heartbeat_ns=_span(pairs, "heartbeat", HEARTBEAT_NS, mistakes),
        dead_after=_dead_after(pairs, mistakes),
        mistakes=tuple(mistakes),
        filter_mistakes=tuple(wrong_filters),
    )


def why_unusable(key: str, value: bytes) -> str | None:
    """Why nodes could not use this value for `key`; None if they can, or if the key belongs to an application."""
    parts = key.split("/")[1:]
    mistakes: list[str] = []
    if parts[0] == "TOPO":
        return "only the root writes under /TOPO/"
    if key.startswith(GLOBAL):
        plan = plan_of({key: value}, ())
        mistakes += [*plan.mistakes, *plan.filter_mistakes, *from_pairs([(key, value)])[1]][:1]
    elif parts[0] == "CONFIG" and len(parts) == 4 and parts[2] in TABLES:
        _READERS[parts[2]](key, parts[3], value, mistakes)
    elif parts[0] == "CONFIG":
        mistakes += _of_group(key, value)
    return "; ".join(mistake.removeprefix(f"{key}: ") for mistake in mistakes) or None


def _of_group(key: str, value: bytes) -> list[str]:
    fleet, unknown = from_pairs([(key, value)])
    mistakes = list(unknown)
    for group in fleet.groups.values():
        mistakes += wrong_members(group)
        if group.fanout is not None and not 1 <= group.fanout <= FANOUT_MAX:
            mistakes.append(f"{group.fanout} is not from 1 to {FANOUT_MAX}")
    return mistakes


def read_metric(key: str, name: str, value: bytes, mistakes: list[str]) -> MetricSpec | None:
    """The metric that a pair describes; None, and what is wrong as `key: sentence`, if it cannot be measured."""
    table = _table(key, name, value, mistakes)
    if table is None:
        return None
    specs, wrong = parse_metrics({name: table})
    mistakes += [f"{key}: {text.replace(f' metric.{name}.', ' ', 1)}" for text in wrong]
    return None if wrong else specs[0]


def _alerts(
    pairs: Mapping[str, bytes], groups: Sequence[str], metrics: Mapping[str, MetricSpec], mistakes: list[str]
) -> tuple[AlertSpec, ...]:
    """Alerts about metrics of the plan; one about any other metric cannot be judged, and is a mistake."""
    details = {name: spec.detail for name, spec in metrics.items()}
    alerts: dict[str, AlertSpec] = {}
    for group in groups:
        for name, value in group_pairs(pairs, group, "alert").items():
            alert = read_alert(f"/CONFIG/{group}/alert/{name}", name, value, mistakes, details)
            if alert is not None:
                alerts.setdefault(name, alert)
    return tuple(alerts[name] for name in sorted(alerts))


def read_alert(
    key: str, name: str, value: bytes, mistakes: list[str], details: Mapping[str, str] | None = None
) -> AlertSpec | None:
    """The alert that a pair describes; None, and what is wrong as `key: sentence`, if it cannot be judged.

    `details`: the detail of each metric that it may be about; None: of any.
    """
    table = _table(key, name, value, mistakes)
    if table is None:
        return None
    specs, wrong = parse_alerts({name: table}, details)
    mistakes += [f"{key}: {text.replace(f' alert.{name}.', ' ', 1)}" for text in wrong]
    return None if wrong else specs[0]


def _filters(pairs: Mapping[str, bytes], groups: Sequence[str], mistakes: list[str]) -> tuple[FilterSpec, ...]:
    filters: dict[str, FilterSpec] = {}
    for group in (*groups, EVERYWHERE):
        for name, value in group_pairs(pairs, group, "filter").items():
            link = _filter(f"/CONFIG/{group}/filter/{name}", name, value, mistakes)
            if link is not None:
                filters.setdefault(name, link)
    return tuple(filters[name] for name in sorted(filters))


def _filter(key: str, name: str, value: bytes, mistakes: list[str]) -> FilterSpec | None:
    table = _table(key, name, value, mistakes)
    if table is None:
        return None
    specs, wrong = parse_filters([{**table, "name": name}])
    mistakes += [f"{key}: {text.replace(' chains.filter[0].', ' ', 1)}" for text in wrong]
    return None if wrong else specs[0]


_READERS: Final[dict[str, Callable[[str, str, bytes, list[str]], Any]]] = {
    "metric": read_metric,
    "filter": _filter,
    "alert": read_alert,
}


def _table(key: str, name: str, value: bytes, mistakes: list[str]) -> dict[str, Any] | None:
    try:
        table = table_of(value)
    except Unusable as error:
        mistakes.append(f"{key}: {error}")
        return None
    if not is_plain_name(name):
        mistakes.append(f"{key}: E15 a name is 1 to 63 letters, digits, `_`, `.`, `-`")
        return None
    if not _is_sane(table):
        mistakes.append(f"{key}: E04 has a number beyond 64 bits, or is nested too deep")
        return None
    return table


def _is_sane(value: Any, depth: int = 0) -> bool:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return depth < 8 and all(_is_sane(item, depth + 1) for item in items)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < 1 << 63


def _span(pairs: Mapping[str, bytes], name: str, usual: int, mistakes: list[str]) -> int:
    value = _number(pairs, name, mistakes)
    span = usual if value is None else seconds_of(value)
    if span is None:
        mistakes.append(f"{GLOBAL}{name}: {str(value)[:40]} is not a number of seconds from 0.05 to 3600")
    return usual if span is None else span


def _dead_after(pairs: Mapping[str, bytes], mistakes: list[str]) -> int:
    value = _number(pairs, "dead_after", mistakes)
    if value is None:
        return DEAD_AFTER
    if isinstance(value, int) and DEAD_AFTER_MIN <= value <= DEAD_AFTER_MAX:
        return value
    mistakes.append(
        f"{GLOBAL}dead_after: {str(value)[:40]} is not a whole number from {DEAD_AFTER_MIN} to {DEAD_AFTER_MAX}"
    )
    return DEAD_AFTER


def _number(pairs: Mapping[str, bytes], name: str, mistakes: list[str]) -> int | float | None:
    value = pairs.get(f"{GLOBAL}{name}")
    if value is None:
        return None
    try:
        number: int | float = decoded(_ANY, value)
    except Unusable as error:
        mistakes.append(f"{GLOBAL}{name}: {error}")
        return None
    return number
