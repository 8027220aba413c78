"""How soon after `weft lake run` the first rows can be asked for, beside a bare session of Spark (PIP-085, PIP-104).

    python -m bench.pipeline_start [--rounds 3] [--cores 2] [--cold]

Each round starts both sides as processes, one after the other:

- *bare*: plain `SparkSession.builder.getOrCreate()` with the same heap, and one write of as many rows to Parquet;
- *weft*: the command as people use it, on a new lake with one segment. *First rows* is when the first commit of
  `silver.samples` stands in its log; then `weft sql` is asked, as a process, and its time is told beside.

Told is the wall clock, and the CPU time of all processes of a side until then, which says more on a machine that has other
things to do. Goal: at most 1.6 times the bare side; 8 s on a machine with two cores. With `--cold` the kernel is told to
forget all files before each start of Weft, which needs root and is no kindness to whoever else works here: 15 s. The state
directory is the user's (or below `$XDG_STATE_HOME`): after `weft lake tune` Weft's side finds its classes ready, and it says so.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.hosts import load
from bench.lakes import HEAP_MB, Filling, Traffic, cpu_seconds
from weft.lake.layout import Layout
from weft.pipeline.classes import archive
from weft.pipeline.java import choose
from weft.pipeline.session import default_state

GOAL_COLD_S: Final = 15.0
GOAL_WARM_S: Final = 8.0
GOAL_OF_BARE: Final = 1.6
ROWS: Final = 10_000
LOOK_S: Final = 0.05
PATIENCE_S: Final = 540.0
COUNT: Final = "SELECT count(*) AS rows FROM samples"
BARE: Final = """
import sys
from pyspark.sql import SparkSession, functions as F
cores, heap, rows, place = sys.argv[1:]
spark = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", f"{heap}m").getOrCreate()
spark.range(int(rows)).select("id", F.col("id").cast("string").alias("text")).write.parquet(place)
print("written", flush=True)
sys.stdin.read()
"""


class Start(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float
    """Of all processes of this side."""


def drop_caches() -> bool:
    """Whether the kernel has forgotten all files."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n", "ascii")
    except OSError:
        return False
    return True


def started(
    words: Sequence[str], environment: dict[str, str], is_there: Callable[[], bool]
) -> tuple[Start, subprocess.Popen[bytes]]:
    """How long a process took until something was there; it still runs. TimeoutError; then it has ended."""
    began = time.perf_counter()
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | environment
    )
    while not is_there():
        if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
            process.kill()
            raise TimeoutError(f"nothing came; the process has ended with {process.wait()}")
        time.sleep(LOOK_S)  # tidy: another process tells nobody; bounded above
    return Start(time.perf_counter() - began, cpu_seconds(process.pid)), process


def bare(home: Path, cores: int) -> Start:
    """Plain Spark, up to the end of its first write."""
    place = home / "bare"
    java = {
        "JAVA_HOME": str(choose(default_state()).home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    words = [sys.executable, "-c", BARE, str(cores), str(HEAP_MB), str(ROWS), str(place)]
    seen, process = started(words, java, (place / "_SUCCESS").exists)
    process.communicate(timeout=60)
    return seen


def first_rows(home: Path, cores: int) -> tuple[Start, float]:
    """Until the first rows of a new lake stand in silver; and seconds of the first question about them."""
    lake = Layout(home / "lake")
    Filling(lake, Traffic()).write(ROWS, ROWS)
    words = [sys.executable, "-m", "weft.cli.main", "lake"]
    log = lake.table("silver", "samples") / "_delta_log" / f"{1:020d}.json"
    run = [*words, "run", "--lake", str(lake.root), "--json", "--master", f"local[{cores}]"]
    seen, driver = started(run, {}, log.exists)
    try:
        ask = [sys.executable, "-m", "weft.cli.main", "sql", "--lake", str(lake.root), "--json", COUNT]
        began = time.perf_counter()
        told = subprocess.run(ask, capture_output=True, check=True, text=True).stdout
        assert f'"rows":{ROWS}' in told.replace(" ", ""), told
        return seen, time.perf_counter() - began
    finally:
        driver.send_signal(signal.SIGTERM)
        driver.wait(PATIENCE_S)


def main() -> None:
    """Print a row per side, and what the one is of the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--cold", action="store_true")
    chosen = parser.parse_args()
    plain, ours, asked, is_cold = [], [], [], chosen.cold
    with tempfile.TemporaryDirectory() as place:
        for number in range(chosen.rounds):
            home = Path(place) / str(number)
            plain.append(bare(home, chosen.cores))
            is_cold = is_cold and drop_caches()
            seen, answer = first_rows(home, chosen.cores)
            ours.append(seen)
            asked.append(answer)
    tuned = archive(default_state(), choose(default_state())).is_file()
    said = "cold" if is_cold else "cold, but the kernel kept its files" if chosen.cold else "warm"
    print(
        f"{load()}, {said}, {'tuned' if tuned else 'not tuned'}; goal {GOAL_COLD_S if chosen.cold else GOAL_WARM_S:g} s, {GOAL_OF_BARE} of bare\n"
    )
    print("| side | median s | worst s | CPU s, median |\n|---|--:|--:|--:|")
    for name, found in (("bare session, one write", plain), ("first rows of weft lake run", ours)):
        walls = [start.wall for start in found]
        print(f"| {name} | {median(walls):.1f} | {max(walls):.1f} | {median(start.cpu for start in found):.1f} |")
    shares = [(mine.wall / theirs.wall, mine.cpu / theirs.cpu) for mine, theirs in zip(ours, plain, strict=True)]
    wall, cpu = (median(share) for share in zip(*shares, strict=True))
    print(f"\nof bare: {wall:.2f} by the clock, {cpu:.2f} of its CPU time; weft sql {median(asked):.2f} s")


if __name__ == "__main__":
    main()
