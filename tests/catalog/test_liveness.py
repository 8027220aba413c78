"""Beats, silence, probes, reaping and pauses, on the whole broker in virtual time (BEA-010 to BEA-022; X11 to X14)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.net import Net
from weft.base.now import SECOND, Now, seconds
from weft.cores.catalog import limits, liveness
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.liveness import NEVER, Liveness, Watch
from weft.cores.catalog.messages import PathChanged, Paused
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.states import State
from weft.cores.catalog.station import BEATS, PROBE
from weft.wire.catalog import messages as wire
from weft.wire.catalog.messages import Beat, Message

T = bytes.fromhex("fd01d64e")
HOME = "10.0.0.1"
LIFE = [("register", 0.0), ("suspect", 1.5), ("inactive", 3.0), ("remove", 603.0)]
"""Of one that registers and says nothing more (X11)."""


def register(net: Net, name: str, peer: str = HOME, **record: Any) -> list[Message]:
    """As a REQ, that beats by itself or not at all."""
    where = {"ip": peer} if "port" in record else {}
    body = json.dumps({"name": name, "id": name, "heartbeat": 1000, **where, **record}).encode()
    return net.say(peer, Message(wire.REGISTRATION, T, (body,)))


def beat(net: Net, name: str, ip: str = HOME, word: bytes = wire.HEARTBEAT, **said: Any) -> None:
    net.beat(ip, Beat(word, name, 0.0, **said))


def pinged(net: Net) -> list[tuple[float, bytes]]:
    """When which endpoint was called, by a net that keeps a log."""
    assert net.log is not None
    found = []
    for line in net.log:
        at, _, effect = line.split(" ", 2)
        if "catalog-probe" in effect and "b'ping'" in effect:
            found.append(((int(at) - SECOND) / SECOND, effect.split("peer=b'")[1].split("'")[0].encode()))
    return found


def of(net: Net, name: str) -> Instance:
    found = net.catalog.book.get(name, name)
    assert found is not None
    return found


def dropped(net: Net, reason: str) -> int:
    return net.catalog.station.counters["dropped", reason]


# Silence


@pytest.mark.proves("BEA-015", "BEA-016", "CAT-020")
def test_who_registers_and_says_nothing_more_is_suspected_given_up_and_forgotten_in_time() -> None:
    """X11."""
    net = Net()
    register(net, "A", port=9)
    net.run(700)
    assert LIFE == net.ops()


def check_probed(span_s: int) -> None:
    """X12: one SUSPECT, one return, and no event more."""
    net = Net(settings={"beacon_ns": 0})
    net.answering.add(b"10.0.0.1:9")
    register(net, "A", port=9)
    net.run(span_s)
    assert ["register", "suspect", "active"] == [op for op, _ in net.ops()]
    assert {"A": "ACTIVE"} == net.states()


@pytest.mark.proves("BEA-017")
def test_who_answers_every_probe_stays_for_an_hour_without_an_event() -> None:
    check_probed(3_600)


def test_canary_who_is_probed_is_suspected_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 17: an answer to a probe is a beat like any other, and nobody asks again in time."""
    real = Liveness._heard_by_tcp
    monkeypatch.setattr(Liveness, "_heard_by_tcp", lambda self, watch, _, clock: real(self, watch, "tcp", clock))
    with pytest.raises(AssertionError):
        check_probed(60)


@pytest.mark.proves("CAT-006", "CAT-022")
def test_a_request_under_way_gets_its_own_answer_alone_while_its_instance_is_evicted() -> None:
    """X13."""
    net = Net()
    register(net, "A")
    net.run(2.9)
    (answer,) = net.say(HOME, Message(wire.REQUEST, T, (b"A",)))
    assert wire.REPLY == answer.command
    net.run(10)
    assert [wire.APPROVED, wire.REPLY] == [said.command for said in net.broker.answers[b"REQ/10.0.0.1"]]


Step = tuple[int, int]
"""Milliseconds, and then a beat of this one."""
INTERVALS_MS = (50, 1_000, 1_000, 7_000)
STEPS = st.lists(st.tuples(st.one_of(st.integers(0, 1_600), st.integers(0, 25_000)), st.integers(0, 3)), max_size=40)


