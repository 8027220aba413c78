"""The Spark source `weft` beside Spark's own file stream source, and the two ways in which a job can read a batch.

    python -m bench.pipeline_source [--rows 2000000] [--rounds 3]

*Streams*: both with `availableNow` and a new checkpoint each time, into a sink that does nothing. Two lakes: one of full
segments (100,000 rows), one of many small ones (6,000 rows), where listing and opening files is what costs. Goals: 0.5
and 1.5 of the file source.

*Jobs*: the same offsets, read by the source or by Spark's Parquet reader over the list of files, to committed silver. This decides what `weft.pipeline.source.rows_of` is (PIP-012).

All take turns in one session (local[2], 512 MB).
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

from bench.hosts import load
from bench.lake import BATCHES, DRAIN, ROWS, Entries, entries
from bench.lakes import Following, Spent, twin
from bench.pipeline_ingest import SilverJob
from weft.lake.layout import Layout
from weft.lake.schemas import SEGMENTS
from weft.lake.segments import append_segment
from weft.pipeline import batch
from weft.pipeline.session import Options, session
from weft.pipeline.source import by_files, by_source

FULL, SMALL = 100_000, 6_000


def fill(lake: Layout, rows: int, segment_rows: int) -> int:
    """A lake of about `rows` rows in segments of so many; returns how many segments."""
    given: Entries = entries()
    batches = segment_rows // ROWS
    count = max(1, rows // segment_rows)
    for number in range(count):
        first = number * batches % (BATCHES - batches + 1)
        append_segment(lake, "samples", DRAIN, given[first : first + batches])
    return count


def seconds(frame: Callable[[], DataFrame], checkpoint: Path) -> float:
    """How long the batches of one stream take, without the start of the query: planning, reading, committing."""
    query = frame().writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    return sum(float(p["durationMs"]["triggerExecution"]) for p in running.recentProgress) / 1000


def compare(spark: SparkSession, home: Path, rows: int, segment_rows: int, rounds: int) -> str:
    lake = Layout(home / f"lake-{segment_rows}")
    count = fill(lake, rows, segment_rows)
    block = lake.block("samples", DRAIN, 1)

    def ours() -> DataFrame:
        limits = {"max_rows": str(1 << 30), "max_segments": str(1 << 20), "tasks": "2"}
        return spark.readStream.format("weft").options(lake=str(lake.root), stream="samples", **limits).load()

    def peer() -> DataFrame:
        files = spark.readStream.schema(SEGMENTS["samples"].ddl()).option("pathGlobFilter", "*.parquet")
        return files.parquet(str(block))

    took: dict[str, list[float]] = {"weft": [], "files": []}
    for turn in range(rounds + 1):
        for name, frame in (("weft", ours), ("files", peer)):
            span = seconds(frame, home / f"checkpoint-{name}-{segment_rows}-{turn}")
            if turn:  # the first one warms up the JVM
                took[name].append(span)
    mine, theirs = median(took["weft"]), median(took["files"])
    total = count * segment_rows
    return f"| {count} x {segment_rows:,} rows | {total / mine:,.0f} | {total / theirs:,.0f} | {theirs / mine:.2f} |"


def jobs(spark: SparkSession, home: Path, segment_rows: int, rounds: int) -> str:
    """Both readers in a job that ends behind silver, over a lake that `compare` has filled."""
    lake = Layout(home / f"lake-{segment_rows}")
    took: dict[str, list[Spent]] = {"source": [], "files": []}
    rows, plain = 0, vars(batch)["rows_of"]
    for turn in range(rounds + 1):
        for name, way in (("source", by_source), ("files", by_files)):
            vars(batch)["rows_of"] = way
            following = Following(spark, twin(lake, home / f"{name}-{segment_rows}-{turn}"), SilverJob)
            with Spent() as spent:
                following.drain()
            rows = following.rows
            if turn:
                took[name].append(spent)
    vars(batch)["rows_of"] = plain
    walls = {name: median(spent.wall for spent in found) for name, found in took.items()}
    cpus = {name: median(spent.cpu for spent in found) * 1e6 / rows for name, found in took.items()}
    times = walls["source"] / walls["files"]
    return (
        f"| {rows:,} rows of {segment_rows:,} | {rows / walls['source']:,.0f} | {rows / walls['files']:,.0f}"
        f" | {times:.2f} | {cpus['source']:.2f} | {cpus['files']:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        spark = session(Options(master="local[2]", heap_mb=512, state=home, log=home / "jvm.log"))
        print("| segments | weft rows/s | file source rows/s | times faster |\n|---|--:|--:|--:|")
        for segment_rows in (FULL, SMALL):
            print(compare(spark, home, arguments.rows, segment_rows, arguments.rounds), flush=True)
        print("\n| a job to silver | source rows/s | files rows/s | files are faster | CPU s/million | of files |")
        print("|---|--:|--:|--:|--:|--:|")
        for segment_rows in (FULL, SMALL):
            print(jobs(spark, home, segment_rows, arguments.rounds), flush=True)
        print(f"\n{load()}")
        spark.stop()


if __name__ == "__main__":
    main()
