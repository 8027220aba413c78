"""How old a sample is when it can be read: from its stamp at the sensor to an answer of `weft sql`, and to its commit.

    python -m bench.pipeline_fresh [--rate 50000] [--seconds 600] [--skip 30] [--no-driver]

A sensor sends so many samples a second over a real socket to a root that journals, syncs and drains; `weft lake run`
makes tables of them. Two ages are reported. Of every row of `silver.samples`, the instant of the commit that brought it
less its `at`: goal p50 1.5 s, p95 3 s. And what somebody sees who asks `weft sql` half a second after each answer, in this
process, with the bridge (PIP-102): of each answer, the instant at which it stood less the stamps of the rows that it was
the first to have: goal p50 0.6 s, p95 1.2 s. What came within the first `skip` seconds, while Spark starts, does not count.

With `--no-driver` nobody makes tables: every row comes over the bridge, whose limit is a million rows.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

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
GOAL_ROW_P50_S: Final = 0.6
GOAL_ROW_P95_S: Final = 1.2
LOOK_S: Final = 0.5
PARTS: Final = 8  # rows of one answer that are counted, evenly from its oldest new one to its newest
NEWEST: Final = """
SELECT max("at_ns") AS at, max(batch) AS batch FROM silver.samples WHERE batch >= {batch} OR batch IS NULL
"""
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


def look(fleet: Fleet, lake: Layout, skip: float, upto: float) -> list[float]:
    """How old rows were when somebody could see them first, behind the first `skip` seconds."""
    found: list[float] = []
    batch, newest, since = 0, 0.0, time.monotonic() + skip
    while time.monotonic() < upto:
        time.sleep(LOOK_S)
        prove_alive(fleet)
        with Lake(lake.root, fresh=True) as asked:
            if SAMPLES not in asked.known():
                continue
            (row,) = asked.query(NEWEST.format(batch=batch)).to_pylist()
        answered, seen = time.time(), (row["at"] or 0) / 1e9
        if newest and seen > newest and time.monotonic() > since:
            found += [answered - newest - (seen - newest) * part / PARTS for part in range(1, PARTS + 1)]
        batch, newest = row["batch"] or batch, max(seen, newest)
    return found


def measure(home: Path, rate: int, seconds: int, skip: int, *, has_driver: bool) -> None:
    """Print the ages."""
    with Burst(home, rate * seconds, rate, BATCH_ROWS) as burst:
        if has_driver:
            driver(burst.fleet, burst.lake)
        burst.send()
        began_ms, before = time.time() * 1000, cpu_seconds()
        seen = look(burst.fleet, burst.lake, skip, time.monotonic() + seconds)
        memory = memory_mb(family())
        spent = cpu_seconds() - before
        found = ages(burst.lake, began_ms + skip * 1000) if has_driver else None
    show(found, seen, rate)
    print(f"\nCPU {spent / seconds:.2f} cores, memory {memory}; {load()}")


def show(found: Ages | None, seen: list[float], rate: int) -> None:
    print("| measured | samples | p50 s | p95 s | worst s | goal |\n|---|--:|--:|--:|--:|---|")
    if found is not None:
        _line(f"at to commit, {rate:,}/s", f"{found.rows:,}", found[1:], (GOAL_P50_S, GOAL_P95_S))
    worst = max(seen, default=float("nan"))
    ages = percentile(seen, 0.5), percentile(seen, 0.95), worst
    _line(
        f"at to a row of `weft sql`, {rate:,}/s",
        f"{len(seen) // PARTS} answers",
        ages,
        (GOAL_ROW_P50_S, GOAL_ROW_P95_S),
    )


def _line(what: str, count: str, ages: tuple[float, ...], goal: tuple[float, float]) -> None:
    p50, p95, worst = ages
    is_met = p50 <= goal[0] and p95 <= goal[1]
    told = f"{goal[0]}, {goal[1]} s: {'met' if is_met else 'missed'}"
    print(f"| {what} | {count} | {p50:.2f} | {p95:.2f} | {worst:.2f} | {told} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--skip", type=int, default=30)
    parser.add_argument("--no-driver", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory), arguments.rate, arguments.seconds, arguments.skip, has_driver=not arguments.no_driver)


if __name__ == "__main__":
    main()
