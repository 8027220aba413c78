"""A root that drains and a sensor that sends, as processes on real sockets: where the benches of the pipeline get rows.

The sensor numbers batches as fast as its link takes them, or so many samples a second. Stamps of a paced sensor are
those of the clock: a sample's `at` is when its tick was, and a batch is handed over when its last tick is over.

    python -m bench.pipeline_traffic ROOT_PORT OWN_PORT STATE SAMPLES ROWS_A_BATCH SAMPLES_A_SECOND
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from bench.fabric import wait_for
from bench.lakes import KINDS
from weft.cli.fleet import Fleet, Member
from weft.cores.carrier.core import Carrier
from weft.cores.measurement.messages import NumberBatch, SampleBatch, Series
from weft.lake.layout import Layout
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process
from weft.wire.samples import Row

FIRST_PORT: Final = 15_600
SERIES: Final = 50
SPOOL_MAX: Final = 400  # batches in flight: the sensor waits for the link, not the link for the sensor
LEAD_S: Final = 3_600  # a burst's stamps lie behind the clock, so that none is of the future
TICK_MS: Final = 20
DEFINITIONS: Final = tuple(Series(f"m{n}", "CPU", KINDS[n % len(KINDS)], {"cpu": str(n % 8)}) for n in range(SERIES))
ROOT: Final = """\
[node]
name = "root"
level = "root"
port = {port}
state = "{place}/root"
runs = ["measurement", "chains", "carrier", "topology", "drain"]
beacons = false

[metric]

[lake]
path = "{place}/lake"
"""


class Burst:
    """Use as `with Burst(place, rows) as burst:`; the root runs, and `seconds_until` lets the sensor send."""

    def __init__(self, place: Path, rows: int, rate: int = 0, batch: int = 1_000) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place, self.rows, self.rate, self.batch = place, -(-rows // batch) * batch, rate, batch
        self.lake = Layout(place / "lake")
        self.fleet = Fleet(place)
        self.port, self._sensor = free_blocks(2, FIRST_PORT)

    def __enter__(self) -> Self:
        (self.place / "root.toml").write_text(ROOT.format(port=self.port, place=self.place))
        self.fleet.add(Member("root", ("-m", "weft.cli.main", "up", str(self.place / "root.toml")), self.port))
        wait_for(self.port, bool)
        while not self.lake.lake_json.exists():
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self.fleet.stop_all()

    def send(self) -> None:
        """Start the sensor; returns when its first batch is on its way."""
        words = (self.port, self._sensor, self.place / "sensor", self.rows, self.batch, self.rate)
        self.fleet.add(Member("sensor", ("-m", "bench.pipeline_traffic", *(str(word) for word in words)), self._sensor))
        wait_for(self._sensor, lambda told: told["cores"]["carrier"]["sent"] > 0)

    def seconds_until(self, is_over: Callable[[], None]) -> float:
        """How long it is from the first batch sent until `is_over` returns."""
        self.send()
        began = time.monotonic()
        is_over()
        return time.monotonic() - began


def rows_of(first: int, count: int) -> list[Row]:
    """The rows of a batch whose first is the sensor's row `first`, from 0: all series in turn, tick after tick."""
    rows = []
    for n in range(count):
        kind, tick = KINDS[n % SERIES % len(KINDS)], (first + n) // SERIES
        after = n // SERIES * TICK_MS
        if kind == "basic":
            rows.append(Row(n % SERIES, after, (tick * 37 + n) % 1000 / 10))
        else:
            rows.append(Row(n % SERIES, after, tick * 1000 + n, tick * 2000 if kind == "percent" else None))
    return rows


async def drive(root: int, port: int, state: str, wish: tuple[int, int, int]) -> None:
    """Send so many samples in batches of so many, so many a second (0: as fast as may be); then idle until stopped."""
    samples, size, rate = wish
    node = {"name": "sensor", "parent": f"127.0.0.1:{root}", "port": port, "state": state, "beacons": False}
    process = Process(settings_of({"node": node, "metric": {}}))
    serving = asyncio.create_task(process.run())
    carrier = process.node.cores["carrier"]
    assert isinstance(carrier, Carrier)
    span_ms = size // SERIES * TICK_MS
    began, start_ms = time.monotonic(), time.time_ns() // 1_000_000 - LEAD_S * 1000
    made = 0
    while made < samples:
        await asyncio.sleep(0)
        due = began + (made + size) / rate if rate else 0.0
        if carrier.counters.spool_records >= SPOOL_MAX or time.monotonic() < due:
            await asyncio.sleep(0.001)
            continue
        at = time.time_ns() // 1_000_000 - span_ms if rate else start_ms + made // size * span_ms
        process.runner.order("measurement", NumberBatch(SampleBatch(at, DEFINITIONS, rows_of(made, size))))
        made += size
    await serving


if __name__ == "__main__":
    root_port, own_port, directory, *numbers = sys.argv[1:]
    total, rows, pace = (int(number) for number in numbers)
    asyncio.run(drive(int(root_port), int(own_port), directory, (total, rows, pace)))
