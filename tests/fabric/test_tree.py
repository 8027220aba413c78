"""A fleet that places itself, follows its root, and survives the death of collectors and of the root."""

from pathlib import Path

import pytest

from tests.fabric.placed import PlacedFabric

NAMES = ("root", "collector-1", "collector-2", "collector-3", "sensor-1", "sensor-2", "sensor-3")
SENSORS = NAMES[4:]


@pytest.mark.proves("TOP-010", "TOP-015", "CFG-031", "REC-015")
def test_a_fleet_finds_itself_follows_its_root_and_outlives_it(tmp_path: Path) -> None:
    with PlacedFabric(tmp_path, NAMES) as fabric:
        fabric.until(lambda: all(map(fabric.is_joined, NAMES[1:])), "everybody has a parent")
        fabric.measure_on(20)
        written = fabric.ask("root", "set", key="/CONFIG/lab/metric/load", value={"detail": "LOAD", "rate": "0.2s"})
        at = written["number"]
        fabric.until(lambda: all(fabric.number(name) >= at for name in NAMES), "everybody runs the new number")

        fabric.until(lambda: fabric.place_of("sensor-1")[1].startswith("collector"), "a collector is its parent")
        parent = fabric.place_of("sensor-1")[1]
        fabric.member(parent).wanted = False
        fabric.kill(parent)
        rest = [name for name in NAMES[1:] if name != parent]
        fabric.until(lambda: fabric.place_of("sensor-1")[1] not in (parent, ""), "its children have another parent")
        fabric.until(lambda: all(map(fabric.is_joined, rest)), "everybody that lives has a parent")

        fabric.member("root").wanted = False
        fabric.kill("root")
        fabric.until(lambda: len(fabric.roots()) == 1, "a collector has become the root")
        (heir,) = fabric.roots()
        fabric.until(lambda: all(fabric.is_joined(name) for name in rest if name != heir), "all follow the new root")
        written = fabric.ask(heir, "set", key="/CONFIG/lab/metric/uptime", value={"detail": "UPTIME", "rate": "0.5s"})
        assert written["number"] > at

        for name in ("root", parent):
            fabric.start(name)
        fabric.until(lambda: all(fabric.is_joined(name) for name in NAMES if name != heir), "the dead are back, below")
        assert [heir] == fabric.roots()
        fabric.measure_on(20)
        fabric.until(lambda: all(fabric.number(name) >= written["number"] for name in NAMES), "all hold the same")
        expected = fabric.values(heir, "/CONFIG/lab/")
        assert all(expected == fabric.values(name, "/CONFIG/lab/") for name in NAMES)
        fabric.fleet.stop(SENSORS, 30)
        fabric.fleet.stop([name for name in NAMES[1:4] if name != heir] + ["root"], 30)
        fabric.fleet.stop([heir], 30)
        made, (drained, _) = fabric.made(), fabric.drained()
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}
