"""Samples per second from a sensor's batch to durable at the root, over real sockets, journals and syncs.

Two processes, each on one core: a sensor that numbers batches as fast as its link takes them, and a root without a
drain. Each batch is a turn of the sensor, with a sync of its own; or a tick of many metrics has filled ten of them, which
share one. Prints samples/s, CPU seconds of each per million samples, and bytes on disk and on the wire per sample.

    .venv/bin/python bench/fabric.py [samples]
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from weft.base.errors import UserError
from weft.base.keys import Binding
from weft.cli.asking import status_of
from weft.cli.fleet import Fleet, Member
from weft.cores.carrier.core import Carrier
from weft.cores.measurement.messages import NumberBatch, SampleBatch, Series
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.identity import begin_start
from weft.shell.keymaking import BEACON_KEY_BYTES, make_keys
from weft.shell.keys import Known, save_known
from weft.shell.process import Process
from weft.wire.samples import Row, encode

SERIES = tuple(Series(f"metric_{n}", "CPU", "percent", {"cpu": f"cpu{n}"}) for n in range(20))
SPOOL_MAX = 400  # batches in flight: the sensor waits for the link, not the link for the sensor


def main(samples: int) -> None:
    print(
        f"{'rows per batch':>14} {'batches a turn':>14} {'samples/s':>12} {'sensor CPU':>11} {'root CPU':>9}"
        f" {'journal B':>10} {'wire B':>7}"
    )
    for rows, together in ((1_000, 1), (100, 1), (100, 10)):
        with tempfile.TemporaryDirectory() as place:
            measure(Path(place), samples if rows * together == 1_000 else samples // 4, rows, together=together)


class Seen(NamedTuple):
    """What a run came to: samples a second, CPU seconds per million at both ends, bytes per sample."""

    rate: float
    sensor: float
    root: float
    journal: float
    wire: float


def batch_of(rows: int) -> SampleBatch:
    return SampleBatch(1_795_000_000_000, SERIES, [row(n) for n in range(rows)])


def measure(place: Path, samples: int, rows: int, *, together: int = 1, closed: bool = False) -> float:
    """Print a line; samples per second; `together`: batches of one turn; `closed`: both have keys."""
    seen = flow(place, samples, rows, together=together, closed=closed)
    print(
        f"{rows:>14} {together:>14} {seen.rate:>12,.0f} {seen.sensor:>9.2f} s"
        f" {seen.root:>7.2f} s {seen.journal:>10.1f} {seen.wire:>7.1f}"
    )
    return seen.rate


def flow(place: Path, samples: int, rows: int, *, together: int = 1, closed: bool = False) -> Seen:
    """So many samples from a sensor until durable at its root."""
    root, sensor = free_blocks(2, 33_000)
    if closed:
        _enrol(place, {"root": root, "sensor": sensor})
    runs = ("measurement", "chains", "carrier", "topology")
    fleet = Fleet(place)
    text = f"[node]\nname='root'\nlevel='root'\nport={root}\nstate='{place}/root'\nruns={list(runs)}\nbeacons=false\n[metric]\n"
    (place / "root.toml").write_text(text)
    words = (root, sensor, place / "sensor", samples, rows, together)
    driver = (str(Path(__file__)), "sensor", *map(str, words))
    try:
        fleet.add(Member("root", ("-m", "weft.cli.main", "up", str(place / "root.toml")), root))
        wait_for(root, bool)
        fleet.add(Member("sensor", driver, sensor))
        wait_for(sensor, lambda told: told["cores"]["carrier"]["sent"] > 0)
        before = {name: cpu_of(fleet, name) for name in ("root", "sensor")}
        seconds = wait_for_file(place / "took")
        spent = {name: cpu_of(fleet, name) - before[name] for name in before}
        told = status_of(root)
        assert told["cores"]["carrier"]["accepted"] * rows >= samples
        million = samples / 1e6
        return Seen(
            samples / seconds,
            spent["sensor"] / million,
            spent["root"] / million,
            told["journal"]["bytes_written"] / samples,
            len(encode(batch_of(rows))) / rows,
        )
    finally:
        fleet.stop_all()


def _enrol(place: Path, ports: dict[str, int]) -> None:
    """Let both have keys, and know whose are whose, as if they had been invited."""
    bindings, places = {}, {}
    for name, port in ports.items():
        uuid = begin_start(place / name, name, time.time_ns()).node
        role = "collector" if name == "root" else "sensor"
        bindings[uuid] = Binding(curve=(make_keys(place / name).public,), name=name, roles=(role,), host="127.0.0.1")
        places[f"127.0.0.1:{port}"] = uuid
    known = Known(bindings=bindings, places=places, beacon_key=os.urandom(BEACON_KEY_BYTES).hex())
    for name in ports:
        save_known(place / name, known)


def wait_for(port: int, holds: Any) -> dict[str, Any]:
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at:
        try:
            told = status_of(port)
        except UserError:
            time.sleep(0.02)
            continue
        if holds(told):
            return told
        time.sleep(0.02)
    raise TimeoutError(port)


def wait_for_file(file: Path) -> float:
    """The number in it, once it is there: asking the nodes meanwhile would cost them a tenth of a core."""
    ends_at = time.monotonic() + 120
    while not file.exists():
        if time.monotonic() > ends_at:
            raise TimeoutError(file)
        time.sleep(0.02)
    return float(file.read_text())


def cpu_of(fleet: Fleet, name: str) -> float:
    process = next(member.process for member in fleet.members if member.name == name)
    assert process is not None
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def row(number: int) -> Row:
    return Row(number % len(SERIES), number, 1_000_000 + number * 17, 2_000_000 + number * 100)


class Load(NamedTuple):
    """What a sensor numbers: batches of `rows` samples, so many together in one turn."""

    samples: int
    rows: int
    together: int


async def drive(root: int, port: int, state: str, load: Load) -> None:
    settings = settings_of(
        {
            "node": {"name": "sensor", "parent": f"127.0.0.1:{root}", "port": port, "state": state, "beacons": False},
            "metric": {},
        }
    )
    process = Process(settings)
    serving = asyncio.create_task(process.run())
    batch = batch_of(load.rows)
    carrier = process.node.cores["carrier"]
    assert isinstance(carrier, Carrier)
    made, began = 0, 0.0
    while made < load.samples or carrier.counters.spool_records:
        await asyncio.sleep(0)
        if serving.done():
            raise RuntimeError(f"the sensor ended: {serving.result()}")
        if not began and carrier.counters.sent:
            began = time.monotonic()
        if made < load.samples and carrier.counters.spool_records < SPOOL_MAX:
            for _ in range(load.together):
                process.node.command("measurement", NumberBatch(batch), process.clock.now())
            process.runner.work()
            made += load.rows * load.together
        else:
            await asyncio.sleep(0.001)
    took = Path(state).with_name("took")
    took.with_suffix(".new").write_text(str(time.monotonic() - began))
    took.with_suffix(".new").rename(took)
    await serving


if __name__ == "__main__":
    if sys.argv[1:2] == ["sensor"]:
        root_port, own_port, directory, *numbers = sys.argv[2:]
        asyncio.run(drive(int(root_port), int(own_port), directory, Load(*map(int, numbers))))
    else:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # what it has started ends, too
        main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
