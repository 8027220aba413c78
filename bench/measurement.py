"""Samples from the kernel's files to numbered bytes, and what a sensor costs at one tick a second.

Peers of the same run: psutil for the meters, the msgpack library for the body, the filters of stdlib's logging for
the chain. The last table lives real seconds, since a meter that runs cold costs more than one in a loop.

    .venv/bin/python -m bench.measurement [seconds]
"""

import asyncio
import logging
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import msgpack
import psutil

from bench.measure import Row as Line
from bench.measure import compare, show
from weft.base.calculated import calculate
from weft.base.effects import Perform, Persist, Tell
from weft.base.now import SECOND, Now
from weft.cores.chains.core import Chains
from weft.cores.chains.filters import Bucket
from weft.cores.chains.messages import BatchPassed, PassBatch
from weft.cores.chains.settings import parse_filters
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import BatchTaken, Measure, Measured, MeasurementSettings, NumberBatch, Reading
from weft.cores.measurement.settings import MetricSpec, parse_metrics
from weft.shell.measuring import Measuring
from weft.shell.meters import Meters
from weft.wire import samples
from weft.wire.samples import Row, SampleBatch, Series

ROWS = 1_000
USUAL = ("CPU", "MEMORY", "DISK", "NETWORK")
SERIES = tuple(Series(f"metric{n % 5}", "CPU", "percent", {"cpu": str(n)}) for n in range(50))
BATCH = SampleBatch(1_795_000_000_000, SERIES, [Row(n % 50, 20 * n, 95_133 + n, 217_439 + 2 * n) for n in range(ROWS)])
BODY = samples.encode(BATCH)
FILTERS: list[dict[str, Any]] = [
    {"name": "a", "kind": "match", "where": {"name": {"prefix": "metric"}}},
    {"name": "b", "kind": "threshold", "above": 0, "place": 1001},
    {
        "name": "c",
        "kind": "rate-limit",
        "count": 1_000_000,
        "per": "1ms",
        "burst": 1_000_000,
        "key": ["name"],
        "place": 1002,
    },
    {"name": "d", "kind": "match", "where": {"labels.cpu": {"ne": "x"}, "value": {"lt": 1000}}, "place": 1003},
]


def specs_of(*details: str, **more: Any) -> tuple[MetricSpec, ...]:
    return tuple(parse_metrics({name.lower(): {"detail": name, "rate": "1s", **more} for name in details})[0])


# Through the core


def through_core(core: Measurement, readings: tuple[Reading, ...], number: int, now: Now) -> int:
    """One answer of the shell: taken, batched, numbered, encoded; returns the bytes of its records."""
    core.command(Measured(readings, number), now)
    size = 0
    for effect in core.effects():
        if isinstance(effect, Tell) and isinstance(effect.event, BatchTaken):
            core.command(NumberBatch(effect.event.batch), now)
    for effect in core.effects():
        if isinstance(effect, Persist):
            size += sum(len(getattr(record, "payload", b"")) for record in effect.records)
    return size


