"""`weft upgrade check`: what stands in the way, and the page of formats (OPS-003)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.house.requirements import ROOT
from weft.base.errors import UserError
from weft.cli.status import Member, Picture
from weft.cli.upgrade import FORMATS, check, formats, of_fleet, of_lake, order_of, spools
from weft.lake.layout import Layout
from weft.pipeline.doctor import Finding

PAGE = ROOT / "docs" / "formats.md"
HEAD = """# Formats and their versions

What one version of Weft writes and another one reads. `weft upgrade formats` prints it, `weft upgrade check` says whether something
stands in the way of another version; how to upgrade, and what is promised of two versions in one fleet: [operations.md](operations.md).

| what | where its version stands | this version writes | what becomes of another one |
|---|---|---|---|
"""


@pytest.mark.generates
@pytest.mark.proves("OPS-003", part="formats on disk and on the wire have a version and a page")
def test_the_page_lists_every_format(committed: Callable[[Path, str], None]) -> None:
    rows = [f"| {one.what} | {one.where} | {one.version} | {one.other} |" for one in FORMATS]
    committed(PAGE, HEAD + "\n".join(rows) + "\n")


def test_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == formats(json=True)
    told = {one["what"]: one["version"] for one in json.loads(capsys.readouterr().out)}
    assert ("WEFTJRN1, WEFTSNP1", "1", "2") == (told["journal"], told["lake"], told["segments of the lake"])


def member(name: str, level: str, depth: int) -> Member:
    return Member(depth, name, level, "all", "", f"10.0.0.1:{27500 + depth}", 7, 7, 1, "ok")


def told(name: str, waiting: int) -> dict[str, Any]:
    return {"name": name, "version": "0.1.0", "cores": {"carrier": {"spool_records": waiting}}}


FLEET = [member("root", "root", 0), member("c1", "collector", 1), member("s2", "sensor", 2), member("s1", "sensor", 2)]
PICTURE = Picture("lab", "10.0.0.1:27500", True, 7, FLEET, [], [told("root", 0), told("s1", 12_000), told("s2", 9)])


@pytest.mark.proves("OPS-003", part="`weft upgrade check`: who goes first, and what is not safe yet")
def test_sensors_go_first_and_the_root_last() -> None:
    assert "one after the other, each well again before the next: s1, s2, c1, root" == order_of(PICTURE)


@pytest.mark.proves("OPS-003", part="`weft upgrade check`: who goes first, and what is not safe yet")
def test_what_is_not_safe_at_the_root_stands_in_the_way() -> None:
    text = "records that are not safe at the root yet: s1 12,000"
    assert Finding("spool", "warn", text, "wait until weft status --long shows none") == spools(PICTURE)
    assert "ok" == spools(PICTURE._replace(nodes=[told("s1", 10_000)])).state


@pytest.mark.proves("OPS-003", part="`weft upgrade check`: a fleet that is not there, and a lake of a later version")
def test_a_fleet_that_does_not_answer_is_not_called_well() -> None:
    def nobody(*_: Any) -> dict[str, Any]:
        raise UserError("unavailable", "no node answers", "weft up")

    (found,) = of_fleet(1, nobody)
    assert ("warn", "no node answers at port 1, so the state of the fleet is unknown") == (found.state, found.text)


LAKE = '{{"format":{},"lake":"ab","tables":"delta","created":1,"schemas":{{"samples":{}}}}}'


@pytest.mark.proves("OPS-003", part="`weft upgrade check`: a fleet that is not there, and a lake of a later version")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        (LAKE.format(1, 2), "ok"),
        (LAKE.format(1, 1), "ok"),
        (LAKE.format(1, 3), "fail"),
        (LAKE.format(2, 2), "fail"),
        ("{", "fail"),
    ],
)
def test_a_lake_of_a_later_version_stands_in_the_way(text: str, state: str, tmp_path: Path) -> None:
    (tmp_path / "lake.json").write_text(text, "utf-8")
    assert state == of_lake(Layout(tmp_path)).state


def test_a_machine_without_nodes_is_told_so_and_changed_in_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert 1 == check(port=1)
    lines = capsys.readouterr().out.splitlines()
    assert "warn fleet: no node answers at port 1, so the state of the fleet is unknown" == lines[0]
    assert "mend what is not ok first, then ask again" == lines[-1]
    assert [] == list(tmp_path.iterdir())
