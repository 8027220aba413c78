"""`weft lake`: what people see of a lake."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.lake.records import DRAIN, NODE_A, RECEIVED, batch, lost, other
from weft.base.errors import UserError
from weft.base.records import Stream
from weft.cli import lake_run
from weft.cli.lake import app
from weft.lake.consumers import commit
from weft.lake.layout import Layout
from weft.lake.offsets import Offset
from weft.lake.segments import append_segment, open_lake


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    lake = Layout(tmp_path / "lake")
    open_lake(lake, "00" * 16, 1)
    append_segment(lake, "samples", DRAIN, [(1, batch(NODE_A, 1, 10)), (2, lost(11, 12))])
    append_segment(lake, "samples", DRAIN, [(3, batch(NODE_A, 13, 5))])
    append_segment(lake, "logs", DRAIN, [(4, other(Stream.LOGS, 1))])
    write_deltalake(str(lake.table("silver", "samples")), pa.table({"sequence": [1, 2, 3]}))
    return lake


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    app(list(words), exit_on_error=False, result_action="return_value")
    return capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


@pytest.mark.proves("PIP-091", part="ls")
def test_ls(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "ls", "--lake", str(lake.root))
    assert [("samples", 2, 15, 2), ("logs", 1, 1, 0)] == [
        (entry["stream"], entry["segments"], entry["rows"], entry["lost"]) for entry in found["drained"]
    ]
    assert RECEIVED + 13 == found["drained"][0]["last_received"]
    (table,) = found["tables"]
    assert ("silver.samples", 3, 1, 0) == (table["table"], table["rows"], table["files"], table["version"])
    assert table["bytes"] > 0
    text = said(capsys, "ls", "--lake", str(lake.root))
    assert "silver.samples" in text
    assert "2027-01-15" in text


@pytest.mark.proves("PIP-091", part="segments")
def test_segments(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "segments", "--lake", str(lake.root), "--since", "2")
    assert [(2, 5)] == [(entry["number"], entry["rows"]) for entry in found]
    assert 2 == len(said(capsys, "segments", "samples", "--lake", str(lake.root)).splitlines())
    assert 1 == len(told(capsys, "segments", "--lake", str(lake.root), "--limit", "1"))


def test_a_broken_chain_is_one_sentence(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    lake.manifest("samples", DRAIN, 1).unlink()
    with pytest.raises(UserError) as refused:
        said(capsys, "segments", "--lake", str(lake.root))
    assert "segment-gone" == refused.value.code


def status(capsys: pytest.CaptureFixture[str], *words: str) -> int:
    given = app(["verify", *words], exit_on_error=False, result_action="return_value")
    assert isinstance(given, int)
    return given


@pytest.mark.proves("LAK-010")
def test_verify_finds_what_is_not_as_it_was_written(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--lake", str(lake.root))
    assert 0 == status(capsys, *where, "--deep")
    assert {"segments": 3, "rows": 16, "faults": []} == told(capsys, "verify", *where)
    path = lake.parquet("samples", DRAIN, 2)
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    assert 0 == status(capsys, *where), "a size says nothing of the bytes"
    assert 1 == status(capsys, *where, "--deep")
    path.write_bytes(data[:-1])
    assert 1 == status(capsys, *where)
    path.unlink()
    assert f"samples {DRAIN}:2 segment-gone" in said(capsys, "verify", *where)
    manifest = lake.manifest("samples", DRAIN, 2)
    manifest.write_bytes(manifest.read_bytes().replace(b'"rows":5', b'"rows":6'))
    assert 1 == status(capsys, *where, "--deep")
    lake.manifest("samples", DRAIN, 1).unlink()
    (fault,) = told(capsys, "verify", *where)["faults"]
    assert ["samples", DRAIN, 1] == fault[:3]


@pytest.mark.proves("LAK-010")
def test_verify_compares_the_manifest_inside_the_file(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = lake.manifest("samples", DRAIN, 2)
    manifest.write_bytes(manifest.read_bytes().replace(b"[13,17]", b"[13,18]"))
    assert "the manifest inside the file differs from the one beside it" in said(
        capsys, "verify", "--lake", str(lake.root), "--deep"
    )


@pytest.mark.proves("PIP-091", part="schema")
@pytest.mark.parametrize("table, column", [("samples", "value_long"), ("silver.samples", "value")])
def test_schema(table: str, column: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert column in {entry["name"] for entry in told(capsys, "schema", table)["columns"]}
    assert f"| `{column}` |" in said(capsys, "schema", table)


@pytest.mark.proves("PIP-091", part="consumers")
def test_consumers(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    commit(lake, "me", "samples", Offset(v=1, o=0, vec="", at={DRAIN: (2, 0)}), 5)
    where = ("--lake", str(lake.root))
    assert ["me"] == [entry["name"] for entry in told(capsys, "consumers", *where)]
    assert "next: 6f1c2a34 2+0" in said(capsys, "consumers", *where)
    assert "" == said(capsys, "consumers", *where, "--remove", "me")
    with pytest.raises(UserError) as refused:
        said(capsys, "consumers", *where, "--remove", "me")
    assert "no-consumer" == refused.value.code


@pytest.mark.parametrize(
    "words, code",
    [(("ls",), "no-lake"), (("schema", "gold.nothing"), "no-table"), (("segments", "smaples"), "no-stream")],
)
def test_what_is_not_there(
    words: tuple[str, ...],
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        said(capsys, *words)
    assert code == refused.value.code


def test_a_run_is_given_the_whole_path_of_a_lake(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    class Runner:
        stop = None

        def __init__(self, layout: Layout, *_: object) -> None:
            asked.append(layout.root)

        def run(self, options: Any, *, once: bool, wait_s: float, takes_over: bool) -> None:
            asked.append(options.log)
            assert (True, 0.0, False) == (once, wait_s, takes_over)

    monkeypatch.setattr("weft.pipeline.runner.Runner", Runner)
    monkeypatch.setattr(lake_run, "_stop_on_signals", lambda _: None)
    monkeypatch.chdir(lake.root.parent)
    lake_run.run(lake=Path(lake.root.name), once=True)
    assert [lake.root, lake.runs() / "spark.log"] == asked
