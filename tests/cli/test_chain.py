"""`weft chain` without a node: what is typed, and what is shown."""

import json
from typing import Any

import pytest

from weft.base.errors import UserError
from weft.cli import chain
from weft.cli.chain_calls import destination_of, place_of
from weft.cli.chain_lines import COUNTERS, wanted
from weft.cli.demos.app import seconds


def link(place: Any, name: str, **counts: int) -> dict[str, Any]:
    counters = {**dict.fromkeys(COUNTERS[:-2], 0), **counts}
    facts = {"name": name, "kind": "client", "access": "rw", "state": "OPEN", "pending": 0, "backlog": 0}
    return {"place": place, **facts, "counters": counters}


def chain_of(direction: str, type_name: str, *links: dict[str, Any], accepted: int = 0, **ended: int) -> dict[str, Any]:
    delivered = accepted - sum(ended.values())
    flow = {"accepted": accepted, "delivered": delivered, "ended": ended, "in_flight": 0}
    return {"direction": direction, "type": type_name, **flow, "links": list(links)}


TOLD = {
    "name": "A",
    "chains": [
        chain_of("in", "demo.report", link("after-all", "seen", offered=2), accepted=2),
        chain_of("out", "other"),
        chain_of(
            "out",
            "demo.report",
            link(7, "a\x1b[2Jb", offered=1_234),
            {"name": "hot", "kind": "threshold", "place": "9", "counters": {"offered": 0, "lost": 1}},
            accepted=1_235,
            deleted=3,
        ),
    ],
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("parentsof", ("PARENTSOF",)),
        ("NEARESTCOORD", ("NEARESTCOORD",)),
        ("local", ("DIRECT",)),
        ("localnode", ("DIRECT",)),
        ("direct:C", ("DIRECT", "C")),
        ("direct:node_local", ("DIRECT", None)),
        ("direct:" + "0b" * 16, ("DIRECT", b"\x0b" * 16)),
        ("parentsof::3", ("PARENTSOF", None, 3)),
    ],
)
def test_a_destination_is_kind_node_and_hops(text: str, expected: tuple[Any, ...]) -> None:
    assert expected == destination_of(text)


@pytest.mark.parametrize("text", ["", ":C", "direct:C:x", "direct:C:1:2", "direct:C:-1"])
def test_what_is_no_destination_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refused:
        destination_of(text)
    assert "usage" == refused.value.code


def test_a_place_is_a_number_or_an_end_of_the_chain() -> None:
    assert [1, 4_294_967_294, "before-all"] == [place_of(text) for text in ("1", "4294967294", "before-all")]
    for text in ("0", "4294967295", "-1", "first"):
        with pytest.raises(UserError):
            place_of(text)


def test_a_period_is_a_time() -> None:
    assert [2.0, 0.25, 0.5] == [seconds(text) for text in ("2", "250ms", "0.5")]
    for text in ("0", "soon", "-1s", "0s"):
        with pytest.raises(UserError):
            seconds(text)


def test_chains_are_shown_out_before_in_and_one_type_alone() -> None:
    assert [("out", "demo.report"), ("out", "other"), ("in", "demo.report")] == [
        (one["direction"], one["type"]) for one in wanted(TOLD, None)
    ]
    assert ["out"] == [one["direction"] for one in wanted(TOLD, "other")]


def test_links_are_shown_with_the_counters_that_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chain, "order", lambda port, name: TOLD)
    assert 0 == chain.list_chains(type_name="demo.report")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["out", "demo.report:", "1,235", "accepted,", "1,232", "delivered,", "3", "deleted"] == lines[0]
    assert ["place", "who", "kind", "access", "state", "in", "hand", "offered", "passed", "lost"] == lines[1]
    assert ["9", "hot", "threshold", "-", "-", "-", "0", "0", "1"] == lines[3]
    assert ["7", r"a\x1b[2Jb", "client", "rw", "open", "-", "1,234", "0", "0"] == lines[2]