def expected_life(interval_ms: int, beats_ms: list[int], end_ms: int) -> list[tuple[str, float]]:
    """What must be published of one that beats then and at no other time: the table of specs/02, 2.4, by hand."""
    ops: list[tuple[str, float]] = [("register", 0)]
    state, heard = "active", 0
    for at in [*beats_ms, end_ms]:
        for after, before, op in ((1.5, "active", "suspect"), (3, "suspect", "inactive")):
            due = heard + after * interval_ms
            if state == before and due <= at:
                state = op
                ops.append((op, due))
        if state == "inactive" and heard + 3 * interval_ms + 600_000 <= at:
            return [*ops, ("remove", heard + 3 * interval_ms + 600_000)]
        if at == end_ms:
            break
        heard = at
        if state != "active":
            state = "active"
            ops.append(("active", at))
    return [(op, at / 1_000) for op, at in ops]


def check_lives(steps: list[Step]) -> None:
    net = Net(settings={"beacon_ns": 0})
    for number, interval_ms in enumerate(INTERVALS_MS):
        register(net, f"n{number}", heartbeat=interval_ms)
    beats: list[list[int]] = [[] for _ in INTERVALS_MS]
    now_ms = 0
    for after_ms, number in steps:
        now_ms += after_ms
        net.run(after_ms / 1_000)
        beat(net, f"n{number}")
        beats[number].append(now_ms)
    end_ms = now_ms + 30_000
    net.run(30)
    for number, interval_ms in enumerate(INTERVALS_MS):
        assert expected_life(interval_ms, beats[number], end_ms) == net.ops(f"n{number}")


@pytest.mark.proves("BEA-010", "BEA-011", "BEA-015")
@settings(max_examples=40)
@given(STEPS)
def test_every_life_is_published_as_the_table_says_at_its_very_instant(steps: list[Step]) -> None:
    check_lives(steps)


def test_canary_expiry_that_stops_at_the_first_who_lives_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 8."""
    look = Liveness._look

    def stop_there(self: Liveness, watch: Watch, clock: int) -> None:
        if watch.instance.due_at > clock:  # it lives: all behind it must, too
            watch.armed_at = 0
            self._heap.insert(0, (clock + SECOND, 0, watch))
            return
        look(self, watch, clock)

    monkeypatch.setattr(Liveness, "_look", stop_there)
    with pytest.raises(AssertionError):
        check_lives([(1_000, 1), (400, 2), (1_000, 1)])


@pytest.mark.proves("BEA-011")
def test_any_command_of_the_owner_is_a_beat() -> None:
    net = Net()
    register(net, "A")
    for _ in range(5):
        net.run(1.2)
        net.say(HOME, Message(wire.UPDATE, T, (b'{"name": "A"}',)))
    assert [("register", 0.0)] == net.ops()


def test_beats_touch_no_timer() -> None:
    """A beat is O(1): ten thousand of them set the one timer of their instance no more often than it is due."""
    net = Net()
    register(net, "A", heartbeat=10_000)
    before = net.catalog.liveness._serial
    for _ in range(10_000):
        beat(net, "A")
    assert before == net.catalog.liveness._serial


def test_timers_of_who_is_gone_do_not_pile_up() -> None:
    net = Net()
    for number in range(1_000):
        register(net, "A", heartbeat=3_600_000)
        net.say("", Message(wire.REQUEST, T, (b"dbp.deregister", b"A")))
        assert {} == net.states(), number
    assert len(net.catalog.liveness._heap) <= liveness.STALE_MIN + 1


def test_a_shorter_interval_counts_from_the_update_on() -> None:
    net = Net()
    register(net, "A", heartbeat=60_000)
    net.run(1)
    net.say(HOME, Message(wire.UPDATE, T, (b'{"name": "A", "heartbeat": 100}',)))
    net.run(1)
    assert [("register", 0.0), ("update", 1.0), ("suspect", 1.15), ("inactive", 1.3)] == net.ops()


# Datagrams


def check_nothing_registers_by_datagram() -> None:
    net = Net()
    beat(net, "A")
    beat(net, "B", id="b", seq=1)
    assert {} == net.states()
    assert 2 == dropped(net, "udp-unknown")


@pytest.mark.proves("BEA-011")
def test_a_beat_by_datagram_registers_nobody() -> None:
    check_nothing_registers_by_datagram()


def test_canary_a_beat_that_registers_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 9."""

    def welcome(self: Registry, name: str, instance_id: str | None, owner: str) -> Instance:
        instance = Instance(name, instance_id or name, owner, owner)
        instance.interval_ns = SECOND
        self.book.put(instance)
        self.liveness.began(instance)  # type: ignore[union-attr]  # the core has set it
        return instance

    monkeypatch.setattr(Registry, "of_beat", welcome)
    with pytest.raises(AssertionError):
        check_nothing_registers_by_datagram()


