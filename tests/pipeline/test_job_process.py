"""`weft lake run` as a process: refused beside itself, killed, started again on the wheel's Java, asked to stop.

In the end its tables are those of the oracle, here with all that Spark compiles for a driver that runs for long.
"""

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

from tests.pipeline import oracle
from tests.pipeline.ground import ERA, A, Ground, at_ms, taken
from tests.pipeline.worlds import SERIES, compare
from weft.base.records import Record
from weft.lake.layout import Layout
from weft.pipeline.check import Check

pytestmark = pytest.mark.prove("a driver in a process of its own, with its Java")

PATIENCE_S = 240.0
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
LOOK_S = 0.1
"""A look opens a table: more of them only take the machine from the driver that they wait for."""
QUICK = ("--json", "--master", "local[1]")
ROWS = 20


class Running:
    """One driver and what it says."""

    def __init__(self, lake: Path, *words: str, environment: dict[str, str] | None = None) -> None:
        self.stdout, self.stderr = lake.parent / "stdout", lake.parent / "stderr"
        with self.stdout.open("wb") as out, self.stderr.open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "weft.cli.main", "lake", "run", "--lake", str(lake), *QUICK, *words],
                stdout=out, stderr=err, env=(environment or dict(os.environ)) | QUICK_JAVA, start_new_session=True,
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


def part(first: int) -> tuple[Record, list[oracle.Row]]:
    """Samples of every type, and what the oracle is told of them."""
    rows = [(SERIES[n % 5], n * 10, n * 7 if n % 5 in (0, 4) else None) for n in range(first, first + ROWS)]
    seen = [
        oracle.Row((A, ERA, number), series.config_name, series.type, at_ms(number), value, base)
        for number, (series, value, base) in enumerate(rows, first)
    ]
    return taken(first, rows), seen


def java_of(driver: int) -> int:
    """The JVM of a driver."""
    for child in Path(f"/proc/{driver}/task/{driver}/children").read_text("utf-8").split():
        if Path(f"/proc/{child}/comm").read_text("utf-8").strip() == "java":
            return int(child)
    raise AssertionError("no JVM")


def without_java(directory: Path) -> dict[str, str]:
    """This environment, with a PATH on which everything stands but a Java."""
    directory.mkdir()
    found = {tool.name: tool for place in ("/usr/bin", "/bin") for tool in Path(place).iterdir()}
    for name, tool in found.items():
        if not name.startswith("java"):
            (directory / name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(directory), "XDG_STATE_HOME": str(directory.parent / "state")}


def refused(lake: Path) -> subprocess.CompletedProcess[str]:
    """A second driver beside one that runs."""
    words = ("-m", "weft.cli.main", "lake", "run", "--lake", str(lake), "--once")
    return subprocess.run([sys.executable, *words], capture_output=True, timeout=PATIENCE_S, check=False, text=True)


def is_held_by(lake: Layout, driver: int) -> bool:
    lease = lake.lease("samples")
    return lease.exists() and json.loads(lease.read_bytes())["pid"] == driver


def rows_of(table: Path) -> int:
    return DeltaTable(table).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(str(table)) else 0


def taken_up(lake: Path) -> list[dict[str, Any]]:
    """Batches of the next driver: where a batch takes longer than one that is told to stop may wait, it is repeated."""
    with driver(lake, "--once") as after:
        assert 0 == after.end()
        return after.batches()


@pytest.mark.proves("PIP-080", "PIP-082")
@pytest.mark.proves("PIP-088", part="modes of what a driver writes")
def test_a_second_one_is_refused_and_on_the_wheels_java_stopped_in_a_batch(
    ground: Ground, tmp_path: Path, soak: bool
) -> None:
    """`make soak` kills drivers before; test_kills does so in every run."""
    lake, batches = ground.lake, list[tuple[list[oracle.Row], list[oracle.Id]]]()
    bronze = lake.table("bronze", "samples")

    def feed() -> int:
        record, rows = part(1 + ROWS * len(batches))
        ground.write(record)
        batches.append((rows, []))
        return ROWS * len(batches)

    for victim in ("java", "python") * 8 if soak else ():
        many = feed()
        with driver(lake.root) as first:
            first.until(lambda many=many: rows_of(bronze) >= many)  # type: ignore[misc]  # of this round
            os.kill(java_of(first.process.pid) if victim == "java" else first.process.pid, signal.SIGKILL)
            assert {"java": 3, "python": -signal.SIGKILL}[victim] == first.end()
    many = feed()
    with driver(lake.root, environment=without_java(tmp_path / "tools")) as last:
        last.until(lambda: is_held_by(lake, last.process.pid))
        told = refused(lake.root)
        assert 75 == told.returncode
        assert f"process {last.process.pid} on " in told.stderr
        last.until(lambda: rows_of(bronze) == many)
        last.process.send_signal(signal.SIGINT)
        assert 0 == last.end()
    assert (tmp_path / "state" / "weft" / "java" / "bin" / "java").exists()
    finished = last.batches() or taken_up(lake.root)
    assert many >= sum(batch["rows"] for batch in finished) > 0
    verdict = Check(lake, deep=True).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
    compare(ground, oracle.tables_of(batches, {}))
    assert (lake.runs() / "spark.log").exists()
    news = [json.loads(line)["event"] for line in (lake.runs() / "events.jsonl").read_text("utf-8").splitlines()]
    assert "run-began" in news
    assert "run-ended" == news[-1]
    files = [path for place in ("tables", "_weft") for path in (lake.root / place).rglob("*")]
    checkpoints = lake.root / "checkpoints"  # below it Spark chooses for itself
    assert [] == [path for path in (*files, checkpoints) if path.stat().st_mode & 0o077], "it is nobody else's"


@pytest.mark.proves("PIP-080", part="it ends as it was told to where its Java is told the same")
def test_a_whole_group_that_is_told_to_end_ends_well_and_the_next_driver_goes_on(ground: Ground) -> None:
    """As `timeout` and shells do it."""
    lake = ground.lake
    record, rows = part(1)
    ground.write(record)
    with driver(lake.root) as first:
        first.until(lambda: rows_of(lake.table("bronze", "samples")) == ROWS)
        os.killpg(first.process.pid, signal.SIGTERM)
        assert 0 == first.end()
    assert "weft: " not in first.stderr.read_text("utf-8")
    taken_up(lake.root)
    compare(ground, oracle.tables_of([(rows, [])], {}))
