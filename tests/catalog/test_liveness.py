"""Beats, silence and reaping, on the whole broker in virtual time (BEA-010 to BEA-020; X11 to X14)."""

import gc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.net import HOME, TIME, Net, beat, dropped, register
from weft.base.effects import Effect
from weft.base.now import SECOND, seconds
from weft.cores.catalog.context import BEATS
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.liveness import Liveness, Timer, Watch
from weft.cores.catalog.registry import Registry
from weft.wire.catalog import messages as wire
from weft.wire.catalog.messages import Beat, Message

LIFE = [("register", 0.0), ("suspect", 1.5), ("inactive", 3.0), ("remove", 603.0)]
"""Of one that registers and says nothing more (X11)."""


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
    (answer,) = net.say(HOME, Message(wire.REQUEST, TIME, (b"A",)))
    assert wire.REPLY == answer.command
    net.run(10)
    assert [wire.APPROVED, wire.REPLY] == [said.command for said in net.broker.answers[b"REQ/10.0.0.1"]]


Step = tuple[int, int]
"""Milliseconds, and then a beat of this one."""
INTERVALS_MS = (50, 1_000, 1_000, 7_000)
STEPS = st.lists(st.tuples(st.one_of(st.integers(0, 1_600), st.integers(0, 25_000)), st.integers(0, 3)), max_size=40)


def expected_life(interval_ms: int, beats_ms: list[int], end_ms: int) -> list[tuple[str, float]]:
    """What must be published of one that beats then and at no other time: the table of BEA-012, by hand."""
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
            self._heap.insert(0, Timer(clock + SECOND, 0, watch))
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
        net.say(HOME, Message(wire.UPDATE, TIME, (b'{"name": "A"}',)))
    assert [("register", 0.0)] == net.ops()


def test_beats_touch_no_timer() -> None:
    """A beat is O(1): ten thousand of them set the one timer of their instance no more often than it is due."""
    net = Net()
    register(net, "A", heartbeat=10_000)
    before = net.catalog.liveness._serial
    for _ in range(10_000):
        beat(net, "A")
    assert before == net.catalog.liveness._serial


@pytest.mark.proves("CAT-081")
def test_of_many_who_are_due_at_once_each_turn_takes_some_and_none_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(settings={"hold": False, "beacon_ns": 0})
    for number in range(1_200):
        register(net, f"n{number}", f"10.1.{number // 250}.{number % 250}")
    turns: list[int] = []
    take = net.catalog.context.take

    def counted() -> list[Effect]:
        turns.append(len(net.catalog.context.records))
        return take()

    monkeypatch.setattr(net.catalog.context, "take", counted)
    net.run(3)
    assert Counter(register=1_200, suspect=1_200, inactive=1_200) == Counter(op for op, _ in net.ops())
    assert {0.0, 1.5, 3.0} == {at for _, at in net.ops()}
    assert 512 == max(turns)


@pytest.mark.proves("CAT-081")
def test_python_looks_for_no_cycles_through_what_is_kept_of_each_instance() -> None:
    """Else its collector stops the broker for a time that grows with the number of instances."""
    net = Net()
    for number in range(100):
        register(net, f"n{number}", tags=["lab"])
        beat(net, f"n{number}")
    gc.collect()
    core = net.catalog
    kinds = (Instance, Watch, Timer, type(core.book._noted["n0", "n0"]))
    assert [] == [kept for kept in gc.get_objects() if type(kept) in kinds]
    (instance,) = core.book.of_name("n0")
    assert [False, False] == [gc.is_tracked(instance.key), gc.is_tracked(core.liveness._watches[instance].jitter)]


def test_timers_of_who_is_gone_do_not_pile_up() -> None:
    net = Net()
    for number in range(1_000):
        register(net, "A", heartbeat=3_600_000)
        net.say("", Message(wire.REQUEST, TIME, (b"dbp.deregister", b"A")))
        assert {} == net.states(), number
    assert len(net.catalog.liveness._heap) <= 64 + 1


def test_a_shorter_interval_counts_from_the_update_on() -> None:
    net = Net()
    register(net, "A", heartbeat=60_000)
    net.run(1)
    net.say(HOME, Message(wire.UPDATE, TIME, (b'{"name": "A", "heartbeat": 100}',)))
    net.run(1)
    assert [("register", 0.0), ("update", 1.0), ("suspect", 1.15), ("inactive", 1.3)] == net.ops()


# Datagrams
def check_nothing_registers_by_datagram() -> None:
    net = Net()
    beat(net, "A")
    beat(net, "B", id="b", seq=1)
    assert {} == net.states()
    assert 2 == dropped(net, "udp-unknown")


@pytest.mark.proves("SEC-015", part="a beat of the catalog that is a datagram registers nobody")
@pytest.mark.proves("BEA-011")
def test_a_beat_by_datagram_registers_nobody() -> None:
    check_nothing_registers_by_datagram()


def test_canary_a_beat_that_registers_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 9."""

    def welcome(self: Registry, name: str, instance_id: str | None, owner: str) -> Instance:
        instance = Instance(name, instance_id or name, owner, owner)
        instance.interval_ns = SECOND
        self.book.put(instance)
        self.watcher().began(instance)
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
    net.say(HOME, Message(wire.UPDATE, TIME, (b'{"name": "B", "health": "passing"}',)))
    net.run(100)
    assert [("register", 0.0), ("remove", 60.0)] == net.ops("A")
    assert {"B": "ACTIVE"} == net.states()
