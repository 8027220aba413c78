"""Who is asked whether he is there, where, and which way his beats come (BEA-016 to BEA-018; MON-008)."""

from collections import Counter
from typing import Any

import pytest

from tests.catalog.net import HOME, TIME, Net, beat, of, pinged, register
from weft.base.now import SECOND
from weft.cores.catalog.context import PROBE
from weft.cores.catalog.messages import PathChanged
from weft.cores.catalog.states import State
from weft.wire.catalog import messages as wire
from weft.wire.catalog.messages import Message

LIFE = [("register", 0.0), ("suspect", 1.5), ("inactive", 3.0), ("remove", 603.0)]
"""Of one that registers and says nothing more (X11)."""


# Probes
@pytest.mark.proves("BEA-016")
def test_who_is_missed_is_called_each_interval_where_he_serves_until_he_is_given_up() -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9)
    net.run(3)
    assert [(1.5, b"10.0.0.1:9"), (2.5, b"10.0.0.1:9")] == pinged(net)


@pytest.mark.proves("BEA-017")
def test_who_is_away_is_called_every_tenth_interval_until_he_is_forgotten() -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9)
    net.run(700)
    assert [1.5, 2.5, *[3.0 + 10 * number for number in range(1, 60)]] == [at for at, _ in pinged(net)]


@pytest.mark.proves("BEA-017")
def test_who_said_goodbye_is_left_alone() -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9)
    net.say(HOME, Message(wire.DISCONNECT, TIME, (b"A",)))
    net.run(700)
    assert [] == pinged(net)
    assert [("register", 0.0), ("inactive", 0.0), ("remove", 600.0)] == net.ops()


@pytest.mark.proves("BEA-016", "BEA-018", "BEA-019")
def test_who_has_a_connection_is_asked_on_it() -> None:
    net = Net(is_logged=True)
    net.add("thermo")
    net.run(3)
    net.is_lost = lambda sender, _: sender == "thermo"
    net.run(10)
    assert {"thermo": "ACTIVE"} == net.states()
    assert ["register", "suspect", "active"] == [op for op, _ in net.ops()]
    assert [] == pinged(net)


@pytest.mark.proves("BEA-016")
@pytest.mark.parametrize(
    ("record", "allowed", "expected"),
    [
        ({"ip": "10.0.0.1", "port": 9}, (), b"10.0.0.1:9"),
        ({"ip": "10.7.7.7", "port": 9}, (), None),
        ({"ip": "10.7.7.7", "port": 9}, ("10.7.0.0/16",), b"10.7.7.7:9"),
        ({"ip": "127.0.0.1", "port": 9}, (), b"10.0.0.1:9"),
        ({"interfaces": {"router": {"ip": "10.0.0.1", "port": 8}}}, (), b"10.0.0.1:8"),
        ({"ip": "example", "port": 9}, ("0.0.0.0/0",), None),
        ({}, (), None),
    ],
)
def test_nobody_is_called_where_he_was_not_seen_unless_that_is_allowed(
    record: dict[str, Any], allowed: tuple[str, ...], expected: bytes | None
) -> None:
    net = Net(is_logged=True, settings={"probe_allow": allowed})
    register(net, "A", **record)
    net.run(2)
    assert ([expected] if expected else []) == [endpoint for _, endpoint in pinged(net)]


def test_whoever_has_the_port_now_does_not_answer_for_another() -> None:
    net = Net()
    net.add("thermo")
    net.run(1)
    net.crash("thermo")
    heir = net.add(
        "heir", ip=net["thermo"].ip, record={"ip": net["thermo"].ip, "port": net["thermo"].settings.record["port"]}
    )
    net.run(10)
    assert {"thermo": "INACTIVE", "heir": "ACTIVE"} == net.states()
    assert heir.endpoint == net["thermo"].endpoint


def test_who_was_away_and_answers_is_back() -> None:
    net = Net()
    register(net, "A", port=9)
    net.run(4)
    net.answering.add(b"10.0.0.1:9")
    net.run(20)
    assert [*LIFE[:3], ("active", 13.006)] == net.ops()


@pytest.mark.proves("BEA-016")
def test_no_more_are_called_at_once_than_allowed_and_all_have_their_turn() -> None:
    net = Net(is_logged=True, settings={"hold": False})
    for number in range(600):
        register(net, f"n{number}", f"10.1.{number // 250}.{number % 250}", port=9, heartbeat=4_000)
    probing = net.catalog.liveness.probing
    net.run(6.1)
    assert 256 == len(probing)
    net.run(1.6)
    assert 600 == len({endpoint for _, endpoint in pinged(net)})
    assert 600 - 256 <= net.catalog.context.counters["probes", "stretched"]


def test_a_socket_that_called_in_vain_is_closed() -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9)
    net.run(2.1)
    assert net.log is not None
    assert [2_000_000_000 + SECOND] == [
        int(line.split()[0]) for line in net.log if "Disconnect" in line and PROBE in line
    ]


