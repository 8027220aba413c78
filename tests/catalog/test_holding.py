"""Holding evictions when half of everything falls silent at once (BEA-023; S6), and never for ever (canary 22)."""

from collections import Counter
from typing import Any

import pytest

from tests.catalog.net import Net, beat, of, register
from weft.base.now import SECOND, seconds
from weft.cores.catalog.holding import Holding
from weft.cores.catalog.messages import EvictionsHeld

HOSTS = 8


def grown(size: int, hosts: int = HOSTS, seed: int = 6, **settings: Any) -> Net:
    """So many services on so many hosts, up for five seconds."""
    net = Net(seed=seed, settings=settings)
    for number in range(size):
        net.add(f"n{number}", ip=f"10.0.0.{number % hosts + 1}")
    net.run(5)
    return net


def on_hosts(net: Net, size: int, hosts: int, most: int) -> list[str]:
    return [f"n{number}" for number in range(size) if number % hosts < most]


def held(net: Net) -> list[bool]:
    return [event.is_held for event in net.broker.told if isinstance(event, EvictionsHeld)]


@pytest.mark.proves("BEA-023")
def test_a_partition_of_more_than_half_is_held_and_healed_without_an_eviction() -> None:
    net = grown(40)
    net.cut(*on_hosts(net, 40, HOSTS, 5))
    net.run(20)
    assert ([True], 25, 0) == (held(net), net.count("suspect"), net.count("inactive"))
    assert net.catalog.liveness.is_held
    net.heal()
    net.run(20)
    assert [True, False] == held(net)
    assert (25, 0) == (net.count("suspect"), net.count("inactive"))
    assert {"ACTIVE"} == set(net.states().values())
    assert "calm" == net.catalog.liveness.holding.state


def check_hold_ends() -> None:
    """After `hold_max` they go, at most a tenth of all, or ten, in a second; who was never silent stays."""
    net = grown(120, hold_max_ns=seconds(10))
    cut = on_hosts(net, 120, HOSTS, 5)
    net.cut(*cut)
    net.run(25)
    gone = [change for change in net.broker.ops if change.op == "inactive"]
    assert [True, False] == held(net)
    assert sorted(cut) == sorted(change.id for change in gone)
    began_at = min(change.at for change in net.broker.ops if change.op == "suspect") + 1.5
    assert began_at + 10 == gone[0].at
    assert {12, 3} == set(Counter(change.at for change in gone).values())
    assert 7 == len({change.at for change in gone})
    assert 6.0 == round(gone[-1].at - gone[0].at, 6)
    assert Counter(ACTIVE=45, INACTIVE=75) == Counter(net.states().values())


@pytest.mark.proves("BEA-023")
def test_after_its_time_a_hold_ends_and_they_go_a_tenth_a_second() -> None:
    check_hold_ends()


