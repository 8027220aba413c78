"""What the doctor finds, and what it says that mends it (PIP-084)."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.plain import lake_of
from weft.lake.layout import Layout
from weft.pipeline import doctor
from weft.pipeline.doctor import BROKEN, FINE, PACKAGES, WARNING, Doctor, Finding
from weft.pipeline.java import parse_version
from weft.pipeline.lease import Lease

pytestmark = pytest.mark.prove("Spark is started anew")


class Room(NamedTuple):
    free: int


ROOT = Path(__file__).parents[2]


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return lake_of(tmp_path / "lake")


def by_name(found: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in found}


def test_what_it_asks_of_packages_is_what_the_package_asks_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["lake"]
    wanted = {}
    for text in extras:
        name, _, rest = text.partition(">=")
        if name in PACKAGES:
            least, _, below = rest.partition(",<")
            wanted[name] = (parse_version(least), parse_version(below) or None)
    assert wanted == PACKAGES


@pytest.mark.proves("PIP-084")
def test_a_machine_that_is_well(lake: Layout, tmp_path: Path) -> None:
    found = by_name(Doctor(tmp_path / "state", lake).findings(with_spark=False))
    assert [*PACKAGES, "java", "space", "clock", "lake", "lease", "settings"] == list(found)
    assert {FINE} == {finding.state for finding in found.values()}
    assert "by PATH" in found["java"].text or "by JAVA_HOME" in found["java"].text or "by wheel" in found["java"].text


@pytest.mark.proves("PIP-084")
def test_spark_the_source_and_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    assert (FINE, "") == (doctor.source(spark, tmp_path / "a").state, doctor.source(spark, tmp_path / "a").mend)
    found = doctor.commit(spark, tmp_path / "a")
    assert (FINE, True) == (found.state, found.text.startswith("1,000 rows written, committed and read back"))


@pytest.mark.proves("PIP-084")
def test_what_is_broken_is_mended_by_a_command(lake: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "3.5.1", "pandas": "3.0.0"}
    monkeypatch.setattr(doctor, "version", lambda name: versions.get(name, "20.0"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("weft.pipeline.java._wheel", lambda: None)
    (lake.root / "lake.toml").write_text('[lake.spark]\n"spark.speculation" = true\n', "utf-8")
    lake.consumers().mkdir(parents=True)
    (lake.consumers() / "samples.samples.json").write_text("{}", "utf-8")
    os.utime(lake.consumers() / "samples.samples.json", (4_000_000_000, 4_000_000_000))
    found = by_name(Doctor(tmp_path / "state", lake).findings(with_spark=True))
    assert "spark" not in found
    broken = {name for name, finding in found.items() if finding.state == BROKEN}
    assert {"pyspark", "pandas", "deltalake", "duckdb", "java", "settings"} == broken
    assert (WARNING, "timedatectl set-ntp true") == (found["clock"].state, found["clock"].mend)
    assert "3.5.1 is installed; wanted: from 4.2, below 4.4" == found["pyspark"].text
    assert "JAVA_HOME names no Java" in found["java"].text
    assert all(finding.mend for finding in found.values() if finding.state != FINE)


@pytest.mark.proves("PIP-084")
def test_little_room_and_none(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, state in ((1 << 40, FINE), (1 << 30, WARNING), (1 << 20, BROKEN)):
        usage = Room(free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        assert state == doctor.space(lake).state
        assert (state == FINE) == (not doctor.space(lake).mend)


@pytest.mark.proves("PIP-084")
def test_a_directory_that_is_no_lake_yet(tmp_path: Path) -> None:
    assert (WARNING, "lake") == (doctor.there(Layout(tmp_path)).state, doctor.there(Layout(tmp_path)).what)


@pytest.mark.proves("PIP-084")
def test_a_clock_of_another_time(lake: Layout) -> None:
    assert BROKEN == doctor.clock(lake, lambda: 0.0).state


@pytest.mark.proves("PIP-084")
def test_who_drives_is_said_and_not_disturbed(lake: Layout) -> None:
    assert "free: nobody drives this lake" == doctor.lease(lake).text
    with Lease(lake, "samples") as mine:
        before = lake.lease("samples").read_bytes()
        assert f"process {os.getpid()}" in doctor.lease(lake).text
        assert before == lake.lease("samples").read_bytes()
        assert mine.epoch == 1
    assert "free: nobody drives this lake" == doctor.lease(lake).text
    with lake.lease("samples").with_suffix(".lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.proves("PIP-084")
def test_the_command_ends_with_1_where_something_is_broken(lake: Layout, tmp_path: Path) -> None:
    (lake.root / "lake.toml").write_text("[lake]\nspeed = 1\n", "utf-8")
    words = [sys.executable, "-m", "weft.cli.main", "doctor", "--lake", str(lake.root), "--no-spark", "--json"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, timeout=60, check=False, text=True, env=env)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (1, ["settings"]) == (done.returncode, [entry["what"] for entry in told if entry["state"] == BROKEN])
