"""The dashboard of Grafana that is made from the catalogue (MET-006)."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from tests.house.requirements import ROOT
from weft.cli.grafana import dashboard
from weft.cli.metrics import metrics
from weft.cores.measurement.details import DETAILS
from weft.shell.fleetmetrics import Sample, exposition, family_of

FILE = ROOT / "examples" / "grafana.json"


@pytest.mark.generates
@pytest.mark.proves("MET-006", part="a dashboard of Grafana is made from the catalogue")
def test_the_dashboard_in_the_tree_is_that_of_the_catalogue(
    committed: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == metrics(grafana=True)
    committed(FILE, capsys.readouterr().out)


@pytest.mark.proves("MET-006", part="a dashboard of Grafana is made from the catalogue")
def test_every_detail_has_a_panel_of_what_is_told_of_it() -> None:
    panels = {panel["title"]: panel for panel in dashboard()["panels"]}
    assert {name.lower().replace("_", " ") for name in DETAILS} == set(panels)
    disk = panels["disk io"]
    assert "bytes and operations by direction, and time in which the disk was busy" == disk["description"]
    assert [
        ("A", 'weft_disk_io_bytes_per_second{node=~"$node"}', "{{node}}, {{device}}, {{dir}}"),
        ("B", 'weft_disk_io_operations_per_second{node=~"$node"}', "{{node}}, {{device}}, {{dir}}"),
        ("C", 'weft_disk_io_ratio{node=~"$node"}', "{{node}}, {{device}}, {{dir}}"),
    ] == [(target["refId"], target["expr"], target["legendFormat"]) for target in disk["targets"]]
    units = {
        title: panels[title]["fieldConfig"]["defaults"]["unit"]
        for title in ("cpu", "memory", "network", "temp", "load")
    }
    assert {"cpu": "percentunit", "memory": "bytes", "network": "Bps", "temp": "celsius", "load": "short"} == units


@pytest.mark.proves("MET-006", part="a dashboard of Grafana is made from the catalogue")
def test_panels_ask_for_names_that_are_told() -> None:
    sample = Sample(family_of("CPU", "%"), "busy", {"node": "s1"}, 0.5)
    assert b'\nweft_cpu_ratio{node="s1"} 0.5\n' in exposition([sample], 0)
    (panel,) = (panel for panel in dashboard()["panels"] if panel["title"] == "cpu")
    assert 'weft_cpu_ratio{node=~"$node"}' == panel["targets"][0]["expr"]


def test_no_panel_lies_on_another_and_all_have_numbers_of_their_own() -> None:
    panels = dashboard()["panels"]
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert not [
        (one, other)
        for one, other in combinations(places, 2)
        if abs(one["x"] - other["x"]) < 12 and abs(one["y"] - other["y"]) < 8
    ]
    assert list(range(1, len(panels) + 1)) == [panel["id"] for panel in panels]
    assert dashboard() == json.loads(json.dumps(dashboard()))
