"""Views for people: what is measured now, by the hour, and what fires; each fits 100 columns (MET-005)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.pipeline.plain import lake_of, put
from weft.base.errors import UserError
from weft.cli.tables import show
from weft.cores.measurement.details import DETAILS
from weft.pipeline.sql import Lake
from weft.pipeline.tables import EVENTS, LATEST, ROLLUP_1H, SERIES, VIEWS
from weft.pipeline.views.people import UNITS

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def series(key: int, name: str, detail: str, **labels: str) -> dict[str, Any]:
    return {
        "series": key,
        "config_name": name,
        "detail": detail,
        "type": "basic",
        "param": "",
        "labels": list(labels.items()),
    }


SERIES_ROWS = [
    series(1, "cpu", "CPU", cpu="total"),
    series(2, "disk", "DISK_PERCENT", mount="/", device="sda1"),
    series(3, "network", "NET_IF", device="eth0", dir="in", unit="bytes"),
]


def latest(node: str, key: int, age_s: float, result: float | None) -> dict[str, Any]:
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=age_s)
    told = {"result": result, "result_at": at if result is not None else None}
    return {"node": node, "series": key, "origin": node, "sequence": 1, "at": at, "received": at} | told


def asked(lake: Any, question: str) -> Any:
    with Lake(lake.root) as opened:
        return opened.query(question)


def width_of(table: Any) -> int:
    out = Console(width=300, color_system=None)
    with out.capture() as said:
        show(table, out)
    return max(len(line.rstrip()) for line in said.get().splitlines())


@pytest.mark.proves("MET-005", part="recent: name, value, unit and age; within 100 columns")
@pytest.mark.proves("MET-007", part="what is latest shows its age, and is forgotten a day behind its node")
def test_recent_names_values_units_and_ages_and_forgets_what_is_over(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, SERIES, *SERIES_ROWS)
    rows = [
        latest("collector-1", 1, 3, 41.23456),
        latest("collector-1", 2, 12_600, 93.4),
        latest("collector-1", 3, 90_000, 9.0),
    ]
    put(lake, LATEST, *rows, latest("sensor-2", 3, 200_000, 1_234_567.0))
    table = asked(lake, "SELECT * FROM recent")
    found = [(row["node"], row["metric"], row["of"], row["value"], row["unit"]) for row in table.to_pylist()]
    assert [
        ("collector-1", "cpu", "total", 41.235, "%"),
        ("collector-1", "disk", "/ sda1", 93.4, "%"),
        ("sensor-2", "network", "eth0 in bytes", 1_234_567.0, "By/s"),
    ] == found
    assert ["3 h", "2 d"] == [row["age"] for row in table.to_pylist()][1:]
    assert 100 >= width_of(table)
    assert list(VIEWS["gold.recent"].table.schema.names) == table.column_names


@pytest.mark.proves("MET-005", part="percentiles stay within the least and the greatest value")
def test_hourly_has_percentiles_that_leave_neither_the_least_nor_the_greatest(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, SERIES, *SERIES_ROWS)
    sketch = {"zero": 0, "positive": [{"index": 231, "count": 60}], "negative": [], "collapsed": False}
    values = {"n": 60, "sum": 6_000.0, "sum_sq": 600_000.0, "min": 100.0, "max": 100.0, "resets": 0, "sketch": sketch}
    put(
        lake,
        ROLLUP_1H,
        {"node": "sensor-1", "series": 1, "window_start": AT, "month": AT.date().replace(day=1), **values},
    )
    table = asked(lake, "SELECT * FROM hourly")
    assert [{
        "hour": "03-01 12:00", "node": "sensor-1", "metric": "cpu", "of": "total", "n": 60, "mean": 100.0, "p95": 100.0,
        "max": 100.0, "unit": "%",
    }] == table.to_pylist()  # fmt: skip
    free = asked(lake, "SELECT sketch_quantile(sketch, 0.95) AS free FROM rollup_1h").to_pylist()
    assert 100.0 != free[0]["free"], "the estimate of the bucket alone would leave them"
    assert 100 >= width_of(table)


def test_a_view_of_which_nothing_is_made_yet_says_what_makes_it(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, SERIES, *SERIES_ROWS)
    with pytest.raises(UserError) as refused:
        asked(lake, "SELECT * FROM hourly")
    assert f"weft lake run --lake {lake.root}; it makes gold.rollup_1h, from which gold.hourly is computed" == (
        refused.value.try_this
    )


def event(name: str, sequence: int, **fields: Any) -> dict[str, Any]:
    told = {"name": "disk_full", "labels": {"mount": "/"}, "value": 93.44, "when": "> 90 %", "severity": "critical"}
    told |= {"text": "The disk is nearly full."} | fields
    row = {"origin": "a", "era": 1, "sequence": sequence, "node": "pi7", "event": name, "subsystem": "alert"}
    stamps = {"at": AT + timedelta(seconds=sequence), "received": AT, "at_ns": 0, "batch": 0, "day": AT.date()}
    return row | stamps | {"subject": told["name"], "fields": json.dumps(told)}


@pytest.mark.proves("MET-005", part="alerts: since when, until when, of what")
def test_alerts_say_since_when_and_until_when(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, EVENTS, event("alert.raised", 1), event("alert.cleared", 61), event("alert.raised", 90, value=95.0))
    put(lake, EVENTS, event("alert.raised", 30, labels={"mount": "/home"}), event("node.started", 2))
    table = asked(lake, "SELECT * FROM alerts")
    found = [(row["since"], row["until"], row["of"], row["value"], row["condition"]) for row in table.to_pylist()]
    assert [
        ("03-01 12:01", None, "/", 95.0, "> 90 %"),
        ("03-01 12:00", None, "/home", 93.44, "> 90 %"),
        ("03-01 12:00", "03-01 12:01", "/", 93.44, "> 90 %"),
    ] == found
    assert {"pi7"} == {row["node"] for row in table.to_pylist()}
    assert 100 >= width_of(table)


@pytest.mark.proves("MET-005", part="units are those of the catalogue of details")
def test_units_of_the_views_are_those_of_the_catalogue() -> None:
    catalogue = {(name, ""): detail.unit for name, detail in DETAILS.items() if not detail.units}
    catalogue |= {(name, label): unit for name, detail in DETAILS.items() for label, unit in detail.units.items()}
    assert catalogue == UNITS
