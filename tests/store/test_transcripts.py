"""Small stories with exact times, C = 5 s."""

from typing import Any

import pytest

from tests.store.net import Heard, Net
from tests.store.rig import chain
from weft.base.chance import Chance
from weft.base.changes import Chain
from weft.base.effects import Persist, Reply, Send
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.base.records import StreamRecord
from weft.cores.store.core import Store
from weft.cores.store.messages import ConflictResolved, Found, LinkUp, SplitFound, StoreJoined, StoreSettings
from weft.cores.store.splits import Splits, takeover_ns
from weft.cores.store.states import State
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Message, Ping, Update
from weft.wire.store.pack import pack

START = Now(SECOND, 1_800_000_000 * SECOND)


def founded(*names: str, **how: Any) -> Net:
    """These nodes, founded by the first, all members, everything said is traced from here on."""
    net = Net(names, delay=(0, 0), is_traced=True, **how)
    net.run(0)
    net.found(names[0])
    net.settle()
    net.trace.clear()
    return net


def say(net: Net, topic: str, message: Message) -> None:
    """Somebody says something who is no node of this test."""
    net.publish("x", topic, codec.encode(message))
    net.run(0)


def heading(net: Net, links: str, tock: int) -> float:
    """Node n's current ping is this one, whoever said it; returns when."""
    net["n"].take_ping(Ping(chain(links), tock))
    net.trace.clear()
    return (net.now - SECOND) / SECOND


def infos(net: Net, since: float, **has: bool) -> list[tuple[float, Info]]:
    """Infos to everybody that say this, with seconds since then; not the tail of own changes."""
    return [
        (round(heard.at - since, 6), said)
        for heard in net.trace
        for said in heard.messages
        if isinstance(said, Info) and said.prev is not None
        if all((getattr(said, key) is not None) == wanted for key, wanted in has.items())
    ]


# Story 1, founding


@pytest.mark.proves("STO-030", "PNG-001")
def test_founding_is_durable_then_sent_then_answered() -> None:
    core = Store(StoreSettings(name="a"), Chance(1))
    core.command(LinkUp("mqtt"), START)
    assert (State.LISTEN, False) == (core.membership.state, core.membership.serves)
    core.effects()
    core.command(Found(7, pack("r")), START)
    first, *others = [effect for effect in core.effects() if isinstance(effect, Persist | Send | Reply)]
    assert isinstance(first, Persist)
    [record] = [record for record in first.records if isinstance(record, StreamRecord)]
    assert ("a", 1, pack("r")) == (record.origin, record.sequence, record.payload)
    topics = [effect.peer.decode() for effect in others if isinstance(effect, Send)]
    assert ["update", "wping"] == topics
    assert 1 == sum(isinstance(effect, Reply) for effect in others)
    assert (State.MEMBER, True) == (core.membership.state, core.membership.serves)


# Story 2, joining


@pytest.mark.proves("PNG-001", "HEA-006")
@pytest.mark.parametrize("link", ["mqtt", "mesh"])
def test_a_fresh_node_joins_gets_everything_and_enters_itself(link: str) -> None:
    net = Net(["a"], link=link, seed=2)
    net.run(1)
    net.found("a", "r")
    net["a"].write("x.y", 1)
    net.run(20)
    net.start("b")
    states: list[State] = []
    net["b"].store.membership.listeners.append(lambda before, on: states.append(before))
    net.run_until(lambda: net["b"].state is State.MEMBER, 30, step_s=0.1)
    assert [State.LISTEN, State.JOIN, State.CATCHUP] == [
        state for state in dict.fromkeys(states) if state is not State.OFFLINE
    ]
    net.settle()
    assert pack(1) == net["a"].get("x.y") == net["b"].get("x.y")
    entered = net["a"].store.replica.tree.get((None, "node", "b"))
    assert entered is not None
    assert (("b", 1),) == entered.chain.links
    assert ["b"] == [event.node for event in net["b"].told if isinstance(event, StoreJoined)]


# T3, nobody founds


@pytest.mark.proves("PNG-001")
def test_two_fresh_nodes_listen_for_ever_on_a_chain_without_data() -> None:
    net = Net(["a", "b"], is_traced=True)
    net.run(300)
    assert [State.LISTEN, State.LISTEN] == [node.state for node in net.up()]
    assert [False, False] == [node.store.membership.serves for node in net.up()]
    chains = [said.chain for heard in net.trace for said in heard.messages if isinstance(said, Ping)]
    assert {0} == {tick for links in chains for _, tick in links.links}
    assert 4 == len(chains[-1].links)
    assert {"a", "b"} == {node for node, _ in chains[-1].links}
    assert [{}, {}] == [node.entries() for node in net.up()]


