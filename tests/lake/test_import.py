"""`weft lake import`: foreign logs become segments, each sample under one identity for ever (PIP-095..098)."""

import gzip
import json
from datetime import UTC
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.lake.records import chain_of, files_in, rows_of
from weft.base.errors import UserError
from weft.cli.lake import app
from weft.lake.audit import audit
from weft.lake.files import LocalFiles
from weft.lake.importing import importer
from weft.lake.importing.delimited import Reading
from weft.lake.importing.identity import drain_of, era_of, origin_of
from weft.lake.importing.importer import Report
from weft.lake.importing.running import Wish, alone, import_files
from weft.lake.layout import Layout
from weft.lake.segments import open_lake
from weft.lake.series import define

NOW = 1_795_300_000_000_000_000
EXAMPLE = """\
1795226590369 source=localhost:55900 value=95133.00 base=217439.00 detail=CPU config-name=proc config-seqid=4 type=percent
1795226591000 source=localhost:55900 value=95253.00 base=217563.00 detail=CPU config-name=proc config-seqid=4 type=percent
1795226591000 source=localhost:55900 value=95253.00 base=217563.00 detail=CPU config-name=proc config-seqid=4 type=percent
1795226592001 source=localhost:55900 value=95432.00 base=217762.00 detail=CPU config-name=proc config-seqid=4 type=percent
"""
FIRST = EXAMPLE.encode().split(b"\n")[0]


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    lake = Layout(tmp_path / "lake")
    open_lake(lake, "00" * 16, 1)
    return lake


def brought(lake: Layout, *paths: Path, form: str = "auto", files: LocalFiles | None = None) -> list[Report]:
    wish = Wish("attic", form, Reading(UTC, NOW))
    return import_files(lake, paths, wish, NOW, files=files)


def rows(lake: Layout) -> list[dict[str, Any]]:
    return rows_of(lake, "samples", drain_of("attic"))


def log(home: Path, text: str | bytes, name: str = "a.dcamp-data") -> Path:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(count: int, hosts: int = 2) -> str:
    """A log of some sources in turn."""
    return "".join(
        f"{1795226590000 + number} source=h{number % hosts} value={number}.00 detail=X config-name=x type=basic\n"
        for number in range(count)
    )


def hexed(*parts: str, size: int = 16) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=size).hexdigest()


@pytest.mark.proves("PIP-095")
def test_identities_are_what_the_bytes_say() -> None:
    assert hexed("weft-import", "attic") == drain_of("attic")
    assert hexed("weft-import", "attic", "h:1") == origin_of("attic", "h:1")
    era = int(hexed("a.dcamp-data", FIRST.decode(), size=8), 16)
    assert era & ~(1 << 63) == era_of("a.dcamp-data", FIRST)


@pytest.mark.proves("PIP-095", "PIP-096")
def test_a_log_becomes_rows_of_its_dataset(lake: Layout, tmp_path: Path) -> None:
    (report,) = brought(lake, log(tmp_path, EXAMPLE + "1795226592002 type=HUGZ source=h\n"))
    assert ("dcamp", 5, 4, 0, {"heartbeats": 1}) == (
        report.format, report.lines, report.samples, report.held, report.passed,
    )  # fmt: skip
    first, *_, last = found = rows(lake)
    assert [1, 2, 3, 4] == [row["sequence"] for row in found]
    assert [1, 2, 3, 4] == [row["lsn"] for row in found]
    assert {
        "origin": origin_of("attic", "localhost:55900"),
        "era": era_of("a.dcamp-data", FIRST),
        "sequence": 1,
        "at_ns": 1795226590369000000,
        "received_ns": NOW,
        "lsn": 1,
        "series": define("proc", "CPU", "percent", "", {}).key(),
        "config_name": "proc",
        "detail": "CPU",
        "type": "percent",
        "param": "",
        "labels": [],
        "value_long": 95133,
        "base_long": 217439,
        "config_number": 4,
        "attributes": [("dataset", "attic"), ("file", "a.dcamp-data"), ("node", "localhost:55900")],
        "drain": drain_of("attic"),
        "segment": 1,
        "row": 0,
    } == {name: value for name, value in first.items() if value is not None}
    assert (95432, 1795226592001000000) == (last["value_long"], last["at_ns"])
    (manifest,) = chain_of(lake, "samples", drain_of("attic"))
    assert ([(first["origin"], first["era"], [(1, 4)])], (1, 4), NOW) == (
        manifest.ranges, manifest.lsn, manifest.last_received,
    )  # fmt: skip
    assert [None] == [found.fault for found in audit(lake, "samples", deep=True)]