# Two ways
@pytest.mark.proves("BEA-018")
def test_lost_datagrams_are_told_once_and_their_return_after_three() -> None:
    """S2."""
    net = Net(seed=2)
    hosts = [net.add(f"n{number}") for number in range(10)]
    net.run(10)
    net.is_lost = lambda sender, hearer: True
    net.run(20)
    assert {"tcp"} == {instance.via for instance in net.broker.instances()}
    assert {host.name: ["tcp"] for host in hosts} == told_paths(net)
    lost_at = net.time
    net.is_lost = lambda sender, hearer: False
    net.run(0.9)
    assert {host.name: ["tcp"] for host in hosts} == told_paths(net)
    net.run(2.4)
    assert {"udp"} == {instance.via for instance in net.broker.instances()}
    assert {host.name: ["tcp", "udp"] for host in hosts} == told_paths(net)
    net.run(60)
    assert [] == net.ops(since=lost_at)
    assert {host.name: ["tcp", "udp"] for host in hosts} == told_paths(net)
    assert all([False, True] == [event.over_tcp for event in host.told[-1:-3:-1]] for host in hosts)


@pytest.mark.proves("BEA-018")
def test_who_was_asked_on_its_connection_for_one_beat_is_told_that_datagrams_are_heard() -> None:
    net = Net(seed=2)
    host = net.add("thermo")
    net.run(5)
    net.is_lost = lambda sender, _: sender == "thermo"
    net.run(1)
    net.is_lost = lambda sender, hearer: False
    net.run(4)
    assert [True, False] == [event.over_tcp for event in host.told[1:]]
    assert {} == told_paths(net)


@pytest.mark.proves("BEA-016", "BEA-017")
def test_who_was_asked_each_interval_and_answers_no_more_is_asked_at_once_when_he_is_missed() -> None:
    net = Net(is_logged=True)
    net.answering.add(b"10.0.0.1:9")
    register(net, "A", port=9)
    net.run(2)
    net.answering.clear()
    net.run(3)
    assert [1.5, 2.506, 3.006, 4.006] == [at for at, _ in pinged(net)]
    assert ["register", "suspect", "active", "suspect", "inactive"] == [op for op, _ in net.ops()]


@pytest.mark.parametrize(("interval_ms", "expected"), [(200, 0.4), (1_000, 2.0), (4_000, 6.5)])
def test_an_answer_is_awaited_for_half_an_interval_or_half_a_second(interval_ms: int, expected: float) -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9, heartbeat=interval_ms)
    net.run(expected + 0.01)
    assert net.log is not None
    assert [expected] == [(int(line.split()[0]) - SECOND) / SECOND for line in net.log if "Disconnect" in line][:1]


@pytest.mark.proves("BEA-018")
def test_who_has_no_connection_and_answers_pings_comes_back_by_datagram_too() -> None:
    net = Net(settings={"beacon_ns": 0})
    net.answering.add(b"10.0.0.1:9")
    register(net, "A", port=9)
    for _ in range(3):
        beat(net, "A")
        net.run(1)
    net.run(10)
    assert ("probe", {"A": ["tcp"]}) == (of(net, "A").via, told_paths(net))
    for _ in range(4):
        beat(net, "A")
        net.run(2)
    assert {"A": ["tcp"]} == told_paths(net)
    for _ in range(3):
        beat(net, "A")
        net.run(1)
    assert ("udp", {"A": ["tcp", "udp"]}) == (of(net, "A").via, told_paths(net))


@pytest.mark.proves("BEA-018")
def test_who_beats_and_asks_much_on_its_connection_is_told_nothing_about_ways() -> None:
    net = Net(settings={"beacon_ns": 0})
    peer = b"a DEALER"
    body = b'{"name": "A", "id": "A", "ip": "10.0.0.1", "port": 9}'
    net.say(HOME, Message(wire.REGISTRATION, TIME, (body,)), kind="DEALER", peer=peer)
    for _ in range(20):
        net.run(0.5)
        beat(net, "A")
        net.say(HOME, Message(wire.REQUEST, TIME, (b"A",)), kind="DEALER", peer=peer)
    assert {wire.APPROVED: 1, wire.REPLY: 20} == Counter(said.command for said in net.broker.answers[peer])


def told_paths(net: Net) -> dict[str, list[str]]:
    """The changes of path that were told, by instance."""
    found: dict[str, list[str]] = {}
    for event in net.broker.told:
        if isinstance(event, PathChanged):
            found.setdefault(event.instance, []).append(event.via)
    return found


# Shown
@pytest.mark.proves("MON-008")
def test_what_is_known_of_a_life_is_shown() -> None:
    net = Net()
    register(net, "A", port=9)
    for _ in range(10):
        net.run(1.01)
        beat(net, "A")
    net.run(0.5)
    assert {
        "state": "active",
        "via": "udp",
        "is_probed": False,
        "age_ms": 500,
        "interval_ms": 1_000,
        "probes": 0,
        "restored": False,
        "beats_expected": 10,
        "beats_received": 11,
        "jitter_ms": {"p50": 15, "p99": 1_023},
        "probe_ms": None,
    } == net.catalog.liveness.shown(of(net, "A"), net.broker.now)
    net.answering.add(b"10.0.0.1:9")
    net.run(2)
    shown = net.catalog.liveness.shown(of(net, "A"), net.broker.now)
    assert ("tcp", True, 6.0) == (shown["via"], shown["is_probed"], shown["probe_ms"])
    assert State.ACTIVE is of(net, "A").state