def test_readers_are_shown_with_what_waits_for_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = {"type": "app.*", "place": "after-all", "away_max_s": 600}
    away = reader | {"is_away": True, "forgotten_in_s": 599, "waiting": 1_200, "waiting_bytes": 2_500_000}
    here = reader | {"is_away": False, "forgotten_in_s": None, "waiting": 0, "waiting_bytes": 0}
    told = {
        "name": "A",
        "chains": [chain_of("in", "t")],
        "readers": [away | {"name": "tally"}, here | {"name": "y\x1b"}],
    }
    monkeypatch.setattr(chain, "order", lambda port, name: told)
    assert 0 == chain.list_chains()
    assert [
        "in t: 0 accepted, 0 delivered",
        "reader tally of app.*: away, 1,200 messages (2.5 MB) wait, forgotten in 599 s",
        r"reader y\x1b of app.*: attached",
    ] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "answer, says",
    [
        ({"forgotten": 1, "is_full": False}, "forgotten; 1,200 messages that waited for it are given up"),
        ({"forgotten": 0, "is_full": False}, "weft: no reader of the name tally is away"),
        ({"forgotten": 0, "is_full": True}, "weft: the journal is full"),
    ],
)
def test_a_reader_is_forgotten_by_its_name_or_it_is_said_why_not(
    answer: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def order(port: int, name: str, **fields: Any) -> dict[str, Any]:
        asked.append((port, name, fields))
        return {"name": "tally", "messages": 1_200, **answer}

    monkeypatch.setattr(chain, "order", order)
    status = chain.forget("tally", port=7)
    assert (0 if answer["forgotten"] else 1) == status
    assert [(7, "forget-reader", {"reader": "tally"})] == asked
    shown = capsys.readouterr()
    assert (shown.err if status else shown.out).startswith(says)


def test_a_node_without_chains_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"name": "A", "chains": [], "clients": [{"name": "x\x1b", "pid": 7, "errors": {}, "copies_lost": 3}]}
    monkeypatch.setattr(chain, "order", lambda port, name: told)
    assert 0 == chain.list_chains()
    assert [
        "no message has passed A, and its chains have no links",
        r"client x\x1b, process 7, 3 copies lost",
    ] == capsys.readouterr().out.splitlines()


@pytest.mark.proves("CHN-084", part="trace")
def test_a_trace_is_shown_a_link_a_line_and_what_came_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    steps = [
        {"link": "tagger\x1b", "verdict": "handed back", "us": 1_500},
        {"link": "no", "verdict": "dropped", "us": 1_500},
    ]
    message = {
        "type": "t",
        "direction": "in",
        "mid": ["ab" * 16, 9, 4],
        "bytes": 5,
        "steps": steps,
        "end": "deleted",
        "us": 1_500,
    }

    def order(port: int, name: str, **fields: Any) -> dict[str, Any]:
        asked.append((port, name, fields))
        return {"messages": [message]}

    monkeypatch.setattr(chain, "order", order)
    assert 0 == chain.trace("t", on="in", count=2, seconds=0.5, port=7)
    assert [(7, "trace", {"type": "t", "direction": "in", "count": 2, "span_ms": 500})] == asked
    assert [
        "in t abababab:4, 5 bytes",
        r"      1,500 µs  tagger\x1b: handed back",
        "      1,500 µs  no: dropped",
        "      1,500 µs  deleted",
    ] == capsys.readouterr().out.splitlines()
    with pytest.raises(UserError):
        chain.trace("t", seconds=31)


@pytest.mark.parametrize(
    ("told", "says"), [({"messages": []}, "no message came"), ({"messages": [], "is_busy": True}, "another trace")]
)
def test_a_trace_of_nothing_ends_with_1(
    told: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chain, "order", lambda port, name, **fields: told)
    assert 1 == chain.trace("t")
    assert says in capsys.readouterr().err


@pytest.mark.proves("CHN-084", part="spool")
def test_what_waits_is_shown_with_its_age(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    carrier = {
        "spool_records": 1_200,
        "spool_bytes": 34_000,
        "oldest_at": 1,
        "resent": 7,
        "dropped": 2,
        "known": 3,
        "unsure": 1,
    }
    cores = {"carrier": carrier, "chains": {"mail": {"inbox_entries": 4, "inbox_bytes": 90}}}
    monkeypatch.setattr(chain, "status_of", lambda port: {"cores": cores})
    monkeypatch.setattr("weft.cli.chain_lines.time.time_ns", lambda: 2_500_000_001)
    assert 0 == chain.spool()
    assert [
        "up: 1,200 records wait, 34,000 bytes, the oldest 2.5 s old",
        "    7 were sent again, 2 given up for want of room",
        "in: 4 messages have not ended, 90 bytes",
        "    3 came twice, 1 may have",
    ] == capsys.readouterr().out.splitlines()
    monkeypatch.setattr(chain, "status_of", lambda port: {"cores": {}})
    assert 0 == chain.spool(json=True)
    assert None is json.loads(capsys.readouterr().out)["oldest_s"]


@pytest.mark.parametrize("payload", ['{"a": 1', "", "the fan stopped", "[" * 100_000])
def test_what_is_no_json_is_not_sent_as_json(monkeypatch: pytest.MonkeyPatch, payload: str) -> None:
    """It was `spooled`, and no filter and no reader could read it."""
    monkeypatch.setattr("weft.cli.chain_calls.send_once", lambda *_, **__: pytest.fail("it was sent"))
    with pytest.raises(UserError, match="no JSON"):
        chain.send("app.alert", payload, fmt="json")
