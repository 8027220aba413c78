"""The machine room of `weft torture`: cuts that are loud, cuts that are silent, disks that are full, and nothing left behind (FLT-035)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.programs import needed
from weft.torture import plan
from weft.torture.plan import Event, Plan
from weft.torture.room import INSIDE, KEEPER, OWN, SPACES

ROOT = Path(__file__).parents[2]
ALLOW = (
    "allow namespaces on this machine: sysctl kernel.unprivileged_userns_clone=1, and a /dev/net/tun that may be opened"
)
NETWORKS = Path("/run/netns")


def networks() -> set[str]:
    return {path.name for path in NETWORKS.iterdir()} if NETWORKS.exists() else set()


@pytest.mark.proves("FLT-035")
def test_a_room_cuts_loudly_and_silently_fills_disks_and_leaves_nothing_behind() -> None:
    before = networks()
    words = [
        needed("unshare"),
        *(() if os.geteuid() == 0 else OWN),
        *SPACES,
        *KEEPER,
        sys.executable,
        "-m",
        "tests.interop.roomlife",
    ]
    ran = subprocess.run(words, env={**os.environ, INSIDE: "1"}, capture_output=True, text=True, cwd=ROOT, check=False)
    assert 0 == ran.returncode, f"{ran.stderr}\n{ALLOW}"
    expected = {
        "server": "listening",
        "whole": "hello",
        "blackhole": "TimeoutError",
        "blackhole is silent": True,
        "down": "ENETUNREACH",
        "down is loud": True,
        "pulled is seen": True,
        "whole again": "hello",
        "full": "ENOSPC",
        "read-only": "EROFS",
        "orphan is gone": True,
    }
    assert expected == json.loads(ran.stdout)
    assert before == networks()


STORM = Plan(
    "storm",
    24.0,
    (
        Event(2.0, "reset", ("collector-2",), 8.0),
        Event(2.0, "rough", ("collector-1",), 8.0),
        Event(3.0, "delay", ("sensor-1",), 6.0, 0.3),
        Event(4.0, "cut", ("sensor-2",), 4.0),
        Event(5.0, "blackhole", ("sensor-3",), 4.0),
        Event(6.0, "one-way", ("sensor-4",), 4.0),
        Event(3.0, "slow", ("sensor-5",), 8.0),
        Event(9.0, "pause", ("collector-2",), 8.0),
        Event(12.0, "clone", ("sensor-1",), 6.0),
        Event(12.0, "move", ("sensor-5",), 9.0),
        Event(13.0, "full-disk", ("sensor-2",), 5.0),
        Event(14.0, "read-only", ("sensor-3",), 4.0),
        Event(17.0, "kill", ("root",), 1.0),
        Event(20.0, "restart-all", (), 1.0),
    ),
)


@pytest.mark.proves("FLT-035", "FLT-034")
@pytest.mark.proves("FLT-010", "FLT-012", "FLT-014", part="between real processes")
@pytest.mark.proves(
    "FLT-017", "FLT-021", part="killed processes; a cloned disk and another address, between real processes"
)
def test_a_fabric_of_real_processes_keeps_its_word_through_every_cable_and_disk_of_the_room(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(plan.write(STORM))
    words = ["torture", "--plan", str(file), "--no-pipeline", "--directory", str(tmp_path / "run"), "--json"]
    command = [sys.executable, "-m", "weft.cli.main", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    told = json.loads(ran.stdout)
    assert (0, []) == (ran.returncode, told["wrong"]), ran.stdout + ran.stderr
    assert {event.kind: 1 for event in STORM.events} == told["faults"], ALLOW
    for what in ("lost", "doubled", "overtaken", "reset"):
        assert told["frames"][what] > 0, what
