"""Whether a lake that grows becomes slower: seconds per million rows, commits, folds and memory, at 1, 5 and 20 million.

    python -m bench.pipeline_growth [--rows 20000000] [--every 1000000] [--keep DIR]

One job, one JVM of 512 MB, one lake: every million rows are written as segments of 100,000 and taken as batches of at
most a million, then the gold tables are folded. A row of the table is what that million cost, so rows that are alike say
that nothing grows but the files. Commits are those of all tables of a batch, each timed alone.
`--keep` leaves the lake where it says, for `bench.pipeline_ask`.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Self

from bench.hosts import load
from bench.lakes import Filling, Following, Spent, Traffic, family, memory_mb, percentile, started
from weft.lake.layout import Layout
from weft.pipeline.delta import Tables
from weft.pipeline.job import SamplesJob

HEADER = (
    "| rows so far | s/million | CPU s/million | fold s | commit p50 ms | p95 ms | java MB | python MB | files |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


class Commits:
    """Times every commit of every table, for as long as it is entered."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self._plain: Callable[..., None] = Tables.commit

    def __enter__(self) -> Self:
        def timed(tables: Tables, *arguments: Any, **named: Any) -> None:
            began = time.perf_counter()
            self._plain(tables, *arguments, **named)
            self.milliseconds.append((time.perf_counter() - began) * 1000)

        Tables.commit = timed  # type: ignore[method-assign,assignment]  # what is measured is the real one
        return self

    def __exit__(self, *_: object) -> None:
        Tables.commit = self._plain  # type: ignore[method-assign]  # as before

    def taken(self) -> list[float]:
        """Those since the last call."""
        found, self.milliseconds = self.milliseconds, []
        return found


def grow(home: Path, rows: int, every: int) -> None:
    """Print a row per step."""
    lake = Layout(home / "lake")
    filling = Filling(lake, Traffic())
    spark = started(home)
    filling.write(every // 10)  # the first batches warm up the JVM, and count nowhere
    following = Following(spark, lake)
    following.drain()
    print(HEADER)
    costs = []
    with Commits() as commits:
        while following.rows < rows:
            filling.write(every)
            commits.taken()
            with Spent() as spent:
                batches = following.drain()
            costs.append(step(following, batches, spent.cpu, commits))
    spark.stop()
    print(f"\nlast step of first: {costs[-1] / costs[0]:.2f} times the seconds per million; {load()}")


def step(following: Following, batches: list[Any], cpu: float, commits: Commits) -> float:
    """One row; seconds per million."""
    millions = sum(done.outcome.rows for done in batches) / 1e6
    seconds: float = sum(done.seconds for done in batches) / millions
    began = time.perf_counter()
    assert isinstance(following.job, SamplesJob)
    following.job.fold()
    folded = time.perf_counter() - began
    took, memory = commits.taken(), memory_mb(family())
    files = sum(len(names) for _, _, names in os.walk(following.lake.tables()))
    print(
        f"| {following.rows:,} | {seconds:.2f} | {cpu / millions:.2f} | {folded:.2f} | {median(took):.0f}"
        f" | {percentile(took, 0.95):.0f} | {memory.get('java', 0):.0f} | {memory.get('python', 0):.0f} | {files:,} |",
        flush=True,
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--every", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        grow(arguments.keep or Path(directory), arguments.rows, arguments.every)


if __name__ == "__main__":
    main()
