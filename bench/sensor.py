"""What a sensor costs its machine, beside Debian's prometheus-node-exporter, collectd and Netdata in the same run.

All watch CPU, memory, disks and network: once a second, or as dCAMP did (CPU and memory each 60 s, disk and
network each 120 s; Netdata all of it each 60 s). node_exporter is scraped at that rate, collectd writes CSV, Netdata keeps an
hour in memory, the sensor keeps its samples durably and hands them to a root. Prints CPU milliseconds per second and resident
memory of each, and the ratios. `--beside OTHER` is a directory with other sources of Weft (`git archive COMMIT | tar -x -C OTHER`),
whose sensor runs at the same time.

    scripts/bench-install
    .venv/bin/python -m bench.sensor [seconds] [--beside OTHER...]
"""

import argparse
import contextlib
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final, NamedTuple

from bench.peers import programs
from bench.peers.netdata import FOUR_METRICS, netdata
from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks

ROOT: Final = Path(__file__).parents[1]
COLLECTD: Final = """
BaseDir "{place}"
PIDFile "{place}/collectd.pid"
PluginDir "{usr}/lib/collectd"
TypesDB "{usr}/share/collectd/types.db"
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


class Bar(NamedTuple):
    """At one look a second: at most so many times the CPU of a peer; or with none, so many MB."""

    peer: str
    at_most: float


BARS: Final = (Bar("node_exporter", 0.8), Bar("collectd", 1.2), Bar("", 35))
Usage = dict[str, tuple[float, float]]
"""By program, CPU milliseconds per second, and MB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    trees = {"weft": ROOT} | {other.name: other.resolve() for other in options.beside}
    programs.end_in_order()
    programs.demand("prometheus-node-exporter", "collectd", "netdata")
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"{'cadence':>8} {'program':>14} {'CPU ms/s':>9} {'memory MB':>10} {'CPU ratio of weft to it':>24}")
    for fast, slow in ((1, 1), (60, 120)):
        with tempfile.TemporaryDirectory() as place:
            used = measure(Path(place), trees, (fast, slow), options.seconds)
        if fast == 1:
            for bar in BARS:
                judge(bar, used)
    print(f"load {os.getloadavg()[0]:.1f}")


def judge(bar: Bar, used: Usage) -> None:
    cpu, memory = used["weft"]
    seen, what = (cpu / used[bar.peer][0], f"CPU of {bar.peer}'s") if bar.peer else (memory, "MB")
    print(f"{'met' if seen <= bar.at_most else 'MISSED'}: {what} {seen:.2f}, at most {bar.at_most:g}")


def measure(place: Path, trees: dict[str, Path], cadence: tuple[int, int], seconds: float) -> Usage:
    fast, _ = cadence
    exporter, page, *ports = free_blocks(2 + 2 * len(trees), 34_000)
    fleet = Fleet(place)
    with contextlib.ExitStack() as stack:
        stack.callback(fleet.stop_all)
        pids = {}
        for tree, sources in trees.items():
            os.environ["PYTHONPATH"] = str(sources / "src")
            (place / tree).mkdir()
            pids[tree] = start_sensor(fleet, place / tree, (ports.pop(), ports.pop()), cadence)
        peers = {name: started(stack, command) for name, command in commands(place, fast, exporter).items()}
        (place / "netdata").mkdir()
        peers["netdata"] = stack.enter_context(netdata(place / "netdata", page, fast, FOUR_METRICS))
        time.sleep(5)  # starting is not the question
        pids |= {name: peer.pid for name, peer in peers.items()}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        scrape(exporter, fast, seconds)
        return report(f"{fast} s", pids, before, seconds)


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


def commands(place: Path, interval: int, port: int) -> dict[str, list[str]]:
    usr = (programs.unpacked("usr/lib/collectd") or Path("/usr/lib/collectd")).parents[1]
    settings = place / "collectd.conf"
    settings.write_text(COLLECTD.format(place=place, interval=interval, usr=usr))
    return {
        "node_exporter": [*EXPORTER, f"--web.listen-address=127.0.0.1:{port}"],
        "collectd": ["collectd", "-f", "-C", str(settings)],
    }


def started(stack: contextlib.ExitStack, command: list[str]) -> subprocess.Popen[bytes]:
    program, nowhere = programs.found(command[0]), subprocess.DEVNULL
    assert program is not None, "demanded before"
    process = subprocess.Popen([program, *command[1:]], stdout=nowhere, stderr=nowhere, env=programs.environment())
    stack.callback(programs.end, process)
    return process


def scrape(port: int, every: int, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            answer.read()
        time.sleep(min(every, max(0.0, ends_at - time.monotonic())))


def report(cadence: str, pids: dict[str, int], before: dict[str, float], seconds: float) -> Usage:
    spent = {name: (cpu_seconds(pid) - before[name]) / seconds * 1_000 for name, pid in pids.items()}
    for name, pid in pids.items():
        ratio = f"{spent['weft'] / spent[name]:.2f}" if spent[name] else "-"
        print(f"{cadence:>8} {name:>14} {spent[name]:>9.2f} {resident_mb(pid):>10.1f} {ratio:>24}", flush=True)
    return {name: (spent[name], resident_mb(pid)) for name, pid in pids.items()}


def cpu_seconds(pid: int) -> float:
    """From the scheduler's own account, in nanoseconds, of all threads: ticks are too coarse for a quiet program."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1_024


if __name__ == "__main__":
    main()
