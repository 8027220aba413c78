"""A week of one node that was away, beside what the others go on sending.

    python -m bench.pipeline_backlog [--rows 6000000] [--live 10000] [--calm 60]

Others send `live` rows a second, a segment each second, and `weft lake run` makes tables of them. After `calm` seconds
the week appears at once, in segments of 100,000 rows that a drain of its own has written: 100 series, one tick every ten
seconds, seven days. Reported: how long until its last row is in all tables, and how fresh the others' rows were before
and meanwhile, from their arrival until the progress of their batch is committed. Goals: 60 s; p95 at most doubled.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from bench.hosts import load
from bench.lakes import DRAIN, Filling, Traffic, family, memory_mb, percentile
from bench.pipeline_fresh import driver, prove_alive
from weft.cli.fleet import Fleet
from weft.lake.layout import Layout
from weft.lake.offsets import parse
from weft.lake.reader import Source
from weft.pipeline.sql import Lake
from weft.pipeline.tables import PROGRESS

WEEK_S: Final = 7 * 86_400
WEEK_DRAIN: Final = "0a" * 16
GOAL_S: Final = 60.0
GOAL_TIMES: Final = 2.0
PATIENCE_S: Final = 1_800.0
LOOK_S: Final = 1.0
STEPS: Final = 'SELECT epoch_ms("at") AS ms, "offset" FROM meta.progress WHERE job = \'samples\' ORDER BY batch'
SERIES: Final = 100
EVERY_S: Final = 10


class Step(NamedTuple):
    """A batch of the job: when it was in all tables, and behind which segment of each drain it ends."""

    at_s: float
    reached: dict[str, int]


class Live(threading.Thread):
    """A segment a second, until it is told to stop; `published` says when each one was."""

    def __init__(self, lake: Layout, rate: int) -> None:
        super().__init__(daemon=True)
        start = round(time.time() * 1000)
        traffic = Traffic(nodes=1, series=50, hertz=rate / 50, rows=rate, first_node=1_000, start_ms=start)
        self.filling, self.rate = Filling(lake, traffic), rate
        self.published: list[float] = []
        self.over = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        while not self.over.wait(max(0.0, began + len(self.published) + 1 - time.monotonic())):
            self.filling.write(self.rate, self.rate)
            self.published.append(time.time())


def steps_of(lake: Layout) -> list[Step]:
    """What the job has done so far."""
    with Lake(lake.root) as asked:
        if PROGRESS not in asked.tables():
            return []
        rows = asked.query(STEPS).to_pylist()
    return [Step(row["ms"] / 1000, {d: n for d, (n, _) in parse(row["offset"]).at.items()}) for row in rows]


def wait_until(fleet: Fleet, lake: Layout, drain: str, number: int) -> float:
    """When all rows of a drain up to a segment were in the tables; TimeoutError, RuntimeError if the driver died."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        for step in steps_of(lake):
            if step.reached.get(drain, 1) > number:
                return step.at_s
        prove_alive(fleet)
        time.sleep(LOOK_S)
    raise TimeoutError(f"segment {number} of {drain}")


def freshness(published: list[float], steps: list[Step], span: tuple[float, float]) -> list[float]:
    """Seconds from the arrival of each live segment within a span until it was in the tables."""
    found = []
    for number, at_s in enumerate(published, 1):
        if span[0] <= at_s < span[1]:
            done = (step.at_s for step in steps if step.reached.get(DRAIN, 1) > number)
            found.append(next(done, time.time()) - at_s)
    return found


def week(home: Path, rows: int) -> tuple[Path, int]:
    """The segments of a week, where nobody sees them yet; how many rows they are."""
    traffic = Traffic(nodes=1, series=SERIES, hertz=1 / EVERY_S, rows=SERIES, start_ms=_week_ago())
    lake = Layout(home / "away")
    written = Filling(lake, traffic, WEEK_DRAIN).write(rows)
    return lake.drain("samples", WEEK_DRAIN), written


def _week_ago() -> int:
    return round((time.time() - WEEK_S - 60) * 1000)


def measure(home: Path, rows: int, rate: int, calm: int) -> None:
    """Print how long it took, and how fresh the others were."""
    away, written = week(home, rows)
    lake = Layout(home / "lake")
    live, fleet = Live(lake, rate), Fleet(home)
    try:
        live.start()
        driver(fleet, lake)
        first = wait_until(fleet, lake, DRAIN, 1)
        time.sleep(calm)
        came = time.time()
        last = Source(Layout(home / "away"), "samples").latest()[WEEK_DRAIN][0] - 1
        away.rename(lake.drain("samples", WEEK_DRAIN))
        done = wait_until(fleet, lake, WEEK_DRAIN, last)
        time.sleep(LOOK_S)
        memory = memory_mb(family())
    finally:
        live.over.set()
        fleet.stop_all()
    steps = steps_of(lake)
    before, meanwhile = (freshness(live.published, steps, span) for span in ((first, came), (came, done)))
    show(written, done - came, before, meanwhile)
    print(f"\nbeside {rate:,} rows/s; memory {memory}; {load()}")


def show(rows: int, took: float, before: list[float], meanwhile: list[float]) -> None:
    calm, busy = percentile(before, 0.95), percentile(meanwhile, 0.95)
    print("| measured | | goal |\n|---|--:|---|")
    print(f"| a week, {rows:,} rows, in all tables | {took:.1f} s | {GOAL_S:.0f} s: {_said(took <= GOAL_S)} |")
    print(f"| freshness of the others before, p50, p95 | {percentile(before, 0.5):.2f}, {calm:.2f} s | |")
    print(
        f"| meanwhile | {percentile(meanwhile, 0.5):.2f}, {busy:.2f} s |"
        f" {GOAL_TIMES:.0f} times p95, {busy / calm:.1f}: {_said(busy <= GOAL_TIMES * calm)} |"
    )


def _said(is_met: bool) -> str:  # noqa: FBT001  # a verdict in a word
    return "met" if is_met else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--live", type=int, default=10_000)
    parser.add_argument("--calm", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory), arguments.rows, arguments.live, arguments.calm)


if __name__ == "__main__":
    main()
