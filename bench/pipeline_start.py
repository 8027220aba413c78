"""How soon after `weft lake run` the first rows can be asked for: from a cold disk, and again (PIP-085).

    python -m bench.pipeline_start [--rounds 3] [--cores 2]

Each round makes a new lake with one segment and starts the command as people do. *First rows* is when the first commit
of `silver.samples` stands in its log; then `weft sql` is asked, as a process, and its time is told beside. *Cold* means
that the kernel was told to forget all files before, which needs root; where it cannot be, that is said. Goal: 15 s cold,
8 s warm, of a machine with two cores.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from bench.hosts import load
from bench.lakes import Filling, Traffic
from weft.lake.layout import Layout

GOAL_COLD_S: Final = 15.0
GOAL_WARM_S: Final = 8.0
LOOK_S: Final = 0.05
PATIENCE_S: Final = 180.0
COUNT: Final = "SELECT count(*) AS rows FROM samples"


def drop_caches() -> bool:
    """Whether the kernel has forgotten all files."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n", "ascii")
    except OSError:
        return False
    return True


def first_rows(home: Path, cores: int) -> tuple[float, float]:
    """Seconds until the first rows of a new lake stand in silver, and of the first question about them."""
    lake = Layout(home / "lake")
    Filling(lake, Traffic()).write(10_000, 10_000)
    words = [sys.executable, "-m", "weft.cli.main", "lake"]
    log = lake.table("silver", "samples") / "_delta_log" / f"{1:020d}.json"
    began = time.perf_counter()
    driver = subprocess.Popen(
        [*words, "run", "--lake", str(lake.root), "--json", "--master", f"local[{cores}]"], stdout=subprocess.DEVNULL
    )
    try:
        while not log.exists():
            if driver.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                raise TimeoutError(f"no rows; the driver has ended with {driver.poll()}")
            time.sleep(LOOK_S)  # tidy: another process tells nobody; bounded above
        rows = time.perf_counter() - began
        ask = [sys.executable, "-m", "weft.cli.main", "sql", "--lake", str(lake.root), "--json", COUNT]
        began = time.perf_counter()
        told = subprocess.run(ask, capture_output=True, check=True, text=True).stdout
        assert '"rows":10000' in told.replace(" ", ""), told
        return rows, time.perf_counter() - began
    finally:
        driver.send_signal(signal.SIGTERM)
        driver.wait(60)


def main() -> None:
    """Print a row per state of the disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    chosen = parser.parse_args()
    print(f"load {load()}\n\n| state | first rows, median s | worst s | weft sql s | goal s |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as place:
        for state, goal in (("cold", GOAL_COLD_S), ("warm", GOAL_WARM_S)):
            found, is_cold = [], True
            for number in range(chosen.rounds):
                is_cold = drop_caches() if state == "cold" else True
                found.append(first_rows(Path(place) / f"{state}-{number}", chosen.cores))
            rows, asked = [row for row, _ in found], [ask for _, ask in found]
            said = state if is_cold else "cold, but the kernel kept its files"
            print(f"| {said} | {median(rows):.1f} | {max(rows):.1f} | {median(asked):.2f} | {goal:g} |", flush=True)


if __name__ == "__main__":
    main()
