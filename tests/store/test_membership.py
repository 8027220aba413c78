"""Whether a node may serve: every state with every input, and who it is if others know more of its name (4.1, STO-034)."""

from typing import Any

import pytest

from tests.store.net import Net
from tests.store.rig import chain
from tests.tables.tables import pairs
from weft.cores.store.messages import (
    AcceptTick,
    BecameReadOnly,
    Found,
    LinkUp,
    NameChanged,
    StoreIncomplete,
    StoreJoined,
    StoreRefused,
)
from weft.cores.store.states import TABLE, On, State
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Ping
from weft.wire.store.pack import pack

CLOCK = 5.0


def trio(seed: int = 1, **how: Any) -> Net:
    """Three members, founded by a."""
    net = Net(["a", "b", "c"], seed=seed, **how)
    net.run(1)
    net.found("a", "r")
    net.settle()
    return net


def say(net: Net, message: Info | Ping) -> None:
    """Somebody says this who is no node of this test."""
    net.publish("x", "wping" if isinstance(message, Ping) else "info", codec.encode(message))
    net.run(0.01)


@pytest.mark.proves("PNG-001")
@pytest.mark.parametrize(("state", "on", "cell"), list(pairs(TABLE)))
def test_every_state_with_every_input(state: State, on: On, cell: Any) -> None:
    """What has no row changes nothing; what has one leads where the table says, or on from there."""
    net = Net(["n"], delay=(0, 0))
    net.run(0)
    node = net["n"]
    membership = node.store.membership
    node.store.context.now = node.now
    membership.state = state
    steps: list[tuple[State, On]] = []
    membership.listeners.append(lambda before, what: steps.append((before, what)))
    membership._turn(on)
    if cell is None:
        assert (state, []) == (membership.state, steps)
        return
    assert (state, on) == steps[0]
    later = membership.state
    for before, what in steps[1:]:
        later = TABLE[before, what].then
    assert (later if len(steps) > 1 else cell.then) is membership.state
    assert (membership.state in (State.OFFLINE, State.LISTEN, State.JOIN)) == node.store.context.takes_any_tock


@pytest.mark.proves("PNG-001")
def test_only_a_member_serves_and_a_restored_node_if_it_may_serve_what_is_old() -> None:
    net = trio()
    for stale in (False, True):
        net.kill("b")
        net.cut({"b"})
        net.start("b", serve_stale=stale)
        net.run(0)
        assert (State.RESTORED, stale) == (net["b"].state, net["b"].store.membership.serves)
    net.heal()
    net.settle()
    assert net["b"].store.membership.serves


def test_a_node_that_comes_back_and_hears_nobody_goes_on_after_three_clocks() -> None:
    net = trio()
    net.kill("b")
    net.cut({"b"})
    net.start("b")
    took = net.run_until(lambda: net["b"].state is State.MEMBER, 30, step_s=0.1)
    assert 3 * CLOCK == pytest.approx(took, abs=0.2)
    assert pack("r") == net["b"].get("")
    net["b"].write("p", 1)
    net.heal()
    net.settle()
    assert pack(1) == net["a"].get("p")


def test_a_node_that_comes_back_has_what_was_written_meanwhile_before_it_serves() -> None:
    for seed in range(6):
        net = trio(seed)
        net.kill("b")
        for number in range(30):
            net["a"].write(f"p.{number}", number)
        net.run(1)
        node = net.start("b")
        net.run_until(lambda node=node: node.state is State.MEMBER, 60, step_s=0.05)  # type: ignore[misc]  # bound early
        assert pack(29) == node.get("p.29")
        assert node.store.replica.book.is_whole


@pytest.mark.proves("DEL-007")
def test_a_node_that_asked_what_is_forgotten_serves_nobody_before_it_is_told() -> None:
    net = trio()
    net.kill("b")
    net.start("b")
    membership = net["b"].store.membership
    membership.is_asking = lambda: True
    net.run(10 * CLOCK)
    assert (State.CATCHUP, False) == (membership.state, membership.serves)
    membership.is_asking = lambda: False
    membership.answered()
    assert (State.MEMBER, True) == (membership.state, membership.serves)


