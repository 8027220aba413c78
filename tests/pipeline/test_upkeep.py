"""Upkeep of tables that were written without Spark: what is joined, what is vacuumed, who may commit (LAK-037, LAK-038)."""

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from tests.pipeline.plain import lake_of, put
from weft.base.errors import OurFault, UserError
from weft.cli.lake_keep import compact as compact_by_hand
from weft.cli.lake_keep import forget, retain
from weft.lake.layout import Layout
from weft.pipeline import digests
from weft.pipeline.delta import PARQUET, REMOVALS, Tables, configuration_of
from weft.pipeline.lease import LeaseLost
from weft.pipeline.tables import ALL, EDGES, PROGRESS, ROLLUP_1H, SAMPLES, STAGES, Table
from weft.pipeline.upkeep import compact, rewrite, vacuum
from weft.pipeline.upkeep.compact import Bundle, bundles
from weft.pipeline.upkeep.forgotten import facts
from weft.pipeline.upkeep.history import versions
from weft.pipeline.upkeep.log import Exchange, LiveFile, Overtaken, exchange, live_files, opened
from weft.pipeline.upkeep.marks import Marks, marks_of, unfinished, unfolded
from weft.pipeline.upkeep.vacuum import shorten
from weft.pipeline.versions import opened as version_of_table
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TODAY = date(2026, 11, 23)
YESTERDAY, NOW = "2026-11-22", "2026-11-23"
MIB = 1 << 20
HOUR_S = 3600


def file(batch: int | None, size: int = MIB, partition: str | None = YESTERDAY, until: int | None = None) -> LiveFile:
    last = batch if until is None else until
    return LiveFile(f"day={partition}/b{batch}", size, 10, partition, batch, last)


def batches_of(found: Iterator[Bundle]) -> list[list[int | None]]:
    return [[one.first_batch for one in bundle.files] for bundle in found]


# Which files are joined.


def test_what_is_over_is_joined_and_what_grows_only_when_it_is_worth_it() -> None:
    done = Marks(100)
    assert [[0, 1]] == batches_of(bundles(SAMPLES, [file(0), file(1)], done, TODAY))
    growing = [file(batch, partition=NOW) for batch in range(8)]
    assert [] == batches_of(bundles(SAMPLES, growing[1:], done, TODAY))
    assert [list(range(8))] == batches_of(bundles(SAMPLES, growing, done, TODAY))
    assert [] == batches_of(bundles(SAMPLES, [file(0), file(1, 32 * MIB), file(2, 200 * MIB)], done, TODAY))
    assert [] == batches_of(bundles(SAMPLES, [file(0), file(1, partition="2026-11-21")], done, TODAY))


def test_files_of_the_last_batch_are_left_alone_and_none_lies_on_both_sides_of_a_mark() -> None:
    files = [file(batch) for batch in range(8)]
    assert [[0, 1, 2, 3, 4, 5, 6]] == batches_of(bundles(SAMPLES, files, Marks(7), TODAY))
    assert [[0, 1, 2], [3, 4, 5, 6]] == batches_of(bundles(SAMPLES, files, Marks(7, (2,)), TODAY))
    assert [[0, 1, 2], [3, 4], [5, 6]] == batches_of(bundles(SAMPLES, files, Marks(7, (4, 2)), TODAY))
    assert [[0, 1, 2, 3, 4, 5, 6]] == batches_of(bundles(SAMPLES, files, Marks(7, (-1,)), TODAY))
    assert [] == batches_of(bundles(SAMPLES, files, Marks(), TODAY))


def test_what_is_joined_has_at_most_256_mib() -> None:
    files = [file(batch, 30 * MIB) for batch in range(15)]
    found = list(bundles(SAMPLES, files, Marks(100), TODAY))
    assert [6, 6, 3] == [len(bundle.files) for bundle in found]
    assert all(bundle.size <= 201_326_592 for bundle in found)


def test_what_a_driver_replaces_is_joined_when_its_time_is_over_or_never() -> None:
    hours = [
        LiveFile(f"month={day}/{n}", 10, 10, day, None, None) for day in ("2026-10-01", "2026-11-01") for n in (1, 2)
    ]
    (bundle,) = bundles(ROLLUP_1H, hours, Marks(100), TODAY)
    assert {"2026-10-01"} == {one.partition for one in bundle.files}
    assert not compact.is_joined(EDGES)


