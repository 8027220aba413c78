"""Commits that a driver writes itself, so that they do not list the log: deltalake reads them as its own (LAK-031, PIP-103)."""

import errno
import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.pipeline.plain import lake_of
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.pipeline import delta
from weft.pipeline.delta import Tables, made_by_us
from weft.pipeline.lease import LeaseLost
from weft.pipeline.logdigests import log_proofs
from weft.pipeline.tables import PROGRESS, SAMPLES, Table
from weft.pipeline.upkeep import compact
from weft.pipeline.upkeep.compact import Bundle
from weft.pipeline.upkeep.log import exchange, live_files, opened
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 130


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return lake_of(tmp_path / "lake")


def tables_of(lake: Layout, epoch: int = 1) -> Tables:
    return Tables(lake, cast("SparkSession", None), Writer("samples", "0" * 32, epoch))


def grow(tables: Tables, first: int, last: int, table: Table = PROGRESS) -> None:
    """Batches of one row each; behind them the table has them all."""
    tables.handle(table)  # creates it
    for batch in range(first, last):
        take(tables, batch, table)


def take(tables: Tables, batch: int, table: Table = PROGRESS) -> None:
    tables.append_rows(table, batch, [{"job": "samples", "batch": batch}], {"weft.offset": f'{{"at":"{batch}"}}'})


def root_of(lake: Layout) -> Path:
    return lake.table("meta", "progress")


def batches_in(lake: Layout) -> list[int]:
    rows = DeltaTable(root_of(lake)).to_pyarrow_table(columns=["batch"])
    return sorted(rows["batch"].to_pylist())


def lines_of(lake: Layout, version: int) -> list[dict[str, object]]:
    commit = root_of(lake) / "_delta_log" / f"{version:020d}.json"
    return [json.loads(line) for line in commit.read_text("utf-8").splitlines()]


