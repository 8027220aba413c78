"""`weft lake run` as a process: killed, started again, asked to stop, refused beside itself, and on the wheel's Java."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.pipeline.ground import DRAIN, NET, taken
from weft.lake.layout import Layout
from weft.lake.segments import append_segment, open_lake
from weft.pipeline.sql import Lake

PATIENCE_S = 240.0
LOOK_S = 0.02
ROWS = 50


class Running:
    """One driver and what it says."""

    def __init__(self, lake: Path, *words: str, environment: dict[str, str] | None = None) -> None:
        self.stdout, self.stderr = lake.parent / "stdout", lake.parent / "stderr"
        with self.stdout.open("wb") as out, self.stderr.open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "weft.cli.main", "lake", "run", "--lake", str(lake), "--json", *words],
                stdout=out, stderr=err, env=environment,
            )  # fmt: skip

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something while the driver runs."""
        for _ in range(round(PATIENCE_S / LOOK_S)):
            if is_so():
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(LOOK_S)
                break
        raise AssertionError(f"exit {self.process.poll()}: {self.stderr.read_text('utf-8')[-2000:]}")

    def end(self) -> int:
        """Its exit code once it has ended."""
        return self.process.wait(PATIENCE_S)

    def batches(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.read_text("utf-8").splitlines()]


@contextmanager
def driver(lake: Path, *words: str, environment: dict[str, str] | None = None) -> Iterator[Running]:
    running = Running(lake, *words, environment=environment)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def write(lake: Layout, first: int, segments: int) -> None:
    for number in range(first, first + segments):
        rows = [(NET, 10 * n, None) for n in range(number * ROWS, (number + 1) * ROWS)]
        append_segment(lake, "samples", DRAIN, [(number + 1, taken(1 + number * ROWS, rows))])


def without_java(directory: Path) -> dict[str, str]:
    """This environment, with a PATH on which everything stands but a Java."""
    directory.mkdir()
    found = {tool.name: tool for place in ("/usr/bin", "/bin") for tool in Path(place).iterdir()}
    for name, tool in found.items():
        if not name.startswith("java"):
            (directory / name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(directory), "XDG_STATE_HOME": str(directory.parent / "state")}


def tally(lake: Path) -> tuple[int, ...]:
    with Lake(lake) as asked:
        counts = asked.query(
            "SELECT (SELECT count(*) FROM bronze.samples) AS bronze, count(*) AS silver,"
            " count(DISTINCT (origin, era, sequence)) AS numbers,"
            " (SELECT count(*) FROM silver.values) AS pairs,"
            " (SELECT sum(n) FROM gold.rollup_1d) AS folded,"
            " (SELECT sum(duplicates + missing) FROM gold.completeness) AS bad FROM silver.samples"
        )
    return tuple(counts.to_pylist()[0].values())


def refused(lake: Path) -> subprocess.CompletedProcess[str]:
    """A second driver beside one that runs."""
    words = ("-m", "weft.cli.main", "lake", "run", "--lake", str(lake), "--once")
    return subprocess.run([sys.executable, *words], capture_output=True, timeout=PATIENCE_S, check=False, text=True)


def rows_of(table: Path) -> int:
    return DeltaTable(table).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(str(table)) else 0


@pytest.mark.proves("PIP-022", "PIP-080", "PIP-082")
def test_killed_refused_finished_on_the_wheels_java_and_stopped_in_a_batch(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    lake = Layout(root)
    open_lake(lake, "ab" * 16, 1)
    write(lake, 0, 3)
    bronze = lake.table("bronze", "samples")
    with driver(root) as first:
        first.until(lambda: rows_of(bronze) > 0)
        first.process.kill()
        assert -signal.SIGKILL == first.end()
    assert 0 == rows_of(lake.table("meta", "progress"))
    write(lake, 3, 1)
    with driver(root, "--once", environment=without_java(tmp_path / "tools")) as second:
        second.until(lambda: len(second.batches()) > 0)
        told = refused(root)
        assert 75 == told.returncode
        assert f"process {second.process.pid} on " in told.stderr
        assert 0 == second.end()
    assert (tmp_path / "state" / "weft" / "java" / "bin" / "java").exists()
    assert (4 * ROWS, 4 * ROWS, 4 * ROWS, 4 * ROWS - 1, 4 * ROWS - 1, 0) == tally(root)
    write(lake, 4, 1)
    with driver(root) as last:
        last.until(lambda: rows_of(bronze) == 5 * ROWS)
        last.process.send_signal(signal.SIGTERM)
        assert 0 == last.end()
    assert (5 * ROWS, 5 * ROWS, 5 * ROWS, 5 * ROWS - 1, 5 * ROWS - 1, 0) == tally(root)