def test_importing_again_adds_only_what_is_new(lake: Layout, tmp_path: Path) -> None:
    path = log(tmp_path, lines(5))
    brought(lake, path)
    (again,) = brought(lake, path)
    assert (5, 0, 0) == (again.held, again.samples, again.changed)
    assert 1 == len(chain_of(lake, "samples", drain_of("attic"))), "no segment for nothing"
    log(tmp_path, lines(9))
    (grown,) = brought(lake, path)
    assert (5, 4, 0) == (grown.held, grown.samples, grown.changed)
    packed = log(tmp_path, gzip.compress(lines(9).encode()), "a.dcamp-data.gz")
    assert (9, 0) == (brought(lake, packed)[0].held, brought(lake, packed)[0].samples)
    numbers = [(row["origin"], row["sequence"]) for row in rows(lake)]
    assert 9 == len(numbers) == len(set(numbers))
    (same,) = brought(lake, log(tmp_path, lines(9), "b.dcamp-data"))
    assert 9 == same.samples, "another file is another era; that they are the same is silver's to find"


def test_a_changed_line_goes_in_again_under_its_number(lake: Layout, tmp_path: Path) -> None:
    brought(lake, log(tmp_path, lines(5)))
    edited = log(tmp_path, lines(6).replace("value=2.00", "value=7.00"))
    assert [(4, 1, 1), (6, 0, 0)] == [
        (report.held, report.changed, report.samples) for _ in range(2) for report in brought(lake, edited)
    ]
    assert [2, 7] == [row["value_long"] for row in rows(lake) if row["sequence"] == 2 and row["origin"] == origin_of("attic", "h0")]  # fmt: skip


@pytest.mark.proves("PIP-095", "PIP-096")
def test_bad_lines_are_rows_with_their_bytes_and_the_file_goes_on(lake: Layout, tmp_path: Path) -> None:
    bad = b"1795226590369 source=h value=nan detail=X config-name=x type=basic"
    text = b"\n".join([bad, b"\xff", FIRST, b"5" + FIRST[13:], FIRST.replace(b"1795", b"1895"), b"1795226592001 so"])
    (report,) = brought(lake, log(tmp_path, text), form="dcamp")
    reasons = {"bad-number": 1, "undecodable": 1, "ancient": 1, "future": 1, "torn": 1}
    assert (1, reasons) == (report.samples, report.refused)
    found = rows(lake)
    assert ["bad-number", "undecodable", None, None, None, "torn"] == [row["error"] for row in found]
    assert [bad, b"\xff", None, None, None, b"1795226592001 so"] == [row["raw"] for row in found]
    nobody = origin_of("attic", "")
    assert [(origin_of("attic", "h"), 1), (nobody, 1)] == [(row["origin"], row["sequence"]) for row in found[:2]]
    assert (nobody, 2) == (found[-1]["origin"], found[-1]["sequence"])
    assert {None} == {row[name] for row in found[:2] for name in ("series", "config_name", "labels", "at_ns")}
    assert [None] == [found.fault for found in audit(lake, "samples", deep=True)]


@pytest.mark.proves("PIP-095")
def test_a_long_log_is_many_segments(lake: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "SEGMENT_ROWS", 1)  # after every block
    monkeypatch.setattr("weft.lake.importing.lines.BLOCK_BYTES", 500)
    brought(lake, log(tmp_path, lines(60, hosts=3)), log(tmp_path, lines(4), "b"))
    chain = chain_of(lake, "samples", drain_of("attic"))
    assert len(chain) > 5
    assert [*range(1, 65)] == [row["lsn"] for row in rows(lake)]
    assert [*range(60), *range(4)] == [row["value_long"] for row in rows(lake)]
    assert {None} == {found.fault for found in audit(lake, "samples", deep=True)}


class Killed(BaseException):
    pass


class Mortal(LocalFiles):
    """Dies before call number `at`, and stays dead."""

    def __init__(self, at: int) -> None:
        self.left = at

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def sync(self, path: Path) -> None:
        """Who dies leaves a system that goes on: it has all that was written."""

    sync_directory = sync

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._live()
        super().write(path, data)

    def rename(self, old: Path, new: Path) -> None:
        self._live()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._live()
        super().remove(path)


def test_killed_at_any_instant_it_doubles_and_skips_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "SEGMENT_ROWS", 1)
    monkeypatch.setattr("weft.lake.importing.lines.BLOCK_BYTES", 300)
    paths = [log(tmp_path, lines(8)), log(tmp_path, lines(3, hosts=1), "b")]
    for at in range(40):  # 13 calls and more
        lake = Layout(tmp_path / str(at))
        open_lake(lake, "00" * 16, 1)
        try:
            brought(lake, *paths, files=Mortal(at))
        except Killed:
            brought(lake, *paths)
        else:
            break
        assert [*range(8), *range(3)] == [row["value_long"] for row in rows(lake)]
        assert 0 == sum(report.samples + report.changed for report in brought(lake, *paths))
        assert [] == [name for name in files_in(lake.root) if name.endswith(".tmp")]
    assert at > 12, "every step of every segment was tried"


