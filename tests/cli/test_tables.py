"""Rows for programs: what JSON and CSV have no word for."""

import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from rich.console import Console

from weft.cli.tables import print_csv, print_json, show

ROWS = pa.table({"payload": [b"<a/>", b"\xff", b"=1+1"], "via": [["a", "b"], [], None], "at": [1.5, None, 2.0]})


def test_bytes_are_text_or_base64_and_never_what_python_writes_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(ROWS)
    told = json.loads(capsys.readouterr().out)
    assert ["<a/>", {"b64": "/w=="}, "=1+1"] == [row["payload"] for row in told]
    assert [["a", "b"], [], None] == [row["via"] for row in told]


@pytest.mark.proves("SEC-045", part="a cell of CSV that a spreadsheet would run")
def test_a_cell_of_csv_that_is_no_single_value_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(ROWS)
    expected = ["payload,via,at", '<a/>,"[""a"", ""b""]",1.5', '"{""b64"": ""/w==""}",[],', "'=1+1,,2.0"]
    assert expected == capsys.readouterr().out.splitlines()


def test_what_is_in_a_cell_for_people_is_not_what_python_writes_for_it() -> None:
    at = datetime(2026, 11, 22, 10, 30, 45, tzinfo=UTC)
    nodes = pa.array([[{"node": "a", "first": at}]])
    labels = pa.array([[("room", "b")]], pa.map_(pa.string(), pa.string()))
    file = io.StringIO()
    show(pa.table({"nodes": nodes, "labels": labels}), Console(file=file, width=120))
    (_, row) = file.getvalue().splitlines()
    assert ["[{node: a, first: 2026-11-22 10:30:45}]", "[room: b]"] == [cell for cell in row.split("  ") if cell]
