"""What a question over the bridge costs by the number of files in the table: CPU time of the whole of it.

    python -m bench.pipeline_question [--files 100 300] [--pending 4] [--rounds 15] [--beside OTHER/src]

The question of `pipeline_fresh`: the newest row and batch of `silver.samples`, from a new `Lake` each time. The table has so
many files of 10,000 rows, as a driver leaves them after as many batches at 10,000/s; so many segments of 2,500 rows wait. No
Spark: rows of silver are those that the bridge makes of segments. `--beside`: each question also by a process with other
sources, in turns, because on a busy machine CPU time is another one a minute later.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow as pa

from bench.hosts import load
from bench.lakes import Filling, Traffic
from bench.pipeline_fresh import NEWEST
from weft.lake.layout import Layout
from weft.lake.reader import Source
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.delta import Tables
from weft.pipeline.intake import intake_between
from weft.pipeline.kinds import SAMPLES as KIND
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES, SERIES, Table
from weft.pipeline.writer import Writer

FLEET: Final = Traffic(nodes=4, series=50, hertz=50, rows=500)
SEGMENT_ROWS: Final = 2_500
BATCH_ROWS: Final = 10_000


class Driver:
    """What a driver leaves: files, checkpoint, log."""

    def __init__(self, home: Path) -> None:
        self.lake = Layout(home)
        self.filling = Filling(self.lake, FLEET)
        self.filling.write(BATCH_ROWS, SEGMENT_ROWS)
        self.checkpoint = Checkpoint(self.lake, KIND.stream, is_dense=KIND.is_dense, runs_on=KIND.runs_on)
        nobody: Any = None
        writer = Writer(KIND.stream, self.checkpoint.open(has_rows=False).id, 1)
        self.tables = Tables(self.lake, nobody, writer)

    def leave(self, files: int) -> None:
        """So many files of the same rows, each of a batch of its own, and the state behind the last."""
        with Lake(self.lake.root, fresh=True) as asked:
            rows, series = asked.query("FROM silver.samples"), asked.query("FROM silver.series")
        for table in KIND.tables:
            self.tables.handle(table)
        self._batch(SERIES, series, 0)
        for number in range(files):
            self._batch(SAMPLES, rows, number)
        source, coverage = Source(self.lake, KIND.stream), self.checkpoint.coverage(-1)
        end = source.latest()
        coverage.advance(intake_between(source, source.earliest(), end), time.time_ns())
        coverage.offset = source.offset(end).text()
        self.checkpoint.save(files - 1, coverage)

    def _batch(self, table: Table, rows: pa.Table, number: int) -> None:
        place = rows.schema.names.index("batch")
        numbered = rows.set_column(place, "batch", pa.array([number] * rows.num_rows, pa.int64()))
        self.tables.commit(table, number, self.tables.write_rows(table, numbered, number), {})


def ask(lake: Layout, batch: int) -> float:
    """Milliseconds of CPU time."""
    began = time.process_time()
    with Lake(lake.root, fresh=True) as asked:
        assert SAMPLES in asked.known()
        (row,) = asked.query(NEWEST.format(batch=batch)).to_pylist()
    assert row["batch"] == batch, row
    return 1000 * (time.process_time() - began)


class Asker:
    """A process that asks a lake with other sources."""

    def __init__(self, sources: Path, lake: Layout, batch: int) -> None:
        words = [sys.executable, "-W", "ignore", "-m", "bench.pipeline_question", "--asks", str(lake.root), str(batch)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(sources)}
        )

    def ask(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


def measured(chosen: argparse.Namespace, files: int) -> list[list[float]]:
    """CPU time of each question, of each side."""
    with tempfile.TemporaryDirectory() as directory:
        driver = Driver(Path(directory) / "lake")
        driver.leave(files)
        for _ in range(chosen.pending):
            driver.filling.write(SEGMENT_ROWS, SEGMENT_ROWS)
        others = [Asker(path, driver.lake, files - 1) for path in chosen.beside]
        sides: list[Callable[[], float]] = [partial(ask, driver.lake, files - 1), *(other.ask for other in others)]
        spent = [[side() for side in sides] for _ in range(chosen.rounds + 1)]
        for other in others:
            other.end()
    return [list(side) for side in zip(*spent[1:], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--pending", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    parser.add_argument("--asks", nargs=2, default=None)
    chosen = parser.parse_args()
    if chosen.asks is not None:
        for _ in sys.stdin:
            print(ask(Layout(chosen.asks[0]), int(chosen.asks[1])), flush=True)
        return
    print("| files | sources | CPU ms, median | least |\n|--:|---|--:|--:|")
    for files in chosen.files:
        for name, cpu in zip(["these", *chosen.beside], measured(chosen, files), strict=True):
            print(f"| {files} | {name} | {median(cpu):.0f} | {min(cpu):.0f} |", flush=True)
    print(f"\n{load()}")


if __name__ == "__main__":
    main()
