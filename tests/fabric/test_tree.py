"""A fleet that places itself, follows its root, and survives the death of collectors and of the root."""

from pathlib import Path

import pytest

from tests.fabric.grove import Grove

NAMES = ("root", "collector-1", "collector-2", "collector-3", "sensor-1", "sensor-2", "sensor-3")
SENSORS = NAMES[4:]


@pytest.mark.proves("TOP-010", "TOP-015", "CFG-031", "REC-015")
def test_a_fleet_finds_itself_follows_its_root_and_outlives_it(tmp_path: Path) -> None:
    with Grove(tmp_path, NAMES) as grove:
        grove.until(lambda: all(map(grove.is_joined, NAMES[1:])), "everybody has a parent")
        grove.measure_on(20)
        written = grove.ask("root", "set", key="/CONFIG/lab/metric/load", value={"detail": "LOAD", "rate": "0.2s"})
        at = written["number"]
        grove.until(lambda: all(grove.number(name) >= at for name in NAMES), "everybody runs the new number")

        parent = grove.place_of("sensor-1")[1]
        assert parent.startswith("collector")
        grove.member(parent).wanted = False
        grove.kill(parent)
        rest = [name for name in NAMES[1:] if name != parent]
        grove.until(lambda: grove.place_of("sensor-1")[1] not in (parent, ""), "its children have another parent")
        grove.until(lambda: all(map(grove.is_joined, rest)), "everybody that lives has a parent")

        grove.member("root").wanted = False
        grove.kill("root")
        grove.until(lambda: len(grove.roots()) == 1, "a collector has become the root")
        (heir,) = grove.roots()
        grove.until(lambda: all(grove.is_joined(name) for name in rest if name != heir), "all follow the new root")
        written = grove.ask(heir, "set", key="/CONFIG/lab/metric/uptime", value={"detail": "UPTIME", "rate": "0.5s"})
        assert written["number"] > at

        for name in ("root", parent):
            grove.start(name)
        grove.until(lambda: all(grove.is_joined(name) for name in NAMES if name != heir), "the dead are back, below")
        assert [heir] == grove.roots()
        grove.measure_on(20)
        grove.until(lambda: all(grove.number(name) >= written["number"] for name in NAMES), "all hold the same")
        expected = grove.values(heir, "/CONFIG/lab/")
        assert all(expected == grove.values(name, "/CONFIG/lab/") for name in NAMES)
        grove.fleet.stop(SENSORS, 30)
        grove.fleet.stop([name for name in NAMES[1:4] if name != heir] + ["root"], 30)
        grove.fleet.stop([heir], 30)
        made, (drained, _) = grove.made(), grove.drained()
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}
