"""The readers of the source without a Spark: options, pruning, packing, damage, versions."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import datasource as spark
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pyspark_weft import DefaultSource
from pyspark_weft.options import parse_options, slices_option
from pyspark_weft.rows import pack
from pyspark_weft.source import BatchReader, Slices, StreamReader
from tests.lake.records import DRAIN, ERA, NODE_A, NODE_B, RECEIVED, batch, mixed, other
from weft.base.errors import UserError
from weft.base.records import Record, Stream
from weft.lake.consumers import consumers
from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import SegmentFault
from weft.lake.offsets import parse
from weft.lake.reader import Slice, Source
from weft.lake.schemas import SEGMENTS
from weft.lake.segments import append_segment

OTHER = "00000000000000000000000000000007"


def add(lake: Layout, *records: Record, stream: str = "samples", drain: str = DRAIN) -> None:
    append_segment(lake, stream, drain, list(enumerate(records, 1)))


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lake")


@pytest.fixture
def three(lake: Layout) -> Layout:
    """Two segments of one drain, one of another."""
    add(lake, batch(NODE_A, 1, 10))
    add(lake, batch(NODE_A, 11, 10))
    add(lake, batch(NODE_B, 1, 5), drain=OTHER)
    return lake


def batch_reader(lake: Layout, **options: str) -> BatchReader:
    return BatchReader(parse_options({"lake": str(lake.root), "stream": "samples", "tasks": "2"} | options))


def stream_reader(lake: Layout, **options: str) -> StreamReader:
    return StreamReader(parse_options({"lake": str(lake.root), "stream": "samples", "tasks": "2"} | options))


def batches(reader: BatchReader | StreamReader, parts: Any) -> Iterator[pa.RecordBatch]:
    """What the tasks give, each reader and partition carried to it as Spark does."""
    for part in parts:
        yield from carried(reader).read(carried(part))


def carried(value: Any) -> Any:
    make: Any = CloudPickleSerializer
    pickler = make()
    return pickler.loads(pickler.dumps(value))


def sequences(found: Iterator[pa.RecordBatch]) -> list[tuple[str, int]]:
    return [
        (origin[:2], sequence)
        for piece in found
        for origin, sequence in zip(piece["origin"].to_pylist(), piece["sequence"].to_pylist(), strict=True)
    ]


def rows(reader: BatchReader) -> list[tuple[str, int]]:
    return sequences(batches(reader, reader.partitions()))


# Options.


@pytest.mark.proves("PIP-002")
@pytest.mark.parametrize(
    "options, word",
    [
        ({"stream": "sample"}, "stream"),
        ({"stream": ""}, "stream"),
        ({"lake": ""}, "lake"),
        ({"maxrows": "5"}, "maxrows"),
        ({"max_rows": "0"}, "max_rows"),
        ({"max_segments": "-1"}, "max_segments"),
        ({"tasks": "many"}, "tasks"),
        ({"columns": "sequence,valu"}, "valu"),
        ({"include_errors": "perhaps"}, "include_errors"),
        ({"consumer": "../me"}, "consumer"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, str], word: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_options({"lake": "/x", "stream": "samples"} | options)
    assert "bad-option" == refused.value.code
    assert word in refused.value.text


@pytest.mark.proves("PIP-002")
def test_options_without_words() -> None:
    options = parse_options({"path": "/x", "Stream": "logs"})
    assert ("/x", "logs", "earliest", 1_000_000, 256) == options[:5]
    assert options.columns == SEGMENTS["logs"].names
    assert (True, "", False) == (options.include_errors, options.consumer, options.verify)
    assert 1 <= options.tasks <= 8


def test_a_schema_of_ones_own_is_refused(three: Layout) -> None:
    source = DefaultSource({"lake": str(three.root), "stream": "samples"})
    with pytest.raises(UserError) as refused:
        source.reader(StructType().add("a", "integer"))
    assert "bad-option" == refused.value.code


# Rows.


@pytest.mark.proves("PIP-003", "LAK-020")
@pytest.mark.parametrize("stream", STREAMS)
def test_batches_have_exactly_the_declared_schema(lake: Layout, stream: str) -> None:
    add(lake, *(mixed() if stream == "samples" else [other(Stream[stream.upper()], 1)]), stream=stream)
    reader = batch_reader(lake, stream=stream)
    for piece in batches(reader, reader.partitions()):
        assert piece.schema.equals(SEGMENTS[stream].arrow())


@pytest.mark.proves("PIP-003")
def test_batches_are_bounded(lake: Layout) -> None:
    add(lake, *[batch(NODE_A, 1 + 1000 * i, 1000) for i in range(60)])
    reader = batch_reader(lake)
    assert [50_000, 10_000] == [piece.num_rows for piece in batches(reader, reader.partitions())]


@pytest.mark.proves("PIP-003")
def test_small_segments_share_a_batch(three: Layout) -> None:
    reader = batch_reader(three, tasks="1")
    assert [25] == [piece.num_rows for piece in batches(reader, reader.partitions())]


@pytest.mark.proves("PIP-002")
def test_columns_and_errors_can_be_left_out(lake: Layout) -> None:
    add(lake, *mixed())
    reader = batch_reader(lake, columns="sequence, origin", include_errors="false")
    found = list(batches(reader, reader.partitions()))
    assert [["origin", "sequence"]] == [piece.schema.names for piece in found]
    assert 308 == sum(piece.num_rows for piece in found)


FILTERS = [
    ([spark.EqualTo(("sequence",), 12)], 1),
    ([spark.GreaterThanOrEqual(("sequence",), 11), spark.LessThan(("sequence",), 13)], 1),
    ([spark.GreaterThan(("sequence",), 10), spark.LessThanOrEqual(("sequence",), 11)], 1),
    ([spark.In(("sequence",), (10, None))], 1),
    ([spark.EqualTo(("origin",), NODE_B.hex())], 1),
    ([spark.EqualNullSafe(("origin",), NODE_B.hex())], 1),
    ([spark.EqualTo(("era",), ERA)], 3),
    ([spark.EqualTo(("era",), ERA + 1)], 0),
    ([spark.EqualNullSafe(("era",), None)], 3),  # the manifest cannot exclude a row whose era is unreadable
    ([spark.IsNull(("origin",))], 0),
    ([spark.GreaterThanOrEqual(("received_ns",), RECEIVED + 11)], 1),
    ([spark.LessThan(("received_ns",), RECEIVED)], 0),
    ([spark.EqualTo(("value_long",), 99)], 3),  # not a column that segments are chosen by
    ([spark.Not(spark.EqualTo(("sequence",), 12))], 3),
]


@pytest.mark.proves("PIP-010")
@pytest.mark.parametrize("filters, segments", FILTERS)
def test_segments_are_chosen_by_their_manifests(three: Layout, filters: list[spark.Filter], segments: int) -> None:
    reader = batch_reader(three)
    assert filters == list(reader.pushFilters(filters)), "Spark checks all of them again"
    assert segments == sum(len(part.slices) for part in reader.partitions() if isinstance(part, Slices))


@pytest.mark.proves("PIP-010")
def test_row_groups_are_chosen_by_their_statistics(lake: Layout) -> None:
    add(lake, *[batch(NODE_A, 1 + 1000 * i, 1000) for i in range(60)])
    reader = batch_reader(lake)
    reader.pushFilters([spark.GreaterThan(("sequence",), 55_000)])
    assert 10_000 == len(rows(reader))
    reader.pushFilters([spark.LessThan(("at_ns",), 0)])
    assert [] == rows(reader)
    reader.pushFilters([spark.IsNull(("sequence",))])
    assert [] == rows(reader)


@pytest.mark.proves("PIP-010")
def test_spark_takes_the_reader_whether_or_not_filters_are_pushed(three: Layout) -> None:
    pushing = batch_reader(three).pushFilters
    assert spark.DataSourceReader.pushFilters is getattr(pushing, "__func__", None)


@given(sizes=st.lists(st.integers(1, 1000), max_size=40), tasks=st.integers(1, 8))
def test_bins_are_few_in_order_and_about_equal(sizes: list[int], tasks: int) -> None:
    slices = [Slice(DRAIN, number, "", 0, size, size, 0, "") for number, size in enumerate(sizes, 1)]
    bins = pack(slices, tasks)
    assert slices == [piece for entries in bins for piece in entries]
    assert len(bins) <= min(tasks, max(len(sizes), 0))
    fair = sum(sizes) / tasks + max(sizes, default=0)
    assert all(sum(piece.last for piece in entries) <= fair for entries in bins)


# Damage.


def unlink(path: Path) -> None:
    path.unlink()


def swap_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20], data[21] = data[21] ^ 1, data[20] ^ 1
    path.write_bytes(bytes(data))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def fewer_rows(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 3), path)
    path.write_bytes(path.read_bytes())


def same_size_no_parquet(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.proves("PIP-008")
@pytest.mark.parametrize("verify", ["true", "false"])
@pytest.mark.parametrize(
    "damage, code",
    [
        (unlink, "segment-gone"),
        (cut_short, "segment-changed"),
        (fewer_rows, "segment-changed"),
        (same_size_no_parquet, "segment-changed"),
    ],
)
def test_a_damaged_file_is_no_file(three: Layout, verify: str, damage: Callable[[Path], None], code: str) -> None:
    damage(three.parquet("samples", DRAIN, 2))
    with pytest.raises(SegmentFault) as fault:
        rows(batch_reader(three, verify=verify))
    assert (code, DRAIN, 2) == (fault.value.code, fault.value.drain, fault.value.number)


@pytest.mark.proves("PIP-008")
def test_one_changed_byte_is_seen_when_asked_for(three: Layout) -> None:
    swap_bytes(three.parquet("samples", DRAIN, 1))
    with pytest.raises(SegmentFault) as fault:
        rows(batch_reader(three, verify="true"))
    assert "segment-changed" == fault.value.code


@pytest.mark.proves("LAK-021")
def test_a_file_of_another_version_has_nulls_where_it_has_no_column(lake: Layout) -> None:
    add(lake, batch(NODE_A, 1, 3))
    path, beside = lake.parquet("samples", DRAIN, 1), lake.manifest("samples", DRAIN, 1)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["config_number"]).append_column("unknown", table["lsn"]), path)
    manifest = msgspec.json.decode(beside.read_bytes())
    manifest |= {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes()).hexdigest()}
    beside.write_bytes(msgspec.json.encode(manifest, order="sorted") + b"\n")
    reader = batch_reader(lake, verify="true")
    (piece,) = batches(reader, reader.partitions())
    assert piece.schema.equals(SEGMENTS["samples"].arrow())
    assert ([1, 2, 3], [None] * 3) == (piece["sequence"].to_pylist(), piece["config_number"].to_pylist())


# The stream reader, called as Spark calls it.


@pytest.mark.proves("PIP-004", "PIP-006", "PIP-008")
@pytest.mark.parametrize("most", [1, 3, 7, 25, 1000])
def test_offsets_step_over_every_row_once_and_replay_alike(three: Layout, most: int) -> None:
    reader = stream_reader(three, max_rows=str(most))
    limit = reader.getDefaultReadLimit()
    assert ReadMaxRows(most) == limit
    start = reader.initialOffset()
    found: list[tuple[str, int]] = []
    while (end := reader.latestOffset(start, limit)) != start:
        step = sequences(batches(reader, reader.partitions(start, end)))
        assert len(step) <= most
        again = stream_reader(three)
        assert step == sequences(batches(again, again.partitions(start, end)))
        reader.commit(start)
        found += step
        start = end
    expected = [("0b", number) for number in range(1, 21)] + [("6f", number) for number in range(1, 6)]
    assert expected == sorted(found)


@pytest.mark.proves("PIP-006")
def test_without_a_limit_everything_is_taken_and_a_fixed_end_ends(three: Layout) -> None:
    reader = stream_reader(three, max_rows="3")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    add(three, batch(NODE_A, 21, 10))
    end = reader.latestOffset(start, ReadAllAvailable())
    assert 25 == len(sequences(batches(reader, reader.partitions(start, end))))
    assert end == reader.latestOffset(end, ReadAllAvailable())


@pytest.mark.proves("PIP-006")
def test_segments_of_a_batch_are_limited_too(three: Layout) -> None:
    reader = stream_reader(three, max_segments="2")
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert {DRAIN: (2, 0), OTHER: (2, 0)} == parse(end).at


@pytest.mark.proves("PIP-009", "LAK-016")
def test_a_consumer_holds_from_its_start_and_commits_its_way(three: Layout) -> None:
    reader = stream_reader(three, consumer="me")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    (held,) = consumers(three)
    assert {DRAIN: (1, 0), OTHER: (1, 0)} == held.offset.at
    reader.commit(end)
    (held,) = consumers(three)
    assert {DRAIN: (3, 0), OTHER: (2, 0)} == held.offset.at


@pytest.mark.proves("PIP-004")
def test_a_reader_that_goes_on_proves_its_offset_once(three: Layout) -> None:
    first = stream_reader(three)
    end = first.latestOffset(first.initialOffset(), ReadMaxRows(12))
    second = stream_reader(three)
    assert end != second.latestOffset(end, ReadMaxRows(100))
    with pytest.raises(SegmentFault) as fault:
        stream_reader(three).latestOffset(end | {"vec": "0" * 32}, ReadMaxRows(100))
    assert "offset-mismatch" == fault.value.code


# Slices that somebody else has planned.


def placed(reader: BatchReader) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The rows of a reader by where they stood."""
    rows = pa.Table.from_batches(batches(reader, reader.partitions())).to_pylist()
    return {(row["drain"], row["segment"], row["row"]): row for row in rows}


def test_exactly_the_slices_that_are_named_are_read_and_each_row_says_where_it_stood(three: Layout) -> None:
    source = Source(three, "samples")
    *others, last = source.slices(source.earliest(), source.latest())
    wanted = [last._replace(first=3, last=5), others[0]]
    found = placed(batch_reader(three, places="true", slices=slices_option(wanted)))
    assert [(piece.drain, piece.number, row) for piece in wanted for row in range(piece.first, piece.last)] == list(
        found
    )
    assert found.items() <= placed(batch_reader(three, places="true")).items()
