"""Rows into tables, beside what Spark does alone: ingest, roll-ups, and a burst from sockets.

    python -m bench.pipeline_ingest [scan] [silver] [rollup] [socket] [--rows 3000000] [--rounds 3]

*scan*: segments to committed `bronze.samples`, which adopts them, beside a plain Structured Streaming job of Spark's own:
file stream over the same Parquet files, written as Parquet, nothing judged, no transaction. Goal: 0.6 of it.

*silver*: the same, to committed bronze and silver: judged, counted, typed, each number once.

*rollup*: segments to everything `weft lake run` makes of samples (bronze, silver, calculated values, three roll-ups,
latest, completeness), beside a Structured Streaming job as one writes it by hand: the file stream, a watermark of ten
minutes, count, sum, least and greatest by origin, series and minute of the raw values, appended as Parquet. That job
removes no duplicate, calculates no rate, and drops what is late, so there is no goal, only what it costs to have more.

*socket*: a sensor sends a burst over a real socket; its root journals, syncs and drains; the job runs as `weft lake run`
does. From the first sample sent until the last one is committed in bronze (goal: 300,000 samples/s), and in another run
in all tables (goal: 100,000).

All sides take turns in one session, local[2] and 512 MB; the first round warms up and does not count. CPU seconds are of
everything at work.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all of Spark's own examples call them

from bench.hosts import load
from bench.lakes import DRAIN, Filling, Following, Spent, Traffic, started, twin
from bench.pipeline_traffic import Burst
from weft.lake.layout import Layout
from weft.lake.schemas import SEGMENTS
from weft.pipeline.batch import Batch, Outcome
from weft.pipeline.job import Job, JobOptions, SamplesJob
from weft.pipeline.kinds import SAMPLES
from weft.pipeline.sampled import SampleBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.pipeline.coverage import Coverage, Plan
    from weft.pipeline.intake import Intake
    from weft.pipeline.steps import Steps

SEGMENTS_A_BATCH: Final = "10"
"""As many rows as a batch of ours may have."""
GOALS: Final = {"scan": 0.6, "bronze": 300_000, "everything": 100_000}
PATIENCE_S: Final = 900.0
LATE: Final = "10 minutes"

Side = Callable[[int], Spent]
"""One turn of one way; its number makes its directory."""


class BronzeBatch(Batch):
    """A batch that ends behind bronze."""

    def _run_rows(self, intake: "Intake", _plan: "Plan", _coverage: "Coverage", steps: "Steps") -> Outcome:
        with steps("bronze"):
            self._bronze(intake)
        return Outcome(intake.rows, 0, 0, 0, 0)


class BronzeJob(Job):
    """The job of the samples, of which only bronze is made."""

    def __init__(self, lake: Layout, spark: SparkSession, epoch: int, options: JobOptions) -> None:
        super().__init__(SAMPLES, lake, spark, epoch, options)

    def _steps_of(self, number: int, about: "Mapping[str, str]") -> Batch:
        return BronzeBatch(self.kind, self.tables, number, about, self.options.rules)


class SilverBatch(SampleBatch):
    """A batch that ends behind silver."""

    def _after_silver(self, *_: object) -> int:
        return 0


class SilverJob(SamplesJob):
    """The job of the samples, of which no values are made."""

    def _steps_of(self, number: int, about: "Mapping[str, str]") -> Batch:
        return SilverBatch(self.known, number, about, self.options.rules)


class Bench:
    """One lake of segments, and every way of making something of it."""

    def __init__(self, home: Path, spark: SparkSession, rows: int) -> None:
        self.home, self.spark = home, spark
        self.lake = Layout(home / "segments")
        self.rows = Filling(self.lake, Traffic()).write(rows)

    def ours(self, make: Callable[..., Job], turn: int) -> Spent:
        """A job over a lake without tables; the gold tables are folded once, at the end."""
        lake = twin(self.lake, self.home / f"ours-{turn}")
        following = Following(self.spark, lake, make)
        with Spent() as spent:
            following.drain()
            if type(following.job) is SamplesJob:
                following.job.fold()
        assert following.rows == self.rows, following.rows
        shutil.rmtree(lake.root)
        return spent

    def plain(self, shape: Callable[[DataFrame], DataFrame], turn: int) -> Spent:
        """Spark's file stream to Parquet."""
        block, home = self.lake.block("samples", DRAIN, 1), self.home / f"plain-{turn}"
        files = self.spark.readStream.schema(SEGMENTS["samples"].ddl()).option("pathGlobFilter", "*.parquet")
        frame = shape(files.option("maxFilesPerTrigger", SEGMENTS_A_BATCH).parquet(str(block)))
        with Spent() as spent:
            writer = frame.writeStream.format("parquet").option("checkpointLocation", str(home / "checkpoint"))
            writer.trigger(availableNow=True).start(str(home / "rows")).awaitTermination()
        shutil.rmtree(home)
        return spent

    def compare(self, what: str, ours: Side, peer: Side, rounds: int) -> None:
        """Print a row: rates, CPU, and how many times the peer's rate is reached."""
        took: dict[str, list[Spent]] = {"ours": [], "peer": []}
        for turn in range(rounds + 1):
            for name, side in (("ours", ours), ("peer", peer)):
                spent = side(turn)
                if turn:
                    took[name].append(spent)
        walls = {name: median(spent.wall for spent in found) for name, found in took.items()}
        cpus = {name: median(spent.cpu for spent in found) * 1e6 / self.rows for name, found in took.items()}
        ratio, goal = walls["peer"] / walls["ours"], GOALS.get(what)
        verdict = "" if goal is None else f"{goal}, {'met' if ratio >= goal else 'missed'}"
        print(
            f"| {what}, {self.rows:,} rows | {self.rows / walls['ours']:,.0f} | {self.rows / walls['peer']:,.0f}"
            f" | {ratio:.2f} | {cpus['ours']:.2f} | {cpus['peer']:.2f} | {verdict} |",
            flush=True,
        )