def test_canary_a_hold_without_end_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 22."""
    released = Holding.released

    def never(self: Holding, clock: int) -> list[Any]:
        if self.state == "held":
            self._next_at = clock + SECOND
        return released(self, clock)

    monkeypatch.setattr(Holding, "released", never)
    with pytest.raises(AssertionError):
        check_hold_ends()


@pytest.mark.proves("BEA-023")
def test_of_many_a_tenth_a_second_goes_in_ten_turns() -> None:
    net = Net(settings={"beacon_ns": 0, "hold_max_ns": seconds(10)})
    for number in range(1_000):
        register(net, f"n{number}", f"10.0.0.{number % HOSTS}")
    net.run(60)
    gone = [change.at for change in net.broker.ops if change.op == "inactive"]
    assert ([True, False], 1_000) == (held(net), len(gone))
    assert {10} == set(Counter(gone).values())
    assert 100 == max(sum(at <= later < at + 1 for later in gone) for at in set(gone))


def test_of_few_ten_a_second_may_go() -> None:
    net = grown(20, hosts=4, hold_max_ns=seconds(10))
    net.cut(*on_hosts(net, 20, 4, 3))
    net.run(40)
    gone = Counter(change.at for change in net.broker.ops if change.op == "inactive")
    assert [10, 5] == list(gone.values())


@pytest.mark.proves("BEA-023")
@pytest.mark.parametrize(
    ("size", "hosts", "dying", "is_held"),
    [
        (40, 8, [number for number in range(40) if number % 8 < 5], True),
        (20, 4, list(range(0, 20, 4)) + list(range(1, 20, 4)), False),  # half of the hosts, half of the instances
        (16, 16, list(range(9)), False),  # nine of sixteen: fewer than ten
        (16, 16, list(range(10)), True),
        (20, 2, list(range(20)), False),  # two addresses: fewer than three
        (21, 3, list(range(21)), True),
    ],
)
def test_what_is_held_and_what_is_not(size: int, hosts: int, dying: list[int], is_held: bool) -> None:
    net = grown(size, hosts)
    for number in dying:
        net.crash(f"n{number}")
    net.run(10)
    assert ([True] if is_held else []) == held(net)
    assert (0 if is_held else len(dying)) == net.count("inactive")


def heard(net: Net, names: list[str], span_s: int) -> None:
    """These beat each second, the others do not."""
    for _ in range(span_s):
        for name in names:
            beat(net, name, of(net, name).owner)
        net.run(1)


@pytest.mark.proves("BEA-023")
@pytest.mark.parametrize(("silent_hosts", "is_held"), [(4, False), (5, True)])
def test_most_instances_at_half_of_the_hosts_are_not_held(silent_hosts: int, is_held: bool) -> None:
    net = Net(settings={"beacon_ns": 0})
    silent = [f"s{number}" for number in range(20)]
    loud = [f"l{number}" for number in range(8 - silent_hosts)]
    for number, name in enumerate(silent):
        register(net, name, f"10.0.0.{number % silent_hosts}")
    for number, name in enumerate(loud):
        register(net, name, f"10.0.1.{number}")
    heard(net, loud, 5)
    assert ([True] if is_held else []) == held(net)
    assert (0 if is_held else 20) == net.count("inactive")


def test_when_a_hold_ends_by_healing_the_others_have_as_long_as_a_silence_may_last() -> None:
    net = Net(settings={"beacon_ns": 0})
    names = [f"n{number}" for number in range(30)]
    for number, name in enumerate(names):
        register(net, name, f"10.0.0.{number % 6}", heartbeat=4_000)
    net.run(14)
    assert ([True], 0) == (held(net), net.count("inactive"))
    heard(net, names[:18], 5)
    assert ([True, False], 0) == (held(net), net.count("inactive"))
    heard(net, names[:24], 3)
    assert sorted(names[24:]) == sorted(change.id for change in net.broker.ops if change.op == "inactive")


@pytest.mark.proves("BEA-015", "BEA-023")
def test_one_host_of_four_that_dies_with_twelve_of_twenty_is_gone_in_time() -> None:
    net = Net(seed=6)
    for number in range(20):
        net.add(f"n{number}", ip="10.0.0.1" if number < 12 else f"10.0.0.{number % 3 + 2}")
    net.run(5)
    died_at = net.time
    for number in range(12):
        net.crash(f"n{number}")
    net.run(3.1)
    assert [] == held(net)
    assert 12 == net.count("inactive")
    assert all(op.at <= died_at + 3.05 for op in net.broker.ops)


@pytest.mark.proves("BEA-023")
def test_without_holding_all_go_in_time() -> None:
    net = grown(40, hold=False)
    net.cut(*on_hosts(net, 40, HOSTS, 5))
    net.run(4)
    assert ([], 25) == (held(net), net.count("inactive"))


def test_who_comes_back_during_a_hold_is_not_let_go_later() -> None:
    net = grown(40, hold_max_ns=seconds(20))
    cut = on_hosts(net, 40, HOSTS, 5)
    net.cut(*cut)
    net.run(10)
    net._cut -= {cut[0]}
    net.run(50)
    assert "ACTIVE" == net.states()[cut[0]]
    assert sorted(cut[1:]) == sorted(change.id for change in net.broker.ops if change.op == "inactive")


def test_a_second_partition_is_held_again() -> None:
    net = grown(40, hold_max_ns=seconds(20))
    for _ in range(2):
        net.cut(*on_hosts(net, 40, HOSTS, 5))
        net.run(10)
        net.heal()
        net.run(20)
    assert [True, False, True, False] == held(net)
    assert 0 == net.count("inactive")


def test_goodbyes_are_never_held() -> None:
    net = grown(40)
    cut = on_hosts(net, 40, HOSTS, 5)
    net.cut(*cut)
    net.run(10)
    net.stop("n7")
    net.run(0.1)
    assert [("inactive", "n7")] == [(change.op, change.id) for change in net.broker.ops if change.op == "inactive"]
    assert 10 <= len(net.catalog.liveness.holding)
