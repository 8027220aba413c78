"""What a sensor costs its machine, beside Debian's prometheus-node-exporter and collectd in the same run.

All three watch CPU, memory, disks and network: once a second, or as dCAMP did (CPU and memory each 60 s, disk and
network each 120 s). node_exporter is scraped at that rate, collectd writes CSV, the sensor keeps its samples durably
and hands them to a root. Prints CPU milliseconds per second and resident memory of each, and the ratios. `--beside OTHER`
is a directory with other sources of Weft (`git archive COMMIT | tar -x -C OTHER`), whose sensor runs at the same time.

    apt-get install --no-install-recommends prometheus-node-exporter collectd-core
    .venv/bin/python -m bench.sensor [seconds] [--beside OTHER...]
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks

ROOT: Final = Path(__file__).parents[1]
COLLECTD: Final = """
BaseDir "{place}"
PIDFile "{place}/collectd.pid"
Interval {interval}
LoadPlugin cpu
LoadPlugin memory
LoadPlugin disk
LoadPlugin interface
LoadPlugin csv
<Plugin csv>
  DataDir "{place}/csv"
</Plugin>
"""
NODE: Final = """
[fleet]
beat_s = {beat}
dead_s = {dead}

[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{place}/{name}"
runs = ["measurement", "chains", "carrier", "topology"]
beacons = false
{metrics}
"""
METRICS: Final = "".join(
    f'[metric.{name}]\ndetail = "{name.upper()}"\nrate = "{{{rate}}}s"\n'
    for name, rate in (("cpu", "fast"), ("memory", "fast"), ("disk", "slow"), ("network", "slow"))
)
EXPORTER: Final = (
    "prometheus-node-exporter",
    "--collector.disable-defaults",
    *(f"--collector.{name}" for name in ("cpu", "meminfo", "diskstats", "netdev")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    trees = {"weft": ROOT} | {other.name: other.resolve() for other in options.beside}
    missing = [name for name in ("prometheus-node-exporter", "collectd") if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not installed: apt-get install prometheus-node-exporter collectd-core")
    print(f"{'cadence':>8} {'program':>14} {'CPU ms/s':>9} {'memory MB':>10} {'CPU ratio of weft to it':>24}")
    for fast, slow in ((1, 1), (60, 120)):
        with tempfile.TemporaryDirectory() as place:
            measure(Path(place), trees, (fast, slow), options.seconds)


def measure(place: Path, trees: dict[str, Path], cadence: tuple[int, int], seconds: float) -> None:
    fast, _ = cadence
    exporter, *ports = free_blocks(1 + 2 * len(trees), 34_000)
    fleet, peers = Fleet(place), dict[str, subprocess.Popen[bytes]]()
    try:
        pids = {}
        for tree, sources in trees.items():
            os.environ["PYTHONPATH"] = str(sources / "src")
            (place / tree).mkdir()
            pids[tree] = start_sensor(fleet, place / tree, (ports.pop(), ports.pop()), cadence)
        peers = start_peers(place, fast, exporter)
        time.sleep(5)  # starting is not the question
        pids |= {name: peer.pid for name, peer in peers.items()}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        scrape(exporter, fast, seconds)
        report(f"{fast} s", pids, before, seconds)
    finally:
        fleet.stop_all()
        for peer in peers.values():
            peer.terminate()
            peer.wait()


def start_sensor(fleet: Fleet, place: Path, ports: tuple[int, int], cadence: tuple[int, int]) -> int:
    """Start a root and a sensor below it; the sensor's process."""
    (root, sensor), (fast, slow) = ports, cadence
    for name, parent, port, tables in (
        ("root", "", root, "[metric]"),
        ("sensor", f"127.0.0.1:{root}", sensor, METRICS.format(fast=fast, slow=slow)),
    ):
        file = place / f"{name}.toml"
        words = {"name": name, "level": name, "parent": parent, "port": port, "metrics": tables}
        file.write_text(NODE.format(place=place, beat=fast, dead=5 * fast, **words))
        fleet.add(Member(f"{place.name}-{name}", ("-m", "weft.cli.main", "up", str(file)), port))
    process = fleet.members[-1].process
    assert process is not None
    return process.pid


def start_peers(place: Path, interval: int, port: int) -> dict[str, subprocess.Popen[bytes]]:
    settings = place / "collectd.conf"
    settings.write_text(COLLECTD.format(place=place, interval=interval))
    commands = {
        "node_exporter": [*EXPORTER, f"--web.listen-address=127.0.0.1:{port}"],
        "collectd": ["collectd", "-f", "-C", str(settings)],
    }
    return {
        name: subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, command in commands.items()
    }


def scrape(port: int, every: int, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            answer.read()
        time.sleep(min(every, max(0.0, ends_at - time.monotonic())))


def report(cadence: str, pids: dict[str, int], before: dict[str, float], seconds: float) -> None:
    spent = {name: (cpu_seconds(pid) - before[name]) / seconds * 1_000 for name, pid in pids.items()}
    for name, pid in pids.items():
        ratio = f"{spent['weft'] / spent[name]:.2f}" if spent[name] else "-"
        print(f"{cadence:>8} {name:>14} {spent[name]:>9.2f} {resident_mb(pid):>10.1f} {ratio:>24}")


def cpu_seconds(pid: int) -> float:
    """From the scheduler's own account, in nanoseconds, of all threads: ticks are too coarse for a quiet program."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1_024


if __name__ == "__main__":
    main()
