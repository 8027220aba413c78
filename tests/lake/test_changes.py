"""A change of the store as a row of a segment: everything that silver needs, in words that Spark knows (LAK-012)."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.lake.records import DRAIN, RECEIVED, chain_of, rows_of
from weft.base.changes import Chain, Event
from weft.base.changes import Path as EntryPath
from weft.base.records import Stream, StreamRecord
from weft.cores.store.memory import foreign_record_of, own_record_of
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.wire.store.pack import LEFT_OUT
from weft.wire.store.path import pack_path, text_of

TEXTS: list[tuple[Any, str]] = [
    (None, "null"),
    ({"b": 1, "a": [True, "grün"]}, '{"a":[true,"grün"],"b":1}'),
    ((1 << 64) - 1, "18446744073709551615"),
    (b"\x00", '{"$b":"AA=="}'),
    (math.nan, '{"$f":"nan"}'),
    ({"x": [math.inf, {math.nan: -math.inf}]}, '{"x":[{"$f":"inf"},{"{\\"$f\\":\\"nan\\"}":{"$f":"-inf"}}]}'),
    (msgspec.msgpack.Ext(2, b"\x40" + bytes(8)), '{"$i":"1180591620717411303424"}'),
    (msgspec.msgpack.Ext(2, b"\x01" * 1025), '{"$x":[2,"' + "AQEB" * 341 + 'AQE="]}'),
    (msgspec.msgpack.Ext(3, b"\xa1a\xa1b"), '{"$p":"a.b"}'),
    (msgspec.msgpack.Ext(3, b"\xc1"), '{"$x":[3,"wQ=="]}'),
    (msgspec.msgpack.Ext(5, b"q"), '{"$x":[5,"cQ=="]}'),
]
PATHS: list[tuple[EntryPath, str]] = [
    ((), "[]"),
    (("a", "b c", ""), '["a","b c",""]'),
    ((None, "auth", 7, False, b"\xff"), '[null,"auth",7,false,{"$b":"/w=="}]'),
    (
        ("a", 1 << 70, -(1 << 63), 1.5, math.inf),
        '["a",{"$i":"1180591620717411303424"},-9223372036854775808,1.5,{"$f":"inf"}]',
    ),
    (("\x1f" * 1000,), '["' + "\\u001f" * 1000 + '"]'),
]
MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"tock": None}, "missing-field"),
    ({"deleted": None}, "missing-field"),
    ({"deleted": "no"}, "bad-type"),
    ({"tock": "5"}, "bad-type"),
    ({"tock": -1}, "out-of-range"),
    ({"chain": {}}, "bad-type"),
    ({"chain": [["n1", 1, 2]]}, "bad-type"),
    ({"chain": [["n1", 1 << 63]]}, "out-of-range"),
    ({"path": b"\xd9"}, "undecodable"),
    ({"path": b"\xc8\x07\xd0\x02" + b"\x01" * 2000}, "undecodable"),
]


def change(path: EntryPath = ("s", "k"), payload: bytes = b"\x01", **attributes: Any) -> StreamRecord:
    """A change as a node journals it, its key cut as long paths are."""
    said = {"tock": 9, "path": pack_path(path), "chain": [["n1", 4], ("n2", 2)], "deleted": False, "before": None}
    key = text_of(path)[:4096]
    return StreamRecord(Stream.STORE, "n1", None, 4, RECEIVED - 5, RECEIVED, key, payload, said | attributes)


def row_of(tmp_path: Path, record: StreamRecord) -> dict[str, Any]:
    (row,) = rows_of_records(tmp_path, record)
    return row


def rows_of_records(tmp_path: Path, *records: StreamRecord) -> list[dict[str, Any]]:
    append_segment(Layout(tmp_path), "store", DRAIN, list(enumerate(records, 1)))
    return [row | {"attributes": dict(row["attributes"])} for row in rows_of(Layout(tmp_path), "store")]


@pytest.mark.proves("LAK-012")
@pytest.mark.parametrize("value, text", TEXTS, ids=range(len(TEXTS)))
def test_every_value_of_the_store_has_a_text(tmp_path: Path, value: Any, text: str) -> None:
    packed = msgspec.msgpack.encode(value)
    row = row_of(tmp_path, change(payload=packed))
    assert (text, None, packed) == (row["body"], row["error"], row["raw"])


@pytest.mark.proves("LAK-012", "COD-005")
@pytest.mark.parametrize("path, elements", PATHS, ids=range(len(PATHS)))
def test_a_path_stands_there_whole_as_text_and_by_its_elements(tmp_path: Path, path: EntryPath, elements: str) -> None:
    row = row_of(tmp_path, change(path))
    assert (text_of(path), elements, None) == (row["key"], row["attributes"]["path"], row["error"])


def test_without_its_bytes_the_key_says_the_path(tmp_path: Path) -> None:
    record = change(("s", 4))
    del record.attributes["path"]
    row = row_of(tmp_path, record)
    assert ("s:4", '["s",4]', None) == (row["key"], row["attributes"]["path"], row["error"])


@pytest.mark.proves("LAK-010", "STO-030")
def test_a_change_is_numbered_by_the_name_of_its_node_without_an_era(tmp_path: Path) -> None:
    row = row_of(tmp_path, change(payload=b"", deleted=True, via=[b"\x0b" * 16], through="tcp"))
    assert ("n1", None, 4, None, None) == tuple(row[name] for name in ("origin", "era", "sequence", "body", "error"))
    said = {"tock": "9", "path": '["s","k"]', "chain": '[["n1",4],["n2",2]]', "deleted": "true", "before": "null"}
    assert said | {"via": f'["{"0b" * 16}"]', "through": "tcp"} == row["attributes"]
    (manifest,) = chain_of(Layout(tmp_path), "store")
    assert [("n1", None, [(4, 4)])] == manifest.ranges


@pytest.mark.proves("STO-030")
def test_what_the_store_journals_is_what_the_lake_reads(tmp_path: Path) -> None:
    chain = Chain((("x", 7), ("n1", 4)), is_cut=True)
    own = own_record_of(Event(chain, 31, ("s", 1 << 64), b"\x05", 1.5, "joe"), "tcp", ("n1", 4), RECEIVED)
    lost = foreign_record_of(Event(chain, 31, ("s",), None), "n2", RECEIVED, is_shown=False)
    left_out = own_record_of(Event(chain, 32, ("s",), LEFT_OUT), "tcp", None, RECEIVED)
    rows = rows_of_records(tmp_path, own, lost, left_out)
    assert [None] * 3 == [row["error"] for row in rows]
    assert [("s:18446744073709551616", "5", "false"), ("s", None, "true"), ("s", None, "false")] == [
        (row["key"], row["body"], row["attributes"]["deleted"]) for row in rows
    ]
    first = rows[0]["attributes"]
    assert ("31", '[["x",7],["n1",4]]', "joe") == (first["tock"], first["chain"], first["by"])


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize("attributes, error", MISFITS, ids=range(len(MISFITS)))
def test_what_cannot_be_compared_says_why(tmp_path: Path, attributes: dict[str, Any], error: str) -> None:
    row = row_of(tmp_path, change(**attributes))
    assert (error, b"\x01") == (row["error"], row["raw"])


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize("payload, error", [(b"\xc1", "undecodable"), (b"\x91" * 70 + b"\x01", "too-long")])
def test_a_value_that_cannot_be_read_is_kept(tmp_path: Path, payload: bytes, error: str) -> None:
    row = row_of(tmp_path, change(payload=payload))
    assert (error, None, payload) == (row["error"], row["body"], row["raw"])