@pytest.mark.proves("BEA-011")
def test_a_beat_from_another_address_is_counted_and_refreshes_nobody() -> None:
    """X14."""
    net = Net()
    register(net, "A", "127.0.0.1")
    for _ in range(4):
        net.run(1)
        net.beat("127.0.0.2", Beat(wire.HEARTBEAT, "A"))
    assert ["register", "suspect", "inactive"] == [op for op, _ in net.ops()]
    assert 4 == dropped(net, "udp-unknown")


def test_of_several_instances_a_beat_without_id_means_none() -> None:
    net = Net()
    for instance_id in ("one", "two"):
        register(net, "A", id=instance_id)
    net.run(1)
    beat(net, "A")
    beat(net, "A", id="two")
    net.run(1)
    assert {"one": "SUSPECT", "two": "ACTIVE"} == net.states()


def test_lines_of_one_datagram_count_each_for_itself() -> None:
    net = Net()
    register(net, "A")
    register(net, "B")
    net.run(1)
    net.beat(
        HOME, Beat(wire.HEARTBEAT, "A"), Beat(wire.HEARTBEAT, "nobody"), Beat(wire.AWK, "A"), Beat(wire.HEARTBEAT, "B")
    )
    net.run(1)
    assert {"A": "ACTIVE", "B": "ACTIVE"} == net.states()
    assert (1, 1) == (dropped(net, "udp-unknown"), dropped(net, "udp-unexpected"))


def test_late_and_doubled_beats_raise_nobody_from_the_dead() -> None:
    """S8."""
    net = Net()
    register(net, "A")
    beat(net, "A", seq=5)
    net.run(4)
    assert {"A": "INACTIVE"} == net.states()
    for seq in (1, 4, 5, 5):
        beat(net, "A", seq=seq)
    assert {"A": "INACTIVE"} == net.states()
    assert 4 == dropped(net, "udp-old")
    beat(net, "A", seq=6)
    assert {"A": "ACTIVE"} == net.states()
    beat(net, "A", seq=5)
    net.run(2)
    assert {"A": "SUSPECT"} == net.states()


def test_who_registers_again_counts_from_one_again() -> None:
    net = Net()
    register(net, "A")
    beat(net, "A", seq=1_000)
    register(net, "A")
    net.run(1)
    beat(net, "A", seq=1)
    net.run(1)
    assert {"A": "ACTIVE"} == net.states()


@pytest.mark.proves("BEA-013")
@pytest.mark.parametrize(
    ("ip", "expected"),
    [("127.0.0.1", [("inactive", 0.5)]), ("10.0.0.1", [("suspect", 0.5), ("inactive", 3.0)])],
)
def test_a_goodbye_by_datagram_is_trusted_on_this_machine_alone(ip: str, expected: list[tuple[str, float]]) -> None:
    net = Net()
    register(net, "A", ip)
    net.run(0.5)
    beat(net, "A", ip, wire.DISCONNECT)
    net.run(5)
    assert [("register", 0.0), *expected] == net.ops()


@pytest.mark.proves("BEA-013")
def test_who_is_there_after_all_answers_when_somebody_says_goodbye_for_him() -> None:
    net = Net()
    net.add("thermo")
    net.run(5)
    beat(net, "thermo", net["thermo"].ip, wire.DISCONNECT)
    net.run(5)
    assert ["register", "suspect", "active"] == [op for op, _ in net.ops()]


def test_after_a_goodbye_a_beat_on_its_way_is_dropped() -> None:
    net = Net()
    register(net, "A", "127.0.0.1")
    beat(net, "A", "127.0.0.1", wire.DISCONNECT)
    beat(net, "A", "127.0.0.1")
    assert {"A": "INACTIVE"} == net.states()


