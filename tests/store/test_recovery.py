"""What is missed is noticed, asked for, and sent again."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.store.net import Net
from tests.store.rig import chain, change, ticks
from weft.base.changes import Chain, Event
from weft.base.ranges import RangeSet
from weft.cores.store import limits, resending
from weft.cores.store.messages import DropNode, SetDeleters, SplitHealed, StaleDropped, StoreIncomplete
from weft.cores.store.resending import Resending
from weft.cores.store.states import State
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Message, Ping, Update
from weft.wire.store.pack import LEFT_OUT, pack

CLOCK = 5.0


def member(**settings: Any) -> Net:
    """A net of one member `n` on a broker, heading the chain; what it says is traced from here on."""
    net = Net(["n"], delay=(0, 0), is_traced=True, settings=settings)
    net.run(0)
    net.found("n")
    net.run(30)
    net.trace.clear()
    return net


def say(net: Net, *messages: Message) -> None:
    """Somebody says these who is no node of this test."""
    topics = {Update: "update", Info: "info", Ping: "wping"}
    for message in messages:
        net.publish("x", topics[type(message)], codec.encode(message))
    net.run(0)


def said(net: Net, kind: type, node: str = "n") -> list[Any]:
    """What a node said of one kind, in order."""
    return [m for heard in net.trace if heard.node == node for m in heard.messages if isinstance(m, kind)]


def asks(node: str = "q", tick: int = 0, **missing: Any) -> Info:
    """Node q misses these."""
    return Info(node=node, tick=tick, tock=1, missing=ticks(**missing), prev=chain(f"{node}:0"))


# Step 3: what is sent again


def with_history() -> Net:
    """Member n, whose ticks 2 to 6 are: written, overwritten, deleted, on a chain of six, current."""
    net = member(chain_length=6)
    net["n"].write("p", 1)
    net["n"].write("p", 2)
    net["n"].write("gone", 1)
    net["n"].delete("gone")
    say(net, Update(change("q:1", 50, "long", 1, "r:3 s:2 t:8 u:1")))
    net["n"].write("long", 2)
    net.trace.clear()
    return net


def check_answer_is_whole() -> None:
    """Heads as updates with all of their chain, others as known; at once from the head of the chain."""
    net = with_history()
    say(net, asks(n=[(1, 6)]))
    events = {update.event.tick: update.event for update in said(net, Update)}
    assert [1, 3, 5, 6] == sorted(events)
    assert chain("n:6 q:1 r:3 s:2 t:8 u:1") == events[6].chain
    assert [True, False] == [events[5].is_deletion, events[3].is_deletion]
    assert {("n", 6)} == {update.sender for update in said(net, Update)}
    [known] = [info for info in said(net, Info) if info.known is not None]
    assert ticks(n=[2, 4]) == known.known
    assert [] == [tick for tick in events if tick in known.known["n"]]


@pytest.mark.proves("HEA-003", "HEA-004")
def test_what_is_missed_comes_as_heads_with_their_whole_chain_then_what_is_known() -> None:
    check_answer_is_whole()


def test_canary_a_known_that_lists_heads_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(job: dict[str, RangeSet], node: str, ranges: RangeSet, upto: int) -> None:
        job.setdefault(node, RangeSet()).add(1, upto)

    monkeypatch.setattr(resending, "_collect", careless)
    with pytest.raises(AssertionError):
        check_answer_is_whole()


def test_canary_a_chain_that_is_cut_to_two_when_it_is_resent_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(event: Event, sender: Any) -> Update:
        links = event.chain.links
        short = Chain(links[:2], is_cut=len(links) > 2)
        return Update(Event(short, event.tock, event.path, event.value, event.at), sender)

    monkeypatch.setattr(resending, "Update", cut)
    with pytest.raises(AssertionError):
        check_answer_is_whole()


@pytest.mark.proves("HEA-004")
def test_a_purged_deletion_is_named_as_deleted() -> None:
    net = with_history()
    say(net, Info(node="q", tick=1, tock=60, deleted=ticks(n=[4, 5])))
    net.trace.clear()
    say(net, asks(n=[(3, 6)]))
    [named] = [info for info in said(net, Info) if info.deleted is not None]
    assert ticks(n=[4, 5]) == named.deleted
    assert not named.known


@pytest.mark.proves("HEA-002", "HEA-003")
def test_what_somebody_resends_or_names_leaves_the_list_of_who_would_be_next() -> None:
    net = with_history()
    net["n"].take_ping(Ping(chain("a:9 n:6 b:1"), 200))
    net.trace.clear()
    say(net, asks(n=[(1, 6)]))
    net.run(1)
    say(net, Update(change("n:3", 30, "p", 2, ""), ("a", 9)), Info(node="a", tick=9, tock=201, known=ticks(n=[2])))
    assert [] == said(net, Update)
    net.run(1.6)
    assert [1, 5, 6] == sorted(update.event.tick for update in said(net, Update))
    assert [ticks(n=[4])] == [info.known for info in said(net, Info) if info.known]


@pytest.mark.proves("HEA-003")
def test_a_node_off_the_chain_answers_last() -> None:
    net = with_history()
    net["n"].take_ping(Ping(chain("a:9 b:1 c:1 d:1"), 200))
    net.trace.clear()
    say(net, asks(n=[3]))
    net.run(4.6)
    assert [] == said(net, Update)
    net.run(0.1)
    assert [3] == [update.event.tick for update in said(net, Update)]


def test_an_absurd_question_is_answered_by_what_there_is() -> None:
    net = with_history()
    say(net, asks(n=[(1, 1 << 60)], nobody=[(1, 1 << 60)]))
    assert [1, 3, 5, 6] == sorted(update.event.tick for update in said(net, Update))


def test_a_head_whose_value_was_too_large_to_be_kept_is_left_to_others() -> None:
    net = member()
    say(net, Update(Event(chain("q:1"), 50, ("big",), pack("x" * (1 << 20)))))
    assert LEFT_OUT == net["n"].get("big")
    net.trace.clear()
    say(net, asks(q=[1]))
    assert [] == said(net, Update)


@pytest.mark.proves("HEA-005")
def test_resending_is_paced_and_own_writes_go_between() -> None:
    net = member()
    for number in range(2_500):
        net["n"].store.replica.write(("k", str(number)), b"\x01")
    net.do_turn(net["n"])
    net.run(1)
    net.trace.clear()
    say(net, asks(n=[(1, 3_000)]))
    assert 1_000 == len(said(net, Update))
    net["n"].write("now", 1)
    assert 2_502 == said(net, Update)[-1].event.tick
    net.run(0.049)
    assert 1_000 + 1 == len(said(net, Update))
    net.run(0.06)
    assert list(range(1, 2_502)) == [update.event.tick for update in said(net, Update) if update.sender]


# Gaps


@pytest.mark.proves("HEA-010")
def test_a_gap_waits_a_moment_then_everybody_on_the_broker_is_asked_and_again() -> None:
    net = member()
    began = net.now
    say(net, Update(change("q:3", 50, "p", 3)))
    net.run(0.19)
    assert [] == [info for info in said(net, Info) if info.missing is not None]
    net.run(60)
    at = [
        heard.at - (began - 10**9) / 1e9
        for heard in net.trace
        for m in heard.messages
        if isinstance(m, Info) and m.missing
    ]
    assert 0.2 <= at[0] < 0.2 + CLOCK / 2
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert CLOCK == pytest.approx(waits[0])
    assert waits == sorted(waits)
    assert 10 * CLOCK >= max(waits)
    assert ticks(q=[(1, 2)]) == next(info.missing for info in said(net, Info) if info.missing)


@pytest.mark.proves("HEA-010")
def test_what_was_only_overtaken_is_not_asked_for() -> None:
    net = member()
    say(net, Update(change("q:2", 51, "p", 2)))
    net.run(0.1)
    say(net, Update(change("q:1", 50, "o", 1)))
    net.run(10)
    assert [] == [info for info in said(net, Info) if info.missing]


@pytest.mark.proves("HEA-010")
def test_what_another_asks_everybody_for_is_left_to_it() -> None:
    net = member()
    say(net, Update(change("q:3", 50, "p", 3)))
    say(net, asks("a", q=[(1, 2)]))
    net.run(4.9)
    assert [] == [info for info in said(net, Info) if info.missing]
    net.run(0.2)
    assert 1 == len([info for info in said(net, Info) if info.missing])


@pytest.mark.proves("HEA-010")
def test_on_the_mesh_who_named_the_tick_is_asked_and_nobody_else() -> None:
    net = Net(["a", "b", "c"], link="mesh", seed=4, is_traced=True)
    net.run(2)
    net.found("a")
    net.settle()
    net.is_deaf = lambda sender, hearer: (sender, hearer) == ("a", "c")
    net["a"].write("p", 1)
    net.run(0.1)
    net.is_deaf = lambda sender, hearer: False
    net["a"].write("q", 1)
    net.trace.clear()
    net.settle()
    asked = [(heard.node, heard.to) for heard in net.trace for m in heard.messages if isinstance(m, Info) and m.missing]
    resent = [
        (heard.node, heard.to) for heard in net.trace for m in heard.messages if isinstance(m, Update) and m.sender
    ]
    assert ([("c", "a")], [("a", "c")]) == (asked, resent)


@pytest.mark.proves("HEA-011")
def test_the_last_change_is_named_again_after_one_two_and_four_clocks() -> None:
    net = member()
    net["n"].write("p", 1)
    net.trace.clear()
    began = (net.now - 10**9) / 1e9
    net.run(40)
    at = [h.at - began for h in net.trace for m in h.messages if isinstance(m, Info) and m.ticks and m.prev is None]
    assert [5, 10, 20] == pytest.approx(at)


@pytest.mark.proves("HEA-011")
def test_a_head_of_the_chain_that_heard_no_list_of_ticks_for_ten_clocks_sends_one() -> None:
    net = member()
    net.run(120)
    full = [h.at for h in net.trace for m in h.messages if isinstance(m, Info) and m.ticks and m.prev is not None]
    assert 2 <= len(full)
    assert [50.0] * (len(full) - 1) == pytest.approx([b - a for a, b in pairwise(full)])


@pytest.mark.proves("HEA-011", "HEA-010")
@pytest.mark.parametrize("link", ["mqtt", "mesh"])
def test_any_lost_message_is_found(link: str) -> None:
    for seed in range(10):
        net = Net(["a", "b", "c"], link=link, seed=seed)
        net.run(2)
        net.found("a")
        net.settle()
        net.is_deaf = lambda sender, hearer: True
        net["b"].write("p", seed)
        net.run(0.01)
        net.is_deaf = lambda sender, hearer: False
        net.run((2 if link == "mesh" else 3) * CLOCK)  # by the broker, places of the chain answer in turn
        assert [pack(seed)] * 3 == [node.get("p") for node in net.up()]


# What nobody has


@pytest.mark.proves("HEA-012")
def test_a_node_waits_no_longer_than_two_clocks_for_what_nobody_has_and_goes_on_asking() -> None:
    net = Net(["a", "b"], seed=5, is_traced=True)
    net.run(1)
    net.found("a")
    net.settle()
    say(net, Update(change("q:5", 500, "p", 1)))
    net.run(30)
    net.start("c")
    net.run_until(lambda: net["c"].state is State.CATCHUP, 30, step_s=0.1)
    took = net.run_until(lambda: net["c"].state is State.MEMBER, 60, step_s=0.1)
    assert 2 * CLOCK - 1 <= took <= 3 * CLOCK + 1
    assert [{"q": [[1, 4]]}] == [event.missing for event in net["c"].told if isinstance(event, StoreIncomplete)]
    net.trace.clear()
    net.run(160)
    asked = [h.at for h in net.trace for m in h.messages if h.node == "c" and isinstance(m, Info) and m.missing]
    assert 3 <= len(asked) <= 4
    say(net, *(Update(change(f"q:{tick}", 480 + tick, f"o.{tick}", 1)) for tick in range(1, 5)))
    net.run(0.1)
    assert {} == net.missing()


@pytest.mark.proves("HEA-012")
def test_what_a_dropped_node_had_and_nobody_has_is_declared_void_by_the_head_of_the_chain() -> None:
    net = Net(["a", "b", "c"], seed=5)
    net.run(1)
    net.found("a")
    net.settle()
    say(net, Update(change("q:5", 500, "p", 1)))
    net.run(100)
    assert {"a", "b", "c"} == net.missing().keys()
    net.command("b", DropNode(1, "q"))
    net.run(400)
    assert {} == net.missing()


def test_a_node_that_is_said_to_have_endless_changes_holds_up_no_other() -> None:
    net = member()
    say(net, Info(node="liar", tick=1 << 61, tock=40))
    net.run(60)
    net.trace.clear()
    say(net, Info(node="q", tick=3, tock=50))
    net.run(CLOCK)
    first = next(info.missing for info in said(net, Info) if info.missing)
    assert RangeSet([(1, 3)]) == first["q"]
    assert (4 << 20) // 20 >= sum(ranges.count for ranges in first.values())


# Links and splits


@pytest.mark.proves("HEA-006")
def test_a_link_that_comes_up_tells_what_there_is_and_the_ping_unchanged() -> None:
    net = member()
    before = net["n"].store.pinging.current
    net.trace.clear()
    net.reconnect()
    assert [before] == said(net, Ping)
    [info] = [info for info in said(net, Info) if info.ticks]
    assert {"n": 1} == info.ticks


@pytest.mark.proves("HEA-006")
def test_t15_a_broker_that_is_gone_for_three_seconds_leaves_all_equal_within_two_clocks() -> None:
    for seed in range(8):
        net = Net(["a", "b", "c", "d"], seed=seed)
        net.run(1)
        net.found("a")
        net.settle()
        net.disconnect()
        for number in range(10):
            net["a"].write(f"x.{number}", "a")
            net["d"].write(f"x.{number + 5}", "d")
            net.run(0.3)
        net.reconnect()
        assert 2 * CLOCK >= net.settle(30)


@pytest.fixture
def seeds(soak: bool) -> Iterator[int]:
    return iter(range(400 if soak else 24))


@pytest.mark.prove("a long split")
@pytest.mark.proves("HEA-001", "HEA-002", "PNG-012")
def test_a_split_that_heals_unannounced_is_noticed_in_two_clocks_and_mended_in_twelve(seeds: Iterator[int]) -> None:
    """20 C apart, then both sides hear each other, at a loss of up to a tenth; nobody is told."""
    asked = total = 0
    for seed in seeds:
        names = [f"n{i}" for i in range(2 + seed % 5)]
        net = Net(names, seed=seed, is_traced=True, loss=(0, 0.05, 0.1)[seed % 3], delay=(0.001, 0.2))
        net.run(1)
        net.found("n0")
        net.settle()
        sides = set(names[::2]), set(names[1::2])
        net.cut(*sides)
        for number in range(20):
            for side in sides:
                net[min(side)].write(f"p.{number % 7}", number)
            net.run(CLOCK)
        net.trace.clear()
        healed = (net.now - 10**9) / 1e9
        net.heal()
        took = net.settle()
        assert 12 * CLOCK >= took, f"seed {seed}: {took} s"
        net.run(3 * CLOCK)
        first = min(
            h.at for h in net.trace for m in h.messages if isinstance(m, Info) and m.ticks and m.prev is not None
        )
        assert 2 * CLOCK + 0.2 >= first - healed, f"seed {seed}: {first - healed} s"
        askers = {m.node for h in net.trace for m in h.messages if isinstance(m, Info) and m.missing is not None}
        asked += all(side & askers for side in sides)
        total += 1
        assert [] == net.unexplained()
    assert 0.95 * total <= asked


def test_a_mended_split_is_told() -> None:
    net = Net(["a", "b"], seed=1)
    net.run(1)
    net.found("a")
    net.settle()
    net.cut({"a"}, {"b"})
    net["a"].write("p", 1)
    net.run(60)
    net["b"].write("q", 1)
    net.heal()
    net.settle()
    net.run(20)
    assert [1] == [event.received for event in net["b"].told if isinstance(event, SplitHealed)]


@pytest.mark.prove("a hundred thousand changes")
@pytest.mark.proves("HEA-013", "HEA-005")
def test_a_hundred_thousand_missed_changes_are_there_within_ten_seconds(soak: bool) -> None:
    """Of two nodes that had been cut from three, since each had its link again; without soak one in twenty of them."""
    count = 100_000 if soak else 5_000
    net = Net("abcde", seed=1, link="mesh")
    net.run(3)
    net.found("a")
    net.settle()
    net.cut(set("abc"), set("de"))
    net.run(10)
    store = net["a"].store
    for start in range(0, count, 1_000):
        store.context.now = net["a"].now
        for number in range(start, start + 1_000):
            store.replica.write(("k", str(number)), b"\x01")
        net.do_turn(net["a"])
        net.run(0.02)
    net.heal()
    late = [net["d"], net["e"]]
    linked: dict[str, float] = {}
    whole: dict[str, float] = {}

    def is_there() -> bool:
        for node in late:
            if node.store.bus.members.keys() & set("abc"):
                linked.setdefault(node.name, net.now / 1e9)
            if node.store.replica.tree.entries > count:
                whole.setdefault(node.name, net.now / 1e9)
        return len(whole) == 2

    net.run_until(is_there, 60, step_s=0.1)
    bound = 10 * count / 100_000 + 0.5  # half a second: a gap waits, and is looked at each tenth
    assert [] == [name for name in "de" if whole[name] - linked[name] > bound]
    net.settle(40)


@pytest.mark.proves("HEA-005", "STO-021")
def test_never_more_is_on_the_way_than_was_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joiner gets 6,000 changes in slices: neither end holds more than a few of them in a queue."""
    monkeypatch.setattr(limits, "ASK_BYTES", 1_000 * limits.ASK_WEIGHT_MIN)
    waiting: list[int] = []
    wake = Resending.wake

    def counting(self: Resending) -> None:
        waiting.append(sum(ranges.count for job in self._jobs for ranges in job.wanted.values()))
        wake(self)

    monkeypatch.setattr(Resending, "wake", counting)
    net = Net(["a"], link="mesh", seed=1)
    net.run(1)
    net.found("a")
    store = net["a"].store
    for number in range(6_000):
        store.replica.write(("k", str(number)), b"\x01")
    net.do_turn(net["a"])
    net.start("b")
    net.settle()
    assert 6_003 <= net["b"].store.replica.tree.entries + 1
    assert 2_000 >= max(waiting)


@pytest.mark.proves("DEL-003", "DEL-004", "DEL-005")
def test_who_is_no_deleter_and_missed_a_deletion_lets_go_of_what_it_deleted() -> None:
    net = Net(["a", "b", "c"], seed=3, link="mesh")
    net.run(1)
    net.found("a")
    net.settle()
    net["a"].write("p", 1)
    net.settle()
    net.command("a", SetDeleters(1, ("a", "b")))
    net.settle()
    net.cut({"a", "b"}, {"c"})
    net.run(5)
    net["b"].delete("p")
    net.run(700)
    assert 0 == net["a"].store.replica.tree.tombstones
    assert b"\x01" == net["c"].get("p")
    net.heal()
    net.settle()
    assert {None} == {net[name].get("p") for name in "abc"}
    assert ["p"] == [event.path for event in net["c"].told if isinstance(event, StaleDropped)]
