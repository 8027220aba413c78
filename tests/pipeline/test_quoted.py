"""Whatever text a record has, no SQL of the pipeline is made of it but as a quoted literal (SEC-040)."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession, functions

from tests.pipeline.ground import (
    DRAIN,
    A,
    change,
    event,
    instance_change,
    log_record,
    message,
    operation,
    single,
    taken,
    write,
)
from tests.pipeline.plain import lake_of
from weft.base.records import Record
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline import configuration, documents, stored
from weft.pipeline.check import Check
from weft.pipeline.runner import Runner
from weft.pipeline.sql import Lake
from weft.wire import samples
from weft.wire.store.path import text_of

pytestmark = pytest.mark.prove("whole batches in Spark")

MARK = "zq9"
EVIL = f"{MARK}'); DROP TABLE silver.samples; --{MARK} \"{MARK}\" `{MARK}` \\'{MARK} $${MARK}$$ {{0}}{MARK} %s{MARK}"
"""It ends each kind of quotes that SQL has, and goes on behind each of them."""
NAME = f"{MARK}'); DROP TABLE silver.samples; --{MARK}"
"""The same as a name in JSON, which is looked for as it stands there."""
SHORT = f"{MARK}';--{MARK}\"`{MARK}"
LITERAL = re.compile(r"'(?:[^']|'')*'")
DUCKDB = ("execute", "executemany", "sql", "query", "from_query", "extract_statements", "get_table_names")


def records(first: int) -> dict[str, list[Record]]:
    """Of each stream some records whose texts are evil, where its form has any; the last sample has no number."""
    series = samples.Series(SHORT, SHORT, "basic", {SHORT: EVIL})
    named = msgspec.json.encode({"name": NAME, "parent": EVIL})
    found = {
        "samples": [
            taken(first, [(series, 1, None), (series, 2, None)], note=EVIL),
            single(first + 2, EVIL.encode(), fmt="text", unit=EVIL, note=EVIL),
            taken(first + 3, [(series, EVIL, None)], note=EVIL),
        ],
        "messages": [message(first, EVIL.encode(), key=EVIL, fmt="text", note=EVIL)],
        "events": [
            event(first, "config.applied", "info", number=1 << 40 | 1, why=EVIL),
            event(first + 1, EVIL, EVIL, note=EVIL),
        ],
        "store": [change(EVIL[:32], first, (EVIL, EVIL), EVIL, by=EVIL, tock=first)],
        "catalog": [
            instance_change(first, "register", {"note": EVIL}, instance=EVIL, owner=EVIL, net=EVIL, reason=EVIL)
        ],
        "logs": [log_record(first, service=EVIL, instance=EVIL, logger=EVIL, message=EVIL, fields={EVIL: EVIL})],
        "documents": [operation(first, b"<set/>", session=EVIL, verb=EVIL, ref=EVIL, by=EVIL, schema=EVIL)],
        "configuration": [
            write(first, f"/TOPO/node/{A}", named, who=EVIL),
            write(first + 1, f"/CONFIG/all/{EVIL}", EVIL.encode(), who=EVIL),
        ],
    }
    return {stream: list[Record](made) for stream, made in found.items()}


class Spied:
    """A connection to DuckDB whose texts are noted."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, note: Callable[[str], None]) -> None:
        self._connection, self._note = connection, note

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._connection, name)
        return _noting(found, self._note) if name in DUCKDB else found


def _noting(asked: Callable[..., Any], note: Callable[[str], None]) -> Callable[..., Any]:
    """The same function, which notes each argument that is text."""

    def noting(*words: Any, **named: Any) -> Any:
        for word in (*words, *named.values()):
            if isinstance(word, str):
                note(word)
        return asked(*words, **named)

    return noting


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """All SQL that is said from now on: to DuckDB, and to Spark or Delta, which have other quotes."""
    texts: dict[str, list[str]] = {"duckdb": [], "spark": []}
    connect = duckdb.connect
    monkeypatch.setattr(
        duckdb, "connect", lambda *words, **named: Spied(connect(*words, **named), texts["duckdb"].append)
    )
    spark = [(functions, "expr"), *((DataFrame, name) for name in ("where", "filter", "selectExpr"))]
    for owner, name in (
        *spark,
        (SparkSession, "sql"),
        (DeltaTable, "delete"),
        (DeltaTable, "merge"),
        (DeltaTable, "update"),
    ):
        monkeypatch.setattr(owner, name, _noting(getattr(owner, name), texts["spark"].append))
    return texts


def drained(lake: Layout, first: int) -> None:
    for place, (stream, made) in enumerate(records(first).items()):
        append_segment(lake, stream, DRAIN, [(100 * first + 10 * place + n, each) for n, each in enumerate(made)])


def told(lake: Layout) -> Iterator[tuple[str, Any]]:
    """What the lake says when it is asked in every way; of tables and views with their names."""
    for is_fresh in (False, True):
        with Lake(lake.root, fresh=is_fresh) as open_lake:
            for table in open_lake.known():
                yield table.full_name, open_lake.query(f"SELECT * FROM {table.full_name}").to_pylist()
    yield "sessions", documents.sessions_in(lake.root)
    yield "operations", list(documents.operations_of(lake.root, EVIL))
    yield "what a node ran", configuration.state_at(lake.root, node=NAME)
    yield "history of an entry", stored.history_of(lake.root, text_of((EVIL, EVIL)), limit=10)
    yield "check", Check(lake).run()


TOLD = {
    "silver.samples", "silver.series", "silver.messages", "silver.events", "silver.store", "silver.catalog",
    "silver.logs", "silver.documents", "silver.configuration", "quarantine.samples", "gold.recent", "gold.store_current",
    "gold.document_sessions", "gold.configuration_history", "gold.availability", "sessions", "what a node ran",
    "history of an entry",
}  # fmt: skip
"""Where the texts come out again."""


@pytest.mark.proves(
    "SEC-040", part="texts of records, of every stream, reach the SQL of the pipeline only as quoted literals"
)
def test_no_sql_of_the_pipeline_is_made_of_what_a_record_says(
    spark: SparkSession, tmp_path: Path, asked: dict[str, list[str]]
) -> None:
    lake = lake_of(tmp_path / "lake")
    drained(lake, 1)
    Runner(lake, lambda _: None)._run(spark, 1, once=True)
    drained(lake, 11)
    said = dict[str, Any](told(lake))
    assert TOLD <= {name for name, rows in said.items() if MARK in repr(rows)}
    assert 1 == len(said["operations"])
    assert asked["duckdb"]
    assert asked["spark"]
    assert [] == [text for text in asked["duckdb"] if MARK in LITERAL.sub("", text)]
    assert [] == [text for text in asked["spark"] if MARK in text]
