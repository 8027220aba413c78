"""DuckDB over the files of a Delta log: columns are those of the log, whatever the files hold and wherever they lie."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import MapType, PrimitiveType

from tests.pipeline.plain import lake_of
from tests.pipeline.test_sql import plain_lake
from weft.base.errors import UserError
from weft.lake.schemas import Schema
from weft.pipeline.delta import Tables
from weft.pipeline.scan import scan
from weft.pipeline.sql import Lake
from weft.pipeline.tables import PROGRESS
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.proves("PIP-090")
TEXT = PrimitiveType("string")
FIRST = pa.table({"sequence": [1, 2], "text": ["a", None]})


def ask(root: Path, text: str) -> list[dict[str, Any]]:
    with Lake(root) as lake:
        rows: list[dict[str, Any]] = lake.query(text).to_pylist()
    return rows


def path_of(root: Path) -> Path:
    return root / "tables" / "silver" / "samples"


def test_a_column_that_came_later_is_nothing_in_what_is_older(tmp_path: Path) -> None:
    plain_lake(tmp_path, "silver.samples", FIRST)
    more = [Field("late", PrimitiveType("double")), Field("labels", MapType(TEXT, TEXT, value_contains_null=True))]
    DeltaTable(path_of(tmp_path)).alter.add_columns(more)
    older = {"late": None, "labels": None}
    wanted = [{"sequence": 1, "text": "a"} | older, {"sequence": 2, "text": None} | older]
    assert wanted == ask(tmp_path, "FROM samples ORDER BY sequence"), "no file has them"
    rows = pa.table({"late": [0.5], "sequence": [3]})
    write_deltalake(path_of(tmp_path), rows, mode="append", schema_mode="merge")
    wanted.append({"sequence": 3, "text": None, "late": 0.5, "labels": None})
    assert wanted == ask(tmp_path, "FROM samples ORDER BY sequence"), "one file has one of them"
    with Lake(tmp_path, 0) as lake:
        assert ["sequence", "text"] == lake.query("FROM samples").column_names, "as it was then"


class Counting:
    """A connection that notes how many files each of its relations is over."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.files: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def sql(self, text: str) -> duckdb.DuckDBPyRelation:
        self.files.append(text.count(".parquet"))
        return self.connection.sql(text)


def test_all_files_are_asked_for_their_columns_only_if_the_newest_lacks_one(tmp_path: Path) -> None:
    for _ in range(3):
        write_deltalake(path_of(tmp_path), FIRST, mode="append")
    with duckdb.connect() as connection:
        counting: Any = Counting(connection)
        scan(counting, DeltaTable(path_of(tmp_path)))
        assert [1] == counting.files
        DeltaTable(path_of(tmp_path)).alter.add_columns([Field("late", PrimitiveType("double"))])
        scan(counting, DeltaTable(path_of(tmp_path)))
        assert [1, 1, 3] == counting.files


def test_a_table_of_ours_is_opened_without_a_look_into_every_file(tmp_path: Path) -> None:
    """Until a column is added: then the files of before lack it."""
    lake = lake_of(tmp_path / "lake")
    tables = Tables(lake, cast("SparkSession", None), Writer("samples", "0" * 32, 1))
    narrow = PROGRESS._replace(schema=Schema(PROGRESS.full_name, PROGRESS.schema.columns[:-1]))
    tables.handle(narrow)
    for batch in range(2):
        tables.append_rows(narrow, batch, [{"job": "a", "batch": batch}], {})
    with duckdb.connect() as connection:
        rows = scan(connection, tables.handle(narrow))
        assert {(0,), (1,)} == set(connection.sql(f"SELECT batch FROM ({rows})").fetchall())
        *_, other = (Path(file) for file in tables.handle(narrow).file_uris())
        whole = other.read_bytes()
        other.write_bytes(b"nobody looks into it")
        connection.sql(rows)
        other.write_bytes(whole)
    wide = Tables(lake, cast("SparkSession", None), Writer("samples", "0" * 32, 2))
    wide.append_rows(PROGRESS, 2, [{"job": "a", "batch": 2, PROGRESS.schema.names[-1]: 7}], {})
    late = PROGRESS.schema.names[-1]
    asked = ask(lake.root, f"SELECT batch, {late} AS late FROM meta.progress ORDER BY batch")
    assert [{"batch": n, "late": 7 if n == 2 else None} for n in range(3)] == asked


def test_duckdb_has_no_view_but_the_table_that_is_asked_for(tmp_path: Path) -> None:
    with Lake(plain_lake(tmp_path, "silver.samples", FIRST)) as lake:
        lake.query("FROM samples")
        views = lake.query("SELECT view_name FROM duckdb_views() WHERE NOT internal").to_pylist()
    assert [{"view_name": "samples"}] == views, "each view opens all files once more"


def test_days_are_those_of_the_folders_and_one_without_a_day_has_none(tmp_path: Path) -> None:
    (tmp_path / "lake.json").touch()
    rows = pa.table({"sequence": [1, 2, 3], "day": [date(2026, 1, 2), None, date(2026, 1, 3)]})
    write_deltalake(path_of(tmp_path), rows, partition_by=["day"])
    assert rows.to_pylist() == ask(tmp_path, "FROM samples ORDER BY sequence")
    assert [{"sequence": 3}] == ask(tmp_path, "SELECT sequence FROM samples WHERE day = DATE '2026-01-03'")
    plan = str(ask(tmp_path, "EXPLAIN SELECT sequence FROM samples WHERE day = DATE '2026-01-03'"))
    assert "1/3" in plan, "of three files, one is read"


def test_what_has_no_rows_has_columns(tmp_path: Path) -> None:
    plain_lake(tmp_path, "silver.samples", FIRST.slice(0, 0))
    DeltaTable(path_of(tmp_path)).delete()
    with Lake(tmp_path) as lake:
        answer = lake.query("FROM samples")
    assert (0, ["sequence", "text"]) == (answer.num_rows, answer.column_names)


@pytest.mark.parametrize("name", ["a*b?", "it's", "with space", "ä {1}"])
def test_a_lake_lies_in_any_folder(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    home.mkdir()
    plain_lake(home, "silver.samples", FIRST)
    assert FIRST.to_pylist() == ask(home, "FROM samples ORDER BY sequence")
    (tmp_path / "link").symlink_to(home)
    assert FIRST.to_pylist() == ask(tmp_path / "link", "FROM samples ORDER BY sequence")


def test_a_lake_is_asked_by_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert 2 == len(ask(plain_lake(Path(), "silver.samples", FIRST), "FROM samples"))


def test_a_folder_that_is_named_as_a_day_is_not_taken_for_the_day_of_rows(tmp_path: Path) -> None:
    home = tmp_path / "day=2020-01-01"
    home.mkdir()
    (home / "lake.json").touch()
    rows = pa.table({"sequence": [1], "day": [date(2026, 1, 2)]})
    write_deltalake(path_of(home), rows, partition_by=["day"])
    with pytest.raises(UserError) as refused:
        ask(home, "FROM samples")
    assert "bad-place" == refused.value.code
