"""Which Pythons are promised, said alike everywhere; any other is refused in one sentence."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
PROMISED = "3.11.2 or newer, 3.12, 3.13 or 3.14"
STAND_IN = """#!/bin/sh
[ "$1" != -V ] || { echo Python VERSION; exit 0; }
[ "$1" = -c ] || exit 9
exec REAL -c 'import sys; sys.version_info = (TUPLE); exec(sys.argv[1])' "$2"
"""
ENVIRONMENT = """#!/bin/sh
[ "$1" != -c ] || exit 0
case "$*" in *--version*) exit 0 ;; *WORD*) echo "ERROR: no such wheel"; exit 3 ;; esac
for _ in 1 2 3 4 5 6 7 8 9; do echo "Collecting a wall of text"; done
"""


def begin(place: Path, version: str) -> "subprocess.CompletedProcess[str]":
    """What the script does with a Python that says to be of this version, and makes no environment."""
    (place / "scripts").mkdir()
    script = place / "scripts" / "bootstrap"
    script.write_text((HERE / "scripts" / "bootstrap").read_text("utf-8"), "utf-8")
    python = place / "python"
    text = STAND_IN.replace("VERSION", version).replace("REAL", sys.executable)
    python.write_text(text.replace("TUPLE", version.replace(".", ", ")), "utf-8")
    python.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(python)}
    return subprocess.run(["/bin/sh", str(script), "run"], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("version", ["3.10.13", "3.11.0", "3.11.1", "3.15.0"])
def test_a_python_that_is_not_promised_is_refused_in_one_sentence(tmp_path: Path, version: str) -> None:
    ended = begin(tmp_path, version)
    assert (1, "") == (ended.returncode, ended.stdout)
    said = f"weft: Weft needs Python {PROMISED}, with its module venv; here {tmp_path}/python is Python {version}."
    assert said == ended.stderr.strip().splitlines()[0]
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("version", ["3.11.2", "3.12.0", "3.13.0", "3.14.1"])
def test_a_promised_python_is_taken(tmp_path: Path, version: str) -> None:
    assert f"weft: making .venv with Python {version}\n" == begin(tmp_path, version).stdout


def set_up(place: Path, fails: str) -> "subprocess.CompletedProcess[str]":
    """What setting up says, with an environment whose pip fails where its arguments have this word."""
    environment = place / ".venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text(ENVIRONMENT.replace("WORD", fails), "utf-8")
    (environment / "python").chmod(0o755)
    return begin(place, "3.13.0")


@pytest.mark.proves("WEL-003", part="setting up is one line for each step, and not what pip says")
def test_setting_up_is_one_line_for_each_step(tmp_path: Path) -> None:
    ended = set_up(tmp_path, "nothing-fails")
    lines = [re.sub(r"\d+ s$", "N s", line) for line in ended.stdout.splitlines()]
    steps = ["weft: what builds: N s", "weft: what it needs: N s", "weft: Weft itself: N s"]
    assert (0, "", [*steps, "weft: ready"]) == (ended.returncode, ended.stderr, lines[1:])
    assert (tmp_path / ".venv" / "run.done").exists()


@pytest.mark.proves("WEL-003", part="a step that fails says why")
def test_a_step_that_fails_shows_the_last_of_what_pip_says(tmp_path: Path) -> None:
    ended = set_up(tmp_path, "requirements/run.txt")
    assert 1 == ended.returncode
    assert ["ERROR: no such wheel", "", "weft: that failed; the lines above are the last of .venv/install.log"] == (
        ended.stderr.splitlines()
    )
    assert "Weft itself" not in ended.stdout
    assert not (tmp_path / ".venv" / "run.done").exists()


def test_the_promise_is_the_same_everywhere() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    assert ">=3.11.2,<3.15" == project["requires-python"]
    assert f"Python {PROMISED}" in (HERE / "README.md").read_text("utf-8")
