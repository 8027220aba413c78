"""The source `weft` in a real Spark: batch and stream, restart, limits, replay, damage."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.testing import assertSchemaEqual

from tests.lake.records import DRAIN, ERA, NODE_A, NODE_B, batch, mixed, other
from weft.base.records import Record, Stream
from weft.lake.consumers import consumers
from weft.lake.layout import Layout
from weft.lake.schemas import SEGMENTS
from weft.lake.segments import append_segment

pytestmark = pytest.mark.prove("streams in Spark")

OTHER = "00000000000000000000000000000007"
Batches = dict[int, list[tuple[str, int]]]


def add(lake: Layout, *records: Record, stream: str = "samples", drain: str = DRAIN) -> None:
    append_segment(lake, stream, drain, list(enumerate(records, 1)))


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lake")


def loaded(spark: SparkSession, lake: Layout, **options: Any) -> DataFrame:
    return spark.read.format("weft").options(**{"lake": str(lake.root), "stream": "samples"} | options).load()


class Run:
    """A stream with a checkpoint; `once` takes what is there and ends."""

    def __init__(self, spark: SparkSession, lake: Layout, home: Path, **options: Any) -> None:
        self.spark, self.home = spark, home
        self.options = {"lake": str(lake.root), "stream": "samples"} | options
        self.batches: Batches = {}
        self.again: list[int] = []
        self.fail_in: int | None = None

    def take(self, rows: DataFrame, number: int) -> None:
        found = [(row.origin, row.sequence) for row in rows.select("origin", "sequence").collect()]
        if number in self.batches:
            self.again.append(number)
            assert self.batches[number] == found, "a replayed batch has other rows, or another order"
        self.batches[number] = found
        if number == self.fail_in:
            self.fail_in = None
            raise RuntimeError("planted: the sink fails behind its rows")

    def start(self) -> StreamingQuery:
        rows = self.spark.readStream.format("weft").options(**self.options).load()
        writer = rows.writeStream.foreachBatch(self.take).option("checkpointLocation", str(self.home / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    def once(self) -> StreamingQuery:
        query = self.start()
        query.awaitTermination()
        return query

    @property
    def rows(self) -> list[tuple[str, int]]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    @property
    def sizes(self) -> list[int]:
        return [len(self.batches[number]) for number in sorted(self.batches)]


def numbers(first: int, last: int, node: bytes = NODE_A) -> list[tuple[str, int]]:
    return [(node.hex(), number) for number in range(first, last + 1)]


# Batch.


@pytest.mark.proves("PIP-001", "PIP-003")
def test_spark_finds_the_source_by_itself_and_reads_what_was_written(spark: SparkSession, lake: Layout) -> None:
    add(lake, *mixed())
    rows = loaded(spark, lake)
    assertSchemaEqual(rows.schema, spark.createDataFrame([], SEGMENTS["samples"].ddl()).schema)
    assert 310 == rows.count()
    first = rows.where("sequence = 1").orderBy("origin").first()
    assert first is not None
    expected = {"origin": NODE_A.hex(), "era": ERA, "value_long": 1, "base_long": 7, "labels": {"cpu": "total"}}
    assert expected == {name: first[name] for name in expected}
    errors = rows.where("error is not null").orderBy("sequence").select("sequence", "error", "attributes").collect()
    assert [(11, "out-of-range", {}), (12, "undecodable", {"n": "30"})] == [tuple(row) for row in errors]


@pytest.mark.proves("LAK-020")
def test_other_streams_are_read_too(spark: SparkSession, lake: Layout) -> None:
    add(lake, other(Stream.EVENTS, 7, b"\x81\xa1a\x01", level="root"), stream="events")
    (row,) = loaded(spark, lake, stream="events").select("sequence", "key", "body", "raw", "attributes").collect()
    assert (7, "some/key", '{"a":1}', b"\x81\xa1a\x01", {"level": "root"}) == tuple(row)


@pytest.mark.proves("PIP-002")
def test_columns_and_errors_can_be_left_out(spark: SparkSession, lake: Layout) -> None:
    add(lake, *mixed())
    rows = loaded(spark, lake, columns="sequence, value_long", include_errors="false")
    assert ["sequence", "value_long"] == rows.columns
    assert 308 == rows.count()


@pytest.mark.proves("PIP-002")
def test_a_bad_option_is_one_error_before_any_task(spark: SparkSession, lake: Layout) -> None:
    with pytest.raises(AnalysisException) as refused:
        loaded(spark, lake, maxrows="5")
    assert "UserError: option 'maxrows'" in str(refused.value)


@pytest.mark.proves("PIP-010")
@pytest.mark.parametrize("pushing", ["true", "false"])
def test_filters_give_the_same_rows_pushed_or_not(spark: SparkSession, lake: Layout, pushing: str) -> None:
    add(lake, batch(NODE_A, 1, 10))
    add(lake, batch(NODE_A, 11, 10))
    add(lake, batch(NODE_B, 1, 5), drain=OTHER)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushing)
    try:
        rows = loaded(spark, lake)
        assert 5 == rows.where(f"sequence between 9 and 13 and origin = '{NODE_A.hex()}'").count()
        assert 0 == rows.where("era is null or series < 0").count()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


@pytest.mark.proves("PIP-010")
def test_a_pushed_filter_passes_over_segments_unopened(spark: SparkSession, lake: Layout) -> None:
    add(lake, batch(NODE_A, 1, 10))
    add(lake, batch(NODE_A, 11, 10))
    lake.parquet("samples", DRAIN, 1).unlink()  # whoever opens it, fails
    assert 3 == loaded(spark, lake).where("sequence between 12 and 14").count()


# Stream.


@pytest.mark.proves("PIP-006", "PIP-009")
def test_stream_over_three_segments_with_a_restart(spark: SparkSession, lake: Layout, tmp_path: Path) -> None:
    for first in (1, 11, 21):
        add(lake, batch(NODE_A, first, 10))
    run = Run(spark, lake, tmp_path, consumer="me")
    run.once()
    assert numbers(1, 30) == run.rows
    add(lake, batch(NODE_A, 31, 10))
    add(lake, batch(NODE_B, 1, 5), drain=OTHER)  # a drain that was not there before
    run.once()
    assert sorted([*numbers(1, 40), *numbers(1, 5, NODE_B)]) == sorted(run.rows)
    assert [30, 15] == run.sizes
    run.once()
    assert [30, 15] == run.sizes
    (consumer,) = consumers(lake, "samples")
    assert (4, 0) <= consumer.offset.at[DRAIN] <= (5, 0)


@pytest.mark.proves("PIP-006")
def test_max_rows_cuts_batches_within_segments(spark: SparkSession, lake: Layout, tmp_path: Path) -> None:
    for first in (1, 11, 21):
        add(lake, batch(NODE_A, first, 10))
    run = Run(spark, lake, tmp_path, max_rows="7", tasks="2")
    query = run.once()
    assert numbers(1, 30) == run.rows
    assert [7, 7, 7, 7, 2] == run.sizes
    shown = query.lastProgress
    assert shown is not None
    assert f"{NODE_A.hex()}/{ERA}" in shown["sources"][0]["endOffset"]


@pytest.mark.proves("PIP-004")
def test_a_hole_is_filled_by_a_later_segment(spark: SparkSession, lake: Layout, tmp_path: Path) -> None:
    add(lake, batch(NODE_A, 1, 4), batch(NODE_A, 7, 3))
    run = Run(spark, lake, tmp_path)
    run.once()
    add(lake, batch(NODE_A, 5, 2))
    run.once()
    assert [*numbers(1, 4), *numbers(7, 9), *numbers(5, 6)] == run.rows


@pytest.mark.proves("PIP-008")
def test_a_batch_whose_sink_failed_is_replayed_with_the_same_rows(
    spark: SparkSession, lake: Layout, tmp_path: Path
) -> None:
    for first in (1, 11, 21):
        add(lake, batch(NODE_A, first, 10))
    run = Run(spark, lake, tmp_path, max_rows="12")
    run.fail_in = 1
    with pytest.raises(StreamingQueryException):
        run.once()
    add(lake, batch(NODE_A, 31, 10))
    run.once()
    assert [1] == run.again
    assert numbers(1, 40) == run.rows


@pytest.mark.proves("PIP-008")
def test_a_missing_segment_fails_the_batch(spark: SparkSession, lake: Layout, tmp_path: Path) -> None:
    add(lake, batch(NODE_A, 1, 10))
    add(lake, batch(NODE_A, 11, 10))
    lake.parquet("samples", DRAIN, 2).unlink()
    run = Run(spark, lake, tmp_path)
    with pytest.raises(StreamingQueryException) as failed:
        run.once()
    assert f"segment-gone: drain {DRAIN}, segment 2" in str(failed.value)
    assert [] == run.rows


@pytest.mark.proves("PIP-004")
def test_another_lake_under_an_old_checkpoint_is_refused(spark: SparkSession, lake: Layout, tmp_path: Path) -> None:
    add(lake, batch(NODE_A, 1, 10))
    Run(spark, lake, tmp_path).once()
    twin = Layout(tmp_path / "twin")
    add(twin, batch(NODE_A, 2, 10))
    add(twin, batch(NODE_A, 12, 10))
    with pytest.raises(StreamingQueryException) as failed:
        Run(spark, twin, tmp_path).once()
    assert "offset-mismatch" in str(failed.value)
