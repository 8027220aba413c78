"""Real processes, killed and started again: every sample that was numbered is in the lake, once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fabric.fabric import Fabric

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1", "sensor-2": "collector-1"}


class Fresh(Fabric):
    """Nodes that begin as people begin them."""

    is_fresh = True


@pytest.mark.proves("MEA-023", "CHN-032", "LAK-007")
def test_no_sample_is_lost_or_doubled_by_killing_each_node_of_the_road(tmp_path: Path) -> None:
    with Fresh(tmp_path, TREE) as fabric:
        fabric.measure_on()
        for victim in ("collector-1", "root", "sensor-1", "collector-1"):
            fabric.kill(victim)
            fabric.until(lambda: fabric.taken("sensor-2") > 0, "the other sensor measures on")
            fabric.until(lambda victim=victim: fabric.taken(victim) > 0, f"{victim} is back")  # type: ignore[misc]  # bound
            fabric.measure_on(30)
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert 0 == doubled
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}
        assert len(TREE) + 4 == len(drained)  # an origin for each start


@pytest.mark.prove("a second story of names")
@pytest.mark.proves("CHN-037")
def test_the_newer_of_two_nodes_with_one_name_is_refused_loudly(tmp_path: Path) -> None:
    with Fabric(tmp_path, {"root": "", "sensor-1": "root"}) as fabric:
        fabric.measure_on(10)
        twin = tmp_path / "twin.toml"
        twin.write_text(fabric.settings("sensor-1", fabric.ports["sensor-1"] + 100, tmp_path / "twin"), "utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "weft.cli.main", "up", str(twin)], capture_output=True, timeout=60, check=False
        )
        assert 77 == ended.returncode, ended.stderr
        assert b"another --name" in ended.stderr
        fabric.measure_on(10)  # the older one is not disturbed
        assert not fabric.member("sensor-1").deaths
