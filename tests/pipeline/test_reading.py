"""Tables and segments as notebooks get them: the same rows, whichever way (PIP-092, PIP-011)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import weft.pipeline as weft
from tests.pipeline.conftest import Filled
from tests.pipeline.ground import MEM, NOW_NS, Ground, at_ms, taken
from weft.base.errors import UserError
from weft.pipeline.schemas.table import Table
from weft.pipeline.sql import Lake
from weft.pipeline.tables import ALL, VIEWS

pytestmark = pytest.mark.prove("a filled lake, asked in every way")

TODAY = datetime.fromtimestamp(NOW_NS // 1_000_000_000, UTC).date()
KNOWN = ALL | {name: view.table for name, view in VIEWS.items()}
SPARKS = ("silver.samples", "meta.progress", "rollup_1m", "store_current", "silver.documents")
"""By day, not by day, completed, a view, nested columns."""


def rows_of(found: Any) -> list[str]:
    """Rows in an order that does not matter, as text."""
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.proves("PIP-092")
@pytest.mark.parametrize("table", KNOWN.values(), ids=KNOWN.keys())
def test_arrow_has_the_columns_and_the_rows_that_sql_has(filled: Filled, table: Table) -> None:
    found = weft.arrow(filled.ground.lake.root, table.full_name)
    assert table.schema.arrow() == found.schema
    with Lake(filled.ground.lake.root) as asked:
        if table not in asked.known():
            assert 0 == found.num_rows
            return
        (counted,) = asked.query(f"SELECT count(*) AS n FROM {table.full_name}").to_pylist()
    assert counted["n"] == found.num_rows


@pytest.mark.proves("PIP-092", "PIP-045")
def test_spark_has_the_rows_that_arrow_has(filled: Filled) -> None:
    root, spark = filled.ground.lake.root, filled.ground.spark
    for name in SPARKS:
        frame = weft.table(spark, root, name)
        plain = weft.arrow(root, name)
        assert plain.schema.names == frame.columns
        assert plain.num_rows > 0, name
        assert rows_of(plain) == rows_of(frame.toArrow().cast(plain.schema)), name


@pytest.mark.proves("PIP-092")
def test_days_and_versions_are_chosen_before_a_file_is_opened(filled: Filled) -> None:
    root, spark = filled.ground.lake.root, filled.ground.spark
    all_days = weft.arrow(root, "samples")
    days = sorted({day for day in all_days.column("day").to_pylist() if day is not None})
    for since in (days[0], days[-1].isoformat(), datetime(2100, 1, 1, tzinfo=UTC)):
        first = datetime.fromisoformat(since).date() if isinstance(since, str) else since
        first = first.date() if isinstance(first, datetime) else first
        wanted = sum(day >= first for day in all_days.column("day").to_pylist())
        assert wanted == weft.arrow(root, "samples", since=since).num_rows
        frame = weft.table(spark, root, "samples", since=since)
        assert wanted == frame.count()
        assert all(f"day={day}" not in file for file in frame.inputFiles() for day in days if day < first)
    version = next(commit["version"] for commit in _commits(filled, "silver.samples") if commit["weft.batch"] == "0")
    early = weft.arrow(root, "silver.samples", version=version)
    assert {0} == set(early.column("batch").to_pylist())
    assert early.num_rows == weft.table(spark, root, "silver.samples", version=version).count() < all_days.num_rows


def _commits(filled: Filled, name: str) -> list[dict[str, Any]]:
    path = filled.ground.lake.table(ALL[name].layer, ALL[name].name)
    return [commit for commit in DeltaTable(path).history() if "weft.batch" in commit]


@pytest.mark.proves("PIP-092")
def test_what_is_not_there_is_said_with_what_there_is(filled: Filled, tmp_path: Path) -> None:
    root = filled.ground.lake.root
    for code, ask in (
        ("no-table", lambda: weft.arrow(root, "smaples")),
        ("no-lake", lambda: weft.arrow(tmp_path, "samples")),
        ("no-lake", lambda: weft.arrow(tmp_path, "smaples")),
        ("no-days", lambda: weft.arrow(root, "silver.series", since=TODAY)),
        ("bad-time", lambda: weft.arrow(root, "samples", since="yesterday")),
        ("no-version", lambda: weft.arrow(root, "samples", version=10_000)),
        ("no-stream", lambda: weft.segments(filled.ground.spark, root, "sampels")),
    ):
        with pytest.raises(UserError) as refused:
            ask()
        assert code == refused.value.code
        assert refused.value.try_this


@pytest.mark.proves("PIP-011")
def test_segments_are_what_the_source_reads_and_bronze_holds(filled: Filled) -> None:
    root, spark = filled.ground.lake.root, filled.ground.spark
    found = weft.segments(spark, root, "samples").toArrow()
    source = spark.read.format("weft").options(lake=str(root), stream="samples").load().toArrow()
    assert rows_of(source) == rows_of(found.cast(source.schema))
    assert weft.arrow(root, "bronze.samples").num_rows == found.num_rows > 0
    received = sorted(found.column("received_ns").to_pylist())
    low, high = (_instant(received[place]) for place in (len(received) // 3, 2 * len(received) // 3))
    part = weft.segments(spark, root, "samples", low, high)
    inside = [ns for ns in received if _ns(low) <= ns < _ns(high)]
    assert 0 < len(inside) == part.count() < len(received)


def _instant(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC)


def _ns(at: datetime) -> int:
    return round(at.timestamp()) * 1_000_000_000


@pytest.mark.proves("PIP-011")
def test_a_span_opens_only_the_segments_that_hold_rows_of_it(ground: Ground) -> None:
    for first in (1, 101, 201):
        ground.write(taken(first, [(MEM, first, None)]))
    since = datetime.fromtimestamp(at_ms(100) // 1000, UTC)
    until = datetime.fromtimestamp(at_ms(200) // 1000, UTC)
    frame = weft.segments(ground.spark, ground.lake.root, "samples", since, until)
    assert [101] == [row["sequence"] for row in frame.collect()]
    assert 1 == len(frame.inputFiles())
    assert [] == weft.segments(ground.spark, ground.lake.root, "messages").collect()
