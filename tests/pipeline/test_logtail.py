"""What a power cut leaves at the end of a table's log, and that whoever starts next goes on without it (FLD-042)."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.pipeline.plain import lake_of
from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline import delta
from weft.pipeline.delta import Tables, made_by_us
from weft.pipeline.logdigests import HINT, log_proofs
from weft.pipeline.logtail import remove_torn
from weft.pipeline.marks import newest_mark
from weft.pipeline.tables import PROGRESS, there
from weft.pipeline.writer import Writer

CHECKPOINT = 99
"""The version that `deltalake` commits with a checkpoint of the log; its batch is 98."""


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return lake_of(tmp_path / "lake")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A lake whose next commit is the hundredth."""
    lake = lake_of(tmp_path_factory.mktemp("before") / "lake")
    take(tables_of(lake), 0, CHECKPOINT - 1)
    return lake


@pytest.fixture
def long(before: Layout, tmp_path: Path) -> Layout:
    shutil.copytree(before.root, tmp_path / "long")
    return Layout(tmp_path / "long")


def tables_of(lake: Layout, epoch: int = 1) -> Tables:
    nobody: Any = None
    return Tables(lake, nobody, Writer("samples", "0" * 32, epoch))


def take(tables: Tables, first: int, last: int) -> None:
    tables.handle(PROGRESS)  # creates it
    for batch in range(first, last):
        tables.append_rows(PROGRESS, batch, [{"job": "samples", "batch": batch}], {})


def log_of(lake: Layout) -> Path:
    return lake.table("meta", "progress") / "_delta_log"


def commit(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def first(lake: Layout) -> list[str]:
    """The first commit of a table."""
    tables_of(lake).handle(PROGRESS)
    return [commit(0)]


def hundredth(lake: Layout) -> list[str]:
    take(tables_of(lake), CHECKPOINT - 1, CHECKPOINT)
    return [commit(CHECKPOINT), checkpoint(CHECKPOINT), HINT]


def altered(lake: Layout) -> list[str]:
    path = lake.table("meta", "progress")
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "false"}, commit_properties=made_by_us())
    return [commit(DeltaTable(path).version())]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def without_its_end(file: Path) -> None:
    """A text ends behind one of its lines; what it says is in part there."""
    if file.suffix == ".json" and file.read_bytes().count(b"\n"):
        file.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n")
    else:
        half(file)


TEARS = (empty, zeros, half, without_its_end, Path.unlink)
Tear = Callable[[Path], None]


def cut(lake: Layout, make: Callable[[Layout], list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A commit of the library, and the power is gone before anything of it is synced; returns the names that it made."""
    with monkeypatch.context() as patch:
        patch.setattr(delta, "note_commits", lambda *_: None)
        return make(lake)


def goes_on(lake: Layout, last: int) -> None:
    """The next driver makes the batches up to that one; each is there once, and nothing of the log is odd."""
    tables = tables_of(lake, 2)
    begun = tables.committed(PROGRESS) + 1
    take(tables, begun, last + 1)
    held = DeltaTable(lake.table("meta", "progress")).to_pyarrow_table(columns=["batch"])
    assert list(range(last + 1)) == sorted(held["batch"].to_pylist())
    assert [] == [proof for proof in log_proofs(lake, PROGRESS) if proof.fault]
    mark = newest_mark(lake.table("meta", "progress"), "samples")
    assert mark is not None
    assert last == mark.batch


@pytest.mark.proves("FLD-042", part="a table whose newest commit a power cut has torn is opened without it")
@pytest.mark.parametrize("tear", TEARS)
@pytest.mark.parametrize("which", range(3))
def test_a_hundredth_commit_of_which_a_power_cut_left_a_part_is_made_again(
    long: Layout, monkeypatch: pytest.MonkeyPatch, tear: Tear, which: int
) -> None:
    torn = cut(long, hundredth, monkeypatch)[which]
    tear(log_of(long) / torn)
    gone = remove_torn(long)
    assert {} == remove_torn(long)
    assert set(gone) <= {"meta.progress"}
    goes_on(long, CHECKPOINT + 1)


@pytest.mark.parametrize("tear", TEARS)
@pytest.mark.parametrize("make", [first, altered])
def test_a_table_or_column_of_which_a_power_cut_left_a_part_is_made_again(
    lake: Layout, monkeypatch: pytest.MonkeyPatch, tear: Tear, make: Callable[[Layout], list[str]]
) -> None:
    if make is altered:
        take(tables_of(lake), 0, 3)
    (name,) = cut(lake, make, monkeypatch)
    if tear is without_its_end and make is altered:
        return  # what is left is a commit that says nothing
    tear(log_of(lake) / name)
    remove_torn(lake)
    assert (make is altered) == (PROGRESS in there(lake))
    goes_on(lake, 4)


def test_whole_commits_stay_whether_they_have_a_digest_or_not(long: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(long, hundredth, monkeypatch)
    names = sorted(file.name for file in log_of(long).iterdir())
    assert {} == remove_torn(long)
    assert names == sorted(file.name for file in log_of(long).iterdir())
    goes_on(long, CHECKPOINT)


@pytest.mark.parametrize("name", [commit(CHECKPOINT), checkpoint(CHECKPOINT)])
def test_what_was_synced_and_is_torn_nevertheless_is_refused_and_not_removed(long: Layout, name: str) -> None:
    hundredth(long)
    half(log_of(long) / name)
    assert {} == remove_torn(long)
    with pytest.raises(UserError) as refused:
        tables_of(long, 2).handle(PROGRESS)
    assert "damaged" == refused.value.code
    assert name in refused.value.text
