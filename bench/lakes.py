"""What the benches of the pipeline share: lakes of steady traffic, drivers over them, and what these cost.

*Traffic* is that of a fleet: nodes take turns, each with batches of samples of its own series, numbered without holes,
one after the other in time. *Following* runs a job in this process as `weft lake run` does, without its display. *Spent*
is wall clock and CPU time of this process, its JVM and their workers.
"""

import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import psutil
from pyspark.sql import DataFrame, SparkSession

from weft.base.records import StreamRecord
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR
from weft.lake.segments import Place, Tip, find_tip, open_lake, write_segment
from weft.pipeline.job import Done, Job, JobOptions, SamplesJob
from weft.pipeline.runner import POLL_S, TURN_S
from weft.pipeline.session import Options, session
from weft.wire import samples

DRAIN: Final = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
SEGMENT_ROWS: Final = 100_000
ERA: Final = 1_795_000_000_000_000
START_MS: Final = 1_795_046_400_000  # 2026-11-19, midnight
KINDS: Final = ("percent", "basic", "rate", "basic")
CHANCE: Final = 7
HEAP_MB: Final = 512
NO_FOLDS: Final = JobOptions(gold_every_s=float("inf"))

Body = tuple[samples.Series, ...]


class Traffic(NamedTuple):
    """What a fleet measures: `nodes` times `series`, each so many times a second, in batches of `rows`."""

    nodes: int = 20
    series: int = 50
    hertz: float = 50.0
    rows: int = 500
    first_node: int = 1
    start_ms: int = START_MS

    @property
    def span_ms(self) -> float:
        """How long a batch of one node lasts."""
        return 1000 * self.rows / (self.series * self.hertz)

    def definitions(self) -> Body:
        return tuple(
            samples.Series(f"m{n}", "CPU", KINDS[n % len(KINDS)], {"cpu": str(n % 8)}) for n in range(self.series)
        )

    def batches(self, first: int, count: int) -> Iterator[tuple[int, StreamRecord]]:
        """Batches `first` and on, each behind its number as lsn; the same numbers give the same batches."""
        chance, definitions = random.Random(CHANCE + first), self.definitions()
        for number in range(first, first + count):
            yield number + 1, self._batch(number, definitions, chance)

    def _batch(self, number: int, definitions: Body, chance: random.Random) -> StreamRecord:
        turn, node = number // self.nodes, number % self.nodes + self.first_node
        began = self.start_ms + turn * self.span_ms
        ticks = turn * self.rows // self.series
        rows = [
            samples.Row(
                i % self.series,
                round(i // self.series * 1000 / self.hertz),
                *_measured(KINDS[i % self.series % len(KINDS)], ticks + i // self.series, chance),
            )
            for i in range(self.rows)
        ]
        body = samples.encode(samples.SampleBatch(round(began), definitions, rows))
        at, received = round(began) * 1_000_000, round(began + self.span_ms) * 1_000_000
        first = 1 + turn * self.rows
        more = {"n": self.rows}
        return StreamRecord(1, node.to_bytes(16, "big"), ERA, first, at, received, "weft.metric", body, more)


def _measured(kind: str, tick: int, chance: random.Random) -> tuple[Any, ...]:
    """Value and base: counters rise, everything else is somewhere."""
    if kind == "basic":
        return (chance.random() * 100,)
    return (tick * 1000 + chance.randrange(900), tick * 2000) if kind == "percent" else (tick * 500,)


class Filling:
    """A drain that a fleet's traffic is written into, segment by segment."""

    def __init__(self, lake: Layout, traffic: Traffic, drain: str = DRAIN) -> None:
        self.lake, self.traffic, self.drain = lake, traffic, drain
        self._done = 0
        self._tip: Tip = find_tip(lake, "samples", drain)
        self._files = LocalFiles()
        open_lake(lake, "ab" * 16, 1)

    def write(self, rows: int, segment_rows: int = SEGMENT_ROWS) -> int:
        """About so many rows more, in segments of so many; returns how many they are."""
        batches = max(1, segment_rows // self.traffic.rows)
        written = 0
        while written < rows:
            written += self.segment(self.traffic.batches(self._done, batches))
            self._done += batches
        return written

    def segment(self, entries: Iterator[tuple[int, StreamRecord]]) -> int:
        """The next segment, of these records; returns its rows."""
        place = Place("samples", self.drain, self._tip.number + 1, self._tip.prior or NO_PRIOR)
        link = write_segment(self.lake, place, entries, self._files)
        self._tip = self._tip.after(link)
        return link.manifest.rows


def twin(lake: Layout, root: Path) -> Layout:
    """A lake without tables over the same segments."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / "drain").symlink_to(lake.root / "drain")
    made = Layout(root)
    open_lake(made, "ab" * 16, 1)
    return made


def started(home: Path, cores: int = 2, heap_mb: int = HEAP_MB) -> SparkSession:
    """A session as `weft lake run` has it."""
    return session(Options(master=f"local[{cores}]", heap_mb=heap_mb, state=home, log=home / "jvm.log"))


def stream_of(spark: SparkSession, lake: Layout) -> DataFrame:
    return spark.readStream.format("weft").options(lake=str(lake.root), stream="samples").load()


class Following:
    """A job of samples in this process; `done` is told of each batch."""

    def __init__(self, spark: SparkSession, lake: Layout, make: Callable[..., Job] = SamplesJob) -> None:
        self.spark, self.lake = spark, lake
        self.job = make(lake, spark, 1, NO_FOLDS)
        self.batches: list[Done] = []

    @property
    def rows(self) -> int:
        return sum(done.outcome.rows for done in self.batches)

    def drain(self) -> list[Done]:
        """Take everything that is there now; the batches that this took."""
        before, end = len(self.batches), self.job.source.latest()
        while (done := self.job.take(until=end)) is not None:
            self.batches.append(done)
        return self.batches[before:]

    def until(self, rows: int, patience_s: float) -> None:
        """Run as `weft lake run` does until so many rows are in the tables; TimeoutError."""
        ends_at = time.monotonic() + patience_s
        while self.rows < rows:
            began = time.monotonic()
            if began > ends_at:
                raise TimeoutError(f"{self.rows} rows of {rows} after {patience_s} s")
            if (done := self.job.take()) is not None:
                self.batches.append(done)
            time.sleep(max(0.0, (TURN_S if done else POLL_S) - (time.monotonic() - began)))


class Spent:
    """Use as `with Spent() as spent:`; then `wall` and `cpu` are seconds, of this process and all below it."""

    wall = cpu = 0.0

    def __enter__(self) -> Self:
        self._began, self._cpu = time.perf_counter(), cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._began, cpu_seconds() - self._cpu


def cpu_seconds(pid: int | None = None) -> float:
    """CPU time of a process, this one if none is named, and of all that it has started, so far."""
    return sum(_cpu_of(process) for process in family(pid))


def _cpu_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def family(pid: int | None = None) -> list[psutil.Process]:
    """A process, this one if none is named, and all that it has started."""
    me = psutil.Process(pid)
    return [me, *me.children(recursive=True)]


def memory_mb(processes: Sequence[psutil.Process]) -> dict[str, float]:
    """Resident memory in MiB by kind of process: `java`, `python` (workers included)."""
    found: dict[str, float] = {}
    for process in processes:
        try:
            kind = "java" if "java" in process.name() else "python"
            found[kind] = found.get(kind, 0.0) + process.memory_info().rss / (1 << 20)
        except psutil.NoSuchProcess:
            continue
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie; not a number of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
