"""How much memory a pipeline takes at its most, under full load (PIP-086).

    python -m bench.pipeline_memory [--rows 10000000] [--heap-mb 512]

*Driver*: `weft lake run --once` as a process over a lake of so many rows, so that batches of a million follow each other;
resident memory of its Python, its JVM and their workers together is looked at ten times a second. *Recorder*: `weft
drain` as a process over a journal of a tenth of them; the kernel says what it took at most. Goals: 1,500 MB and 200 MB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

from bench.hosts import load
from bench.lakes import Filling, Traffic, family, memory_mb
from weft.lake.layout import Layout
from weft.shell.files import Files
from weft.shell.journal import Journal

GOAL_DRIVER_MB: Final = 1_500
GOAL_RECORDER_MB: Final = 200
LOOK_S: Final = 0.1
NODE: Final = bytes(range(16))
TURN: Final = 100  # batches that a node writes in one turn
PEAK: Final = """
import json, resource, sys
from pathlib import Path
from weft.cli.drain import drain
drain(Path(sys.argv[1]), lake=Path(sys.argv[2]))
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def driver(home: Path, rows: int, heap_mb: int) -> tuple[dict[str, float], float]:
    """Most MB of each kind of process, of all together, and rows a second."""
    lake = Layout(home / "lake")
    Filling(lake, Traffic()).write(rows)
    words = ["lake", "run", "--lake", str(lake.root), "--once", "--json", "--heap-mb", str(heap_mb)]
    began = time.perf_counter()
    peaks: dict[str, float] = {}
    with subprocess.Popen([sys.executable, "-m", "weft.cli.main", *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            try:
                found = memory_mb(family(process.pid))
            except psutil.NoSuchProcess:
                break
            found["all"] = sum(found.values())
            peaks = {kind: max(peaks.get(kind, 0.0), found.get(kind, 0.0)) for kind in {*peaks, *found}}
            time.sleep(LOOK_S)  # tidy: the kernel tells nobody; ends with the process
    assert process.returncode == 0, process.returncode
    return peaks, rows / (time.perf_counter() - began)


def recorder(home: Path, rows: int) -> float:
    """Most MB of a recorder that falls behind as far as it can."""
    traffic, place = Traffic(), home / "state" / "journal"
    (home / "state").mkdir()
    journal, _ = Journal.open(place, NODE, Files(), 1, 4 << 30)
    records = [record for _, record in traffic.batches(0, rows // traffic.rows)]
    for first in range(0, len(records), TURN):
        journal.write(records[first : first + TURN], 1)
    journal.close(1)
    command = [sys.executable, "-c", PEAK, str(place), str(home / "drained")]
    return float(json.loads(subprocess.run(command, capture_output=True, check=True).stdout.splitlines()[-1]))


def main() -> None:
    """Print a row for the driver, and one for the recorder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--heap-mb", type=int, default=512)
    chosen = parser.parse_args()
    print(f"load {load()}\n\n| process | most MB | of it Java | of it Python | goal MB |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        peaks, rate = driver(home, chosen.rows, chosen.heap_mb)
        java, python, both = (peaks.get(kind, 0.0) for kind in ("java", "python", "all"))
        print(
            f"| driver, {rate:,.0f} rows/s | {both:,.0f} | {java:,.0f} | {python:,.0f} | {GOAL_DRIVER_MB:,} |",
            flush=True,
        )
        print(f"| recorder | {recorder(home, chosen.rows // 10):,.0f} | | | {GOAL_RECORDER_MB} |")


if __name__ == "__main__":
    main()
