"""The wheel of this tree, and for each promised Python a directory with the wheels that it asks for: of the lock, by their hashes.

What pip then installs comes from these directories alone (`--no-index`).
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from packaging.version import Version

from tests.house.requirements import ROOT

LOCK: Final = ROOT / "requirements" / "run.txt"
HOUSES: Final = ROOT / "var" / "wheels"
ASKS: Final = "import sys, venv, ensurepip; print('%d.%d.%d' % sys.version_info[:3])"
SOURCES: Final = ("pyspark",)
"""What comes as sources only. A wheel of it is built once, for every Python."""
PROMISED: Final = re.search(r"^promised='(.*)'$", (ROOT / "scripts/bootstrap").read_text("utf-8"), re.MULTILINE)


def minors() -> list[str]:
    """The promised Pythons: `3.11`, and those after it."""
    assert PROMISED
    return sorted(set(re.findall(r"3\.\d\d", PROMISED[1])))


def oldest_of(minor: str) -> tuple[str, Path] | None:
    """The oldest Python of that kind on this machine, with its whole version: of the system, or of pyenv."""
    of_pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = [Path("/usr/bin") / f"python{minor}", *sorted(of_pyenv.glob(f"{minor}.*/bin/python"))]
    found: list[tuple[str, Path]] = []
    for place in filter(Path.exists, places):
        asked = subprocess.run([place, "-c", ASKS], capture_output=True, text=True, check=False)
        found += [(asked.stdout.strip(), place)] * (asked.returncode == 0)
    return min(found, key=lambda one: Version(one[0]), default=None)


def wheel_of(tree: Path, place: Path) -> Path:
    """The wheel of a tree, built into a directory."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)], cwd=tree, check=True)
    (found,) = place.glob("*.whl")
    return found


def house_of(python: Path) -> list[str]:
    """The words for pip by which this Python finds all wheels of the lock, which are fetched if they are not there yet."""
    asked = subprocess.run([python, "-c", ASKS], capture_output=True, text=True, check=True)
    minor = asked.stdout.strip().rpartition(".")[0]
    for_all = _filled(
        HOUSES / "any",
        _lock(is_sources=True),
        ["wheel", "--no-build-isolation", "--no-binary", ",".join(SOURCES), "-w"],
    )
    other = ["--python", str(python), "download", "--only-binary", ":all:", "-d"]
    own = _filled(HOUSES / minor, _lock(is_sources=False), other)
    return ["--no-index", "--find-links", str(own), "--find-links", str(for_all)]


def _lock(*, is_sources: bool) -> str:
    """The part of the lock with what comes as sources only, or the other one."""
    parts = re.split(r"^(?=[a-z0-9])", LOCK.read_text("utf-8"), flags=re.MULTILINE)
    return "".join(part for part in parts if part.startswith(tuple(f"{name}==" for name in SOURCES)) is is_sources)


def _filled(house: Path, lock: str, words: list[str]) -> Path:
    done = house / "lock.txt"
    if not done.exists() or done.read_text("utf-8") != lock:
        house.mkdir(parents=True, exist_ok=True)
        (house / "wanted.txt").write_text(lock, "utf-8")
        before, after = (words[:2], words[2:]) if words[0] == "--python" else ([], words)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
        pip = [sys.executable, "-m", "pip", *before, after[0], *quiet, "--no-deps", "--require-hashes", *after[1:]]
        subprocess.run([*pip, str(house), "-r", str(house / "wanted.txt")], check=True)
        done.write_text(lock, "utf-8")
    return house
