"""Alerts of a fleet's file: which group has which (MET-004).

An alert of the fleet belongs to every group that measures its metric; a group's alert replaces the fleet's of the same
name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from weft.cores.measurement.alertsettings import parse_alerts
from weft.cores.measurement.details import DETAILS

Tables = dict[str, dict[str, Any]]


def details_of(metrics: Mapping[str, Any]) -> dict[str, str]:
    """The detail of each metric; empty if it is unknown."""
    details = {name: table.get("detail") for name, table in metrics.items() if isinstance(table, Mapping)}
    return {name: detail if isinstance(detail, str) and detail in DETAILS else "" for name, detail in details.items()}


def shared_alerts(document: Mapping[str, Any], metrics: Mapping[str, Any], mistakes: list[str]) -> Tables:
    """The tables `[alert.*]`. An alert about a metric that is defined nowhere is a mistake. Units are checked by group."""
    tables = document.get("alert", {})
    groups = document.get("group")
    found = groups.values() if isinstance(groups, Mapping) else ()
    own = [group.get("metric") for group in found if isinstance(group, Mapping)]
    names = {name: "" for known in (metrics, *own) if isinstance(known, Mapping) for name in known}
    _, wrong = parse_alerts(tables, names)
    mistakes += wrong
    pairs = tables.items() if isinstance(tables, Mapping) else ()
    return {name: table for name, table in pairs if isinstance(table, dict)}


def alerts_of(metrics: Mapping[str, Any], shared: Tables, own: Tables, path: str) -> tuple[Tables, list[str]]:
    """The alerts of a group with these metrics, and what is wrong with them in this group."""
    details = details_of(metrics)
    common = {name: table for name, table in shared.items() if table.get("metric") in details and name not in own}
    mistakes = [*parse_alerts(common, details)[1], *parse_alerts(own, details, path)[1]]
    return {**common, **own}, mistakes


def in_common(groups: Iterable[tuple[Mapping[str, Any], Tables]]) -> Tables:
    """The alerts that can be written once for the fleet, because all groups that measure the metric have the same.

    `groups`: metrics and alerts of each group.
    """
    found = list(groups)
    tables = {name: table for _, alerts in found for name, table in alerts.items()}
    return {
        name: table
        for name, table in tables.items()
        if all(
            alerts.get(name) == table if table.get("metric") in metrics else name not in alerts
            for metrics, alerts in found
        )
    }
