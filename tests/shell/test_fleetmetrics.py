"""What the machines of a tree measure, as Prometheus reads it at one node."""

from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.shell.test_console import ROOT, SENSOR, at, batch
from weft.base.records import StreamRecord
from weft.shell import fleetmetrics
from weft.shell.fleetmetrics import FleetValues
from weft.wire.samples import Series

CPU = Series("cpu", "CPU", "percent", {"cpu": "total"})
DISK = Series("disks", "DISK_IO", "rate", {"device": "sda", "dir": "read", "unit": "busy_ms"})
OWN = Series("own", "SOMETHING", "basic", {"a b": 'x"\n'})
NAMES = {ROOT: "root", SENSOR: "s1"}


def told(values: FleetValues, second: float) -> dict[tuple[str, ...], float]:
    text = fleetmetrics.exposition(values.fresh(NAMES.__getitem__, at(second)), values.left_out).decode()
    lines = [line for family in text_string_to_metric_families(text) for line in family.samples]
    return {named(line.name, line.labels): line.value for line in lines if line.name != "weft_fleet_left_out"}


def named(name: str, labels: dict[str, str]) -> tuple[str, ...]:
    own = dict(labels)
    return name, own.pop("node"), own.pop("metric"), *(own[label] for label in sorted(own))


def scraped() -> FleetValues:
    values = FleetValues()
    values.watch(at(0))
    return values


@pytest.mark.proves("MET-006", part="calculated values of each machine, named by unit, in base units")
def test_values_of_all_machines_are_told_in_base_units_by_name() -> None:
    values = scraped()
    for second in range(2):
        points = [(CPU, 25 * second, 100 * second), (DISK, 500 * second, None), (OWN, 3.0, None)]
        values.note([batch(SENSOR, second, 1, *points), batch(ROOT, second, 1, (OWN, 4.0, None))], at(second))
    assert {
        ("weft_cpu_ratio", "s1", "cpu", "total"): 0.25,
        ("weft_disk_io_ratio", "s1", "disks", "sda", "read"): 0.5,
        ("weft_something", "s1", "own", 'x"\n'): 3.0,
        ("weft_something", "root", "own", 'x"\n'): 4.0,
    } == told(values, 1)


@pytest.mark.proves("MET-006", part="what is old is not told any more; a slow metric has more time")
def test_a_series_is_told_for_a_minute_or_three_times_its_gap() -> None:
    values = scraped()
    for second in (0, 100):
        values.note([batch(SENSOR, second, 1, (OWN, 1.0, None))], at(second))
    values.note([batch(ROOT, 100, 1, (OWN, 1.0, None))], at(100))
    assert ["root", "s1"] == sorted(key[1] for key in told(values, 160))
    assert ["s1"] == [key[1] for key in told(values, 161)]
    assert {} == told(values, 401)


@pytest.mark.proves("MEA-030", part="labels of the fleet's metrics are bounded: what comes beyond is counted")
def test_series_of_one_machine_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleetmetrics, "SERIES_OF_ONE_MAX", 3)
    values = scraped()
    many: list[Any] = [(Series("own", "SOMETHING", "basic", {"n": str(n)}), 1.0, None) for n in range(5)]
    values.note([batch(SENSOR, 0, 1, *many)], at(0))
    assert (3, 2) == (len(told(values, 0)), values.left_out)


def test_nothing_is_decoded_while_nobody_scrapes() -> None:
    values = FleetValues()
    values.note([batch(SENSOR, 0, 1, (OWN, 1.0, None))], at(0))
    assert {} == told(values, 0)
    values.watch(at(0))
    values.note([batch(SENSOR, 1, 1, (OWN, 1.0, None))], at(1))
    assert 1 == len(told(values, 1))
    values.note([batch(SENSOR, 700, 1, (OWN, 1.0, None))], at(700))
    assert {} == told(values, 700)


def test_bytes_that_are_no_batch_change_nothing() -> None:
    values = scraped()
    record = batch(SENSOR, 0, 1, (OWN, 1.0, None))
    assert isinstance(record, StreamRecord)
    values.note([msgspec.structs.replace(record, payload=b"\xc1")], at(0))
    assert {} == told(values, 0)