@pytest.fixture
def by_library(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions from which deltalake has made a commit."""
    seen: list[int] = []
    real = delta.transact

    def transact(lake: Layout, table: Table, handle: DeltaTable, *how: object) -> None:
        seen.append(handle.version())
        real(lake, table, handle, *how)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(delta, "transact", transact)
    return seen


def test_what_a_driver_that_was_killed_left_in_a_log_is_gone_when_the_next_one_starts(lake: Layout) -> None:
    tables = tables_of(lake)
    grow(tables, 0, 2)
    names = sorted(file.name for file in (root_of(lake) / "_delta_log").iterdir())
    (root_of(lake) / "_delta_log" / f"{3:020d}.json#{'0a' * 16}").write_bytes(b"{")
    others = root_of(lake) / "_delta_log" / f"{3:020d}.json#1"
    others.write_bytes(b"{")
    tables_of(lake, 2).sweep(PROGRESS)
    assert [*names, others.name] == sorted(file.name for file in (root_of(lake) / "_delta_log").iterdir())


@pytest.mark.proves("FLD-042", part="a disk that cannot sync a commit: nothing has its name")
def test_a_commit_that_cannot_be_synced_is_not_made(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(lake)
    grow(tables, 0, 2)
    before = DeltaTable(root_of(lake)).version()

    def sync(_: LocalFiles, path: Path) -> None:
        if ".json#" in path.name:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(LocalFiles, "sync", sync)
    with pytest.raises(OSError, match="Input/output"):
        take(tables, 2)
    monkeypatch.undo()
    assert before == DeltaTable(root_of(lake)).version()
    assert [] == list((root_of(lake) / "_delta_log").glob("*#*"))
    take(tables, 2)
    assert [0, 1, 2] == batches_in(lake)


@pytest.mark.parametrize("call", ["write_bytes", "rename"])
def test_of_files_that_a_full_disk_refuses_none_is_left(
    lake: Layout, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A driver is started again and again while the disk is full: each attempt would leave less room to the others."""
    tables = tables_of(lake)
    tables.handle(SAMPLES)
    days = [{"day": date(2026, 11, day), "batch": 0} for day in (21, 22)]
    real, left = getattr(Path, call), [1]

    def refuse(file: Path, *how: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device", str(file))
        return real(file, *how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, call, refuse)
        with pytest.raises(OSError, match="No space left"):
            tables.append_rows(SAMPLES, 0, days, {})
    assert [] == list(tables.path(SAMPLES).rglob("*.parquet"))
    tables.append_rows(SAMPLES, 0, days, {})
    assert 2 == DeltaTable(tables.path(SAMPLES)).to_pyarrow_table().num_rows


@pytest.mark.parametrize("is_plain", [True, False])
def test_no_commit_names_a_file_that_is_gone(lake: Layout, *, is_plain: bool) -> None:
    """As when the clock was set forward by years, and vacuum took a file of this minute for an old one."""
    tables = tables_of(lake)
    grow(tables, 0, 2)
    tables._logs[PROGRESS.full_name].is_plain = is_plain
    rows = pa.Table.from_pylist([{"job": "samples", "batch": 2}], PROGRESS.schema.arrow())
    (file,) = made = tables.write_rows(PROGRESS, rows, 2)
    (root_of(lake) / file.path).unlink()
    with pytest.raises(FileNotFoundError):
        tables.commit(PROGRESS, 2, made, {})
    take(tables, 2)
    assert [0, 1, 2] == batches_in(lake)


@pytest.mark.proves("LAK-031")
@pytest.mark.proves("LAK-038")
def test_the_library_reads_what_a_driver_commits_itself(lake: Layout, by_library: list[int]) -> None:
    tables = tables_of(lake)
    grow(tables, 0, BATCHES)
    assert [98] == by_library, "the hundredth, with the checkpoint, and no other"
    assert list(range(BATCHES)) == batches_in(lake)
    handle = DeltaTable(root_of(lake))
    assert (BATCHES, BATCHES - 1) == (handle.version(), handle.transaction_version(tables.writer.app(PROGRESS)))  # type: ignore[union-attr]  # it has one
    newest = handle.history(1)[0]
    assert ("WRITE", str(BATCHES - 1), f'{{"at":"{BATCHES - 1}"}}') == tuple(
        newest[name] for name in ("operation", "weft.batch", "weft.offset")
    )
    assert (root_of(lake) / "_delta_log" / f"{99:020d}.checkpoint.parquet").exists()
    assert sorted(handle.file_uris()) == sorted(tables.files(PROGRESS))
    assert [] == [proof for proof in log_proofs(lake, PROGRESS) if proof.fault]
    assert [] == list((root_of(lake) / "_delta_log").glob("*#*"))


@pytest.mark.proves("LAK-031")
def test_its_lines_are_those_of_the_library(lake: Layout) -> None:
    tables = tables_of(lake)
    grow(tables, 0, 1)
    (old,) = live_files(tables.handle(PROGRESS), PROGRESS)
    forms = []
    for is_plain in (True, False):
        tables._logs[PROGRESS.full_name].is_plain = is_plain
        tables.commit(PROGRESS, 1, [], {"weft.rows": "1"}, remove=[old.path])
        lines = lines_of(lake, tables.handle(PROGRESS).version())
        assert ["commitInfo", "remove", "txn", "txn"] == [next(iter(line)) for line in lines]
        forms.append([next(iter(line.values())) for line in lines])
    ours, theirs = forms
    varying = {"timestamp", "deletionTimestamp", "lastUpdated", "engineInfo", "clientVersion"}
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        assert {n: one[n] for n in one if n not in varying} == {n: other[n] for n in other if n not in varying}


@pytest.mark.proves("PIP-103", part="a driver commits behind what others have committed")
def test_what_others_commit_is_seen_without_a_list(lake: Layout, by_library: list[int]) -> None:
    one, other = tables_of(lake), tables_of(lake)
    grow(one, 0, 3)
    grow(other, 3, 5)
    assert 4 == one.committed(PROGRESS)
    join_all(lake)
    grow(one, 5, 7)
    assert [] == by_library
    assert list(range(7)) == batches_in(lake)
    for tables in (one, other):
        assert sorted(DeltaTable(root_of(lake)).file_uris()) == sorted(tables.files(PROGRESS))
    assert 3 == len(one.files(PROGRESS))


def join_all(lake: Layout) -> None:
    handle = opened(lake, PROGRESS)
    assert handle is not None
    exchange(lake, compact.joined(lake, Bundle(PROGRESS, tuple(live_files(handle, PROGRESS)))), 1)


@pytest.mark.proves("PIP-103")
def test_of_a_commit_that_somebody_else_was_faster_with_the_library_judges(
    lake: Layout, by_library: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tables_of(lake)
    grow(tables, 0, 3)
    log = tables._logs[PROGRESS.full_name]
    with monkeypatch.context() as patch:
        patch.setattr(log, "look", lambda: None)
        join_all(lake)
        take(tables, 3)
    assert [3] == by_library
    assert list(range(4)) == batches_in(lake)
    assert sorted(DeltaTable(root_of(lake)).file_uris()) == sorted(tables.files(PROGRESS))
    with monkeypatch.context() as patch:
        patch.setattr(log, "look", lambda: None)
        grow(tables_of(lake), 4, 5)
        with pytest.raises(LeaseLost):
            take(tables, 4)
    assert list(range(5)) == batches_in(lake)


@pytest.mark.proves("PIP-023")
def test_a_driver_that_slept_until_its_version_was_deleted_commits_nothing(lake: Layout) -> None:
    sleeping = tables_of(lake)
    grow(sleeping, 0, 3)
    grow(tables_of(lake), 3, BATCHES)
    for version in range(99):
        (root_of(lake) / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(LeaseLost):
        take(sleeping, 3)
    assert 99 == min(int(file.stem) for file in (root_of(lake) / "_delta_log").glob("*.json") if file.stem.isdigit())
    assert list(range(BATCHES)) == batches_in(lake)


ASKED: dict[str, Callable[[Tables], object]] = {
    "files": lambda tables: tables.files(PROGRESS),
    "chosen files": lambda tables: tables.files(PROGRESS, "batch = 1"),
    "handle": lambda tables: tables.handle(PROGRESS),
    "last batch": lambda tables: tables.committed(PROGRESS),
    "statistics": lambda tables: list(tables.statistics(PROGRESS, "max.batch")),
    "rows of a batch": lambda tables: tables.rows_of_batch(PROGRESS, 1),
    "lease": lambda tables: tables.commit(PROGRESS, 3, [], {}),
    "mark": lambda tables: tables.mark(PROGRESS, 3, {}),
    "commit": lambda tables: take(tables, 3),
}
ENDING_WITH_THE_LOOK = ("files", "lease", "last batch")


@pytest.mark.proves("PIP-023", part="whoever slept while the log dropped what it knew is refused by name")
@pytest.mark.prove("hundreds of commits")
@pytest.mark.parametrize(
    ("name", "is_seen"),
    [*((name, True) for name in ASKED), *((name, False) for name in ASKED if name not in ENDING_WITH_THE_LOOK)],
)
def test_whatever_is_asked_of_a_log_that_has_dropped_the_known_version_is_refused(
    slept: tuple[Layout, Tables], name: str, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    """Also if it is dropped between the look and what comes behind it."""
    _, sleeping = slept
    log = sleeping._logs[PROGRESS.full_name]
    if not is_seen:
        monkeypatch.setattr(log, "look", monkeypatch.undo)
    with pytest.raises(LeaseLost):
        ASKED[name](sleeping)


@pytest.fixture
def slept(lake: Layout) -> tuple[Layout, Tables]:
    sleeping = tables_of(lake)
    grow(sleeping, 0, 3)
    grow(tables_of(lake), 3, BATCHES)
    for version in range(99):
        (root_of(lake) / "_delta_log" / f"{version:020d}.json").unlink()
    return lake, sleeping


@pytest.mark.proves(
    "PIP-023", part="a batch that another driver has committed since this one began it is not made twice"
)
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 2)])
def test_a_batch_that_another_driver_committed_meanwhile_is_not_made_twice(
    lake: Layout, before: int, after: int
) -> None:
    """Where locks do not reach, the older one of two drivers may be the faster one."""
    grow(tables_of(lake), 0, 2)
    old, new = tables_of(lake, before), tables_of(lake, after)
    assert 1 == new.committed(PROGRESS) == old.committed(PROGRESS)
    take(old, 2)
    with pytest.raises(LeaseLost, match="batch 2"):
        take(new, 2)
    assert [0, 1, 2] == batches_in(lake)
    assert 2 == new.committed(PROGRESS)
    take(new, 3)
    assert [0, 1, 2, 3] == batches_in(lake)


@pytest.mark.proves("PIP-103")
def test_a_table_that_others_have_changed_is_left_to_the_library(lake: Layout, by_library: list[int]) -> None:
    tables = tables_of(lake)
    grow(tables, 0, 2)
    DeltaTable(root_of(lake)).alter.set_table_properties({"delta.appendOnly": "false"}, commit_properties=made_by_us())
    grow(tables, 2, 3)
    grow(tables_of(lake), 3, 4)
    assert [3, 4] == by_library
    assert list(range(4)) == batches_in(lake)


@pytest.mark.proves("LAK-031")
def test_a_partition_and_a_path_that_would_be_quoted(lake: Layout, by_library: list[int]) -> None:
    tables = tables_of(lake)
    root = tables.path(SAMPLES)
    tables.mark(SAMPLES, 0, {})
    grow(tables, 0, 1)
    (file,) = tables.files(PROGRESS)
    for batch, name in ((1, "b0000000001-a.parquet"), (2, "b 2.parquet")):
        (root / "day=2026-11-22").mkdir(exist_ok=True)
        shutil.copy(file, root / "day=2026-11-22" / name)
        path, size = f"day=2026-11-22/{name}", (root / "day=2026-11-22" / name).stat().st_size
        made = delta.DataFile(path, size, {"day": "2026-11-22"}, 1, '{"numRecords":1}')
        tables.commit(SAMPLES, batch, [made], {})
    assert [2] == by_library
    (held,) = {one.partition for one in live_files(DeltaTable(root), SAMPLES)}
    assert "2026-11-22" == held
    assert [str(root / "day=2026-11-22" / name) for name in ("b 2.parquet", "b0000000001-a.parquet")] == sorted(
        tables.files(SAMPLES)
    )