def test_an_order_for_every_table() -> None:
    assert ["series", "at", "era", "sequence", "batch"] == rewrite.order_of(SAMPLES.schema.names)
    assert ["job", "at", "batch"] == rewrite.order_of(PROGRESS.schema.names)


# Joining them.


def row(batch: int, n: int, day: date = date(2026, 11, 22)) -> dict[str, object]:
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=100 * batch + n)
    said = {"labels": [("cpu", str(n))], "flags": ["step"] if n % 2 else []}
    return said | {
        "origin": f"o{n % 3}",
        "era": 1,
        "sequence": 10 * batch + n,
        "series": n % 4,
        "at": at,
        "batch": batch,
        "day": day,
    }


def append(lake: Layout, batch: int, *numbers: int, day: date = date(2026, 11, 22)) -> None:
    """A batch as a driver commits it: the file first, then a transaction that names it, and what it is."""
    delta, root = opened(lake, SAMPLES), lake.table("silver", "samples")
    schema = SAMPLES.schema.arrow()
    if delta is None:
        delta = DeltaTable.create(
            root, schema, partition_by=["day"], configuration=configuration_of(SAMPLES), raise_if_key_not_exists=False
        )
    path = f"day={day}/b{batch:010d}-x{numbers[0]}.parquet"
    (root / path).parent.mkdir(exist_ok=True)
    rows = pa.Table.from_pylist([row(batch, n, day) for n in numbers], schema).drop_columns("day")
    pq.write_table(rows, root / path)
    told = {"numRecords": len(numbers), "minValues": {"batch": batch}, "maxValues": {"batch": batch}, "nullCount": {}}
    add = AddAction(path, (root / path).stat().st_size, {"day": str(day)}, 1, True, json.dumps(told))
    transaction = CommitProperties(
        app_transactions=[Transaction("weft/samples/x/silver.samples", batch, 1)], max_commit_retries=10
    )
    delta.create_write_transaction([add], "append", delta.schema(), ["day"], commit_properties=transaction)


def rows_of(lake: Layout) -> pa.Table:
    held = DeltaTable(lake.table("silver", "samples")).to_pyarrow_table()
    return held.sort_by([("batch", "ascending"), ("sequence", "ascending")])


def files_of(lake: Layout) -> list[LiveFile]:
    delta = opened(lake, SAMPLES)
    assert delta is not None
    return live_files(delta, SAMPLES)


def join_all(lake: Layout, epoch: int = 1) -> list[Exchange]:
    wanted = [compact.joined(lake, bundle) for bundle in bundles(SAMPLES, files_of(lake), Marks(1000), TODAY)]
    for one in wanted:
        exchange(lake, one, epoch)
    return wanted


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    """Three batches of yesterday, one of the day before."""
    layout = lake_of(tmp_path / "lake")
    for batch in (1, 2, 3):
        append(layout, batch, *range(5))
    append(layout, 4, 7, 8, day=date(2026, 11, 21))
    return layout


@pytest.mark.proves("LAK-034")
def test_the_rows_stay_the_same_sorted_and_with_statistics(lake: Layout) -> None:
    before = rows_of(lake)
    (wanted,) = join_all(lake)
    assert before.equals(rows_of(lake))
    assert (3, 15) == (len(wanted.remove), wanted.add[0].rows)
    (_, joined) = sorted(files_of(lake), key=lambda file: file.rows)
    assert (1, 3, 15) == (joined.first_batch, joined.last_batch, joined.rows)
    assert joined.path.startswith("day=2026-11-22/c0000000003-")
    held = pq.read_table(lake.table("silver", "samples") / joined.path, partitioning=None)
    order = list(zip(held["series"].to_pylist(), held["at"].to_pylist(), strict=True))
    assert sorted(order) == order
    assert held.schema.equals(pq.read_schema(lake.table("silver", "samples") / wanted.remove[0].path))


