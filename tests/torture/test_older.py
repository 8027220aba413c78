"""`weft torture --with WHEEL`: half of the nodes run what a wheel holds, beside those of this tree (FLT-023, OPS-003)."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.fabric.older import OLDER, older_sources
from tests.house.requirements import ROOT
from tests.interop.wheels import wheel_of
from weft.torture import plan
from weft.torture.plan import Event, Plan

pytestmark = pytest.mark.prove("eight real nodes under faults")

MIXED: Final = Plan(
    "mixed",
    8.0,
    (
        Event(1.0, "pause", ("sensor-2",), 2.0),
        Event(2.0, "kill", ("collector-1",), 0.5),
        Event(5.0, "kill", ("root",), 0.5),
    ),
    older=("root", "sensor-1", "sensor-2", "sensor-4"),
)
"""The root and some sensors are the older ones; both collectors are of this tree."""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel of this tree that says another version of itself."""
    tree = older_sources(tmp_path / "tree").parent
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    return wheel_of(tree, tmp_path / "wheel")


@pytest.mark.proves("FLT-023", part="a short run of two versions of one program, killed and started again, is judged")
@pytest.mark.proves("OPS-003", part="nodes of a wheel and of this tree make one fabric under faults, and lose nothing")
def test_nodes_of_a_wheel_and_of_this_tree_keep_what_was_acknowledged(wheel: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(plan.write(MIXED))
    place = tmp_path / "run"
    words = ["torture", "--plan", str(file), "--with", str(wheel), "--no-pipeline", "--directory", str(place), "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", *words], capture_output=True, text=True, timeout=400, check=False
    )
    told = json.loads(ran.stdout)
    assert (0, []) == (ran.returncode, told["wrong"]), ran.stdout + ran.stderr
    assert {"kill": 2, "pause": 1} == told["faults"]
    of_wheel = {
        path.stem for path in place.glob("*.log") if f'"version":"{OLDER}"' in path.read_text("utf-8").replace(" ", "")
    }
    assert set(MIXED.older) == of_wheel
