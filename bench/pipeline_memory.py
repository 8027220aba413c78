"""How much memory a pipeline takes at its most, under full load (PIP-086).

    python -m bench.pipeline_memory [--rows 10000000] [--heap-mb 512]
    python -m bench.pipeline_memory --rate 10000 [--seconds 240]

*Driver*: `weft lake run --once` as a process over a lake of so many rows, so that batches of a million follow each other;
resident memory of its Python, its JVM and their workers together is looked at ten times a second. *Recorder*: `weft
drain` as a process over a journal of a tenth of them; the kernel says what it took at most. Goals: 1,500 MB and 200 MB.

With `--rate` the driver alone: four segments a second of so many rows together, written here, and `weft lake run` as it runs
for months. Of its Python and its JVM, once a second: resident memory, and PSS, in which a page that several processes have
counts once; at their most, and in the last half minute; and CPU time per million rows. Goal: 1,200 MB together, at 10,000/s.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Final

import psutil

from bench.hosts import load
from bench.lakes import Filling, Traffic, cpu_seconds, family, memory_mb
from weft.lake.layout import Layout
from weft.shell.files import Files
from weft.shell.journal import Journal

GOAL_DRIVER_MB: Final = 1_500
GOAL_RECORDER_MB: Final = 200
GOAL_STEADY_MB: Final = 1_200
SEGMENTS_A_SECOND: Final = 4
SETTLED_S: Final = 30
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


class Fed:
    """A lake to which so many rows a second come, stamped as of now, until `end`."""

    def __init__(self, lake: Layout, rate: int) -> None:
        nodes = max(1, rate // 2_500)
        traffic = Traffic(nodes=nodes, series=50, hertz=rate / nodes / 50, start_ms=time.time_ns() // 1_000_000)
        self.filling, self.segment = Filling(lake, traffic), rate // SEGMENTS_A_SECOND
        self.rows = self.filling.write(self.segment, self.segment)
        self._ending = Event()
        self._thread = Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            due += 1 / SEGMENTS_A_SECOND
            self.rows += self.filling.write(self.segment, self.segment)

    def end(self) -> None:
        self._ending.set()
        self._thread.join()


def pss_mb(pid: int) -> float:
    """The proportional set of a process, MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def looked(pid: int) -> dict[str, float]:
    """Resident memory and PSS by kind of process, and of all."""
    there = family(pid)
    found = memory_mb(there)
    for process in there:
        with suppress(OSError, psutil.NoSuchProcess):  # it has ended
            kind = "java pss" if "java" in process.name() else "python pss"
            found[kind] = found.get(kind, 0.0) + pss_mb(process.pid)
    found["all"] = found.get("java", 0.0) + found.get("python", 0.0)
    found["all pss"] = found.get("java pss", 0.0) + found.get("python pss", 0.0)
    return found


def steady(home: Path, chosen: argparse.Namespace) -> None:
    """Print what a driver takes while rows come steadily."""
    lake = Layout(home / "lake")
    fed = Fed(lake, chosen.rate)
    words = ["lake", "run", "--lake", str(lake.root), "--json", "--heap-mb", str(chosen.heap_mb)]
    seen: list[dict[str, float]] = []
    with subprocess.Popen([sys.executable, "-m", "weft.cli.main", *words], stdout=subprocess.DEVNULL) as process:
        try:
            ends_at = time.monotonic() + chosen.seconds
            while time.monotonic() < ends_at:
                time.sleep(1.0)  # tidy: the kernel tells nobody
                assert process.poll() is None, process.returncode
                seen.append(looked(process.pid))
            spent, rows = cpu_seconds(process.pid), fed.rows
        finally:
            fed.end()
            process.terminate()
    print(f"| {chosen.rate:,} rows/s | most MB | in the last {SETTLED_S} s | of these PSS |\n|---|--:|--:|--:|")
    for kind in ("all", "java", "python"):
        settled, shared = (median(look.get(what, 0.0) for look in seen[-SETTLED_S:]) for what in (kind, f"{kind} pss"))
        print(f"| {kind} | {max(look.get(kind, 0.0) for look in seen):,.0f} | {settled:,.0f} | {shared:,.0f} |")
    print(
        f"\n{1e6 * spent / rows:.1f} s of CPU per million rows, start included; goal {GOAL_STEADY_MB:,} MB; load {load()}"
    )


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
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=240)
    chosen = parser.parse_args()
    if chosen.rate:
        with tempfile.TemporaryDirectory() as place:
            steady(Path(place), chosen)
        return
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
