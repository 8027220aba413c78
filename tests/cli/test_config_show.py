"""`weft config show`: what it prints of a lake, and that the page shows just that (PIP-052)."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.house.requirements import ROOT
from tests.pipeline.plain import Row, applied, instant, lake_of, put, wrote
from weft.base.errors import UserError
from weft.cli.nouns import app
from weft.lake.layout import Layout
from weft.pipeline.tables import CONFIGURATION, EVENTS, STAGES

SECTION = (ROOT / "docs" / "configuration.md").read_text("utf-8").partition("## As it stood")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"^\$ (.*)\n((?:[^$`].*\n)*)", SECTION, re.MULTILINE)


def clock(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 21, hour, minute, tzinfo=UTC)


def net(rate: str) -> str:
    return f'{{"detail":"NET_IF","rate":"{rate}"}}'


DAY: list[Row] = [
    wrote(1, "/app/colour", '"blue"') | {"at": clock(8, 0), "by": None},
    wrote(2, "/CONFIG/web/metric/net", net("100ms"), by="ann") | {"at": clock(9, 0)},
    wrote(3, "/CONFIG/web/metric/net", net("10s"), by="ann") | {"at": clock(10, 30)},
    wrote(4, "/CONFIG/web/fanout", "32") | {"at": clock(11, 30)},
    wrote(5, "/CONFIG/web/fanout", None) | {"at": clock(13, 0)},
]
SAID = [applied("web1", 0, 2) | {"at": clock(9, 1)}, applied("web1", 1, 5) | {"at": clock(13, 1)}]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layout]:
    """The lake of a day, as ./lake, on a machine whose clock shows UTC."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    made = lake_of(tmp_path / "lake")
    put(made, CONFIGURATION, *DAY)
    put(made, EVENTS, *SAID)
    yield made
    monkeypatch.undo()
    time.tzset()


def run(command: str) -> int | None:
    """Do what is typed; its exit status, if it says one."""
    name, *words = shlex.split(command)
    assert "weft" == name
    status: int | None = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    return status


@pytest.mark.proves("PIP-052", "CFG-022")
@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_what_the_page_shows_is_what_is_printed(
    command: str, shown: str, lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lake.lake_json.exists()
    assert 4 == len(EXAMPLES)
    run(command)
    told = capsys.readouterr()
    assert shown == told.err + told.out.replace("\r\n", "\n")


@pytest.mark.proves("PIP-052")
def test_what_is_missing_or_no_json_or_no_text_is_shown_as_far_as_it_can_be(
    lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    put(lake, CONFIGURATION, wrote(9, "/app/raw", '{"$b":"/xth"}'), wrote(10, "/app/odd", '{"$b":"*"}', epoch=1))
    put(lake, STAGES["configuration"].quarantine, {"sequence": 6, "reason": "changed"})
    run("weft config show /app")
    told = capsys.readouterr()
    assert [
        '/app/colour "blue"',
        '/app/odd {"$b":"*"}',
        r"/app/raw \xff\x1ba",
    ] == told.out.splitlines()
    when = f"{instant(10):%Y-%m-%d %H:%M:%S}"
    assert [
        "weft: 3 of the writes up to number 1099511627786 are not in the lake: what they wrote is not shown",
        "weft: 1 writes are in quarantine: weft sql 'FROM quarantine.configuration'",
        f"weft: after write 1099511627786 ({when})",
    ] == told.err.splitlines()
    put(lake, EVENTS, applied("web1", 2, (1 << 40) + 12) | {"at": clock(14, 0)})
    run("weft config show / --on web1 --json")
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert ((1 << 40) + 12, None, 5, "web1") == tuple(answer[name] for name in ("number", "at", "missing", "node"))
    assert {"$b": "*"} == answer["pairs"][2]["value"]
    run("weft config show --on web1")
    assert "(the lake does not have it yet), which web1 ran" in capsys.readouterr().err


def test_errors_are_sentences(lake: Layout, tmp_path: Path) -> None:
    for words, code in (
        ("--at 2026-11-21T07:59", "too-early"),
        ("--at never", "usage"),
        ("--on web2", "no-node"),
        (f"--lake {tmp_path}/other", "no-lake"),
        ("--lake empty", "no-configuration"),
        ("'a b'", "bad-key"),
    ):
        lake_of(tmp_path / "empty")
        with pytest.raises(UserError) as told:
            run(f"weft config show {words}")
        assert code == told.value.code, words
    assert lake.lake_json.exists()
