"""Each core of a real node flooded with its largest records, while an honest client does its work (FLD-032).

    .venv/bin/python -m bench.flood [CORE...] [--seconds 120] [--clients 2]

Flooding clients are plain, and processes of their own (tests/fabric/floods.py). It prints the memory of the process beside
what it may have, what the core holds beside its budget, what was refused and by which name, and the times of the honest
client. The bar: memory below the limit, the honest client's p99 below 100 ms, none of its requests refused.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.peers import programs
from bench.peers.stores import ROOT, until
from tests.fabric import floods
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks

CASES: Final = floods.CASES | floods.WORSE
MEGABYTES: Final = 512
PAUSE_S: Final = 0.02
FLOOD: Final = "--flood"
BAR_MS: Final = 100.0
PRINTED_S: Final = 1.0
QUIET_S: Final = 5.0


class Result(NamedTuple):
    said: Counter[str]
    """What the flood heard."""
    honest: Counter[str]
    times_s: list[float]
    quiet_s: list[float]
    """The same before the flood."""
    peak_bytes: int
    status: dict[str, Any]


def status_of(port: int) -> dict[str, Any]:
    """Of the node; empty while it does not answer."""
    return try_status(port) or {}


@contextlib.contextmanager
def node(case: floods.Case, place: Path) -> Iterator[tuple[floods.Spot, subprocess.Popen[bytes]]]:
    """A node with this core, and with the usual budgets of so small a process."""
    port, other = free_blocks(2)
    spot = floods.Spot(port, other + 1, place / "state")
    file = place / "node.toml"
    text = floods.settings([case.core], spot, MEGABYTES, 1, f"flood-{os.getpid()}")
    file.write_text(text.replace(f"{case.core} = 1\n", ""))  # the budget is the core's usual share
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "weft.cli.main", "up", str(file)], stdout=log, stderr=log, cwd=ROOT
        )
    try:
        until(lambda: is_serving(case, spot), f"the {case.core}")
        yield spot, process
    finally:
        programs.end(process)


def is_serving(case: floods.Case, spot: floods.Spot) -> bool:
    try:
        return next(case.use(spot)) == floods.OK
    except (OSError, EOFError, TimeoutError):
        return False


def flood(name: str, spot: floods.Spot, seconds: float) -> None:
    """One flooding client: says what it has heard each second, until the time is over."""
    print("begun=1", flush=True)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            tell(CASES[name].flood(spot), ends_at)


def tell(outcomes: Iterator[str], ends_at: float) -> None:
    """Say what is heard."""
    heard = Counter[str]()
    next_at = time.monotonic() + PRINTED_S
    for outcome in outcomes:
        heard[outcome] += 1
        if time.monotonic() >= min(next_at, ends_at):
            print(*(f"{what}={count}" for what, count in heard.items()), flush=True)
            heard, next_at = Counter(), time.monotonic() + PRINTED_S
        if time.monotonic() >= ends_at:
            return


def measure(name: str, seconds: float, clients: int) -> Result:
    """Flood one core."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as place, node(case, Path(place)) as (spot, process):
        _, quiet = used(case, spot, QUIET_S)
        words = [sys.executable, "-m", "bench.flood", FLOOD, name, str(seconds), *map(str, spot)]
        attackers = [subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(clients)]
        said: Counter[str] = Counter()
        readers = [threading.Thread(target=gather, args=(attacker, said)) for attacker in attackers]
        for reader in readers:
            reader.start()
        until(lambda: said["begun"] >= clients, "the flood")
        honest, times = used(case, spot, seconds)
        for attacker, reader in zip(attackers, readers, strict=True):
            programs.end(attacker)
            reader.join()
        return Result(said, honest, times, quiet, peak(process.pid), status_of(spot.port))


def used(case: floods.Case, spot: floods.Spot, seconds: float) -> tuple[Counter[str], list[float]]:
    """What the honest client heard, and how long each answer took."""
    honest: Counter[str] = Counter()
    times: list[float] = []
    ends_at = time.monotonic() + seconds
    steps = case.use(spot)
    next(steps)
    while time.monotonic() < ends_at:
        began_at = time.perf_counter()
        honest[next(steps)] += 1
        times.append(time.perf_counter() - began_at)
        time.sleep(PAUSE_S)
    return honest, times


def gather(attacker: subprocess.Popen[bytes], said: Counter[str]) -> None:
    """Add up what a flooding client tells."""
    assert attacker.stdout is not None
    for line in attacker.stdout:
        said.update({what: int(count) for what, _, count in (word.rpartition("=") for word in line.decode().split())})


def peak(pid: int) -> int:
    """The most memory that a process has had."""
    said = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(said.partition("VmHWM:")[2].split()[0]) << 10


def at(times_s: list[float], percent: int) -> float:
    """That percentile, in milliseconds."""
    return sorted(times_s)[len(times_s) * percent // 100] * 1e3


def show(name: str, result: Result, seconds: float) -> bool:
    """Print it; whether the bars hold."""
    case = CASES[name]
    told = result.status["memory"]["cores"][case.core]
    p50, p99 = at(result.times_s, 50), at(result.times_s, 99)
    quiet = f"(quiet {at(result.quiet_s, 50):.1f} and {at(result.quiet_s, 99):.1f} ms)"
    load = os.getloadavg()[0]
    print(f"{name}: {seconds:.0f} s, load {load:.1f}")
    print(f"  process  peak {result.peak_bytes >> 20} MiB of {MEGABYTES} MiB")
    print(f"  core     {told['bytes'] / 1e6:.1f} MB of {told['budget_bytes'] / 1e6:.1f} MB")
    parts = {part: facts["refused"] for part, facts in told["parts"].items() if facts["refused"]}
    print(f"  refused  {parts} told as {dict(result.said)}")
    print(f"  honest   {dict(result.honest)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms {quiet}", flush=True)
    is_bounded = result.peak_bytes < MEGABYTES << 20 and told["bytes"] <= told["budget_bytes"]
    return is_bounded and p99 < BAR_MS and set(result.honest) == {floods.OK}


def main() -> int:
    if FLOOD in sys.argv:
        name, seconds, port, broker, state = sys.argv[2:]
        flood(name, floods.Spot(int(port), int(broker), Path(state)), float(seconds))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cores", nargs="*", default=list(CASES), choices=[*CASES, []])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=2)
    chosen = parser.parse_args()
    held = [show(name, measure(name, chosen.seconds, chosen.clients), chosen.seconds) for name in chosen.cores]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
