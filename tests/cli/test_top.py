"""`weft top` shows the picture of the console: in the same order, with the same numbers, at any width."""

from typing import Any

import pytest
from rich.console import Console

from weft.base.errors import UserError
from weft.cli import top as module
from weft.cli.status import status
from weft.cli.top import pictures, top
from weft.cli.top_view import Screen, numbers, spark, view

AT = 1_795_000_000_000
SLOT = AT // 5_000


def node(name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    row = {"name": name, "level": "sensor", "parent": parent, "much": 0, "troubles": [], "strip": "." * 57 + "oo~"}
    return row | {"counts": (10, 10, 0), "newest": AT - 1_000, "values": {}, "busiest": None} | more


def picture(**nodes: dict[str, Any]) -> dict[str, Any]:
    head = {"fleet": "lab", "name": "root", "homeless": []}
    return {"number": 1, "at": AT, "whole": True, "head": head, "nodes": nodes}


def seen(screen: Screen, width: int = 120, height: int | None = None) -> list[str]:
    out = Console(width=width, color_system=None)
    with out.capture() as said:
        out.print(view(screen, width=width, height=height))
    return [line.rstrip() for line in said.get().splitlines()]


def four() -> Screen:
    screen = Screen()
    values = {"cpu": [SLOT - 2, 0.0, None, 100.0], "memory": [SLOT, 20.0]}
    silent = [3, "silent", "see whether it runs", AT - 61_000]
    screen.take(
        picture(
            r=node("root", level="root"),
            a=node("a", "r", level="collector"),
            b=node("b", "r", level="collector", values=values, busiest=("python", 41.5)),
            s=node("s", "b", much=3, troubles=[silent], counts=(10, 7, 1), newest=AT - 61_000),
        )
    )
    return screen


@pytest.mark.proves("CON-006", part="the tree, the four numbers and what is wrong, of the console's own picture")
def test_the_branch_with_trouble_stands_first_and_is_named() -> None:
    lines = seen(four())
    assert "lab, as root knows it" == lines[0]
    assert "✖ 1 of 4 machines in trouble: s" == lines[1]
    assert "expected 40  received 37  missing 3, 1 of them lost  oldest age 1 min (s)" == lines[2]
    assert "  ✖ s: silent for 1 min → see whether it runs" == lines[3]
    assert ["✔ root", "✔ b", "✖ s", "✔ a"] == [line.strip()[:6].strip() for line in lines[6:]]
    assert "▁▁█ 100 %" in lines[7]
    assert "python 42 %" in lines[7]
    assert lines[7].endswith("▪▪")


@pytest.mark.proves("MET-004", part="`weft top` shows what fires")
def test_what_fires_is_shown_behind_who_is_silent() -> None:
    screen, fires = Screen(), [3, "alert hot: cool it · temperature 91.5 Cel (> 90 Cel)", "weft alerts", AT - 5_000]
    rows = {"r": node("root", much=3, troubles=[fires]), "s": node("s", "r", much=3, troubles=[[3, "silent", "", 0]])}
    screen.take(picture(**rows))
    assert [
        "  ✖ s: silent",
        "  ✖ root: alert hot: cool it · temperature 91.5 Cel (> 90 Cel) for 5 s → weft alerts",
    ] == seen(screen)[3:5]


def test_beside_a_silent_machine_nothing_missing_is_nothing_known() -> None:
    screen = Screen()
    screen.take(picture(r=node("root"), s=node("s", "r", much=3, troubles=[[3, "silent", "look", AT - 61_000]])))
    assert "missing none known, silent: s" in numbers(screen)
    screen.take({"number": 2, "at": AT, "nodes": {"s": {"troubles": [], "much": 0}}, "gone": []})
    assert "missing 0 " in numbers(screen)


def test_eighty_columns_and_few_lines_are_enough() -> None:
    lines = seen(four(), width=80, height=9)
    assert [line for line in lines if len(line) > 80] == []
    assert "3 more machines: weft console" == lines[-1]
    assert 9 >= len(lines)


@pytest.mark.parametrize("width", range(60, 140, 4))
def test_no_number_and_no_heading_is_cut_at_any_width(width: int) -> None:
    values = {meter: [SLOT, 100.0] for meter in ("cpu", "memory", "disk")}
    screen = Screen()
    screen.take(picture(r=node("collector-1", level="root", values=values, busiest=("process", 41.5))))
    heading, line = seen(screen, width)[-2:]
    assert ["machine", "cpu", "memory", "disk", "busiest"] == heading.split()[:5]
    assert 3 == line.count("100 %")
    assert "process 42 %" in line


def test_changes_make_the_picture_that_a_whole_one_would() -> None:
    screen = four()
    head = screen.head
    changes = {"b": {"values": {"cpu": [SLOT, 50.0, 25.0]}, "counts": (11, 11, 0)}}
    screen.take({"number": 2, "at": AT + 5_000, "nodes": changes, "gone": ["a"]})
    assert (head, AT + 5_000, {"r", "b", "s"}) == (screen.head, screen.at_ms, set(screen.nodes))
    assert [SLOT - 2, 0.0, None, 50.0, 25.0] == screen.nodes["b"]["values"]["cpu"]
    assert [SLOT, 20.0] == screen.nodes["b"]["values"]["memory"]
    screen.take({"number": 9, "at": AT, "nodes": {"b": {"values": {"cpu": [SLOT + 3, 1.0]}}}, "gone": []})
    assert [SLOT - 2, 0.0, None, 50.0, 25.0, None, 1.0] == screen.nodes["b"]["values"]["cpu"]
    assert "expected 31  received 28" == numbers(screen)[:24]


def test_of_a_meter_as_much_is_kept_as_the_console_keeps() -> None:
    screen = Screen()
    screen.take(picture(r=node("root", values={"cpu": [1, *[1.0] * 120]})))
    screen.take({"number": 2, "at": AT, "nodes": {"r": {"values": {"cpu": [121, 2.0, 3.0]}}}, "gone": []})
    assert [3, *[1.0] * 118, 2.0, 3.0] == screen.nodes["r"]["values"]["cpu"]


@pytest.mark.proves("SEC-045", part="the picture of `weft top`")
def test_rings_of_parents_and_text_of_others_do_no_harm() -> None:
    screen = Screen()
    screen.take(picture(a=node("a\x1b[2J", "b"), b=node("b", "a"), c=node("c", "gone")))
    assert "\x1b" not in "".join(seen(screen))
    assert ["c", "a\x1b[2J", "b"] == [line.row["name"] for line in screen.lines()]
    assert "    " == spark([], 7, 4)


def test_without_a_terminal_it_is_shown_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = '{"at": 1, "whole": true, "head": {"fleet": "lab", "name": "r"}, "nodes": {}}'
    monkeypatch.setattr(module, "text_of", lambda port, name: page)
    assert 0 == top(port=3_000)
    assert 0 == status(port=3_000, watch=True)
    assert 2 == capsys.readouterr().out.count("lab, as r knows it")
    assert 0 == top(port=3_000, json=True)
    assert page == capsys.readouterr().out.strip()


def test_a_node_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(UserError) as refused:
        list(pictures(1))
    assert "unavailable" == refused.value.code
