"""Tables without jars: transactions, statistics, what a lost attempt leaves, who may commit (LAK-031..036)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import SparkSession

from tests.pipeline.ground import ERA, MEM, NET, A, Ground, at_ms, taken
from weft import __version__
from weft.base.errors import OurFault, UserError
from weft.lake.layout import Layout
from weft.pipeline import batch, sampled
from weft.pipeline.delta import Tables
from weft.pipeline.lease import LeaseLost
from weft.pipeline.marks import commits_of
from weft.pipeline.runner import refuse_odd
from weft.pipeline.tables import EDGES, SAMPLES, STAGES, VALUES
from weft.pipeline.transforms.samples import to_samples
from weft.pipeline.writer import Writer

pytestmark = pytest.mark.prove("whole batches in Spark")

ROWS = [(MEM, 7, None), (NET, 8, None), (NET, 9, None)]


@pytest.mark.proves("LAK-031", "LAK-034", "LAK-035")
def test_a_batch_is_one_transaction_per_table_that_says_what_it_is(ground: Ground) -> None:
    ground.take(taken(1, ROWS))
    tables = ground.job.tables
    for table in (STAGES["samples"].bronze, SAMPLES, VALUES, EDGES):
        handle = DeltaTable(tables.path(table))
        (commit, *_) = handle.history(1)
        assert ("0", "3", "1") == (commit["weft.batch"], commit["weft.rows"], commit["weft.lease"])
        assert {"at", "vec", "o", "v"} <= json.loads(commit["weft.offset"]).keys()
        assert ground.job._state_after(0).covered.digest() == commit["weft.vec"]
        assert 0 == tables.committed(table)
        assert 1 == handle.transaction_version("weft.lease/samples")
        assert (1, 2) == handle.protocol()[:2]
    (path,) = DeltaTable(tables.path(SAMPLES)).file_uris()
    day = datetime.fromtimestamp(at_ms(1) / 1000, UTC).strftime("%Y-%m-%d")
    assert f"day={day}" == Path(path).parent.name
    assert Path(path).name.startswith("b0000000000-")
    numbers = [row["sequence"] for row in tables.read(SAMPLES).orderBy("sequence").collect()]
    assert [1, 2, 3] == numbers


@pytest.mark.proves("LAK-031")
@pytest.mark.parametrize("is_small", [True, False])
def test_statistics_stand_in_the_log_whoever_wrote_the_file(ground: Ground, is_small: bool) -> None:
    ground.take(taken(1, ROWS))
    tables = ground.job.tables
    files = tables.write(SAMPLES, tables.read(SAMPLES), 1, is_small=is_small)
    (told,) = [json.loads(file.statistics) for file in files]
    stamp = datetime.fromtimestamp(at_ms(1) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert 3 == told["numRecords"]
    assert (A, ERA, 1, stamp) == tuple(told["minValues"][name] for name in ("origin", "era", "sequence", "at"))
    assert (3, 9.0, 0) == tuple(told["maxValues"][name] for name in ("sequence", "value", "batch"))
    assert (0, 3) == (told["nullCount"]["value"], told["nullCount"]["base"])
    assert "labels" not in told["nullCount"]
    tables.commit(SAMPLES, 1, files, {})
    assert 6 == tables.read(SAMPLES).count()


@pytest.mark.proves("LAK-031")
def test_files_of_a_lost_attempt_are_never_read_and_staging_is_swept(ground: Ground) -> None:
    ground.take(taken(1, ROWS))
    tables = ground.job.tables
    tables.write(SAMPLES, tables.read(SAMPLES), 1)
    (tables.path(SAMPLES) / "_staging" / "b1-x").mkdir(parents=True)
    assert 3 == tables.read(SAMPLES).count()
    assert 6 == ground.bytes_of("silver.samples")
    ground.restart()
    assert ground.job.last_number == 0
    assert not (tables.path(SAMPLES) / "_staging").exists()


@pytest.mark.proves("PIP-023")
def test_a_driver_that_was_overtaken_cannot_commit(ground: Ground, spark: SparkSession) -> None:
    ground.take(taken(1, ROWS))
    old = ground.job.tables
    files = old.write(SAMPLES, old.read(SAMPLES), 1)
    new = Tables(ground.lake, spark, Writer("samples", ground.job.record.id, ground.epoch + 1))
    new.commit(SAMPLES, 1, new.write(SAMPLES, new.read(SAMPLES), 1), {})
    with pytest.raises(LeaseLost):
        old.commit(SAMPLES, 1, files, {})
    with pytest.raises(LeaseLost):
        old._check_lease(old._log(SAMPLES))
    assert 6 == new.read(SAMPLES).count()


@pytest.mark.proves("PIP-023")
def test_a_commit_that_another_one_came_before_fails(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.take(taken(1, ROWS))
    one, other = (Tables(ground.lake, spark, Writer("samples", ground.job.record.id, 1)) for _ in range(2))
    files = one.write(SAMPLES, one.read(SAMPLES), 1)
    one.handle(SAMPLES)
    monkeypatch.setattr(one._logs[SAMPLES.full_name], "look", lambda: None)  # does not see what comes
    other.commit(SAMPLES, 1, other.write(SAMPLES, other.read(SAMPLES), 1), {})
    with pytest.raises(LeaseLost):
        one.commit(SAMPLES, 1, files, {})


@pytest.mark.proves("LAK-036")
def test_columns_are_added_and_a_newer_table_is_refused(ground: Ground) -> None:
    path = ground.lake.table("silver", "values")
    path.mkdir(parents=True)
    wanted = json.loads(VALUES.spark().json())
    older = {"type": "struct", "fields": [f for f in wanted["fields"] if f["name"] != "reason"]}
    DeltaTable.create(path, Schema.from_json(json.dumps(older)), partition_by=["day"])
    ground.take(taken(1, ROWS))
    assert "reason" in {field.name for field in DeltaTable(path).schema().fields}
    assert 2 == len(ground.rows("silver.values"))
    newer = DeltaTable(path)
    newer.alter.add_columns([f for f in Schema.from_json(SAMPLES.spark().json()).fields if f.name == "text"])
    ground.restart()
    with pytest.raises(UserError) as refused:
        ground.take()
    assert ("newer-lake", True) == (refused.value.code, f"version {__version__} wrote" in refused.value.try_this)


def test_tables_without_their_checkpoint_are_refused(ground: Ground) -> None:
    ground.take(taken(1, ROWS))
    for file in ground.job.checkpoint.directory.rglob("coverage/*"):
        file.unlink()
    ground.restart()
    with pytest.raises(UserError) as refused:
        ground.take()
    assert "checkpoint-missing" == refused.value.code


@pytest.mark.proves("PIP-032")
def test_a_row_lost_on_the_way_fails_the_batch_before_silver_is_committed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled, "to_samples", lambda rows, flags=(), **how: to_samples(rows, flags, **how).limit(2))
    with pytest.raises(OurFault, match="conservation"):
        ground.take(taken(1, ROWS))
    monkeypatch.undo()
    ground.restart()
    ground.take()
    assert [(1,), (2,), (3,)] == ground.rows("silver.samples", "sequence")


def test_a_batch_of_many_rows_is_written_by_spark(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL_ROWS_MAX", 1)
    monkeypatch.setattr(batch, "ROWS_PER_TASK", 2)
    ground.take(taken(1, ROWS), taken(6, ROWS), taken(86_400 * 2, ROWS))
    ground.take(taken(4, ROWS[:2]), taken(2, ROWS[1:2]))
    assert [1, 2, 3, 4, 5, 6, 7, 8, 172800, 172801, 172802] == [n for (n,) in ground.rows("silver.samples", "sequence")]
    assert [(2, 3), (3, 5), (5, 7), (7, 8), (172801, 172802)] == ground.pairs()
    for file in DeltaTable(ground.lake.table("silver", "samples")).file_uris():
        assert Path(file).exists(), file


def test_a_lake_behind_a_link_is_known_by_the_path_that_the_log_names_files_by(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "real" / "tables" / "silver" / "samples"
    write_deltalake(path, pa.table({"sequence": [1]}))
    nobody: Any = None
    tables = Tables(Layout(tmp_path / "link"), nobody)
    (file,) = DeltaTable(tmp_path / "link" / "tables" / "silver" / "samples").file_uris()
    assert [Path(file).name] == tables.relative(SAMPLES, [file]), "else what a fold replaces would stay"


def test_a_lake_in_a_directory_with_a_name_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    ground = Ground(tmp_path / "my lake, é+", spark)
    ground.take(taken(1, ROWS))
    ground.job.fold()
    ground.restart()
    ground.take(taken(4, ROWS[1:]))
    ground.job.fold()
    assert [(2, 3), (3, 4), (4, 5)] == ground.pairs()
    assert 3 == sum(n for (n,) in ground.rows("gold.rollup_1d", "n"))
    handle = DeltaTable(ground.lake.table("silver", "samples"))
    assert [1, 0] == [one.batch for one in commits_of(handle) if one.batch is not None]


@pytest.mark.parametrize("name", ["a[b]", "50%", "a*", "a{b}", "what?", "no. #1", "a\nb"])
def test_a_lake_that_spark_or_delta_would_look_for_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="in its name"):
        refuse_odd(Layout(tmp_path / name))