# T4, two writes cross


@pytest.mark.proves("STO-010", "STO-013")
def test_writes_at_one_tock_and_tick_cross_and_the_lower_name_is_kept() -> None:
    net = founded("a", "b", "c")
    for node in (net["a"], net["b"]):
        while node.store.context.tick < 5:
            node.write(f"own.{node.name}", node.store.context.tick)
    net.run(1)
    for node in (net["a"], net["b"]):
        node.store.context.tock = 1_000
    for node in (net["a"], net["b"]):
        node.write("p", node.name)
    net.run(0)
    assert [("a", 6)] * 3 == [node.store.replica.tree.get(("p",)).chain.head for node in net.up()]  # type: ignore[union-attr]  # it is there
    conflicts = [[e for e in node.told if isinstance(e, ConflictResolved)] for node in net.up()]
    assert [1, 1, 1] == [len(events) for events in conflicts]
    assert {("a", "b")} == {(e.kept["node"], e.lost["node"]) for events in conflicts for e in events}
    assert {} == net.missing()


# T7, chains that are cut


@pytest.mark.proves("STO-006", "STO-020")
def test_ticks_that_fell_off_a_cut_chain_are_known_and_a_newcomer_misses_nothing() -> None:
    net = founded("n1", "n2", "n3", "n5", settings={"chain_length": 2})
    net.cut({"n1", "n3", "n5"}, {"n2"})
    for value, name in enumerate(("n1", "n3", "n5")):
        net[name].write("p", value)
        net.run(1)
    assert 2 == len(net["n5"].store.replica.tree.get(("p",)).chain.links)  # type: ignore[union-attr]  # it is there
    net.heal()
    net.settle()
    net.start("n6")
    net.settle()
    assert {} == net.missing()
    assert pack(2) == net["n2"].get("p") == net["n6"].get("p")


# T8, T9, a split is healed


def losing(position: int) -> tuple[Net, float, Chain]:
    """Node n, at this position of its chain, hears the ping of a side that wins."""
    net = founded("n")
    names = ["y:3", "z:2"]
    names.insert(position, "n:1")
    since = heading(net, " ".join(names), 50)
    say(net, "wping", Ping(chain("q:7 r:4"), 90))
    return net, since, chain(" ".join(names))


@pytest.mark.proves("HEA-001", "HEA-002", "PNG-012")
def test_the_first_of_the_losing_side_tells_ticks_and_reason_at_once_and_what_is_missing_half_a_clock_later() -> None:
    net, since, own = losing(0)
    net.run(12)
    (at, ticks), *more = infos(net, since, ticks=True)
    assert (0.0, own, []) == (at, ticks.reason, more)
    assert 7 == (ticks.ticks or {})["q"]
    assert 2.5 in [at for at, _ in infos(net, since, missing=True)]
    assert [True] == [not event.has_won for event in net["n"].told if isinstance(event, SplitFound)]


def check_the_second_takes_over() -> None:
    """Its head being dead, the second of the losing side says ticks after 2.5 s, what is missing 3.75 s after that."""
    net, since, own = losing(1)
    for node, tick in (("q", 7), ("r", 4)):  # what is named is there already: no question of its own is on its way
        net["n"].store.replica.settle({node: RangeSet([(1, tick)])}, "known")
    net.run(12)
    assert [(2.5, own)] == [(at, said.reason) for at, said in infos(net, since, ticks=True)]
    assert [6.25] == [at for at, _ in infos(net, since, missing=True)]


@pytest.mark.proves("HEA-002")
def test_the_second_of_the_losing_side_takes_over_from_a_dead_first() -> None:
    check_the_second_takes_over()


def test_canary_a_second_node_that_asks_after_half_a_clock_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_early(self: Splits, merge: Any) -> None:
        merge.missing_at = self._context.now.mono + takeover_ns(self._clock, 1)

    monkeypatch.setattr(Splits, "_await_missing", too_early)
    with pytest.raises(AssertionError):
        check_the_second_takes_over()


@pytest.mark.proves("HEA-001")
def test_the_head_of_the_winning_side_answers_a_reason_with_its_ticks_and_asks_half_a_clock_later() -> None:
    net = founded("n")
    since = heading(net, "n:1 y:3", 90)
    said = Info(node="q", tick=7, tock=91, ticks={"q": 7, "r": 4}, prev=chain("q:7 r:4"), reason=chain("q:7 r:4"))
    say(net, "info", said)
    net.run(12)
    (at, ticks), *more = infos(net, since, ticks=True)
    assert (0.0, None, []) == (at, ticks.reason, more)
    assert 2.5 in [at for at, _ in infos(net, since, missing=True)]


