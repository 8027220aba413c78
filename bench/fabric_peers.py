"""Samples from a sensor until durable at the other end, beside brokers that take the same bytes.

    scripts/bench-install
    .venv/bin/python -m bench.fabric_peers [--samples 1000000] [--rounds 3]

Ours is `bench.fabric`: a sensor and its root, both with a journal that is synced before anything is said. Each peer's sender
encodes the same batches, one to a message, and holds none of them on a disk of its own: JetStream through nats-py, with ids, as it
comes and with `sync_interval: always`; mosquitto through paho with QoS 1; Zenoh to a program that appends and syncs all that
waits, and tells nobody. Of 100 rows a batch there are a quarter as many samples, and ours also numbers ten batches in a turn.
CPU: seconds per million samples.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from bench import fabric
from bench.peers import brokers, zenohload
from bench.peers.programs import demand, demand_modules, end_in_order
from bench.peers.rounds import Goal, show, take_turns
from bench.sensor import cpu_seconds
from weft.shell.blocks import free_blocks
from weft.wire.samples import encode

WEFT, TEN, ZENOH = "weft", "weft, ten a turn", "Zenoh, appended"
JETSTREAM, SYNCED, QOS = "JetStream", "JetStream, sync always", "mosquitto QoS 1"
ROWS: Final = {1_000: 1_500_000, 100: 500_000}
"""By rows of a batch: samples a second that are asked for on a quiet machine of two cores."""


class Broker(NamedTuple):
    """One that runs: how it is published to, where, and its process."""

    publish: Callable[[int, int, brokers.Make], float]
    port: int
    pid: int


class Ways:
    """The ways of one size of batch; what each cost at its sender and at the other end."""

    def __init__(self, place: Path, samples: int, rows: int) -> None:
        self.place, self.samples, self.rows = place, samples, rows
        self.cpu: dict[str, list[tuple[float, float]]] = {}
        batch = fabric.batch_of(rows)
        self._make: brokers.Make = lambda: encode(batch)

    def weft(self, name: str, together: int) -> float:
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            seen = fabric.flow(Path(folder), self.samples, self.rows, together=together)
        self._note(name, seen.sensor, seen.root)
        return seen.rate

    def broker(self, name: str, broker: Broker) -> float:
        own, other = time.process_time(), cpu_seconds(broker.pid)
        rate = broker.publish(broker.port, self.samples // self.rows, self._make)
        million = self.samples / 1e6
        self._note(name, (time.process_time() - own) / million, (cpu_seconds(broker.pid) - other) / million)
        return rate * self.rows

    def zenoh(self) -> float:
        [port] = free_blocks(1, 34_500)
        count = self.samples // self.rows
        words = ["-m", "bench.peers.zenohload", str(port), str(count), str(self.place / "zenoh")]
        with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as end:
            try:
                assert end.stdout is not None
                assert end.stdout.readline() == "ready\n"
                began, own = send_by_zenoh(port, count, self._make)
                ended, other = map(float, end.stdout.readline().split())
            finally:
                end.kill()
        self._note(ZENOH, own / self.samples * 1e6, other / self.samples * 1e6)
        return self.samples / (ended - began)

    def _note(self, name: str, sender: float, end: float) -> None:
        self.cpu.setdefault(name, []).append((sender, end))


def send_by_zenoh(port: int, count: int, make: brokers.Make) -> tuple[float, float]:
    """Publish so many; when that began, and the CPU seconds of it."""
    with zenohload.session(connect=[f"tcp/127.0.0.1:{port}"]) as session:
        import zenoh

        publisher = session.declare_publisher(zenohload.KEY, congestion_control=zenoh.CongestionControl.BLOCK)
        while not publisher.matching_status.matching:
            time.sleep(0.01)
        began, spent = time.monotonic(), time.process_time()
        for _ in range(count):
            publisher.put(make())
        return began, time.process_time() - spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    end_in_order()
    demand("nats-server", "mosquitto")
    demand_modules("nats", "paho.mqtt")
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = free_blocks(3, 34_600)
        pids = (
            stack.enter_context(brokers.nats(place / "nats", ports[0])),
            stack.enter_context(brokers.nats(place / "synced", ports[1], is_synced=True)),
            stack.enter_context(brokers.mosquitto(place / "mosquitto", ports[2])),
        )
        publish = (brokers.to_jetstream, brokers.to_jetstream, brokers.to_mosquitto)
        running = dict(zip((JETSTREAM, SYNCED, QOS), map(Broker, publish, ports, pids), strict=True))
        for rows, asked in ROWS.items():
            compare(Ways(place, options.samples if rows == max(ROWS) else options.samples // 4, rows), running, options)
            print(f"asked of weft on a quiet machine: {asked:,} samples/s\n")


def compare(made: Ways, running: dict[str, Broker], options: argparse.Namespace) -> None:
    ways: dict[str, Callable[[], float]] = {WEFT: partial(made.weft, WEFT, 1)}
    if made.rows < max(ROWS):
        ways[TEN] = partial(made.weft, TEN, 10)
    ways |= {name: partial(made.broker, name, broker) for name, broker in running.items()}
    if zenohload.is_there():
        ways[ZENOH] = made.zenoh
    figures = take_turns(ways, options.rounds)
    goals = [Goal(WEFT, peer, 1.0) for peer in figures if peer not in (WEFT, TEN)]
    show(f"{made.rows:,} rows a batch", figures, "samples/s", "", goals)
    for name, spent in made.cpu.items():
        sender, end = (statistics.median(one) for one in zip(*spent, strict=True))
        print(f"{name}: CPU {sender:.2f} s at the sender, {end:.2f} s at the other end")


if __name__ == "__main__":
    main()