@pytest.mark.proves("BEA-020")
def test_who_hears_no_beacon_is_answered_once_per_interval() -> None:
    net = Net(is_logged=True)
    register(net, "deaf", beacon=False)
    register(net, "hears")
    for _ in range(25):
        beat(net, "deaf")
        beat(net, "hears")
        net.run(0.1)
    assert net.log is not None
    answers = [line for line in net.log if BEATS in line]
    assert 3 == len(answers)
    assert all("b'10.0.0.1:40000'" in line and "word=b'u.u', name='deaf'" in line for line in answers)


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
    net.say(HOME, Message(wire.DISCONNECT, T, (b"A",)))
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
    net.run(6.0)
    assert limits.PROBES_MAX == len(probing)
    net.run(1.6)
    assert 600 == len({endpoint for _, endpoint in pinged(net)})
    assert 600 - limits.PROBES_MAX <= net.catalog.station.counters["probes", "stretched"]


def test_a_socket_that_called_in_vain_is_closed() -> None:
    net = Net(is_logged=True)
    register(net, "A", port=9)
    net.run(2.1)
    assert net.log is not None
    assert [2_000_000_000 + SECOND] == [
        int(line.split()[0]) for line in net.log if "Disconnect" in line and PROBE in line
    ]


# Reaping


@pytest.mark.parametrize(("reap_s", "expected"), [(60, [*LIFE[:3], ("remove", 63.0)]), (0, LIFE[:3])])
def test_who_is_away_is_forgotten_when_the_settings_say(reap_s: int, expected: list[tuple[str, float]]) -> None:
    net = Net(settings={"reap_ns": seconds(reap_s)})
    register(net, "A")
    net.run(1_000)
    assert expected == net.ops()


def test_who_is_critical_for_too_long_is_forgotten_if_the_settings_say_so() -> None:
    net = Net(settings={"reap_critical_ns": seconds(60)})
    register(net, "A", health="critical", heartbeat=3_600_000)
    register(net, "B", health="critical", heartbeat=3_600_000)
    net.run(30)
    net.say(HOME, Message(wire.UPDATE, T, (b'{"name": "B", "health": "passing"}',)))
    net.run(100)
    assert [("register", 0.0), ("remove", 60.0)] == net.ops("A")
    assert {"B": "ACTIVE"} == net.states()


# After a start


@pytest.mark.proves("CAT-051")
def test_what_was_restored_has_five_seconds_at_least() -> None:
    net = Net()
    for name, interval_ms in (("short", 100), ("usual", 1_000), ("long", 4_000)):
        register(net, name, heartbeat=interval_ms)
    net.crash("broker")
    net.start("broker")
    assert {True} == {instance.is_restored for instance in net.broker.instances()}
    net.run(20)
    assert {"short": 5.0, "usual": 5.0, "long": 12.0} == {
        change.id: change.at for change in net.broker.ops if change.op == "inactive"
    }


@pytest.mark.proves("CAT-051")
def test_who_was_away_before_the_start_is_forgotten_after_it() -> None:
    net = Net()
    register(net, "silent")
    register(net, "left")
    net.say(HOME, Message(wire.DISCONNECT, T, (b"left",)))
    net.run(100)
    net.crash("broker")
    net.start("broker")
    assert {"silent": "INACTIVE", "left": "INACTIVE"} == net.states()
    net.run(601)
    assert {} == net.states()


# Pauses


def check_pause() -> None:
    """S5, in small: what was heard before a pause is as fresh after it."""
    net = Net(is_logged=True)
    register(net, "A")
    register(net, "B")
    net.run(1.4)
    beat(net, "B")
    net.pause("broker")
    net.run(30)
    net.resume("broker")
    assert ["register", "register"] == [op for op, _ in net.ops() if op != "suspect"]
    beat(net, "A")
    beat(net, "B")
    net.run(1.4)
    assert {"A": "ACTIVE", "B": "ACTIVE"} == net.states()
    assert 0 == net.count("inactive")


@pytest.mark.proves("BEA-022")
def test_who_stands_still_calls_nobody_silent() -> None:
    check_pause()


