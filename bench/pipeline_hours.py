"""Whether a driver's small batches cost the same after hours as in the first minute: time, memory, files, logs of the tables.

    python -m bench.pipeline_hours [--hours 8] [--steps 4] [--batches 60] [--rows 350]

One job, one JVM of 512 MB, one lake, a segment a batch. A driver makes a batch a second, so eight hours are 28,800 of them. Real
are `--batches` of each step, with a fold and a round of upkeep behind them; the hours between two steps are put into the tables'
logs: for each second a commit that adds a file and removes that of the second before, as batches and compaction do, dated as
if the time had passed. With `PYTHONPATH=OTHER/src` the same of other sources.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from deltalake import DeltaTable

from bench.hosts import load
from bench.lakes import Filling, Following, Spent, Traffic, family, memory_mb, started
from bench.pipeline_growth import Commits
from weft.lake.layout import Layout
from weft.pipeline.logdigests import note_commits
from weft.pipeline.settings import KeepTable
from weft.pipeline.tables import PROGRESS, STAGES, VALUES, Table, there
from weft.pipeline.upkeep.keeper import Timing, Upkeep
from weft.pipeline.upkeep.log import live_files, opened

HEADER: Final = (
    "| hours | ms/batch | CPU ms/batch | commit ms | fold s | upkeep s | java MB | python MB | files in use | log files | log MB"
    " | other files | other MB |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)
HOUR_S: Final = 3_600
CHECKPOINT_S: Final = 1_000
"""A log is kept from a checkpoint on. A driver makes one every hundred commits, for which the bench has no time."""
EACH_BATCH: Final = (STAGES["samples"].bronze, STAGES["samples"].silver, VALUES, PROGRESS)
"""Tables to which a batch of samples commits."""
OTHERS: Final = ("_weft", "checkpoints")
"""What a driver keeps in a lake beside tables and segments."""
SMALL: Final = Traffic(nodes=5, series=10, hertz=1.0, rows=10)
STATISTICS: Final = json.dumps(
    {"numRecords": 50, "minValues": {"batch": 0}, "maxValues": {"batch": 0}, "nullCount": {"batch": 0}}
)


def pass_time(lake: Layout, seconds: int) -> None:
    """Let each table have commits as of so many seconds, and a checkpoint of its log after each `CHECKPOINT_S` of them."""
    for table in EACH_BATCH:
        for left in range(seconds, 0, -CHECKPOINT_S):
            _commit_each_second(lake, table, left, min(left, CHECKPOINT_S))


def _commit_each_second(lake: Layout, table: Table, ago: int, seconds: int) -> None:
    """So many commits, the first of them so many seconds ago."""
    root = lake.table(table.layer, table.name)
    version = DeltaTable(root).version()
    began, last = time.time() - ago, ""
    for second in range(1, seconds + 1):
        at_ms, name = round((began + second) * 1000), f"gone-{version + second:010d}-{os.urandom(48).hex()}.parquet"
        lines: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": at_ms, "operation": "WRITE", "weft.version": "bench"}}
        ]
        if second < seconds:
            lines.append({"add": _file(table, name) | {"modificationTime": at_ms, "stats": STATISTICS}})
        if last:
            lines.append({"remove": _file(table, last) | {"deletionTimestamp": at_ms}})
        commit, last = root / "_delta_log" / f"{version + second:020d}.json", name
        commit.write_text("\n".join(json.dumps(line) for line in lines) + "\n", "utf-8")
        os.utime(commit, (at_ms / 1000, at_ms / 1000))
    DeltaTable(root).create_checkpoint()
    note_commits(lake, table, version)


def _file(table: Table, name: str) -> dict[str, Any]:
    day = {table.partition: "2026-11-19"} if table.partition else {}
    return {"path": name, "partitionValues": day, "size": 9, "dataChange": True}


def mb(files: list[Path]) -> float:
    """Their size."""
    return sum(file.stat().st_size for file in files) / (1 << 20)


class Clock:
    """What upkeep takes for the time."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def maintain(upkeep: Upkeep, clock: Clock) -> float:
    """One round of upkeep, with nothing else to do; how many seconds it took."""
    began, due = time.perf_counter(), clock.now + HOUR_S
    clock.now = due
    upkeep.turn()
    while upkeep._round is not None or upkeep._thread is not None:  # between two steps it waits for the driver
        time.sleep(0.01)
        upkeep.turn()
    return time.perf_counter() - began


class Hours:
    """A lake, its driver and its upkeep."""

    def __init__(self, home: Path, rows: int) -> None:
        self.lake, self.rows = Layout(home / "lake"), rows
        self.filling = Filling(self.lake, SMALL)
        self.spark = started(home)
        self._batch()
        self.clock = Clock()
        self.upkeep = Upkeep(self.lake, 1, KeepTable(), Timing(clock=self.clock))

    def _batch(self) -> None:
        self.filling.write(self.rows, self.rows)
        if not hasattr(self, "following"):
            self.following = Following(self.spark, self.lake)
        self.following.drain()

    def step(self, hours: float, batches: int) -> None:
        """So many batches, a fold and a round of upkeep; prints a row."""
        with Commits() as commits, Spent() as spent:
            for _ in range(batches):
                self._batch()
        began = time.perf_counter()
        self.following.job.fold()
        folded = time.perf_counter() - began
        kept = maintain(self.upkeep, self.clock)
        memory, log = memory_mb(family()), list(self.lake.tables().glob("*/*/_delta_log/*"))
        other = [file for name in OTHERS for file in (self.lake.root / name).rglob("*") if file.is_file()]
        in_use = sum(len(live_files(delta, table)) for table in there(self.lake) if (delta := opened(self.lake, table)))
        print(
            f"| {hours:.1f} | {1000 * spent.wall / batches:.0f} | {1000 * spent.cpu / batches:.0f} | {median(commits.taken()):.1f}"
            f" | {folded:.1f} | {kept:.1f} | {memory.get('java', 0):.0f} | {memory.get('python', 0):.0f} | {in_use:,}"
            f" | {len(log):,} | {mb(log):.1f} | {len(other):,} | {mb(other):.1f} |",
            flush=True,
        )


def main() -> None:
    """Print a row for each step; that of hour 0 is warm, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rows", type=int, default=350)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        lake = Hours(Path(directory), chosen.rows)
        print(f"{load()}\n\nwarming up\n{HEADER}", flush=True)
        lake.step(0.0, chosen.batches)
        print("measured", flush=True)
        for number in range(chosen.steps + 1):
            if number:
                pass_time(lake.lake, round(HOUR_S * chosen.hours / chosen.steps))
            lake.step(number * chosen.hours / chosen.steps, chosen.batches)
        lake.spark.stop()
    print(f"\n{load()}")


if __name__ == "__main__":
    main()
