"""TSBS's cpu-only shape through the whole road: samples/s, CPU and bytes of each leg, and three of TSBS's questions.

    python -m bench.tsbs [--days 3] [--hosts 100] [--ticks 100] [--rounds 5] [--keep DIR]

100 hosts measure ten metrics each, every 10 s for three days: 25,920,000 samples. Each host is a node of its own
(`bench.tsbs_hosts`), which numbers, journals and syncs, and hands over a record of `--ticks` ticks at a time, as a host does
that was away; `--ticks 1` is what a host sends that is not. One after the other:

*durable*, *drained*: from the first sample that a host orders until every host has heard that the root has synced its last
one, which a parent says twice a second, and until the last one is in a segment. Hosts and root are two processes, and the
root drains beside receiving.
*tables*, *folded*: the job of `weft lake run` in this process, local[2] and 512 MB: from the first segment until the last
sample is in bronze, `silver.samples` and `silver.values`, and until roll-ups, last values and completeness have it.
*joined*: `weft lake compact`, which a driver does by itself: the files of a day that is over become one, sorted; those of
the last batch stay.

Bytes a sample are those of journal, segments (which are bronze, too), `silver.samples` as the batches wrote it and joined,
all tables, and a Parquet file that DuckDB writes of the rows of silver; bar: at most 3 in silver, beyond it 2. Below it stands
which columns weigh how much. The questions (`bench.tsbs_questions`) are asked `weft sql` in this process, DuckDB over
the files of the same table, DuckDB over its own file, and Spark over the same table, in turns; the bench fails if an answer is
not what was measured.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench.fabric import cpu_of, wait_for
from bench.hosts import load
from bench.lakes import Following, Spent, started
from bench.pipeline_traffic import Burst
from bench.tsbs_hosts import BEGAN, METRICS, SAFE, TICK_S, VALUES, Values, measured
from bench.tsbs_questions import Sides, clock_midnight, compare, sides_of, write_plain
from weft.cli.fleet import Member
from weft.lake.layout import Layout
from weft.lake.reader import ROWS_MAX, Source
from weft.pipeline.job import USUAL, SamplesJob
from weft.pipeline.tables import SAMPLES, there
from weft.pipeline.upkeep.log import live_files, opened
from weft.pipeline.versions import paths_of

JOINED: Final = "c"
"""What the names of joined files begin with; those of batches begin with a `b`."""
BAR: Final = 3.0
BEYOND: Final = 2.0
DAY_S: Final = 86_400
LOOK_S: Final = 0.1
SLOWEST: Final = 5_000
"""Samples/s below which a leg counts as stuck."""
PATIENCE_S: Final = 120.0
BATCHES_MIN: Final = 4  # the files of the last batch are never joined
LIGHT: Final = 0.005  # bytes a sample; columns below it are not listed


class Leg(NamedTuple):
    """What one part of the road took."""

    name: str
    seconds: float
    cpu: str
    """CPU seconds per million samples, by process."""


def show(leg: Leg, shape: "Shape") -> None:
    print(f"| {leg.name} | {shape.samples / leg.seconds:,.0f} | {leg.seconds:.1f} | {leg.cpu} |", flush=True)


class Shape(NamedTuple):
    """How much is measured."""

    days: float
    hosts: int
    ticks: int
    """Of a host, in one record."""

    @property
    def length(self) -> int:
        """How often each host measures."""
        return max(1, round(self.days * DAY_S / TICK_S))

    @property
    def samples(self) -> int:
        return self.length * self.hosts * len(METRICS)


class Hosts(Burst):
    """A root, and all hosts as one process."""

    def __init__(self, place: Path, shape: Shape, start: datetime) -> None:
        super().__init__(place, shape.samples)
        self.shape, self.start = shape, start

    def send(self) -> None:
        """Start the hosts; returns when all are linked and the first one sends."""
        words = (self.port, self.place, round(self.start.timestamp() * 1000), self.shape.ticks)
        self.fleet.add(Member("hosts", ("-m", "bench.tsbs_hosts", *map(str, words))))
        until((self.place / BEGAN).exists, PATIENCE_S)


def until(holds: Callable[[], bool], patience_s: float) -> None:
    """Wait until something holds; TimeoutError."""
    ends_at = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{holds} does not hold after {patience_s:.0f} s")
        time.sleep(LOOK_S)


def to_segments(place: Path, shape: Shape, start: datetime) -> float:
    """Send everything into the lake at `place`; returns how many bytes the root's journal wrote."""
    patience = PATIENCE_S + shape.samples / SLOWEST
    with Hosts(place, shape, start) as hosts:
        source = Source(hosts.lake, "samples")
        hosts.send()
        root_before = cpu_of(hosts.fleet, "root")
        began = json.loads((place / BEGAN).read_text())

        def is_drained() -> bool:
            return sum(manifest.rows for manifest in source.manifests({}, source.latest())) >= shape.samples

        until((place / SAFE).exists, patience)
        safe = json.loads((place / SAFE).read_text())
        show(Leg("durable", safe["at"] - began["at"], _cpu(shape, hosts=safe["cpu"] - began["cpu"])), shape)
        until(is_drained, patience)
        seconds, spent = time.monotonic() - began["at"], cpu_of(hosts.fleet, "root") - root_before
        show(Leg("drained", seconds, _cpu(shape, root=spent)), shape)
        return float(wait_for(hosts.port, bool)["journal"]["bytes_written"])


def _cpu(shape: Shape, **seconds: float) -> str:
    return ", ".join(f"{name} {1e6 * spent / shape.samples:.2f}" for name, spent in seconds.items())


