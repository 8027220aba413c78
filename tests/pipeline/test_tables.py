"""The tables as other programs see them: their columns, their protocol, their rows, whoever reads."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.pipeline.conftest import Filled
from weft.pipeline.kinds import KINDS
from weft.pipeline.tables import ALL, FORGOTTEN, PROGRESS, Table

TYPES = {
    "string": "string",
    "bigint": "long",
    "int": "integer",
    "double": "double",
    "timestamp": "timestamp",
    "date": "date",
    "boolean": "boolean",
    "binary": "binary",
}

WRITTEN = {name: table for name, table in ALL.items() if table != FORGOTTEN}
"""All but the one that is there only where something was removed on purpose (test_upkeep_lake)."""
each_table = pytest.mark.parametrize("table", WRITTEN.values(), ids=WRITTEN.keys())


def opened(filled: Filled, table: Table) -> DeltaTable:
    return DeltaTable(filled.ground.lake.table(table.layer, table.name))


def spoken(kind: Any) -> Any:
    """A type of the Delta log in the words of `tables.py`."""
    if isinstance(kind, str):
        return next(ours for ours, theirs in TYPES.items() if theirs == kind)
    if kind["type"] == "map":
        return f"map<{spoken(kind['keyType'])},{spoken(kind['valueType'])}>"
    if kind["type"] == "array":
        return f"array<{spoken(kind['elementType'])}>"
    return "struct<" + ",".join(f"{field['name']}:{spoken(field['type'])}" for field in kind["fields"]) + ">"


@pytest.mark.proves("LAK-034")
@each_table
def test_columns_and_partition_are_those_that_are_written_down(filled: Filled, table: Table) -> None:
    delta = opened(filled, table)
    found = [(field["name"], spoken(field["type"])) for field in json.loads(delta.schema().to_json())["fields"]]
    assert [(column.name, column.type) for column in table.schema.columns] == found
    assert [table.partition] * bool(table.partition) == delta.metadata().partition_columns


@pytest.mark.proves("LAK-032")
@each_table
def test_the_oldest_protocol_is_enough(filled: Filled, table: Table) -> None:
    delta = opened(filled, table)
    protocol = delta.protocol()
    assert (1, 2) == (protocol.min_reader_version, protocol.min_writer_version)
    assert not protocol.reader_features
    assert not protocol.writer_features


@pytest.mark.proves("LAK-031", "LAK-032")
@each_table
def test_readers_agree_on_the_rows_and_the_log_counts_them(filled: Filled, table: Table) -> None:
    delta = opened(filled, table)
    rows = delta.to_pyarrow_table().num_rows
    files = delta.file_uris()
    with duckdb.connect() as connection:
        connection.register("log", delta.to_pyarrow_dataset())
        assert (rows,) == connection.execute("SELECT count(*) FROM log").fetchone()
        if files:
            assert (rows,) == connection.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchone()
    log = [_statistics(line) for line in _log(filled.ground.lake.table(table.layer, table.name))]
    live = {str(file).rpartition("/")[2] for file in files}
    assert rows == sum(count for name, count in log if name in live)
    assert rows == (filled.ground.spark.read.parquet(*files).count() if files else 0)


def _log(path: Path) -> list[dict[str, Any]]:
    lines = [line for file in sorted((path / "_delta_log").glob("*.json")) for line in file.read_text().splitlines()]
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def _statistics(add: dict[str, Any]) -> tuple[str, int]:
    return add["path"].rpartition("/")[2], json.loads(add["stats"])["numRecords"]


@pytest.mark.proves("LAK-035")
@each_table
def test_each_commit_says_its_batch_and_its_offset(filled: Filled, table: Table) -> None:
    commits = [commit for commit in opened(filled, table).history() if commit["operation"] == "WRITE"]
    for commit in commits:
        assert {"weft.batch", "weft.lease", "weft.version", "weft.offset"} <= commit.keys()
        assert json.loads(commit["weft.offset"])["at"]
    if table.layer in ("bronze", "silver"):
        assert all({"weft.rows", "weft.vec"} <= commit.keys() for commit in commits)


@pytest.mark.proves("LAK-031")
def test_a_batch_is_in_a_table_once(filled: Filled) -> None:
    for table in WRITTEN.values():
        commits = opened(filled, table).history()
        batches = [(commit["weft.job"], commit["weft.batch"]) for commit in commits if "weft.batch" in commit]
        assert len(batches) == len(set(batches)) or table.layer == "gold", table.full_name


@pytest.mark.proves("PIP-032")
def test_progress_accounts_for_every_row(filled: Filled) -> None:
    progress = filled.ground.rows(PROGRESS.full_name, order=("job", "batch"))
    once = [(job, 0) for job in KINDS]
    assert sorted([*once, ("samples", 1)]) == [(row["job"], row["batch"]) for row in progress]
    for row in progress:
        assert row["rows_in"] == row["rows_silver"] + row["rows_duplicate"] + row["rows_quarantine"]
    rows = [row for row in progress if row["job"] == "samples"]
    assert len(filled.expected.silver) == sum(row["rows_silver"] for row in rows)
    assert len(filled.ground.rows("bronze.samples", "row")) == sum(row["rows_in"] for row in rows)
