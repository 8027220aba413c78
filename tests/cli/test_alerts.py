"""`weft alerts` for people: what fires, gravest first, and who could not be told (MET-004)."""

from typing import Any

import pytest

from weft.cli.alerts import show
from weft.cli.status import firing

pytestmark = pytest.mark.proves("MET-004", part="`weft alerts` and `weft status` show what fires")

ONE: dict[str, Any] = {
    "id": "00",
    "name": "disk_full",
    "node": "pi7",
    "metric": "disk_percent",
    "labels": {"mount": "/"},
    "value": 93.4,
    "unit": "%",
    "when": "> 90 %",
    "limit": 90,
    "severity": "critical",
    "text": "mend it",
    "since": 1_795_000_000_000,
}
OLDER = ONE | {"severity": "warning", "name": "warm\x1b[2J", "since": 1_790_000_000_000, "text": ""}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def page(**other: Any) -> dict[str, Any]:
    return {"name": "pi7", "level": "sensor", "own": [], "fleet": None, "ended": None, "sinks": None} | other


def lines(capsys: pytest.CaptureFixture[str], told: dict[str, Any], *, is_all: bool = False) -> list[list[str]]:
    show(told, is_all=is_all)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_node_shows_its_own_the_gravest_first_and_nothing_moves_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, _, first, second = lines(capsys, page(own=[OLDER, ONE]))
    assert ["2", "fire", "at", "pi7"] == head
    assert ["critical", "pi7", "disk_full", "93.4", "%", ">", "90", "%", "mount=/", "mend", "it"] == first[2:]
    assert ["warning", "pi7", "warm\\x1b[2J"] == second[2:5]


def test_a_root_shows_the_fleet_what_has_ended_if_asked_and_who_was_not_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sink = {"sink": "ops", "state": "RESTING", "waiting": 2, "tries": 3, "why": "refused", "next_s": 12}
    ended = [ONE | {"at": 1_795_000_060_000, "why": "back"}]
    told = page(own=[ONE], fleet=[], ended=ended, sinks=[sink, sink | {"why": ""}])
    assert [["nothing", "fires", "in", "the", "fleet"]] == lines(capsys, told)[:1]
    assert ["ops:", "2", "notices", "wait,", "refused;", "next", "try", "in", "12", "s"] == lines(capsys, told)[1]
    _, _, row, *_ = lines(capsys, told, is_all=True)
    assert ["mount=/", "ended"] == row[10:12]


@pytest.mark.proves("MET-003", part="`weft alerts` names what can never fire")
def test_what_can_never_fire_is_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    dead = [{"key": "/CONFIG/web/alert/full", "why": "E07 metric: there is no metric 'disk'"}]
    show(page(fleet=[], ended=[], sinks=[], dead=dead, in_vain=["/CONFIG/db/alert/slow"]), is_all=False)
    assert [
        "nothing fires in the fleet",
        "can never fire: /CONFIG/web/alert/full: E07 metric: there is no metric 'disk'",
        "cannot fire now: /CONFIG/db/alert/slow: no machine is in its group",
    ] == capsys.readouterr().out.splitlines()


def test_the_status_has_a_line_for_each_node_where_something_fires() -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "a", "alerts": {"firing": 1}},
        {"name": "b", "alerts": {"firing": 2}},
        {"name": "older"},
    ]
    assert ["a: 1 alert fires: weft alerts", "b: 2 alerts fire: weft alerts"] == firing(nodes)
