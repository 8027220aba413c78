"""Entries that end by themselves: once, by one node, and only if nobody has changed them since (ADM-014)."""

from typing import Any

import pytest
from msgspec import UNSET, Raw

from tests.store.desk import Desk, Visitor
from tests.store.net import Net, path_of
from weft.base.now import SECOND
from weft.cores.store import limits
from weft.cores.store.messages import ConflictResolved
from weft.wire.store.clients import Op
from weft.wire.store.pack import pack

CLOCK = 5


def pair(**how: Any) -> Net:
    net = Net(["a", "b", "c"], link="mesh", **how)
    net.run(1)
    net.found("a", "r")
    net.settle()
    return net


def lend(net: Net, name: str, path: str, for_s: float) -> None:
    """Write what ends by itself."""
    node = net[name]
    node.store.context.now = node.now
    node.store.replica.write(path_of(path), pack(1), until=node.now.wall / SECOND + for_s)
    net.do_turn(node)


def held(net: Net, path: str) -> dict[str, bool]:
    return {node.name: node.get(path) is not None for node in net.up()}


@pytest.mark.proves("ADM-014")
def test_an_entry_ends_when_its_time_is_over_deleted_by_who_wrote_it() -> None:
    net = pair()
    lend(net, "b", "x", 30)
    net.run(29)
    assert {"a": True, "b": True, "c": True} == held(net, "x")
    net.run(2)
    assert {"a": False, "b": False, "c": False} == held(net, "x")
    event = net["a"].store.replica.tree.get(("x",))
    assert event is not None
    assert ("b", True) == (event.node, event.is_deletion)


@pytest.mark.proves("ADM-014")
def test_another_one_deletes_what_a_node_left_that_is_gone() -> None:
    net = pair()
    lend(net, "b", "x", 30)
    net.run(5)
    net.kill("b")
    net.run(24)
    assert {"a": True, "c": True} == held(net, "x")
    net.run(10 * CLOCK)
    assert {"a": False, "c": False} == held(net, "x")
    assert [] == [event for node in net.up() for event in node.told if isinstance(event, ConflictResolved)], "one did"
    net.start("b")
    net.settle()
    assert {"a": False, "b": False, "c": False} == held(net, "x")


@pytest.mark.proves("ADM-014")
def test_what_was_changed_before_lasts_and_what_was_lent_anew_ends_later() -> None:
    net = pair()
    for path in ("kept", "longer"):
        lend(net, "b", path, 10)
    net.run(5)
    net["c"].write("kept", 2)
    lend(net, "a", "longer", 20)
    net.run(10)
    assert {"a": True, "b": True, "c": True} == held(net, "kept") == held(net, "longer")
    net.run(12)
    assert [False, True] == [net["b"].get("longer") is not None, net["b"].get("kept") is not None]
    net.run(300)
    assert {"a": True, "b": True, "c": True} == held(net, "kept")


@pytest.mark.proves("ADM-014")
def test_an_end_is_remembered_over_a_restart_and_told_to_who_joins() -> None:
    net = pair()
    lend(net, "b", "x", 60)
    net.run(1)
    for name in ("a", "b", "c"):
        net.kill(name)
    for name in ("a", "b", "c", "d"):
        net.start(name)
    net.settle()
    assert [True] * 4 == list(held(net, "x").values())
    ends = {node.store.replica.tree.get(("x",)).until for node in net.up()}  # type: ignore[union-attr]  # it is there
    assert (1, False) == (len(ends), None in ends)
    net.run(90)
    assert [False] * 4 == list(held(net, "x").values())


def test_an_entry_that_is_renewed_for_ever_is_waited_for_once() -> None:
    """Each renewal left the change before it in memory until the end that it had had."""
    net = pair()
    for _ in range(3 * limits.ENDINGS_SPARE):
        lend(net, "b", "x", 1_000_000)
    ending = net["b"].store.ending
    assert len(ending._waiting) <= limits.ENDINGS_SPARE + 2
    lend(net, "b", "x", 30)
    net.run(32)
    assert {"a": False, "b": False, "c": False} == held(net, "x")


def test_a_clock_that_is_set_forward_is_noticed_in_a_minute() -> None:
    net = pair()
    lend(net, "b", "x", 3_600)
    net.run(1)
    net.jump("b", 3_600)
    net.run(62)
    assert {"a": False, "b": False, "c": False} == held(net, "x")


@pytest.mark.proves("ADM-014")
def test_clients_say_how_long_and_are_told_until_when() -> None:
    desk = Desk("n1")
    desk.node.write(":", "root")
    client = desk.client()
    assert client.ask("set_value", path="a", value=1, ttl=30.0).changed is True
    assert 30.0 == client.ask("get_value", path="a", nchain=1).until
    assert client.ask("set_value", path="a", value=1, idem=True).changed is True, "it would have ended"
    assert client.ask("get_value", path="a", nchain=1).until is UNSET
    assert client.ask("set_value", path="a", value=1, idem=True).changed is False
    before = desk.node.context.tick
    for ttl in (0.0, -1.0, float("nan"), float("inf"), 1e12):
        assert "bad-request" == client.ask("set_value", path="a", value=2, ttl=ttl).etype
        assert "bad-request" == client.ask("batch", ops=[Op(path=("b",), ttl=ttl)]).etype
    for until in (0.0, float("nan"), float("inf"), 1e12):
        assert "bad-request" == client.ask("set_value", path="a", value=2, until=until).etype
    assert "bad-request" == client.ask("set_value", path="a", value=2, ttl=3.0, until=9.0).etype
    assert before == desk.node.context.tick


@pytest.mark.proves("ADM-014")
@pytest.mark.parametrize("until", [1.7e308, -1.7e308])
def test_an_end_beyond_every_clock_ends_no_node(until: float) -> None:
    net = pair()
    net["a"].store.context.now = net["a"].now
    net["a"].store.replica.write(path_of("x"), pack(1), until=until)
    net.do_turn(net["a"])
    net.run(120)
    is_there = until > 0
    assert {"a": is_there, "b": is_there, "c": is_there} == held(net, "x")


@pytest.mark.proves("ADM-014", part="an end that was said as an instant is had once, as it was said")
def test_an_end_is_said_as_an_instant_and_what_ends_then_already_is_not_written_again() -> None:
    desk = Desk("a")
    client = desk.client()
    lent = Op(path=("b",), value=Raw(pack(1)), idem=True, until=90.5)
    assert [True, False] == [changed(client, lent) for _ in range(2)]
    assert 90.5 == client.ask("get_value", path="b").until
    for_good = Op(path=("b",), value=Raw(pack(1)), idem=True)
    assert [True, False] == [changed(client, for_good) for _ in range(2)]


def changed(client: Visitor, op: Op) -> bool:
    """Whether a batch of one write changed anything."""
    results = client.ask("batch", ops=[op]).results
    assert results is not UNSET
    return bool(results[0]["changed"])
