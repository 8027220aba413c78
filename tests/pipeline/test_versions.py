"""Tables as those who only read open them: the newest version, and how far an application was there (PIP-090, PIP-102)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from weft.pipeline import versions
from weft.pipeline.marks import NEAR, app_version
from weft.pipeline.versions import opened


def commit(path: Path, *rows: int, **apps: int) -> None:
    properties = CommitProperties(app_transactions=[Transaction(name, number) for name, number in apps.items()])
    write_deltalake(path, pa.table({"n": list(rows)}), mode="append", commit_properties=properties)


def newest(path: Path) -> DeltaTable | None:
    return opened(path, "a table", None)


def read(path: Path) -> list[int]:
    handle = newest(path)
    assert handle is not None
    return sorted(handle.to_pyarrow_table().column("n").to_pylist())


@pytest.mark.proves("PIP-090", part="the newest version is read, however often the table was read before")
def test_a_table_is_opened_anew_only_if_it_has_a_newer_version(tmp_path: Path) -> None:
    path = tmp_path / "table"
    assert newest(path) is None
    for number in range(3):
        commit(path, number)
        assert list(range(number + 1)) == read(path)
        assert newest(path) is newest(path)
    held = newest(path)
    shutil.rmtree(path)
    for number in range(3):
        commit(path, 10 + number)
    assert [10, 11, 12] == read(path), "another table with as many commits"
    assert newest(path) is not held
    DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{2:020d}.json").unlink()
    assert [10, 11, 12] == read(path), "a log that has only a checkpoint of its last version"
    shutil.rmtree(path)
    assert newest(path) is None
    assert path not in versions._held


@pytest.mark.proves("PIP-090", part="a table that is kept open can be read whatever its log has dropped")
def test_a_table_is_opened_anew_if_its_log_got_a_checkpoint_since_and_may_drop_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "table"
    commit(path, 1, a=7)
    for _ in range(NEAR + 3):
        commit(path, 1)
    before = newest(path)
    assert before is not None
    DeltaTable(path).create_checkpoint()
    for version in range(NEAR + 3):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(Exception, match="not found"):
        app_version(before, "a")
    after = newest(path)
    assert after is not None
    assert 7 == app_version(after, "a")
    assert after is newest(path)


@pytest.mark.proves("PIP-102", part="the batch that a version ends with, of a log with damage that a checkpoint mends")
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: bytes(len(whole)),
        lambda whole: whole[: whole.index(b"\n")],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(b'"txn"', b'"tyn"'),
        lambda whole: whole.replace(b'"version":4', b'"version":9'),
    ],
)
def test_a_damaged_commit_before_the_checkpoint_of_a_log_says_nothing(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "table"
    for number in range(5):
        commit(path, 1, b=number)
    commit(path, 1)
    DeltaTable(path).create_checkpoint()
    commit(path, 1)
    damaged = path / "_delta_log" / f"{4:020d}.json"
    damaged.write_bytes(damage(damaged.read_bytes()))
    handle = newest(path)
    assert handle is not None
    assert 4 == handle.transaction_version("b") == app_version(handle, "b")


@pytest.mark.proves("PIP-090", part="no more than so many tables are held")
def test_tables_that_were_read_long_ago_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "HELD_MAX", 3)
    monkeypatch.setattr(versions, "_held", {})
    for name in "abcde":
        commit(tmp_path / name, 1)
        assert [1] == read(tmp_path / name)
        assert len(versions._held) <= 3


@pytest.mark.proves("PIP-102", part="the batch that a version ends with")
def test_the_version_of_an_application_is_as_of_the_version_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "table"
    seen = []
    for apps in ({}, {"a": 1}, {"ab": 7}, {"a": 2, "b": 1}, *[{"b": n} for n in range(2, NEAR + 3)], {"a": 3}):
        commit(path, 1, **apps)
        seen.append(newest(path))
    for handle in seen:
        assert handle is not None
        for app in ("a", "b", "ab", "c"):
            assert handle.transaction_version(app) == app_version(handle, app), (handle.version(), app)
    last = seen[-1]
    assert last is not None
    last.create_checkpoint()
    for file in (path / "_delta_log").glob("*.json"):
        file.unlink()
    told = newest(path)
    assert told is not None
    assert [3, 10, 7, None] == [app_version(told, app) for app in ("a", "b", "ab", "c")]
