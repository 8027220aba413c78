"""One short run over real processes, as a person types it: it comes to rest, and says that everything was kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weft.torture import plan
from weft.torture.plan import Event, Plan

pytestmark = pytest.mark.prove("eight real nodes under faults")

PLAN = Plan(
    "short",
    6.0,
    (
        Event(1.0, "pause", ("sensor-2",), 2.0),
        Event(2.0, "delay", ("sensor-1",), 2.0, 0.2),
        Event(3.0, "kill", ("sensor-5",), 0.5),
    ),
)


@pytest.mark.proves(
    "FLD-040", part="eight nodes, all protocols, plain clients, three kinds of faults, without the pipeline"
)
def test_a_short_run_keeps_what_was_acknowledged_in_every_protocol(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(plan.write(PLAN))
    words = ["torture", "--plan", str(file), "--no-pipeline", "--directory", str(tmp_path / "run"), "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", *words], capture_output=True, text=True, timeout=400, check=False
    )
    told = json.loads(ran.stdout)
    assert (0, []) == (ran.returncode, told["wrong"]), ran.stdout + ran.stderr
    assert {"bridged", "calls", "catalog", "configuration", "documents", "messages", "readers", "store"} == set(
        told["acknowledged"]
    )
    assert {"kill", "pause"} <= set(told["faults"])
    assert 8 == len(told["memory_megabytes"])
