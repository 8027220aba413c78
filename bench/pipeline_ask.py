"""What asking a lake costs: `weft sql` beside DuckDB on the bare files, its start, and `weft lake check`.

    python -m bench.pipeline_ask [--rows 1000000] [--rounds 5] [--lake DIR]

*Count* and *group* are one question each over every row of `silver.samples`: by `weft.pipeline.sql.Lake`, which opens the
table from its log, and by DuckDB reading the same Parquet files by name, both from a new connection, in turns, two threads.
Goal: 1.5 times DuckDB's time. *Start* is a whole process that asks for nothing. *Check* proves all tables of the lake;
goal: 30 s for 100 million rows. Without `--lake` a lake of `--rows` is made first; `bench.pipeline_growth --keep DIR`
leaves a large one.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import duckdb
from deltalake import DeltaTable

from bench.hosts import load
from bench.lakes import Filling, Following, Spent, Traffic, started
from weft.lake.layout import Layout
from weft.pipeline.check import Check
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES

QUESTIONS: Final = {
    "count": "SELECT count(*) FROM {rows}",
    "group": 'SELECT series, count(*), avg(value), max("at") FROM {rows} GROUP BY series',
}
GOAL: Final = 1.5
START_GOAL_S: Final = 0.6
CHECK_GOAL_ROWS_S: Final = 100e6 / 30


def made(home: Path, rows: int) -> Layout:
    """A lake of so many rows, in all tables."""
    lake, spark = Layout(home / "lake"), started(home)
    Filling(lake, Traffic()).write(rows)
    Following(spark, lake).drain()
    spark.stop()
    return lake


def took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def by_weft(lake: Layout, question: str) -> None:
    with Lake(lake.root) as asked:
        asked.query(question.format(rows="silver.samples"))


def by_duckdb(files: list[str], question: str) -> None:
    rows = f"read_parquet([{', '.join(map(quoted, files))}])"
    with duckdb.connect(config={"threads": "2"}) as connection:
        connection.sql(question.format(rows=rows)).to_arrow_table()


def started_and_ended(lake: Layout) -> None:
    subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "sql", "--lake", str(lake.root), "SELECT 1"],
        check=True,
        capture_output=True,
    )


def measure(lake: Layout, rounds: int) -> None:
    """Print what each costs."""
    files = DeltaTable(lake.table(SAMPLES.layer, SAMPLES.name)).file_uris()
    print("| question | weft s | DuckDB s | ratio | goal |\n|---|--:|--:|--:|---|")
    for name, question in QUESTIONS.items():
        sides = partial(by_weft, lake, question), partial(by_duckdb, files, question)
        pairs = [tuple(map(took, sides)) for _ in range(rounds + 1)]  # the first fills the caches
        ours, theirs = (median(side) for side in zip(*pairs[1:], strict=True))
        print(f"| {name} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} | {GOAL} |", flush=True)
    start = median(took(partial(started_and_ended, lake)) for _ in range(rounds))
    print(f"\nstart of `weft sql`: {start:.2f} s (goal {START_GOAL_S})")
    with Spent() as spent:
        verdict = Check(lake).run()
    rows, seconds = verdict.rows["silver.samples"], spent.wall
    rate, goal = rows / seconds, CHECK_GOAL_ROWS_S
    print(f"check of {rows:,} rows, {verdict.state}: {seconds:.1f} s, {rate:,.0f} rows/s (goal {goal:,.0f}); {load()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lake", type=Path, default=None)
    chosen = parser.parse_args()
    if chosen.lake is not None:
        measure(Layout(chosen.lake), chosen.rounds)
        return
    with tempfile.TemporaryDirectory() as directory:
        measure(made(Path(directory), chosen.rows), chosen.rounds)


if __name__ == "__main__":
    main()
