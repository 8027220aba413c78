"""What observing costs a busy node (OBS-009): flight recorder, histograms, log lines, health, metrics; against all of it off.

Two whole nodes, a sensor and a root, in one process and in virtual time: links and disks are twins in memory, so every
slice does the same turns, and nothing but Python's own time counts (a real disk and real sockets only make the share
smaller). In a slice the sensor takes batch after batch, and each travels until it is safe at the root. Slices with
observing and without take turns; the median of their CPU times is compared. What a scrape costs is added for one each 15 s.

    .venv/bin/python -m bench.observe [pairs of slices [rows a batch]]
"""

import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.shell.world import Host, World
from weft.cores.carrier.core import Carrier
from weft.shell.metrics import exposition

BATCHES: Final = 200  # of a slice
EVERY_S: Final = 0.05  # of virtual time between two batches
SCRAPE_S: Final = 15.0
GOAL: Final = 0.02


class Nothing:
    """Takes every call, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return self if name.endswith(("seconds", "messages", "records")) else _nothing


def _nothing(*_: object, **__: object) -> None:
    pass


class Switch:
    """Observing of one node, on or off."""

    def __init__(self, host: Host) -> None:
        self._process = process = host.up
        runner, telemetry = process.runner, process.telemetry
        self._on: tuple[Any, ...] = (runner.flight, runner.timings, process._note_event, telemetry.look)
        self._off: tuple[Any, ...] = (Nothing(), Nothing(), process.watch.hear, _nothing)

    def turn(self, *, on: bool) -> None:
        runner, telemetry = self._process.runner, self._process.telemetry
        runner.flight, runner.timings, runner.on_tell, look = self._on if on else self._off
        telemetry.look = look  # type: ignore[method-assign]  # what is measured is without it

    def scrape(self) -> float:
        """Seconds of CPU for what Prometheus asks."""
        began = time.process_time()
        exposition(self._process.telemetry.status())
        return time.process_time() - began


def main(pairs: int, rows: int) -> None:
    """Measure, and print the share."""
    costs: tuple[list[float], list[float]] = ([], [])
    scrapes: list[float] = []
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()):
        world = World(Path(place))
        root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")
        world.run(_play(world, (root, sensor), (pairs, rows), costs, scrapes))
    with_it, without = (median(each) for each in costs)
    per_batch = 1e6 / BATCHES
    turns = (with_it - without) / without
    scrape = median(scrapes)
    print(f"{rows} rows a batch, {pairs} pairs of slices of {BATCHES} batches, load {os.getloadavg()[0]:.1f}")
    print(
        f"CPU per batch, both nodes: observed {with_it * per_batch:,.0f} us, not observed {without * per_batch:,.0f} us"
    )
    print(f"a scrape of a node: {scrape * 1e3:.1f} ms, {scrape / SCRAPE_S:.2%} of a core")
    share = turns + scrape / SCRAPE_S
    print(f"observing costs {share:.1%}, goal {GOAL:.0%}: {'met' if share <= GOAL else 'missed'}")


async def _play(
    world: World,
    hosts: tuple[Host, Host],
    size: tuple[int, int],
    costs: tuple[list[float], list[float]],
    scrapes: list[float],
) -> None:
    pairs, rows = size
    for host in hosts:
        host.start()
    await world.pass_time(3)
    switches = [Switch(host) for host in hosts]
    await _slice(world, hosts[1], rows)
    for number in range(pairs):
        for is_on in (True, False) if number % 2 else (False, True):
            for switch in switches:
                switch.turn(on=is_on)
            costs[not is_on].append(await _slice(world, hosts[1], rows))
        scrapes += [switch.scrape() for switch in switches]


async def _slice(world: World, sensor: Host, rows: int) -> float:
    carrier = sensor.up.node.cores["carrier"]
    assert isinstance(carrier, Carrier)
    began = time.process_time()
    for _ in range(BATCHES):
        sensor.take(rows)
        await world.pass_time(EVERY_S)
    await world.until(lambda: carrier.counters.spool_records == 0)
    return time.process_time() - began


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 30, int(words[1]) if words[1:] else 100)