def test_founding_where_there_is_data_is_refused_and_takes_no_tick() -> None:
    net = trio()
    before = net["b"].store.context.tick
    answer = net.command("b", Found(9, pack("s")))
    assert isinstance(answer, StoreRefused)
    assert ("exists", before) == (answer.code, net["b"].store.context.tick)


def test_a_node_whose_file_says_so_founds_after_three_clocks_of_silence() -> None:
    net = Net(["a"], settings={"found": pack("own")})
    net.run(CLOCK)
    assert (
        "this node founds the store in some seconds, if it hears of no other that has one"
        == net["a"].store.membership.lacks
    )
    took = net.run_until(lambda: net["a"].state is State.MEMBER, 60, step_s=0.1)
    assert 2 * CLOCK == pytest.approx(took, abs=0.2)
    assert pack("own") == net["a"].get("")


def test_a_node_whose_file_says_so_does_not_found_where_there_is_data() -> None:
    net = trio()
    net.start("d", found=pack("own"))
    net.settle()
    net.run(60)
    assert [pack("r")] * 4 == [node.get("") for node in net.up()]


def test_a_joiner_whose_source_dies_gets_the_rest_from_another() -> None:
    net = trio(link="mesh")
    for number in range(3_000):
        net["a"].store.replica.write(("k", str(number)), b"\x01")
    net.do_turn(net["a"])
    net.run(5)
    node = net.start("d")
    net.run_until(lambda: node.store.replica.tree.entries > 500, 30, step_s=0.005)
    assert 3_000 > node.store.replica.tree.entries
    source = [name for name in "abc" if net[name].store.recovery.resending.deadline() is not None]
    for name in source:
        net.kill(name)
    net.settle()
    assert 3_000 < node.store.replica.tree.entries


def test_a_joiner_that_is_killed_on_the_way_joins_again_and_keeps_what_it_has() -> None:
    net = trio(link="mesh")
    for number in range(3_000):
        net["a"].store.replica.write(("k", str(number)), b"\x01")
    net.do_turn(net["a"])
    net.run(5)
    node = net.start("d")
    net.run_until(lambda: node.store.replica.tree.entries > 500, 30, step_s=0.005)
    net.kill("d")
    net.start("d")
    net.run(0)
    assert State.LISTEN is node.state
    assert 500 < node.store.replica.tree.entries
    net.settle()
    assert 1 == sum(isinstance(event, StoreJoined) for event in node.told)


# Whose name it is (STO-034)


@pytest.mark.proves("STO-034")
def test_a_node_that_lost_its_disk_is_another_one_if_not_all_can_confirm_its_ticks() -> None:
    """T12: peers know n:7, one of them cannot be reached."""
    net = trio()
    while net["c"].store.context.tick < 7:
        net["c"].write("own", net["c"].store.context.tick)
    net.run(1)
    net.kill("c")
    net.lose_disk("c")
    net.kill("b")
    net.start("c")
    net.run(60)
    assert ("c~2", 1) == (net["c"].store.context.name, net["c"].store.context.tick)
    assert [("c", "c~2")] == [(e.before, e.name) for e in net["c"].told if isinstance(e, NameChanged)]
    event = net["c"].write("p", 1)
    assert event is not None
    assert ("c~2", 2) == event.chain.head
    net.start("b")
    net.settle()
    net.kill("c")
    net.start("c")
    net.settle()
    assert "c~2" == net["c"].store.context.name


@pytest.mark.proves("STO-034")
def test_a_node_that_lost_its_disk_goes_on_after_its_last_tick_if_all_confirm_it() -> None:
    net = trio(link="mesh")
    while net["c"].store.context.tick < 7:
        net["c"].write("own", net["c"].store.context.tick)
    net.run(1)
    net.kill("c")
    net.lose_disk("c")
    net.run(5)
    net.start("c")
    net.settle()
    assert ("c", 7) == (net["c"].store.context.name, net["c"].store.context.tick)
    event = net["c"].write("p", 1)
    assert event is not None
    assert ("c", 8) == event.chain.head


@pytest.mark.proves("STO-034")
def test_a_member_that_learns_of_changes_of_its_name_serves_no_more_until_that_is_clear() -> None:
    net = trio()
    say(net, Info(node="q", tick=3, tock=90, ticks={"b": 99, "q": 3}, prev=chain("q:3")))
    assert State.CATCHUP is net["b"].state
    assert not net["b"].store.membership.serves
    assert net["b"].write("p", 1) is None
    net.run_until(lambda: net["b"].state is State.MEMBER, 60, step_s=0.1)
    assert "b~2" == net["b"].store.context.name


