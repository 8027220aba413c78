"""`weft config check --lake`: how often the alerts of a file would have fired (MET-003)."""

import json
from pathlib import Path

import pytest

from tests.pipeline.golden_lakes import LAKES, opened
from weft.base.errors import UserError
from weft.cli.config import check
from weft.cli.config_crossings import Crossing, judged, times_fired
from weft.cores.measurement.alertsettings import AlertSpec, parse_alerts
from weft.node.fleet import read_fleet

MEASURES_MEM = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
FILE = """
[metric.mem]
detail = "MEMORY"
rate = "1s"

[metric.disk]
detail = "DISK_PERCENT"
rate = "1s"

[alert.mem]
metric = "mem"
when = "> 2"
clear = "2"

[alert.disk]
metric = "disk"
when = "> 90 %"
clear = "80 %"
for = "2s"
"""


def spec(**more: str) -> AlertSpec:
    table = {"metric": "disk", "when": "> 90 %", "clear": "80 %", "for": "2s", **more}
    (found,), mistakes = parse_alerts({"disk": table}, {"disk": "DISK_PERCENT"})
    assert [] == mistakes
    return found


def seconds(*values: float) -> list[tuple[int, float]]:
    return [(1_000 * second, value) for second, value in enumerate(values)]


@pytest.mark.proves("MET-003", part="how often the last hour of a lake would have crossed a limit")
def test_an_alert_fires_after_its_span_and_again_only_behind_its_clear_level() -> None:
    assert 0 == times_fired(spec(), seconds(95, 95, 70, 95, 95))
    assert 1 == times_fired(spec(), seconds(95, 95, 95, 85, 95, 95, 95, 95))
    assert 2 == times_fired(spec(), seconds(95, 95, 95, 80, 95, 95, 95, 95))
    assert 3 == times_fired(spec(**{"for": "0s"}), seconds(95, 70, 95, 70, 91))


@pytest.mark.proves("MET-003", part="how often the last hour of a lake would have crossed a limit")
def test_series_and_nodes_are_judged_each_for_itself() -> None:
    fleet = read_fleet(FILE).fleet
    assert fleet is not None
    common = {"metric": "disk", "group": "all", "labels": [{"key": "device", "value": "sda"}]}
    rows = [
        {**common, "node": node, "series": series, "at": at, "result": value}
        for node, series, values in [("s1", 1, (95, 95, 95)), ("s1", 2, (10, 10, 10)), ("s2", 1, (95, 70, 95))]
        for at, value in seconds(*values)
    ]
    (disk, mem) = judged(fleet, rows)
    assert Crossing("disk", "all", "> 90 %", 9, 1, ["s1"]) == disk
    assert "alert disk of group all, > 90 %: would have fired once in the last hour of the lake: s1" == disk.sentence()
    assert "alert mem of group all, > 2: the lake has no value of its metric in its last hour" == mem.sentence()


@pytest.mark.proves("MET-003", part="how often the last hour of a lake would have crossed a limit")
def test_check_asks_a_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FILE)
    lake = opened(LAKES[-1], tmp_path).root
    assert 0 == check(file, lake=lake, json=True)
    told = {one["alert"]: one for one in json.loads(capsys.readouterr().out)["crossings"]}
    assert (0, 0) == (told["disk"]["values"], told["disk"]["times"])
    assert (4, 1, [MEASURES_MEM]) == (told["mem"]["values"], told["mem"]["times"], told["mem"]["nodes"])
    assert 0 == check(file, lake=lake)
    assert "alert mem of group all, > 2: would have fired once in the last hour of the lake" in capsys.readouterr().out
    with pytest.raises(UserError, match="there is no lake"):
        check(file, lake=tmp_path / "nowhere")