def test_what_is_near_the_row_before_is_stored_as_differences_and_the_rest_with_dictionaries(lake: Layout) -> None:
    append(lake, 5, *range(1_000))
    (wanted,) = join_all(lake)
    path = lake.table("silver", "samples") / wanted.add[0].path
    joined = chunks_of(path)
    for name in ("sequence", "at"):
        assert "DELTA_BINARY_PACKED" in joined[name].encodings
    assert ["sequence", "at", "received", "at_ns", "delay_ms"] == [
        name for name, column in joined.items() if not column.has_dictionary_page
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pq.read_table(path, partitioning=None), sink, **PARQUET)
    before = chunks_of(pa.BufferReader(sink.getvalue()))
    for name in ("sequence", "at"):
        assert 2 * joined[name].total_compressed_size < before[name].total_compressed_size


def chunks_of(source: object) -> dict[str, pq.ColumnChunkMetaData]:
    """The columns of the only row group of a file."""
    (group,) = [footer.row_group(0) for footer in [pq.read_metadata(source)] if footer.num_row_groups == 1]
    return {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}


@pytest.mark.parametrize("table", ALL.values(), ids=lambda table: table.full_name)
def test_the_joined_rows_of_every_table_can_be_written(table: Table) -> None:
    nothing, sink = table.schema.arrow().empty_table(), pa.BufferOutputStream()
    pq.write_table(nothing, sink, **PARQUET, **rewrite.encodings_of(nothing.schema))
    assert nothing.schema.names == pq.read_schema(pa.BufferReader(sink.getvalue())).names


def test_its_transaction_changes_no_data_and_says_what_it_was(lake: Layout) -> None:
    join_all(lake, epoch=7)
    log = lake.table("silver", "samples") / "_delta_log"
    lines = [json.loads(line) for line in max(log.glob("*.json")).read_text("utf-8").splitlines()]
    assert {False} == {line[kind]["dataChange"] for line in lines for kind in ("add", "remove") if kind in line}
    (newest, before, *_) = versions(lake, "silver.samples", 9)
    assert ("compact", "7") == (newest.what, newest.about["weft.lease"])
    assert "weft.batch" not in newest.about
    assert newest.version == before.version + 1
    handle = DeltaTable(lake.table("silver", "samples"))
    assert (1, 2) == handle.protocol()[:2]
    assert 4 == handle.transaction_version("weft/samples/x/silver.samples")


def test_what_was_replaced_meanwhile_is_not_put_back(lake: Layout) -> None:
    (bundle,) = bundles(SAMPLES, files_of(lake), Marks(1000), TODAY)
    wanted = compact.joined(lake, bundle)
    gone = Exchange(SAMPLES, bundle.files[:1], (), "retain", is_rearranged=False)
    exchange(lake, gone, 1)
    with pytest.raises(Overtaken):
        exchange(lake, wanted, 1)
    assert 12 == rows_of(lake).num_rows


