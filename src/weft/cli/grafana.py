"""A dashboard of Grafana, made from the list of metrics: `weft metrics --grafana` (MET-006)."""

from typing import Any, Final

from weft.cores.measurement.details import DETAILS, Detail
from weft.shell.fleetmetrics import family_of

SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
UNITS: Final = {
    "_ratio": "percentunit",
    "_bytes": "bytes",
    "_bytes_per_second": "Bps",
    "_seconds": "s",
    "_celsius": "celsius",
}
"""Grafana's name of a unit, by the end of a metric's name; any other metric is a plain number."""
WIDTH: Final = 12  # of 24: two panels beside each other
HEIGHT: Final = 8
SCHEMA: Final = 39  # of Grafana 10


def dashboard() -> dict[str, Any]:
    """A panel for each metric, for chosen machines; its data come from a Prometheus that scrapes `/metrics/fleet`."""
    panels = [_panel(number, name, DETAILS[name]) for number, name in enumerate(sorted(DETAILS))]
    return {
        "title": "Weft: the fleet",
        "uid": "weft-fleet",
        "tags": ["weft"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _nodes()]},
        "panels": panels,
    }


def _panel(number: int, name: str, row: Detail) -> dict[str, Any]:
    families = sorted({family_of(name, unit) for unit in ([row.unit] if row.unit else row.units.values())})
    ends = {unit for family in families for end, unit in UNITS.items() if family.endswith(end)}
    shown = ", ".join(f"{{{{{label}}}}}" for label in ("node", *(label for label in row.labels if label != "unit")))
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": name.lower().replace("_", " "),
        "description": row.says,
        "datasource": SOURCE,
        "gridPos": {"x": WIDTH * (number % 2), "y": HEIGHT * (number // 2), "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": ends.pop() if len(ends) == 1 else "short"}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "expr": f'{family}{{node=~"$node"}}',
                "legendFormat": shown,
                "datasource": SOURCE,
            }
            for place, family in enumerate(families)
        ],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _nodes() -> dict[str, Any]:
    """The choice of machines: those with any metric."""
    query = 'label_values({__name__=~"weft_.+", node!=""}, node)'
    return {
        "name": "node",
        "label": "machine",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "nodes"},
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }
