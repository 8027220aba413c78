"""What the recorder costs beside PyArrow alone, and what following a lake costs.

    python -m bench.lake

*Recorder*: from journal records (batches of 500 samples, as a node hands them over) to a durable segment with its
manifest, 100,000 rows each. *PyArrow*: the same columns, there as Arrow arrays of plain types already, written by
`pyarrow.parquet.write_table` with the same compression, row groups and statistics, and synced once.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import ROUNDS, Row, show
from weft.base.records import StreamRecord
from weft.lake import schemas
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.reader import Source
from weft.lake.segments import ROW_GROUP_ROWS, STATISTICS, Place, Segment, append_segment
from weft.wire import samples

DRAIN = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
BATCHES, ROWS, ORIGINS, SERIES = 200, 500, 40, 100
SEGMENTS = 300
Entries = list[tuple[int, StreamRecord]]


def entries() -> Entries:
    """A mixture as measured machines give it: integers with a base, and doubles without."""
    chance = random.Random(7)
    kinds = ("percent", "basic")
    series = tuple(samples.Series(f"m{i}", "CPU", kinds[i % 2], {"cpu": str(i % 8)}) for i in range(SERIES))
    made = []
    for number in range(BATCHES):
        rows = [
            samples.Row(i % SERIES, i // SERIES * 1000, chance.randrange(10**9), chance.randrange(10**9))
            if i % 2
            else samples.Row(i % SERIES, i // SERIES * 1000, chance.random() * 100)
            for i in range(ROWS)
        ]
        body = samples.encode(samples.SampleBatch(1_767_225_600_000 + number * 1000, series, rows))
        node, first = bytes([number % ORIGINS]) * 16, 1 + ROWS * (number // ORIGINS)
        at = 10**18 + number
        made.append((number + 1, StreamRecord(1, node, 1, first, at, at, "weft.metric", body, {"n": ROWS})))
    return made


def write_plain(table: pa.Table, path: Path) -> None:
    """PyArrow's own way."""
    options: Any = {"compression": "zstd", "compression_level": 1, "row_group_size": ROW_GROUP_ROWS}
    pq.write_table(table, path, write_statistics=list(STATISTICS), store_schema=False, **options)
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def recording(home: Path) -> list[Row]:
    lake, given, numbers = Layout(home), entries(), iter(range(1, 1000))
    files = LocalFiles()

    def ours() -> None:
        segment = Segment(Place("samples", DRAIN, next(numbers)))
        segment.take(given)
        segment.publish(lake, files)

    segment = Segment(Place("samples", DRAIN, 1))
    segment.take(given)
    columns = segment.columns.table()
    table = pa.table(
        [
            columns[name].combine_chunks().cast(kind)
            for name, kind in zip(columns.schema.names, arrow_types(), strict=True)
        ],
        names=columns.schema.names,
    )
    values = table.to_pydict()
    kinds = schemas.SAMPLES.arrow()
    ways = [
        ours,
        lambda: write_plain(table, home / "plain.parquet"),
        lambda: write_plain(pa.Table.from_pydict(values, kinds), home / "plain.parquet"),
    ]
    mine, plain, lists = cpu_of(ways, BATCHES * ROWS)
    size = (home / "plain.parquet").stat().st_size / lake.parquet("samples", DRAIN, 1).stat().st_size
    print(f"one core: {1e9 / mine:,.0f} rows/s; PyArrow's file is {size:.2f} times as big\n")
    return [
        Row("row, from records; PyArrow from Arrow columns", mine, plain),
        Row("row, from records; PyArrow from Python columns", mine, lists),
    ]


def cpu_of(ways: Sequence[Callable[[], object]], operations: int) -> list[float]:
    """Nanoseconds of CPU per operation, best of several rounds, the ways taking turns: a busy machine costs no CPU."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for index, way in enumerate(ways):
            began = time.process_time_ns()
            way()
            best[index] = min(best[index], (time.process_time_ns() - began) / operations)
    return best


def arrow_types() -> list[pa.DataType]:
    return list(schemas.SAMPLES.arrow().types)


def following(home: Path) -> None:
    """What a stream reader does once a second: look for news, and name what it has."""
    lake = Layout(home / "many")
    given = entries()
    append_segment(lake, "samples", DRAIN, given[:1])
    source = Source(lake, "samples")
    at = source.advance({})
    source.offset(at)
    for number in range(1, SEGMENTS):
        append_segment(lake, "samples", DRAIN, given[number % BATCHES : number % BATCHES + 1])
    began = time.process_time()
    at = source.advance(at)
    source.vector(at)
    took = (time.process_time() - began) / (SEGMENTS - 1)
    offset = source.offset(at)
    idle = median(timed(lambda: source.advance(at)) for _ in range(200))
    fresh = timed(lambda: Source(lake, "samples").prove(offset))
    print(f"a new segment, found, proved and added to the vector: {took * 1e6:.1f} us of CPU")
    print(
        f"nothing new: {idle * 1e6:.1f} us; an offset proved after a restart, {SEGMENTS} segments: {fresh * 1e3:.1f} ms"
    )


def timed(act: Any) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        show("Recorder: journal records to a durable segment", recording(home), "PyArrow")
        following(home)


if __name__ == "__main__":
    main()