def check_the_other_side_cancels_nothing() -> None:
    """Ticks of the side that won leave it to this side to say its own."""
    net, since, own = losing(1)
    net.run(1)
    say(net, "info", Info(node="q", tick=7, tock=95, ticks={"q": 7, "r": 4, "n": 9}, prev=chain("q:7 r:4")))
    net.run(5)
    assert [(2.5, own)] == [(at, said.reason) for at, said in infos(net, since, ticks=True)]


@pytest.mark.proves("HEA-002")
def test_a_step_is_not_cancelled_by_the_other_side() -> None:
    check_the_other_side_cancels_nothing()


def test_canary_a_step_that_the_other_side_cancels_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Splits.heard_ticks
    monkeypatch.setattr(
        Splits, "heard_ticks", lambda self, node: heard(self, self.merge.own.head[0] if self.merge else node)
    )
    with pytest.raises(AssertionError):
        check_the_other_side_cancels_nothing()


@pytest.mark.proves("HEA-002")
def test_a_step_is_cancelled_by_a_node_of_the_own_side() -> None:
    net, since, _ = losing(1)
    net.run(1)
    say(net, "info", Info(node="y", tick=3, tock=95, ticks={"q": 7, "r": 4, "y": 3, "z": 2, "n": 1}, prev=chain("y:3")))
    net.run(4)
    assert [] == infos(net, since, ticks=True)


@pytest.mark.proves("HEA-002")
def test_two_sides_of_three_that_meet_say_one_list_of_ticks_and_one_question_each() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    net = founded(*names)
    net.cut({"a", "b", "c"}, {"d", "e", "f"})
    net.run(60)
    net["a"].write("p", 1)
    net["d"].write("q", 2)
    net.run(30)
    net.trace.clear()
    net.heal()
    net.settle()
    net.run(5)
    full = [said for _, said in infos(net, 0, ticks=True)]
    sides = [{"a", "b", "c"}, {"d", "e", "f"}]
    assert [1, 1] == [sum(said.node in side for said in full) for side in sides]


# T10, a lost ping


@pytest.mark.proves("PNG-012")
def test_a_ping_that_was_lost_starts_no_recovery() -> None:
    net = founded("n")
    since = heading(net, "a:1 n:1 b:1", 50)
    say(net, "wping", Ping(chain("b:1 c:1 a:1 n:1"), 52))
    net.run(4)
    assert [] == infos(net, since, ticks=True)
    assert "b" == net["n"].store.pinging.current.node  # type: ignore[union-attr]  # it is there
    assert [] == [event for event in net["n"].told if isinstance(event, SplitFound)]


# T11, killed between Persist and Send


def check_no_tick_is_used_twice() -> None:
    """A write that was durable and not sent is resent after the restart, and the next one has the next tick."""
    net = founded("a", "b", "c")
    tick = net["a"].store.context.tick
    net.fail_at_next_write("a", "after")
    assert net["a"].write("p", "kept") is None
    net.run(1)
    assert None is net["b"].get("p")
    net.start("a")
    net.settle()
    assert pack("kept") == net["b"].get("p") == net["c"].get("p")
    event = net["a"].write("q", 1)
    assert event is not None
    assert tick + 2 == event.tick
    assert _sent_twice(net.trace) == set()


def _sent_twice(trace: list[Heard]) -> set[tuple[str, int]]:
    """Names of changes that were said with two contents."""
    contents: dict[tuple[str, int], set[Any]] = {}
    for heard in trace:
        for said in heard.messages:
            if isinstance(said, Update):
                event = said.event
                contents.setdefault(event.chain.head, set()).add((event.path, event.value, event.tock))
    return {link for link, those in contents.items() if len(those) > 1}


@pytest.mark.proves("STO-030", "STO-032")
def test_a_write_that_was_durable_and_not_sent_arrives_after_the_restart() -> None:
    check_no_tick_is_used_twice()


def test_canary_a_tick_that_is_used_again_after_a_restart_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = Store.restore

    def forgetful(self: Store, entries: Any, now: Now) -> None:
        restore(self, entries, now)
        self.context.tick = max(self.context.tick - 1, 0)

    monkeypatch.setattr(Store, "restore", forgetful)
    with pytest.raises(AssertionError):
        check_no_tick_is_used_twice()
