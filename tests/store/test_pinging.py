"""The chain of pings: what a received ping is, when a node pings, who may head a chain."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.net import Net
from tests.store.rig import chain, vectors
from weft.base.changes import Chain
from weft.base.now import SECOND
from weft.cores.store import pingchains
from weft.cores.store.pinging import Pinging
from weft.cores.store.splits import takeover_ns
from weft.cores.store.states import State
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Ping

LENGTH = 4
CLOCK = 5.0


def ping(links: str, tock: int) -> Ping:
    """`ping("a:1 b:2", 30)`: of a, which heard b."""
    return Ping(chain(links), tock)


def say(net: Net, what: Ping, sender: str = "x") -> None:
    """Somebody pings who is no node of this test."""
    net.publish(sender, "wping", codec.encode(what))
    net.run(0)


def alone(links: str = "n:1", tock: int = 30, **settings: Any) -> Net:
    """A net of one member `n` whose current ping is this one."""
    net = Net(["n"], delay=(0, 0), is_traced=True, settings=settings)
    net.found("n")
    net.run(0)
    net.trace.clear()
    net["n"].take_ping(ping(links, tock))
    return net


def pings_of(net: Net, node: str = "n") -> list[tuple[float, Ping]]:
    """When a node pinged, and what."""
    return [(heard.at, m) for heard in net.trace if heard.node == node for m in heard.messages if isinstance(m, Ping)]


# What a received ping is (PNG-012)


@pytest.mark.proves("PNG-012")
@pytest.mark.parametrize("row", vectors("ping-0") + vectors("ping-1"), ids=lambda row: row["id"])
def test_a_received_ping_is_what_the_vectors_say(row: dict[str, Any]) -> None:
    current, received = (codec.decode("ping", bytes.fromhex(frame))[0] for frame in row["frames"])
    assert isinstance(current, Ping)
    assert isinstance(received, Ping)
    assert row["means"]["outcome"] == pingchains.relation(received, current, LENGTH)


def test_all_eleven_vectors_of_pings_are_there() -> None:
    assert 11 == len(vectors("ping-0") + vectors("ping-1"))


links = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9)), min_size=1, max_size=LENGTH).map(tuple)
pings = st.builds(lambda links, tock: Ping(Chain(links), tock), links, st.integers(1, 50))


@given(pings, pings)
def test_of_two_pings_that_clash_both_sides_keep_the_same_one(one: Ping, other: Ping) -> None:
    there, back = pingchains.relation(one, other, LENGTH), pingchains.relation(other, one, LENGTH)
    expected = {"-won": "-lost", "-lost": "-won"}.get("-" + there.rpartition("-")[2] if "-" in there else "")
    if expected and (one.node, one.tick, one.tock) != (other.node, other.tick, other.tock):
        assert there.partition("-")[0] + expected == back
    elif there == "successor":
        assert "late" == back


@given(pings, st.integers(1, 9), st.sampled_from("abcdef"))
def test_a_ping_on_the_current_one_follows_it(current: Ping, tick: int, name: str) -> None:
    following = Ping(pingchains.extended((name, tick), current.chain, LENGTH), current.tock + 1)
    assert "successor" == pingchains.relation(following, current, LENGTH)
    assert LENGTH >= len(following.chain.links)
    assert not pingchains.is_apart(following.chain.links, current.chain.links, LENGTH)


@pytest.mark.proves("PNG-012")
def test_two_chains_of_tails_that_agree_are_no_split_although_a_ping_was_lost() -> None:
    lost = ping("b:2 a:1 c:1", 31)
    late = ping("c:1 b:2 a:1 c:1", 32)
    assert "successor" == pingchains.relation(late, ping("a:1 c:1", 30), LENGTH)
    assert "successor" == pingchains.relation(late, lost, LENGTH)


# Who may head a chain (PNG-002, PNG-010)


@pytest.mark.proves("PNG-002")
@pytest.mark.parametrize(
    ("tick", "links", "expected"),
    [
        (0, "a:1", True),
        (0, "z:0", True),
        (0, "z:0 y:0", True),
        (0, "a:1 z:0", True),
        (0, "z:0 a:1", False),
        (0, "z:0 y:0 a:1 b:2", False),
        (0, "z:0 a:1 y:0 b:2", True),
        (0, "z:0 y:0 a:1", False),
        (1, "z:0 y:0 a:1", True),
    ],
)
def test_a_node_without_data_heads_no_chain_whose_data_is_at_its_end(tick: int, links: str, expected: bool) -> None:
    assert expected == pingchains.may_head(tick, chain(links).links)


def check_nobody_without_data_pings_above_data() -> None:
    """A node that joins does not carry on a chain whose last node with data is about to fall off it."""
    net = Net(["n"], delay=(0, 0), is_traced=True)
    say(net, ping("z:0 y:0 a:1", 30))
    assert State.JOIN is net["n"].state
    net.run(12 * CLOCK)
    assert [] == [p for _, p in pings_of(net) if len(p.chain.links) > 1]


@pytest.mark.proves("PNG-002")
def test_who_joins_does_not_ping_on_a_chain_whose_data_is_at_its_end() -> None:
    check_nobody_without_data_pings_above_data()


def test_canary_a_node_without_data_that_heads_any_chain_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pingchains, "may_head", lambda tick, links: True)
    with pytest.raises(AssertionError):
        check_nobody_without_data_pings_above_data()


@pytest.mark.proves("PNG-010")
def test_a_pings_chain_is_the_own_name_then_the_current_chain_cut_to_length() -> None:
    net = alone("a:3 b:2 c:7 n:1")
    net.run(3 * CLOCK)
    (_, said), *_ = pings_of(net)
    assert (("n", 1), ("a", 3), ("b", 2), ("c", 7)) == said.chain.links
    assert said.chain.is_cut


@pytest.mark.proves("PNG-010")
def test_names_may_repeat_and_a_longer_chain_is_cut() -> None:
    net = alone("a:3 b:2 a:3 b:2 a:2 b:1")
    current = net["n"].store.pinging.current
    assert current is not None
    assert (("a", 3), ("b", 2), ("a", 3), ("b", 2)) == current.chain.links


# When a node pings


def after(links: str, seeds: range, **settings: Any) -> list[float]:
    """How long after a ping with this chain node `n` pings, by seed; nobody else is there."""
    waits = []
    for seed in seeds:
        net = Net(["n"], seed=seed, delay=(0, 0), is_traced=True, settings=settings)
        net.found("n")
        net.run(0.5)
        at = (net.now - SECOND) / SECOND
        net.trace.clear()
        if links.startswith("n"):
            net["n"].take_ping(ping(links, 30))
        else:
            say(net, ping(links, 30))
        net.run(3 * CLOCK)
        waits.append(pings_of(net)[0][0] - at)
    return waits


[DELAYS] = vectors("delay-ping")
[TAKEOVERS] = vectors("delay-seed")
CHAINS = ("n:1 a:1 b:1 c:1", "a:1 n:1 b:1 c:1", "a:1 b:1 n:1 c:1", "a:1 b:1 c:1 n:1")


@pytest.mark.proves("PNG-011")
@pytest.mark.parametrize("position", range(4))
def test_a_node_on_the_chain_pings_in_the_window_of_its_position(position: int) -> None:
    least, most = DELAYS["means"][f"p{position}"]
    waits = after(CHAINS[position], range(25))
    assert [] == [wait for wait in waits if not least <= wait < most]
    assert (most - least) / 2 < max(waits) - min(waits)


@pytest.mark.proves("PNG-011")
def test_a_node_off_the_chain_pings_early_with_a_small_chance_else_when_nobody_has() -> None:
    waits = after("a:1 b:1 c:1 d:1", range(150))
    early = [wait for wait in waits if wait == DELAYS["means"]["early"]]
    least, most = DELAYS["means"]["fallback"]
    assert [] == [wait for wait in waits if wait not in early and not least <= wait < most]
    assert 150 // 15 / 3 <= len(early) <= 150 // 15 * 3  # one in `vary` times five nodes


def check_schedule_starts_anew() -> None:
    """Whoever hears a ping in time does not ping at the time that the ping before it meant."""
    net = alone("n:1 a:1 b:1 c:1", 30)
    for tock, wait in ((40, 8.0), (50, 8.0), (60, 8.0)):
        net.run(wait)
        say(net, ping(f"{'ab'[tock // 10 % 2]}:{tock} n:1 a:1 b:1", tock))
    assert [] == pings_of(net)


@pytest.mark.proves("PNG-011")
def test_an_accepted_ping_starts_everybodys_time_anew() -> None:
    check_schedule_starts_anew()


def test_canary_a_schedule_that_is_not_started_anew_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = Pinging._accept

    def keeps_its_time(self: Pinging, heard: Ping) -> None:
        due_at = self.due_at
        accept(self, heard)
        if heard.node != "n":
            self.due_at = due_at

    monkeypatch.setattr(Pinging, "_accept", keeps_its_time)
    with pytest.raises(AssertionError):
        check_schedule_starts_anew()


@pytest.mark.proves("HEA-002")
def test_takeover_waits_as_the_vectors_say() -> None:
    clock = int(CLOCK * SECOND)
    means = TAKEOVERS["means"]
    assert means["step1"] == means["step3"] == [takeover_ns(clock, p) / SECOND for p in range(5)]
    assert means["step2"] == [takeover_ns(clock, p + 1) / SECOND for p in range(5)]


# What pings do


@pytest.mark.proves("PNG-003")
def test_the_head_of_the_chain_tells_a_newcomer_what_there_is_and_its_schedule_stays() -> None:
    net = alone("n:1 a:1 b:1", 30)
    due_at = net["n"].store.pinging.due_at
    net.run(1)
    net.trace.clear()
    say(net, ping("z:0", 31))
    [said] = net.trace
    [info] = said.messages
    assert isinstance(info, Info)
    assert (1.0, "info") == (said.at, said.topic)
    assert {"n": 1} == info.ticks
    assert chain("n:1 a:1 b:1") == info.prev
    assert due_at == net["n"].store.pinging.due_at


@pytest.mark.proves("PNG-003")
def test_the_next_of_the_chain_tells_a_newcomer_if_the_head_is_gone() -> None:
    net = alone("a:1 n:1 b:1", 30)
    say(net, ping("z:0", 31))
    net.run(3)
    assert [2.5] == [said.at for said in net.trace if said.topic == "info"]


def test_a_chain_without_data_does_not_become_a_members_current_one() -> None:
    net = alone("n:1 a:1", 30)
    before = net["n"].store.pinging.current
    say(net, ping("z:0 y:0", 99))
    assert before is net["n"].store.pinging.current


def test_of_two_pings_at_once_the_greater_one_is_current() -> None:
    net = alone("b:1 n:1", 30)
    say(net, ping("c:4 b:1 n:1", 31))
    say(net, ping("d:5 b:1 n:1", 31))
    say(net, ping("e:4 b:1 n:1", 31))
    assert "d" == net["n"].store.pinging.current.node  # type: ignore[union-attr]  # there is one
    assert [] == net.trace


def between_pings(net: Net, span_s: float) -> list[float]:
    """Spans between pings of anybody, as everybody could have heard them."""
    net.trace.clear()
    net.run(span_s)
    at = [heard.at for heard in net.trace if heard.topic == "ping"]
    return [later - earlier for earlier, later in pairwise(at)]


@pytest.fixture
def seeds(soak: bool) -> Iterator[int]:
    return iter(range(300 if soak else 12))


@pytest.mark.prove("many long lives")
@pytest.mark.proves("PNG-011")
@pytest.mark.parametrize("count", [2, 5, 9])
def test_a_ping_passes_each_three_clocks_and_about_one_per_cycle(count: int, seeds: Iterator[int]) -> None:
    for seed in seeds:
        net = Net([f"n{i}" for i in range(count)], seed=seed, is_traced=True)
        net.run(1)
        net.found("n0")
        net.settle()
        spans = between_pings(net, 200)
        assert 3 * CLOCK + 0.01 >= max(spans)
        assert CLOCK * 0.9 <= sum(spans) / len(spans)


@pytest.mark.proves("PNG-013")
def test_nodes_that_hear_no_ping_at_all_hold_the_same_all_the_same() -> None:
    def is_ping(net: Net, carry: Callable[..., None]) -> Callable[..., None]:
        def carried(sender: str, hearer: Any, what: tuple[str, Any, Any]) -> None:
            if what[1] != "wping":
                carry(sender, hearer, what)

        return carried

    net = Net(["a", "b", "c"], seed=3, loss=0.1)
    net.run(1)
    net.found("a")
    net.settle()
    net._carry = is_ping(net, net._carry)  # type: ignore[method-assign]  # pings are lost from here on
    net.cut({"a"}, {"b", "c"})
    for number in range(20):
        net["a"].write(f"x.{number}", number)
        net["b"].write(f"x.{number}", -number)
        net.run(3)
    net.heal()
    net.settle()
    assert [] == net.unexplained()
