"""`weft torture --closed` with a bug in half of its nodes: they admit keys that nobody knows. The verdict names them."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.interop.programs import needed
from weft.torture import plan
from weft.torture.plan import Event, Plan

SOURCES: Final = Path(__file__).parents[2] / "src"
BUG: Final = {
    "weft/node/handshake.py": ('return _NO, "unknown-key"', "return None"),
    "weft/shell/trying.py": ("found.append(each.door)", "continue"),
}
"""Who is asked at a handshake admits anybody, and the node no longer tries that at its start."""
BAD: Final = ("sensor-2", "sensor-5")
PLAN: Final = Plan(
    "planted",
    12.0,
    (
        Event(1.0, "rotate", ("sensor-1",), 1.0),
        Event(2.0, "stranger", ("sensor-1", "sensor-2"), 9.0),
        Event(3.0, "revoke", ("sensor-3",), 2.0),
    ),
    BAD,
)


def wheel_with(place: Path, bugs: dict[str, tuple[str, str]]) -> Path:
    """The sources of this tree, with some lines replaced."""
    made = place / "weft-0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as file:
        for path in sorted(SOURCES.rglob("*")):
            name = path.relative_to(SOURCES).as_posix()
            if path.is_file() and "__pycache__" not in name:
                line, planted = bugs.get(name, ("", ""))
                assert line.encode() in path.read_bytes(), name
                file.writestr(
                    name, path.read_bytes().replace(line.encode(), planted.encode()) if line else path.read_bytes()
                )
    return made


@pytest.mark.proves("FLD-040", part="a closed fabric of nodes of which some admit any key")
@pytest.mark.proves("CHK-021", part="of real nodes, some of which admit any key, those are named")
def test_nodes_that_admit_any_key_are_named_and_no_others(tmp_path: Path) -> None:
    needed("unshare")
    file = tmp_path / "plan.json"
    file.write_bytes(plan.write(PLAN))
    words = ["torture", "--closed", "--plan", str(file), "--with", str(wheel_with(tmp_path, BUG)), "--no-pipeline"]
    ran = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", *words, "--directory", str(tmp_path / "run"), "--json"],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    told = json.loads(ran.stdout)
    assert 1 == ran.returncode, ran.stdout + ran.stderr
    assert told["keys"].pop("secrets") > 0, ran.stderr
    assert {"joined": 8, "renewed": 1, "revoked": 1} == told["keys"], ran.stderr
    (wrong,) = told["wrong"]
    assert wrong.startswith("sealed: ")
    came_in = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert set(BAD) == {
        fact["node"]
        for fact in came_in
        if fact["what"] == "knocked" and fact["value"][2] and fact["value"][0] != "guesses"
    }