def test_without_that_look_rows_would_stand_twice(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the log itself takes a removal of what is gone already."""
    (bundle,) = bundles(SAMPLES, files_of(lake), Marks(1000), TODAY)
    wanted = compact.joined(lake, bundle)
    exchange(lake, Exchange(SAMPLES, bundle.files[:1], (), "retain", is_rearranged=False), 1)
    monkeypatch.setattr("weft.pipeline.upkeep.log._refuse_if_overtaken", lambda *_: None)
    exchange(lake, wanted, 1)
    assert 12 != rows_of(lake).num_rows


def test_a_keeper_that_was_overtaken_cannot_commit(lake: Layout) -> None:
    (bundle,) = bundles(SAMPLES, files_of(lake), Marks(1000), TODAY)
    wanted = compact.joined(lake, bundle)
    join_all(lake, epoch=5)
    with pytest.raises(LeaseLost):
        exchange(lake, wanted, 4)


def test_a_row_that_went_astray_is_noticed_before_the_commit(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compact, "rewritten", lambda layout, table, files, *_: rewrite.rewritten(layout, table, files[1:], "c")
    )
    with pytest.raises(OurFault, match="15 rows were to be joined, 10 were"):
        join_all(lake)
    assert 4 == len(files_of(lake))


def test_whoever_stops_it_finds_nothing_of_it(lake: Layout) -> None:
    (bundle,) = bundles(SAMPLES, files_of(lake), Marks(1000), TODAY)
    with pytest.raises(rewrite.Stopped):
        compact.joined(lake, bundle, lambda: False)
    assert [] == list(lake.root.rglob("c0*.parquet"))
    assert [] == list(lake.spill().iterdir())


def test_columns_that_old_files_lack_are_null_in_the_new_one(lake: Layout) -> None:
    root = lake.table("silver", "samples")
    DeltaTable(root).alter.add_columns([Field("later", PrimitiveType("long"))])
    join_all(lake)
    assert [None] * 17 == rows_of(lake)["later"].to_pylist()


@pytest.mark.prove("a lake that grows meanwhile")
def test_appends_beside_it_never_fail(lake: Layout) -> None:
    """A driver appends as fast as it can while files of before are joined, and joined again."""
    failures: list[BaseException] = []

    def drive() -> None:
        try:
            for batch in range(5, 45):
                append(lake, batch, batch)
        except BaseException as error:  # noqa: BLE001  # told below
            failures.append(error)

    driver = threading.Thread(target=drive)
    driver.start()
    joined = 0
    while driver.is_alive():
        joined += len(join_all(lake))
    driver.join()
    joined += len(join_all(lake))
    assert [] == failures
    assert joined
    assert 17 + 40 == rows_of(lake).num_rows
    assert {*range(1, 45)} == set(rows_of(lake)["batch"].to_pylist())
    assert 44 == DeltaTable(lake.table("silver", "samples")).transaction_version("weft/samples/x/silver.samples")


# The log.


@pytest.fixture
def grown(tmp_path: Path) -> Layout:
    """A table whose log has 251 commits, each with a file more."""
    layout = lake_of(tmp_path / "grown")
    root, schema = layout.table("meta", "progress"), PROGRESS.schema.arrow()
    delta = DeltaTable.create(root, schema, configuration=configuration_of(PROGRESS), raise_if_key_not_exists=False)
    as_drivers_do = PostCommitHookProperties(cleanup_expired_logs=False)
    for number in range(1, 251):
        action = AddAction(f"{number}.parquet", 1, {}, 1, True, '{"numRecords":1}')
        delta.create_write_transaction([action], "append", delta.schema(), [], post_commithook_properties=as_drivers_do)
    return layout


def log_of(lake: Layout) -> list[str]:
    """The files of a log: version and kind."""
    log = lake.table("meta", "progress") / "_delta_log"
    return [f"{int(file.name[:20])}{file.name[20:]}" for file in sorted(log.glob("0*"))]


def files_at(lake: Layout, version: int) -> int:
    return len(DeltaTable(lake.table("meta", "progress"), version=version).file_uris())


@pytest.mark.proves("LAK-038")
@pytest.mark.proves("PIP-103", part="checkpoints of the log are the library's")
@pytest.mark.prove("hundreds of commits")
def test_the_log_has_a_checkpoint_every_hundred_commits_and_forgets_what_is_older_than_a_week(grown: Layout) -> None:
    assert ["99.checkpoint.parquet", "199.checkpoint.parquet"] == [name for name in log_of(grown) if "check" in name]
    now_ns = time.time_ns()
    assert 0 == shorten(grown, PROGRESS, now_ns)
    for version in range(121):
        os.utime(grown.table("meta", "progress") / "_delta_log" / f"{version:020d}.json", ns=(0, 0))
    assert 99 == shorten(grown, PROGRESS, now_ns)
    assert "99.checkpoint.parquet" == log_of(grown)[0]
    assert [99, 121, 250] == [files_at(grown, version) for version in (99, 121, 250)]
    assert 0 == shorten(grown, PROGRESS, now_ns)


@pytest.mark.proves("LAK-038")
@pytest.mark.prove("hundreds of commits")
def test_a_log_keeps_no_more_commits_than_a_driver_can_list_each_second(
    grown: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "COMMITS_MAX", 45)
    assert 200 == shorten(grown, PROGRESS, time.time_ns())
    assert ["199.checkpoint.parquet", "199.json", "200.json"] == log_of(grown)[:3]
    assert [199, 206, 250] == [files_at(grown, version) for version in (199, 206, 250)]
    with pytest.raises(UserError) as refused:
        version_of_table(grown.table("meta", "progress"), "meta.progress", 198)
    assert "no-version" == refused.value.code


def test_a_driver_forgets_the_files_that_its_table_has_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes some each second, and has to know that their bytes are right only as long as somebody reads them."""
    monkeypatch.setattr(digests, "PROVED_FEW", 3)
    lake, nobody = lake_of(tmp_path / "lake"), cast("SparkSession", None)
    tables = Tables(lake, nobody, Writer("samples", "0" * 32, 1))
    tables.handle(PROGRESS)  # creates it
    for batch in range(20):
        tables.append_rows(PROGRESS, batch, [{"job": "samples", "batch": batch}], {})
        delta = opened(lake, PROGRESS)
        assert delta is not None
        if batch % 2:
            exchange(lake, compact.joined(lake, Bundle(PROGRESS, tuple(live_files(delta, PROGRESS)))), 1)
    assert len(tables._proved[PROGRESS.full_name].files) <= 2 * 2 + 3


@pytest.mark.prove("hundreds of commits")
def test_a_commit_of_upkeep_examines_no_old_commit(grown: Layout) -> None:
    """`shorten` does, once in a round: what one commit deleted, every commit would look for in the whole log."""
    for file in (grown.table("meta", "progress") / "_delta_log").glob("0*.json"):
        os.utime(file, ns=(0, 0))
    before, delta = log_of(grown), opened(grown, PROGRESS)
    assert delta is not None
    exchange(grown, Exchange(PROGRESS, tuple(live_files(delta, PROGRESS)[:2]), (), "compact", is_rearranged=True), 1)
    assert [*before, "251.json"] == log_of(grown)


def test_checkpoints_of_the_log_name_no_file_that_was_removed_an_hour_ago(lake: Layout) -> None:
    """A driver removes one file a second and table: each checkpoint would have all of a week."""
    join_all(lake)
    root = lake.table("silver", "samples")
    delta = DeltaTable(root)
    removed = pq.read_table(checkpoint_of(delta), columns=["remove"])["remove"]
    assert 3 == len(removed) - removed.null_count
    delta.alter.set_table_properties({REMOVALS: "interval 0 hours"})  # as if the hour were over
    removed = pq.read_table(checkpoint_of(DeltaTable(root)), columns=["remove"])["remove"]
    assert 0 == len(removed) - removed.null_count


def checkpoint_of(delta: DeltaTable) -> Path:
    """A new checkpoint of a log."""
    delta.create_checkpoint()
    return Path(delta.table_uri.removeprefix("file://")) / "_delta_log" / f"{delta.version():020d}.checkpoint.parquet"


def test_what_is_new_is_found_by_the_log_alone(lake: Layout) -> None:
    delta = opened(lake, SAMPLES)
    assert delta is not None
    assert 2 == len(delta.file_uris(file_pruning_predicate="batch > 2"))
    usual = {"delta.dataSkippingStatsColumns": "origin", "delta.dataSkippingNumIndexedCols": "12"}
    delta.alter.set_table_properties(usual)  # as it is in tables of others: the batch is not among them
    delta.update_incremental()
    assert 4 == len(delta.file_uris(file_pruning_predicate="batch > 2"))


# Vacuum.


def age(lake: Layout, hours: float) -> None:
    """Everything that stands there was written so long ago."""
    for path in lake.table("silver", "samples").rglob("*.parquet"):
        then = path.stat().st_mtime - hours * HOUR_S
        os.utime(path, (then, then))


@pytest.mark.proves("PIP-103", part="vacuum is the library's")
def test_only_what_no_version_of_late_needs_is_vacuumed(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the files that were replaced a minute ago none goes, however old it is: somebody may read them now."""
    root = lake.table("silver", "samples")
    (root / "day=2026-11-22" / "b0000000009-lost.parquet").write_bytes(b"x")
    join_all(lake)
    age(lake, 30)
    (root / "day=2026-11-22" / "b0000000010-young.parquet").write_bytes(b"x")
    staged = root / "_staging" / "part.parquet"
    staged.parent.mkdir()
    staged.write_bytes(b"x")
    os.utime(staged, (0, 0))
    (lost,) = vacuum.stale(lake, 24)
    assert ("b0000000009-lost.parquet", 1) == (lost.path.name, lost.size)
    monkeypatch.setattr(vacuum, "LEAST_HOURS", 0)
    replaced = {f"b{batch:010d}-x0.parquet" for batch in (1, 2, 3)}
    wanted = replaced | {"b0000000009-lost.parquet", "b0000000010-young.parquet"}
    assert wanted == {stale.path.name for stale in vacuum.stale(lake, 0)}
    before, version = rows_of(lake), DeltaTable(root).version()
    assert 5 == len(list(vacuum.delete(lake, vacuum.stale(lake, 0))))
    assert before.equals(rows_of(lake))
    assert [] == list(vacuum.stale(lake, 0))
    assert (True, version) == (staged.exists(), DeltaTable(root).version())


def test_removals_before_a_checkpoint_of_the_log_are_known(lake: Layout) -> None:
    join_all(lake)
    age(lake, 30)
    DeltaTable(lake.table("silver", "samples")).create_checkpoint()
    append(lake, 9, 1)
    assert [] == list(vacuum.stale(lake, 24))


def test_removals_that_the_log_has_forgotten_are_known_by_their_date(lake: Layout) -> None:
    age(lake, 30)
    join_all(lake)
    delta = DeltaTable(lake.table("silver", "samples"))
    delta.alter.set_table_properties({REMOVALS: "interval 0 hours"})
    checkpoint_of(DeltaTable(lake.table("silver", "samples")))
    append(lake, 9, 1)
    assert [] == list(vacuum.stale(lake, 24))
    age(lake, 30)
    assert 3 == len(list(vacuum.stale(lake, 24)))


def test_an_hour_is_the_least(lake: Layout) -> None:
    with pytest.raises(UserError) as refused:
        list(vacuum.stale(lake, 0))
    assert "too-young" == refused.value.code


def test_a_version_says_what_made_it(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    place = lake.table("gold", "rollup_1h")
    place.parent.mkdir(parents=True)
    for about in ({"weft.rows": "7"}, {}):
        said = CommitProperties(custom_metadata={"weft.batch": "3", "weft.job": "samples", **about})
        write_deltalake(place, ROLLUP_1H.schema.arrow().empty_table(), mode="append", commit_properties=said)
    (fold, batch) = versions(lake, "gold.rollup_1h", 9)
    assert ("fold up to batch 3 of samples", "batch 3 of samples, 7 rows") == (fold.what, batch.what)


def test_a_person_is_told_that_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = lake_of(tmp_path / "lake").root
    for is_dry in (True, False):
        compact_by_hand(lake=root, dry_run=is_dry)
        retain(lake=root, dry_run=is_dry)
        forget(lake=root, before="2020-01-01", dry_run=is_dry, yes=not is_dry)
    forget(lake=root, before="2020-01-01")
    said = capsys.readouterr().out.splitlines()
    assert (7, {"nothing to do"}) == (len(said), {line.partition(":")[0] for line in said})
    compact_by_hand(lake=root, json=True)
    assert "" == capsys.readouterr().out


def test_history_of_a_table_that_is_not_there(lake: Layout) -> None:
    with pytest.raises(UserError) as refused:
        list(versions(lake, "silver.nothing", 3))
    assert "no-table" == refused.value.code


# Accounts.


def test_ranges_of_what_goes_and_a_row_that_repeats_a_number_has_none(tmp_path: Path) -> None:
    layout = lake_of(tmp_path / "lake")
    rows: list[dict[str, object]] = [
        {"origin": "o", "era": 1, "sequence": n, "reason": "undecodable"} for n in (1, 2, 3, 7)
    ]
    rows += [{"origin": "o", "era": 1, "sequence": n, "reason": "changed"} for n in (5, 5)]
    rows += [{"origin": None, "era": None, "sequence": 9, "reason": "no-sequence"}]
    put(layout, STAGES["samples"].quarantine, *rows)
    delta = opened(layout, STAGES["samples"].quarantine)
    assert delta is not None
    found = [
        tuple(row.values())
        for row in facts(layout, STAGES["samples"].quarantine, live_files(delta, STAGES["samples"].quarantine))
    ]
    assert {
        ("o", 1, 1, 3, 3), ("o", 1, 7, 7, 1), ("o", 1, None, None, 2), (None, None, None, None, 1),
    } == set(found)  # fmt: skip
    assert len(found) == 4


def test_a_lake_without_jobs_is_whole(lake: Layout) -> None:
    assert ([], []) == (unfolded(lake), [table for table in unfinished(lake) if table is not SAMPLES])
    assert Marks(-1, (-1, -1, -1, -1, -1)) == marks_of(lake, "samples")