def test_canary_expiry_before_the_shift_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 7."""
    begin = Catalog._begin

    def expire_first(self: Catalog, now: Now) -> None:
        self.station.now = now
        self.liveness.wake(now)
        self.liveness.wake(now)
        begin(self, now)

    monkeypatch.setattr(Catalog, "_begin", expire_first)
    with pytest.raises(AssertionError):
        check_pause()


@pytest.mark.proves("BEA-022")
def test_a_pause_moves_every_deadline_by_the_lateness_and_touches_no_instance() -> None:
    net = Net()
    for number in range(100):
        register(net, f"n{number}", heartbeat=10_000 + number)
    catalog = net.catalog
    dues = [instance.due_at for instance in net.broker.instances()]
    due_at, timers = catalog.liveness.deadline(), list(catalog.liveness._heap)
    assert due_at is not None
    catalog.liveness.note_late(Now(due_at + seconds(100), 0))
    assert due_at + seconds(100) == catalog.liveness.deadline()
    assert dues == [instance.due_at for instance in net.broker.instances()]
    assert timers == catalog.liveness._heap
    assert [Paused(seconds(100))] == [effect.event for effect in catalog.effects() if hasattr(effect, "event")]
    assert 1 == catalog.station.counters["pauses", ""]


@pytest.mark.proves("BEA-022")
@pytest.mark.parametrize(("late_s", "pauses"), [(0.5, 0), (0.501, 1)])
def test_a_little_lateness_is_no_pause(late_s: float, pauses: int) -> None:
    net = Net()
    register(net, "A")
    due_at = net.catalog.liveness.deadline()
    assert due_at is not None
    net.catalog.liveness.note_late(Now(due_at + seconds(late_s), 0))
    assert pauses == net.catalog.station.counters["pauses", ""]


# The clock on the wall


def check_wall_clock_changes_nothing(jumps: list[tuple[int, int]]) -> None:
    """P8: the same net, with and without jumps of the broker's wall clock and wrong clocks of the services."""
    lives = []
    for is_jumping in (False, True):
        net = Net(seed=8, loss=0.2)
        for number in range(4):
            net.add(f"n{number}")
            net[f"n{number}"].wall_offset = is_jumping * seconds(3_600) * (number - 2)
        register(net, "mute", port=9)
        for after_s, jump_s in jumps:
            net.run(after_s)
            net.broker.wall_offset += is_jumping * seconds(jump_s)
        net.crash("n0")
        net.run(5)
        lives.append([(change.at, change.op, change.id) for change in net.broker.ops])
    assert lives[0] == lives[1]


YEAR_S = 31_557_600


@pytest.mark.proves("CAT-012")
@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-YEAR_S, YEAR_S)), max_size=5))
def test_the_clock_on_the_wall_decides_nothing(jumps: list[tuple[int, int]]) -> None:
    check_wall_clock_changes_nothing(jumps)


def test_canary_a_deadline_from_the_time_frame_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 1."""
    heard = Liveness.heard

    def by_the_wall(self: Liveness, instance: Instance, via: str, now: Now) -> bool:
        counts = heard(self, instance, via, now)
        instance.due_at += (now.wall - now.mono) % NEVER - net_wall
        return counts

    net_wall = Net().broker.now.wall - SECOND
    monkeypatch.setattr(Liveness, "heard", by_the_wall)
    with pytest.raises(AssertionError):
        check_wall_clock_changes_nothing([(3, 600), (3, -600)])


# The same again


@pytest.mark.proves("SIM-005")
def test_the_same_net_does_the_same_again() -> None:
    """P9."""
    logs = []
    for _ in range(2):
        net = Net(seed=9, loss=0.2, doubling=0.1, is_logged=True)
        for number in range(10):
            net.add(f"n{number}", ip=f"10.0.0.{number % 4}")
        net.run(5)
        net.crash("n3")
        net.crash("broker")
        net.run(2)
        net.start("broker")
        net.run(10)
        logs.append(net.log)
    assert logs[0] == logs[1]


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
    net.run(3.3)
    assert {"udp"} == {instance.via for instance in net.broker.instances()}
    assert {host.name: ["tcp", "udp"] for host in hosts} == told_paths(net)
    net.run(60)
    assert [] == net.ops(since=lost_at)
    assert {host.name: ["tcp", "udp"] for host in hosts} == told_paths(net)
    assert all([False, True] == [event.over_tcp for event in host.told[-1:-3:-1]] for host in hosts)


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