@pytest.mark.proves("PIP-095")
def test_a_full_disk_leaves_no_half_segment(lake: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path, lines(3))

    def full(*_: object) -> None:
        raise OSError(28, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "rename", full)
        with pytest.raises(OSError):
            brought(lake, path)
    assert [] == [name for name in files_in(lake.root) if name.endswith((".parquet", ".parquet.tmp"))]
    assert 3 == brought(lake, path)[0].samples


# The command.


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    status = app(["import", *words], exit_on_error=False, result_action="return_value")
    return status, capsys.readouterr().out


@pytest.mark.proves("PIP-091", part="import")
@pytest.mark.proves("PIP-095")
def test_the_command_makes_a_lake_and_reads_three_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(tmp_path / "new")
    paths = [
        log(tmp_path, EXAMPLE),
        log(tmp_path, "time,host,temp\n2026-11-21 01:43:10,n7,21.5\n", "t.csv"),
        log(tmp_path, '# TYPE up gauge\nup 1 # {id="x"} 1\n# EOF\n', "m.txt"),
    ]
    words = (*map(str, paths), "--dataset", "attic", "--lake", home, "--map", "at=time,value=temp,source=host")
    words += ("--at", "1795226590", "--tz", "Europe/Berlin")
    status, text = said(capsys, *words, "--json")
    assert (0, ["dcamp", "csv", "openmetrics"]) == (status, [report["format"] for report in json.loads(text)])
    assert {"comments": 2, "exemplars": 1} == json.loads(text)[2]["passed"]
    status, text = said(capsys, *words)
    assert "t.csv: csv, 2 lines, 0 samples new, 1 held already, 0 changed" in text
    found = rows(Layout(home))
    assert [("temp", 21.5, 1795221790000000000), ("up", None, 1795226590000000000)] == [
        (row["config_name"], row["value_double"], row["at_ns"]) for row in found[4:]
    ]


def test_a_wide_table_is_numbered_cell_by_cell(lake: Layout, tmp_path: Path) -> None:
    wide = Wish("attic", "csv", Reading(UTC, NOW, wide="t"))
    path = log(tmp_path, "t,a,b\n1795226590,1,2\n1795226591,,4\n", "w.csv")
    for samples in (3, 0):
        (report,) = import_files(lake, [path], wide, NOW)
        assert (samples, 3 - samples) == (report.samples, report.held)
    assert [(1, "a", 1), (2, "b", 2), (3, "b", 4)] == [
        (row["sequence"], row["config_name"], row["value_long"]) for row in rows(lake)
    ]


def test_what_is_strange_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, gzip.compress(lines(2000).encode())[:-20] + b"\0" * 5, "d\x1b.gz")
    status, text = said(capsys, str(path), "--dataset", "attic", "--lake", str(tmp_path / "new"))
    assert 1 == status
    assert "cannot be read to its end" in text
    assert "\x1b" not in text
    log(tmp_path, b"x=1\n" + FIRST + b"\n\n", "bad")
    words = ("--dataset", "attic", "--lake", str(tmp_path / "new"), "--format", "dcamp")
    status, text = said(capsys, str(tmp_path / "bad"), *words)
    assert (0, True) == (status, "to quarantine: 1 missing-field\n  no samples: 1 blank" in text)


@pytest.mark.parametrize(
    "words, code",
    [
        (("none", "--dataset", "a"), "no-file"),
        (("--dataset", "a"), "no-file"),
        (("log", "--dataset", "../a"), "bad-name"),
        (("log", "--dataset", "a", "--tz", "Mars/Crater"), "no-zone"),
        (("log", "--dataset", "a", "--at", "soon"), "bad-time"),
        (("log", "--dataset", "a", "--map", "when=x"), "bad-map"),
        (("log", "--dataset", "a", "--map", "at"), "bad-map"),
        (("log", "--dataset", "a", "--format", "csv"), "no-column"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: tuple[str, ...], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    log(tmp_path, "a,b\n1,2\n", "log")
    with pytest.raises(UserError) as refused:
        said(capsys, *words)
    assert code == refused.value.code


def test_a_dataset_is_imported_by_one_at_a_time(lake: Layout, tmp_path: Path) -> None:
    path = log(tmp_path, EXAMPLE)
    with alone(lake, drain_of("attic")), pytest.raises(UserError) as refused:
        brought(lake, path)
    assert "lease-held" == refused.value.code
    assert 4 == brought(lake, path)[0].samples


@pytest.mark.proves("PIP-095")
def test_the_example_of_the_page_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "segments.md").read_text("utf-8")
    text = page.partition("## Logs of other systems")[2].partition("```console\n$ ")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    for step in text.split("\n$ "):
        typed, _, shown = step.partition("\n")
        program, *words = typed.split()
        if program == "cat":
            log(tmp_path, shown + "\n", words[0])
        else:
            assert ["weft", "lake", "import"] == [program, *words[:2]]
            status, printed = said(capsys, *words[2:])
            assert (0, shown.strip()) == (status, printed.strip())