class Sensor:
    """A core with one metric of 1,000 series that is due at every step."""

    def __init__(self, threshold: str = "") -> None:
        more = {"threshold": threshold} if threshold else {}
        self.core = Measurement(MeasurementSettings(metrics=specs_of("CPU", rate="100ms", **more)), bytes(16), 1)
        self.labels = [(("cpu", str(n)),) for n in range(ROWS)]
        self.tick = 0

    def step(self) -> None:
        self.tick += 1
        now = Now(self.tick * SECOND, self.tick * SECOND)
        self.core.wake(now)
        works = [effect.work for effect in self.core.effects() if isinstance(effect, Perform)]
        value = self.tick * 100
        found = tuple([(labels, value, value + 5) for labels in self.labels])
        for work in works:
            assert isinstance(work, Measure)
            through_core(self.core, (Reading("cpu", now.wall // 1_000_000, found),), work.number, now)


def peer_encode() -> bytes:
    """What somebody would do with a general library: a map per sample."""
    return bytes(
        msgpack.packb(
            [
                {
                    "name": SERIES[row.series].config_name,
                    "t": BATCH.t0_ms + row.offset_ms,
                    "v": row.value,
                    "b": row.base,
                }
                for row in BATCH.rows
            ]
        )
    )


def body_rows() -> list[Line]:
    maps = peer_encode()
    return [
        compare("encode a row", lambda: samples.encode(BATCH), peer_encode, ROWS),
        compare("decode a row, checked", lambda: samples.decode(BODY), lambda: msgpack.unpackb(maps), ROWS),
        compare("decode and explode a row", lambda: list(samples.explode(samples.decode(BODY))), None, ROWS),
        Line("bytes of a row", len(BODY) / ROWS, len(maps) / ROWS, "bytes, not ns"),
    ]


# Through the chain


class LoggedSample(logging.LogRecord):
    """A sample as a log record, the way logging filters are used for it."""

    def __init__(self, row: Row) -> None:
        series = SERIES[row.series]
        super().__init__(series.config_name, 20, "", 0, "", None, None)
        self.labels, self.point = series.labels, (BATCH.t0_ms + row.offset_ms, row.value, row.base)
        self.key = (series.config_name, *series.labels.values())
        self.result: float | None = None


class ByName(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.name.startswith("metric")


class ByValue(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.last: dict[Any, Any] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        assert isinstance(record, LoggedSample)
        before, self.last[record.key] = self.last.get(record.key), record.point
        record.result = calculate("percent", before, record.point).result
        return record.result is not None and record.result > 0


class ByRate(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.buckets = {series.config_name: Bucket(1_000_000, 1_000_000, 1_000_000) for series in SERIES}

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(self.buckets[record.name].take(0))


class ByLabel(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        assert isinstance(record, LoggedSample)
        return record.labels["cpu"] != "x" and record.result is not None and record.result < 1_000


def chain_rows() -> list[Line]:
    chains, empty = Chains(parse_filters(FILTERS)[0]), Chains()
    order = PassBatch("out", "weft.metric", BATCH)
    records = [LoggedSample(row) for row in BATCH.rows]  # made before: only the filters are measured
    chain = logging.Filterer()
    for stage in (ByName(), ByValue(), ByRate(), ByLabel()):
        chain.addFilter(stage)

    alike = Chains(parse_filters([{**FILTERS[0], "name": name} for name in "abcd"])[0])
    plain = logging.Filterer()
    for _ in range(4):
        plain.addFilter(ByName())

    def walk(core: Chains) -> int:
        core.command(order, Now(0, 0))
        events = [effect.event for effect in core.effects() if isinstance(effect, Tell)]
        return sum(len(event.batch.rows) for event in events if isinstance(event, BatchPassed))

    def logged(through: logging.Filterer) -> int:
        return sum(bool(through.filter(record)) for record in records)

    return [
        compare("match, threshold, rate-limit, match, a row", lambda: walk(chains), lambda: logged(chain), ROWS),
        compare("four filters by name, a row", lambda: walk(alike), lambda: logged(plain), ROWS),
        compare("an empty chain, a row", lambda: walk(empty), None, ROWS),
    ]


# At the machine


def meter_rows() -> list[Line]:
    meters, usual = Meters(), specs_of(*USUAL)
    by_name = specs_of("PROC_CPU", "PROC_MEM", per="name")
    processes = len(psutil.pids())

    def all_of_psutil() -> None:
        psutil.cpu_times()
        psutil.virtual_memory()
        psutil.disk_io_counters(perdisk=True)
        psutil.net_io_counters(pernic=True)

    def scan_of_psutil() -> None:
        for process in psutil.process_iter(["name", "cpu_times", "memory_info"]):
            _ = process.info

    def repeat(way: Callable[[], object], times: int) -> Callable[[], object]:
        return lambda: [way() for _ in range(times)]

    rows = [
        compare(", ".join(USUAL), repeat(lambda: meters.measure(usual), 50), repeat(all_of_psutil, 50), 50),
        compare(
            f"PROC_CPU, PROC_MEM per name, {processes} processes, a process",
            repeat(lambda: meters.measure(by_name), 3),
            repeat(scan_of_psutil, 3),
            3 * processes,
        ),
    ]
    meters.close()
    return rows


async def live(seconds: float) -> tuple[float, int]:
    """CPU milliseconds per tick and samples numbered of a core that measures this machine at 1 Hz."""
    core = Measurement(MeasurementSettings(metrics=specs_of(*USUAL)), bytes(16), 1)
    loop = asyncio.get_running_loop()

    def turn(order: Any) -> None:
        now = Now(time.monotonic_ns(), time.time_ns())
        if order is None:
            core.wake(now)
        else:
            core.command(order, now)
        for effect in core.effects():
            if isinstance(effect, Perform):
                measuring.measure(effect.work)
            elif isinstance(effect, Tell) and isinstance(effect.event, BatchTaken):
                turn(NumberBatch(effect.event.batch))
        due = core.deadline()
        if due is not None and order is not NumberBatch:
            loop.call_later(max(0.0, (due - time.monotonic_ns()) / SECOND), wake, due)

    def wake(due: int) -> None:
        if core.deadline() == due:
            turn(None)

    measuring = Measuring(lambda _core, order: turn(order))
    before = time.process_time()
    turn(None)
    await asyncio.sleep(seconds)
    return 1e3 * (time.process_time() - before) / seconds, core.counters.numbered


async def live_psutil(seconds: int) -> float:
    before = time.process_time()
    for _ in range(seconds):
        psutil.cpu_times()
        psutil.virtual_memory()
        psutil.disk_io_counters(perdisk=True)
        psutil.net_io_counters(pernic=True)
        await asyncio.sleep(1)
    return 1e3 * (time.process_time() - before) / seconds


def main(seconds: int) -> None:
    show("The body of a batch", body_rows(), "msgpack maps")
    plain, gated = Sensor(), Sensor(threshold=">0")
    show(
        "Through the core: taken, batched, numbered, encoded",
        [
            compare("a sample", plain.step, None, ROWS),
            compare("a sample behind a threshold", gated.step, None, ROWS),
        ],
        "-",
    )
    show("Through the chain, in batches of 1,000", chain_rows(), "logging filters")
    show("Meters, in a loop", meter_rows(), "psutil")
    ours, numbered = asyncio.run(live(seconds))
    peer = asyncio.run(live_psutil(seconds))
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{', '.join(USUAL)} at 1 Hz for {seconds} s: {ours:.2f} ms of CPU a second, {numbered} samples numbered;")
    print(f"psutil's four calls alone: {peer:.2f} ms, {peer / ours:.2f} times ours. This process: {resident:.0f} MB.\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