def to_tables(spark: SparkSession, lake: Layout, shape: Shape) -> None:
    """Make all tables of the segments. ValueError if a sample is not in them once."""
    following = Following(spark, lake)
    job, end = following.job, following.job.source.latest()
    assert isinstance(job, SamplesJob)
    limits = USUAL._replace(rows=min(ROWS_MAX, shape.samples // BATCHES_MIN))
    with Spent() as spent:
        while (done := job.take(limits, end)) is not None:
            following.batches.append(done)
    made = Counter[str]()
    for done in following.batches:
        made.update({"silver": done.outcome.silver, "values": done.outcome.values})
    if made != {"silver": shape.samples, "values": shape.samples}:
        raise ValueError(f"{shape.samples} samples were measured; the tables have {dict(made)}")
    show(Leg("tables", spent.wall, _cpu(shape, driver=spent.cpu)), shape)
    with Spent() as folded:
        job.fold()
    show(Leg("folded", spent.wall + folded.wall, _cpu(shape, fold=folded.cpu)), shape)


def join(lake: Layout, shape: Shape) -> None:
    """Let the files of each day be joined."""
    with Spent() as spent:
        subprocess.run(
            [sys.executable, "-m", "weft.cli.main", "lake", "compact", "--lake", str(lake.root)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    show(Leg("joined", spent.wall, _cpu(shape, compact=spent.cpu)), shape)


def files_of(lake: Layout, *, joined: bool = False) -> list[str]:
    """The files of `silver.samples`; or only those that were joined."""
    files = paths_of(DeltaTable(lake.table(SAMPLES.layer, SAMPLES.name)).file_uris())
    return [file for file in files if Path(file).name.startswith(JOINED)] if joined else files


def all_tables(lake: Layout) -> int:
    """Bytes of the newest version of every table but bronze, whose files the segments are."""
    tables = [table for table in there(lake) if table.layer != "bronze"]
    return sum(file.size for table in tables if (delta := opened(lake, table)) for file in live_files(delta, table))


def per_row(files: Iterable[str | Path]) -> float:
    """Bytes a row of some Parquet files."""
    sizes = [(Path(file).stat().st_size, pq.read_metadata(file).num_rows) for file in files]
    return float(sum(size for size, _ in sizes) / sum(rows for _, rows in sizes))


def weights(files: Sequence[str]) -> list[tuple[str, float, str]]:
    """By column its bytes a row and its encodings, the heaviest first."""
    sizes, encodings, rows = Counter[str](), dict[str, set[str]](), 0
    for file in files:
        footer = pq.read_metadata(file)
        rows += footer.num_rows
        for group in range(footer.num_row_groups):
            for index in range(footer.num_columns):
                column = footer.row_group(group).column(index)
                sizes[column.path_in_schema] += column.total_compressed_size
                encodings.setdefault(column.path_in_schema, set()).update(column.encodings)
    return [(name, size / rows, ", ".join(sorted(encodings[name]))) for name, size in sizes.most_common()]


def show_bytes(sizes: dict[str, float]) -> None:
    print("\n| bytes a sample | | bar |\n|---|--:|---|")
    for name, each in sizes.items():
        verdict = f"{BAR}, {'met' if each <= BAR else 'missed'}; {BEYOND}, {'met' if each <= BEYOND else 'missed'}"
        print(f"| {name} | {each:.2f} | {verdict if name.startswith(SAMPLES.full_name) else ''} |", flush=True)


def show_weights(title: str, columns: Sequence[tuple[str, float, str]]) -> None:
    print(f"\n| {title}: column | bytes a sample | encodings |\n|---|--:|---|")
    for name, size, encodings in columns:
        if size >= LIGHT:
            print(f"| {name} | {size:.3f} | {encodings} |", flush=True)


def run(place: Path, shape: Shape, rounds: int) -> None:
    """Print everything."""
    print(f"{shape.samples:,} samples of {shape.hosts} hosts, {shape.ticks} ticks a record; {load()}\n")
    print("| leg | samples/s | s | CPU s/million |\n|---|--:|--:|---|", flush=True)
    start = clock_midnight(math.ceil(shape.days))
    values: Values = measured(shape.hosts, shape.length)
    place.mkdir(parents=True, exist_ok=True)
    np.save(place / VALUES, values)
    journal = to_segments(place, shape, start)
    lake = Layout(place / "lake")
    spark = started(place)
    to_tables(spark, lake, shape)
    loose = files_of(lake)
    sizes = {
        "journal": journal / shape.samples,
        "segments": per_row(lake.root.glob("drain/**/*.parquet")),
        "silver.samples, as the batches wrote it": per_row(loose),
    }
    columns = weights(loose)
    join(lake, shape)
    joined, files, plain = files_of(lake, joined=True), files_of(lake), place / "plain.parquet"
    write_plain(files, plain)
    sizes |= {
        "silver.samples, joined": per_row(joined),
        "all tables but bronze, joined": all_tables(lake) / shape.samples,
        "a Parquet file that DuckDB wrote of silver.samples": per_row([plain]),
    }
    show_bytes(sizes)
    show_weights("silver.samples as the batches wrote it", columns)
    show_weights("silver.samples joined", weights(joined))
    print()
    compare(Sides(sides_of(lake.root, files, plain, spark), values, start), rounds)
    spark.stop()
    print(f"\n{load()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, default=None)
    chosen = parser.parse_args()
    shape = Shape(chosen.days, chosen.hosts, chosen.ticks)
    with tempfile.TemporaryDirectory() as directory:
        run(chosen.keep or Path(directory), shape, chosen.rounds)


if __name__ == "__main__":
    main()