def as_it_is(rows: DataFrame) -> DataFrame:
    return rows


def rolled_up(rows: DataFrame) -> DataFrame:
    """What one writes by hand."""
    at = F.timestamp_micros((F.col("at_ns") / 1000).cast("bigint"))
    value = F.coalesce(F.col("value_double"), F.col("value_long").cast("double"))
    timed = rows.where("error is null").select("origin", "series", at.alias("at"), value.alias("value"))
    by = timed.withWatermark("at", LATE).groupBy("origin", "series", F.window("at", "1 minute"))
    return by.agg(
        F.count("value").alias("n"),
        F.sum("value").alias("sum"),
        F.min("value").alias("min"),
        F.max("value").alias("max"),
    )


def from_sockets(home: Path, spark: SparkSession, rows: int) -> None:
    """Bursts into new lakes, one after the other in one session; the last finds it warm."""
    print("\n| burst of one sensor, to | samples | samples/s | CPU s/million, driver | goal |\n|---|--:|--:|--:|---|")
    for lake, (what, make) in enumerate(
        (("bronze", BronzeJob), ("everything", SamplesJob), ("everything", SamplesJob))
    ):
        with Burst(home / f"{what}-{lake}", rows) as burst, Spent() as spent:
            following = Following(spark, burst.lake, make)
            seconds = burst.seconds_until(partial(following.until, burst.rows, PATIENCE_S))
        rate, goal = burst.rows / seconds, GOALS[what]
        verdict = f"{goal:,}, {'met' if rate >= goal else 'missed'}"
        print(f"| {what} | {burst.rows:,} | {rate:,.0f} | {spent.cpu * 1e6 / burst.rows:.2f} | {verdict} |", flush=True)


def run(home: Path, names: Sequence[str], rows: int, rounds: int) -> None:
    """Print what was asked for."""
    spark = started(home)
    bench = Bench(home, spark, rows) if {"scan", "silver", "rollup"} & set(names) else None
    if bench is not None:
        print("| what | weft rows/s | Spark alone rows/s | ratio | CPU s/million | of Spark alone | goal |")
        print("|---|--:|--:|--:|--:|--:|---|")
    if bench is not None and "scan" in names:
        bench.compare("scan", partial(bench.ours, BronzeJob), partial(bench.plain, as_it_is), rounds)
    if bench is not None and "silver" in names:
        bench.compare("silver", partial(bench.ours, SilverJob), partial(bench.plain, as_it_is), rounds)
    if bench is not None and "rollup" in names:
        bench.compare("rollup", partial(bench.ours, SamplesJob), partial(bench.plain, rolled_up), rounds)
    if "socket" in names:
        from_sockets(home, spark, rows)
    spark.stop()
    print(f"\n{load()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=["scan", "silver", "rollup", "socket"], help="scan, silver, rollup, socket"
    )
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory), arguments.names, arguments.rows, arguments.rounds)


if __name__ == "__main__":
    main()
