"""A fleet as TOML text, as a person would write it: what several groups have is written once (CFG-072)."""

import re
from collections import Counter
from typing import Any, Final

from weft.base.settings import UNITS
from weft.node.fleetalerts import in_common
from weft.node.fleetkeys import canonical
from weft.node.fleetparts import SPANS, Fleet, Group, seconds_of

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
Tables = dict[str, dict[str, Any]]


def to_toml(fleet: Fleet) -> str:
    """The text; a fleet that is read from it has the same pairs (CFG-070)."""
    metrics = _shared(fleet, "metrics")
    filters = _shared(fleet, "filters")
    times = {key: _time(key, fleet.times[key]) for key in sorted(fleet.times)}
    parts = [block("[fleet]", times)] if times else []
    parts += [block(f"[metric.{_key(name)}]", metrics[name]) for name in sorted(metrics)]
    alerts = in_common((group.metrics, group.alerts) for group in fleet.groups.values())
    parts += [block(f"[alert.{_key(name)}]", alerts[name]) for name in sorted(alerts)]
    parts += [block("[[chains.filter]]", {"name": name, **filters[name]}) for name in sorted(filters)]
    parts += [block(f"[global.filter.{_key(name)}]", fleet.filters[name]) for name in sorted(fleet.filters)]
    for name in _parents_first(fleet):
        parts += _group(fleet.groups[name], metrics, filters, alerts)
    return "\n".join(parts)


def _group(group: Group, metrics: Tables, filters: Tables, alerts: Tables) -> list[str]:
    head = f"[group.{_key(group.name)}"
    values: dict[str, Any] = {
        "parent": group.parent,
        "collectors": list(group.collectors),
        "members": list(group.members),
        "exclude": list(group.exclude),
        "fanout": group.fanout,
        "prefer": group.prefer,
        "labels": group.labels,
        "metrics": _listed(group.metrics, metrics),
        "filters": _listed(group.filters, filters),
    }
    parts = [block(f"{head}]", {key: value for key, value in values.items() if value})]
    kinds = (
        ("metric", group.metrics, metrics),
        ("filter", group.filters, filters),
        ("alert", group.alerts, alerts),
    )
    for kind, tables, shared in kinds:
        own = [name for name in sorted(tables) if not _is_same(tables, shared, name)]
        parts += [block(f"{head}.{kind}.{_key(name)}]", tables[name]) for name in own]
    return parts


def _shared(fleet: Fleet, kind: str) -> Tables:
    """For each name the table that most groups have; if several are equally frequent, the one with the smallest text."""
    found: dict[str, Counter[bytes]] = {}
    texts: dict[bytes, dict[str, Any]] = {}
    for group in fleet.groups.values():
        for name, table in getattr(group, kind).items():
            text = canonical(table)
            texts[text] = table
            found.setdefault(name, Counter())[text] += 1
    return {name: texts[_most(counts)] for name, counts in found.items()}


def _most(counts: Counter[bytes]) -> bytes:
    return min(counts, key=lambda text: (-counts[text], text))


def _listed(tables: Tables, shared: Tables) -> list[str]:
    return [name for name in sorted(tables) if _is_same(tables, shared, name)]


def _is_same(tables: Tables, shared: Tables, name: str) -> bool:
    return name in shared and canonical(tables[name]) == canonical(shared[name])


def _parents_first(fleet: Fleet) -> list[str]:
    def ancestry(name: str) -> list[str]:
        above: list[str] = [name]
        while (group := fleet.groups.get(above[0])) and group.parent and group.parent not in above:
            above.insert(0, group.parent)
        return above

    return sorted(fleet.groups, key=ancestry)


def block(head: str, values: dict[str, Any]) -> str:
    """A table with its header, as TOML."""
    return "".join([f"{head}\n", *[f"{_key(key)} = {_value(value)}\n" for key, value in values.items()]])


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    return canonical(text).decode().replace("\x7f", "\\u007F")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return _text(value)
    return canonical(value).decode() if isinstance(value, bool) else repr(value)


def _time(key: str, value: Any) -> Any:
    """A span with its unit, `"2s"` instead of 2; any other value unchanged."""
    span = seconds_of(value) if key in SPANS else None
    if span is None:
        return value
    for unit in ("h", "m", "s", "ms"):
        if span % UNITS[unit] == 0:
            return f"{span // UNITS[unit]}{unit}"
    return value