@pytest.mark.proves("STO-034")
def test_in_the_moat_dialect_an_unconfirmed_name_is_read_only_until_people_accept_it() -> None:
    net = trio(settings={"dialects": ("seed", "moat")})
    say(net, Info(node="q", tick=3, tock=90, ticks={"b": 99, "q": 3}, prev=chain("q:3")))
    net.run(40)
    assert State.READ_ONLY is net["b"].state
    assert ["unconfirmed"] == [event.why for event in net["b"].told if isinstance(event, BecameReadOnly)]
    assert net["b"].store.membership.serves
    assert net["b"].write("p", 1) is None
    net.command("b", AcceptTick(3))
    net.run(30)
    event = net["b"].write("p", 1)
    assert event is not None
    assert ("b", 100) == event.chain.head


@pytest.mark.proves("STO-034")
def test_of_two_live_nodes_of_one_name_the_newer_takes_no_orders() -> None:
    net = trio(link="mesh")
    net.nodes["z"] = twin = net.add("z")
    net.start("z", name="b")
    net.run(30)
    assert State.READ_ONLY is twin.state
    assert "name-collision" == twin.store.context.read_only
    assert State.MEMBER is net["b"].state


@pytest.mark.proves("STO-034")
def test_the_newer_of_two_nodes_of_one_name_joins_once_the_older_one_is_gone() -> None:
    net = trio(link="mesh")
    net["b"].write("p", 1)
    net.nodes["z"] = twin = net.add("z")
    net.start("z", name="b")
    net.run(30)
    net.kill("b")
    net.run(120)
    assert State.MEMBER is twin.state
    assert ["name-collision"] == [event.why for event in twin.told if isinstance(event, BecameReadOnly)]
    event = twin.write("p", 2)
    assert event is not None
    net.run(5)
    assert twin.store.replica.tree.entries == net["a"].store.replica.tree.entries


@pytest.mark.proves("STO-032")
def test_a_damaged_node_that_can_reach_nobody_goes_on_under_another_name() -> None:
    net = trio()
    net.kill("b")
    net.cut({"b"})
    node = net.start("b")
    node.store.replica.admitting.is_damaged = True
    net.run_until(lambda: node.state is State.MEMBER, 90, step_s=0.1)
    assert "b~2" == node.store.context.name
    assert [] == [event for event in node.told if isinstance(event, StoreIncomplete)]


@pytest.mark.proves("PNG-003", part="where the only node with data was restarted on a damaged journal")
def test_a_newcomer_joins_a_damaged_node_that_was_alone() -> None:
    net = trio()
    for name in "abc":
        net.kill(name)
    node = net.start("b")
    node.store.replica.admitting.is_damaged = True
    net.run_until(lambda: node.state is State.MEMBER, 90, step_s=0.1)
    net.nodes["z"] = newcomer = net.add("z")
    net.start("z")
    net.run(60)
    assert (State.MEMBER, State.MEMBER) == (node.state, newcomer.state)


def test_a_node_that_is_told_to_stop_is_quiet() -> None:
    net = trio(is_traced=True)
    net["b"].store.membership.stop(net["b"].now)
    net.do_turn(net["b"])
    net.trace.clear()
    net.run(60)
    assert [] == [heard for heard in net.trace if heard.node == "b" and heard.topic == "ping"]
    net.command("b", LinkUp("mqtt"))
    assert State.RESTORED is net["b"].state


def test_a_node_that_emptied_itself_joins_anew_under_its_new_name() -> None:
    """DEL-006, from where its changes are set aside."""
    net = trio()
    net["b"].write("p", 1)
    net.run(1)
    node = net["b"]
    node.store.context.now = node.now
    node.store.replica.empty()
    node.store.replica.rename("b~2")
    node.store.membership.rejoin(node.now)
    net.do_turn(node)
    assert (State.LISTEN, False) == (node.state, node.store.membership.serves)
    net.settle()
    assert ("b~2", 1) == (node.store.context.name, node.store.context.tick)
    assert pack(1) == node.get("p")
