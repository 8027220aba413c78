"""`weft store` without a node: what is ordered, and how the answers are shown."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from weft.base.errors import UserError
from weft.cli import store, store_calls
from weft.cli.which import PORT

Orders = list[tuple[str, dict[str, Any]]]
SIDE = {"node": "b", "tick": 7, "tock": 9, "at": 1.5, "by": "ann", "value": "cb4035800000000000"}
STATE = {
    "answer": "Show",
    "state": "MEMBER",
    "serves": True,
    "node": "a",
    "tick": 1_234,
    "tock": 2_000,
    "read_only": "",
    "entries": 10,
    "tombstones": 2,
    "value_bytes": 300,
    "missing": {"b": [5, [8, 11]]},
    "members": 2,
    "foreign": 1,
    "has_broker": True,
    "conflicts": 3,
}


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Orders]:
    """What a node that gives this answer has heard."""

    def node(answer: Any) -> Orders:
        heard: Orders = []

        def order(port: int, name: str, **fields: Any) -> Any:
            heard.append((name, {"port": port, **fields} if port != PORT else fields))
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(store_calls, "order", order)
        return heard

    return node


def cells(text: str) -> list[list[str]]:
    """A table."""
    return [re.split(" {2,}", line) for line in text.splitlines()]


@pytest.mark.proves("ADM-020")
def test_a_store_is_founded_with_a_value(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    heard = ordered({"answer": "Found", "node": "a", "tick": 1})
    assert 0 == store.found("our house")
    assert 0 == store.found("{a: 1}", port=27_510, json=True)
    assert [
        ("store-found", {"value": "a96f757220686f757365"}),
        ("store-found", {"port": 27_510, "value": "81a16101"}),
    ] == heard
    assert ["a has founded the store", '{"node": "a", "tick": 1}'] == capsys.readouterr().out.splitlines()
    with pytest.raises(UserError):
        store.found("{")


@pytest.mark.proves("ADM-020")
def test_how_a_store_stands_is_shown(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    heard = ordered(STATE)
    assert 0 == store.state()
    assert [("store-show", {"what": "state"})] == heard
    assert [
        "a: MEMBER, serves clients; change 1,234, tock 2,000",
        "10 entries, 2 deleted ones, 300 bytes of values",
        "2 other nodes linked, 1 MoaT-KV server, a broker",
        "missing of b: 5, 8-10",
        "3 conflicts so far: weft store conflicts",
    ] == capsys.readouterr().out.splitlines()
    ordered({**STATE, "read_only": "dropped", "serves": False})
    assert 0 == store.state()
    shown = capsys.readouterr().out
    assert "serves nobody yet" in shown
    assert "it waits" not in shown
    ordered({**STATE, "state": "LISTEN", "serves": False, "conflicts": 1})
    assert 0 == store.state()
    shown += capsys.readouterr().out
    assert "it has no data, and waits for a node that has" in shown
    assert "1 conflict so far" in shown
    assert "takes no writes: dropped" in shown


@pytest.mark.proves("ADM-020")
def test_members_are_a_table(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"node": "b\x1b", "tick": 1_000, "missing": 2, "link": "mesh", "endpoint": "10.0.0.2:27500", "kind": "weft"}
    ordered({"answer": "Show", "members": [row, {**row, "node": "n1", "link": "", "endpoint": "", "kind": "foreign"}]})
    assert 0 == store.members()
    assert [
        ["node", "kind", "link", "endpoint", "last change", "missing"],
        [r"b\x1b", "weft", "mesh", "10.0.0.2:27500", "1,000", "2"],
        ["n1", "foreign", "-", "-", "1,000", "2"],
    ] == cells(capsys.readouterr().out)


@pytest.mark.proves("ADM-020", "STO-013")
def test_conflicts_are_listed_with_both_values_and_a_loser_written_again(
    ordered: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = {"node": "a", "tick": 3, "tock": 9, "at": None, "by": "", "deleted": True}
    told = {
        "answer": "Show",
        "conflicts": [{"number": 4, "path": "p.q", "reason": "concurrent", "kept": SIDE, "lost": lost}],
    }
    ordered(told)
    assert 0 == store.conflicts()
    expected = ["4", "p.q", "concurrent", "21.5 # b:7 ann", "deleted # a:3"]
    assert expected == cells(capsys.readouterr().out)[1]
    ordered(json.loads(json.dumps(told)))
    assert 0 == store.conflicts(json=True)
    [shown] = json.loads(capsys.readouterr().out)["conflicts"]
    assert (21.5, True) == (shown["kept"]["value"], shown["lost"]["deleted"])
    heard = ordered({"answer": "RestoreLoser", "node": "a", "tick": 8, "path": "p.q"})
    assert 0 == store.conflicts(restore=4)
    assert [("store-restore", {"number": 4})] == heard
    assert "p.q has the value again that had lost\n" == capsys.readouterr().out
    ordered({"answer": "Show", "conflicts": []})
    assert 0 == store.conflicts()
    assert "no conflicts\n" == capsys.readouterr().out


@pytest.mark.proves("ADM-020")
def test_a_node_is_dropped_and_a_tick_accepted(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    heard = ordered({"answer": "x", "node": "attic", "tick": 12, "read_only": "unconfirmed"})
    assert [0, 0] == [store.drop("attic"), store.accept_tick()]
    asked = [("store-drop-node", {"node": "attic"}), ("store-show", {"what": "state"}), ("store-accept-tick", {})]
    assert asked == heard
    assert [
        "attic is dropped after its change 12",
        "attic goes on after its change 12",
    ] == capsys.readouterr().out.splitlines()


def test_a_tick_that_nobody_doubts_is_not_accepted_again(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    heard = ordered(STATE)
    assert 1 == store.accept_tick()
    assert ["store-show"] == [name for name, _ in heard]
    assert "nothing is to be accepted: a writes under its own name" in capsys.readouterr().err


def test_a_deleter_that_nobody_knows_is_warned_of(
    ordered: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "at_store", lambda *_, **__: 0)
    ordered({"answer": "Show", "members": [{"node": "a"}]})
    assert 0 == store.deleter("add", "a", "atic")
    told = capsys.readouterr()
    assert (["a", "atic"], 1) == (told.out.splitlines(), told.err.count("weft: no node called 'atic'"))


@pytest.mark.proves("ADM-020")
def test_deleters_are_added_and_removed(
    ordered: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = ordered({"answer": "SetDeleters", "deleters": [], "members": [{"node": name} for name in "acz"]})
    monkeypatch.setattr(store, "_reading", lambda held: held.extend(["a", "b"]))
    monkeypatch.setattr(store, "at_store", lambda *_, **__: 0)
    for words in (("list",), ("add", "c", "a"), ("remove", "a"), ("set", "z"), ("set",)):
        assert 0 == store.deleter(*words)
    assert [["a", "b", "c"], ["b"], ["z"], []] == [
        fields["nodes"] for name, fields in heard if name == "store-deleters"
    ]
    assert ["a", "b", "a", "b", "c", "b", "z", "all nodes"] == capsys.readouterr().out.splitlines()
    with pytest.raises(UserError):
        store.deleter("add")


@pytest.mark.proves("ADM-020")
def test_a_refusal_is_status_4_and_no_node_status_3(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ordered(UserError("refused", "the node refused store-found: it has a store already", "weft store state"))
    assert 4 == store.found()
    ordered(UserError("unavailable", "no node answers", "weft up"))
    assert [3] * 5 == [store.state(), store.members(), store.conflicts(), store.orphans(), store.deleter("set", "a")]
    assert "try: weft store state" in capsys.readouterr().err
    ordered(UserError("refused", "the node refused store-restore: there is no conflict 9", "weft status"))
    assert 4 == store.conflicts(restore=9)
    assert "try: weft store conflicts" in capsys.readouterr().err
    with pytest.raises(UserError):
        store.state(port=99_999)


def test_orphans_are_listed(ordered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ordered({"answer": "Show", "orphans": [{"path": "p.q", **SIDE}]})
    assert 0 == store.orphans()
    assert "p.q   21.5 # b:7 ann" == capsys.readouterr().out.splitlines()[1]
    ordered({"answer": "ReplayOrphans", "written": 2})
    assert 0 == store.orphans(replay=True)
    assert "2 are written anew\n" == capsys.readouterr().out
