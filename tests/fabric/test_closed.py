"""A closed fabric of real processes: its own nodes work as ever, strangers get nothing."""

from pathlib import Path

import pytest

from tests.fabric.closed import ClosedFabric
from weft.base.vectors import VersionVector

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1"}


@pytest.mark.proves("SEC-003", part="status of a node with keys")
def test_a_closed_fabric_measures_and_loses_nothing(tmp_path: Path) -> None:
    with ClosedFabric(tmp_path, TREE) as fabric:
        fabric.measure_on(10)
        status = fabric.status("root")
        assert not status["open"]
        assert status["security"]["known"] == len(TREE)
        assert not [member.name for member in fabric.fleet.members if member.deaths]
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert (VersionVector(), 0) == (made - drained, doubled)
