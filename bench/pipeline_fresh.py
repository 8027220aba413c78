"""How old a sample is when it can be read: from its stamp at the sensor to the commit that `weft sql` reads.

    python -m bench.pipeline_fresh [--rate 50000] [--seconds 600] [--skip 30]

A sensor sends so many samples a second over a real socket to a root that journals, syncs and drains; `weft lake run`
makes tables of them. What is reported is not sampled: of every row of `silver.samples`, the instant of the commit that
brought it less its `at`. Beside it, once every two seconds, `weft sql` is asked in this process for the newest stamp.
Goal: p50 1.5 s, p95 3 s. What came within the first `skip` seconds, while Spark starts, does not count.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from bench.hosts import load
from bench.lakes import cpu_seconds, family, memory_mb, percentile
from bench.pipeline_traffic import Burst
from weft.cli.fleet import Fleet, Member
from weft.lake.layout import Layout
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES

GOAL_P50_S: Final = 1.5
GOAL_P95_S: Final = 3.0
BATCH_ROWS: Final = 500
LOOK_S: Final = 2.0
NEWEST: Final = 'SELECT max("at_ns") AS at, max(batch) AS batch FROM silver.samples WHERE batch >= {batch}'
AGES: Final = """
SELECT count(*) AS rows, quantile_cont(age, 0.5) AS p50, quantile_cont(age, 0.95) AS p95, max(age) AS worst
FROM (SELECT commits.ms / 1000 - epoch_ms("at") / 1000 AS age FROM samples JOIN commits USING (batch)
      WHERE commits.ms >= {since})
"""


class Ages(NamedTuple):
    """Seconds."""

    rows: int
    p50: float
    p95: float
    worst: float


def commits_of(lake: Layout) -> pa.Table:
    """When each batch came to stand in silver, milliseconds since 1970."""
    history = DeltaTable(lake.table(SAMPLES.layer, SAMPLES.name)).history()
    told = [entry for entry in history if "weft.batch" in entry]
    return pa.table({"batch": [int(e["weft.batch"]) for e in told], "ms": [float(e["timestamp"]) for e in told]})


def ages(lake: Layout, since_ms: float) -> Ages:
    """Of all rows that were committed since."""
    with duckdb.connect() as connection:
        connection.register("commits", commits_of(lake))
        connection.register("samples", DeltaTable(lake.table(SAMPLES.layer, SAMPLES.name)).to_pyarrow_dataset())
        row = connection.execute(AGES.format(since=since_ms)).fetchone()
    assert row is not None
    if not row[0]:
        raise RuntimeError("nothing was committed after --skip seconds: let it run longer")
    return Ages(*row)


def driver(fleet: Fleet, lake: Layout) -> None:
    """`weft lake run`, as a process."""
    fleet.add(Member("pipeline", ("-m", "weft.cli.main", "lake", "run", "--lake", str(lake.root), "--json")))


def prove_alive(fleet: Fleet) -> None:
    """RuntimeError with the last words of the process that has died."""
    for member in fleet.members:
        if not member.is_running:
            words = (fleet.directory / f"{member.name}.log").read_text("utf-8")
            raise RuntimeError(f"{member.name} has ended: {words[-1000:]}")


def look(fleet: Fleet, lake: Layout, upto: float) -> list[float]:
    """How old the newest readable stamp was, each time somebody asked."""
    found, batch = [], 0
    while time.monotonic() < upto:
        time.sleep(LOOK_S)
        prove_alive(fleet)
        began = time.time()
        with Lake(lake.root) as asked:
            if SAMPLES not in asked.tables():
                continue
            (row,) = asked.query(NEWEST.format(batch=batch)).to_pylist()
        if row["at"] is not None:
            batch = row["batch"]
            found.append(began - row["at"] / 1e9)
    return found


def measure(home: Path, rate: int, seconds: int, skip: int) -> None:
    """Print the ages."""
    with Burst(home, rate * seconds, rate, BATCH_ROWS) as burst:
        driver(burst.fleet, burst.lake)
        burst.send()
        began_ms, before = time.time() * 1000, cpu_seconds()
        seen = look(burst.fleet, burst.lake, time.monotonic() + seconds)
        memory = memory_mb(family())
        spent = cpu_seconds() - before
        found = ages(burst.lake, began_ms + skip * 1000)
    show(found, seen[round(skip / LOOK_S) :], rate)
    print(f"\nCPU {spent / seconds:.2f} cores, memory {memory}; {load()}")


def show(found: Ages, seen: list[float], rate: int) -> None:
    print("| measured | samples | p50 s | p95 s | worst s | goal |\n|---|--:|--:|--:|--:|---|")
    is_met = found.p50 <= GOAL_P50_S and found.p95 <= GOAL_P95_S
    goal = f"{GOAL_P50_S}, {GOAL_P95_S} s: {'met' if is_met else 'missed'}"
    print(
        f"| at to commit, {rate:,}/s | {found.rows:,} | {found.p50:.2f} | {found.p95:.2f} | {found.worst:.2f} | {goal} |"
    )
    worst: Any = max(seen, default=float("nan"))
    print(
        f"| newest that `weft sql` reads | {len(seen)} looks | {percentile(seen, 0.5):.2f} | {percentile(seen, 0.95):.2f}"
        f" | {worst:.2f} | |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--skip", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory), arguments.rate, arguments.seconds, arguments.skip)


if __name__ == "__main__":
    main()
