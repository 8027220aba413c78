"""docs/as-of.md is typed as it stands there, against a lake in which it is the evening of its examples (WEL-002)."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.cli.test_config_show import run
from tests.pages import Typed, consoles
from tests.pipeline.ground import A, B
from tests.pipeline.plain import Row, applied, lake_of, put, wrote
from weft.pipeline.tables import CATALOG, COMPLETENESS, CONFIGURATION, DOCUMENTS, EVENTS, STORE

TYPED: Final = [typed for console in consoles("as-of.md") for typed in console]


def clock(hour: int, minute: int, second: int = 0, day: int = 22) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, tzinfo=UTC)


def rate(text: str) -> str:
    return f'{{"detail":"CPU","rate":"{text}"}}'


CPU: Final = "/CONFIG/web/metric/cpu"
WRITES: Final[list[Row]] = [
    wrote(1, CPU, rate("1s"), by="ann") | {"at": clock(8, 0)},
    wrote(2, CPU, rate("100ms"), by="joe") | {"at": clock(20, 30)},
    wrote(3, "/app/colour", "blue", by="ann") | {"at": clock(20, 40)},
    wrote(3, "/app/colour", "red", by="joe", epoch=1) | {"at": clock(20, 45)},
]
RUN: Final[list[Row]] = [applied("s1", 0, 1) | {"at": clock(8, 1)}, applied("s1", 1, 2) | {"at": clock(20, 31)}]


def changed(node: str, tick: int, tock: int, value: str, at: datetime, **more: object) -> Row:
    """A change of the temperature of the kitchen."""
    who = {"origin": node, "sequence": tick, "node": node, "tick": tick, "tock": tock, "chain": []}
    said = {"path_text": "home.kitchen.temp", "value": value, "deleted": False, "at": at, "received": at}
    return who | said | more


CHANGES: Final[list[Row]] = [
    changed("n1", 902, 40, "19", clock(18, 2, 57)),
    changed("n2", 77, 41, "21.5", clock(18, 2, 55)),
    changed("n1", 941, 42, "22", clock(20, 41, 10), by="joe"),
]


def entered(number: int, duration: int, at: datetime) -> Row:
    """An entry of the third jam."""
    source, eff = "5f3a9c21" + "0" * 24, at.timestamp()
    head = f'<set period="1" jam="3" source="{source}" sequence="{number}" timestamp="{eff}">'
    body = f'{head}<attribute name="duration">{duration}</attribute></set>'.encode()
    told = {"origin": f"Hall 5/{source}", "sequence": number, "session": "Hall 5", "source": source, "eff": eff}
    return told | {"received_at": at, "body": body, "schema": "derby", "verb": "set", "reference": "period=1 jam=3"}


ENTRIES: Final = [entered(number, 80 + number, clock(20, 2 * number)) for number in range(1, 10)]
UP: Final[list[Row]] = [
    {"origin": A, "era": 1, "name": "thermo", "instance": "a", "op": "update", "sequence": number, "state": state, "at": at}
    for number, state, at in ((1, "active", clock(8, 0)), (2, "inactive", clock(9, 0)), (3, "active", clock(9, 30)))
]  # fmt: skip


def counted(stream: str, node: str, origin: str, started: datetime, **more: object) -> Row:
    """A row of the table of completeness."""
    row = {"stream": stream, "origin": origin, "era": round(started.timestamp() * 1_000_000), "node": node}
    row |= {"missing": 0, "lost": 0, "forgotten": 0, "closed": False, "more": False, "complete_upto": 4}
    return row | {"last_received": clock(20, 49), "missing_ranges": [], "lost_ranges": []} | more


COUNTED: Final[list[Row]] = [
    counted("samples", "web-1", A, clock(8, 0, 1), state="missing", expected=9041, missing=2,
            missing_ranges=[{"first": 5, "last": 6, "since": clock(10, 20, 3)}]),
    counted("logs", "db", B, clock(16, 30, day=20), state="lost", expected=300, lost=120,
            lost_ranges=[{"first": 101, "last": 220, "why": "spool-full"}]),
    counted("messages", "db", B, clock(16, 30, day=20), state="sparse", expected=8204),
]  # fmt: skip
EVENING: Final = {
    CONFIGURATION: WRITES, EVENTS: RUN, STORE: CHANGES, DOCUMENTS: ENTRIES, CATALOG: UP, COMPLETENESS: COUNTED
}  # fmt: skip


@pytest.fixture
def evening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """./lake of the page's day, at ten to nine on a machine whose clock shows UTC."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "100")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: clock(20, 50).timestamp())
    made = lake_of(tmp_path / "lake")
    for table, rows in EVENING.items():
        put(made, table, *rows)
    yield
    monkeypatch.undo()
    time.tzset()


WIDE: Final = {
    'weft sql "SELECT value, valid_from': "20:30:00",
    "weft lake missing --node web-1": '"missing_ranges": [[5, 6, "2026-11-22T10:20:03+00:00"]]',
}
"""A part of what is printed, where it is too wide to be shown on the page."""


@pytest.mark.proves("WEL-002", part="the page of what was: what it shows is what is printed")
@pytest.mark.usefixtures("evening")
@pytest.mark.parametrize("typed", TYPED, ids=range(len(TYPED)))
def test_what_the_page_shows_is_what_is_printed(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert 12 == len(TYPED)
    status = run(typed.command)
    told = capsys.readouterr()
    assert (1 if typed.command.startswith("weft lake missing") else 0) == (status or 0), told.err
    assert typed.is_shown(told.out), told.out
    assert typed.shown or [part in told.out for start, part in WIDE.items() if typed.command.startswith(start)] == [
        True
    ]
