"""The hosts of TSBS's cpu-only shape: what they measure, and a process in which each of them is a node of its own.

Each host has ten metrics of its CPU, every 10 s. A metric is a random walk: it begins anywhere between 0 and 100, each
step is drawn from a normal distribution of mean 0 and deviation 1, it never leaves 0 to 100, and a sample is its whole
part. The same seed makes the same samples.

A host is a node here, because a node is whoever measures: its own UUID, numbers and journal. What is measured is one of
ten series, which all hosts share. The process sends what the hosts have measured as fast as their links take it, `TICKS`
ticks a record, host after host. Every record is synced alone in the journal of its host.

    python -m bench.tsbs_hosts ROOT_PORT PLACE START_MS TICKS
"""

import asyncio
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.cores.carrier.core import Carrier
from weft.cores.measurement.messages import NumberBatch, SampleBatch, Series
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process
from weft.shell.serve import raise_file_limit
from weft.wire.samples import Row

METRICS: Final = (
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
)
SERIES: Final = tuple(Series(name, "CPU", "basic", {}) for name in METRICS)
TICK_S: Final = 10
GREATEST: Final = 100.0
SEED: Final = 20_160_101
FIRST_PORT: Final = 17_000
SPOOL_MAX: Final = 64  # records of one host in flight; a parent says twice a second which of them are safe
VALUES: Final = "values.npy"
BEGAN: Final = "began.json"
SAFE: Final = "safe.json"

Values = np.ndarray[Any, np.dtype[np.uint8]]
"""What was measured, by tick, host and metric."""


def measured(hosts: int, ticks: int) -> Values:
    """The samples of all hosts."""
    chance = np.random.default_rng(SEED)
    values = np.empty((ticks, hosts, len(METRICS)), np.uint8)
    state = chance.uniform(0.0, GREATEST, values.shape[1:])
    for tick in range(ticks):
        values[tick] = state
        state = np.clip(state + chance.normal(0.0, 1.0, state.shape), 0.0, GREATEST)
    return values


def name_of(host: int) -> str:
    return f"host_{host}"


def batch_of(ticks: Sequence[Sequence[int]], t0_ms: int) -> SampleBatch:
    """The samples of a host, tick after tick."""
    step = TICK_S * 1000
    rows = [Row(series, n * step, value) for n, tick in enumerate(ticks) for series, value in enumerate(tick)]
    return SampleBatch(t0_ms, SERIES, rows)


def batches(values: Values, start_ms: int, ticks: int) -> Iterator[tuple[int, SampleBatch]]:
    """Everything, so many ticks a batch: one of each host in turn, each behind the number of its host."""
    for first in range(0, len(values), ticks):
        part = values[first : first + ticks]
        for host in range(part.shape[1]):
            yield host, batch_of(part[:, host].tolist(), start_ms + first * TICK_S * 1000)


def started(hosts: int, root: int, place: Path) -> list[Process]:
    """A node of each host."""
    ports = free_blocks(hosts, FIRST_PORT)
    nodes = [
        {
            "name": name_of(host),
            "parent": f"127.0.0.1:{root}",
            "port": port,
            "state": str(place / name_of(host)),
            "beacons": False,
        }
        for host, port in enumerate(ports)
    ]
    return [Process(settings_of({"node": node, "metric": {}})) for node in nodes]


def carrier_of(process: Process) -> Carrier:
    carrier = process.node.cores["carrier"]
    assert isinstance(carrier, Carrier)
    return carrier


def is_safe(carrier: Carrier, records: int) -> bool:
    """Whether the parent has said that everything, and at least so many records, is durable at the root."""
    return carrier.counters.safe >= records and not carrier.counters.spool_records


def note(file: Path) -> None:
    """Write down the instant and the CPU time of this process so far."""
    fresh = file.with_suffix(".tmp")
    fresh.write_text(json.dumps({"at": time.monotonic(), "cpu": sum(os.times()[:2])}))
    fresh.rename(file)


async def drive(root: int, place: Path, start_ms: int, ticks: int) -> None:
    """Send everything; then idle until stopped."""
    values: Values = np.load(place / VALUES, mmap_mode="r")
    processes = started(values.shape[1], root, place)
    serving = [asyncio.create_task(process.run()) for process in processes]
    carriers = [carrier_of(process) for process in processes]
    while any(carrier.state.name != "OPEN" for carrier in carriers):  # noqa: ASYNC110  # no event says it
        await asyncio.sleep(0.01)
    note(place / BEGAN)
    for host, batch in batches(values, start_ms, ticks):
        while carriers[host].counters.spool_records >= SPOOL_MAX:  # noqa: ASYNC110  # no event says it
            await asyncio.sleep(0.001)
        processes[host].runner.order("measurement", NumberBatch(batch))
        await asyncio.sleep(0)
    records = math.ceil(len(values) / ticks)
    while not all(is_safe(carrier, records) for carrier in carriers):  # noqa: ASYNC110  # no event says it
        await asyncio.sleep(0.01)
    note(place / SAFE)
    await asyncio.gather(*serving)


if __name__ == "__main__":
    raise_file_limit()
    root_port, directory, *numbers = sys.argv[1:]
    asyncio.run(drive(int(root_port), Path(directory), *(int(number) for number in numbers)))
