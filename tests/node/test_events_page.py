"""docs/events.md is made from the table of events."""

import typing
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.node.events import EVENTS
from weft.node.wiring import WIRES, append_event

PAGE = Path(__file__).parents[2] / "docs" / "events.md"
HEAD = """# Events

What a node writes into its stream of events: a journal record each, a log line each, a row of the lake each.
This page is generated from `weft.node.events`.

| event | level | meaning | what to do | fields |
|---|---|---|---|---|
"""


@pytest.mark.generates
@pytest.mark.proves("OBS-001", part="the page lists every event")
def test_the_page_lists_every_event(committed: Callable[[Path, str], None]) -> None:
    rows = [
        f"| `{row.name}` | {row.level} | {row.meaning} | {row.mend} | {', '.join(typing.get_type_hints(kind))} |"
        for kind, row in sorted(EVENTS.items(), key=lambda item: item[1].name)
    ]
    committed(PAGE, HEAD + "\n".join(rows) + "\n")


def test_every_event_with_a_row_is_journaled_and_no_other() -> None:
    journaled = {wire.kind for wire in WIRES if append_event in wire.actions}
    assert set(EVENTS) == journaled


def test_no_two_events_share_a_name() -> None:
    names = [row.name for row in EVENTS.values()]
    assert sorted(set(names)) == sorted(names)
