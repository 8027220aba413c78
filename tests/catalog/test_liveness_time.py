"""What a start, a pause and a wrong clock do to deadlines: as little as can be (CAT-012, CAT-051, BEA-022)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.net import HOME, TIME, Net, beat, register
from weft.base.now import SECOND, Now, seconds
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.liveness import NEVER, Liveness
from weft.cores.catalog.messages import Paused
from weft.wire.catalog import messages as wire
from weft.wire.catalog.messages import Message

LIFE = [("register", 0.0), ("suspect", 1.5), ("inactive", 3.0), ("remove", 603.0)]
"""Of one that registers and says nothing more (X11)."""


# After a start
@pytest.mark.proves("CAT-051")
def test_what_was_restored_has_five_seconds_at_least() -> None:
    net = Net()
    for name, interval_ms in (("short", 100), ("usual", 1_000), ("long", 4_000)):
        register(net, name, heartbeat=interval_ms)
    net.crash("broker")
    net.start("broker")
    assert {True} == {instance.is_restored for instance in net.broker.instances()}
    beat(net, "usual")
    assert {"usual"} == {instance.id for instance in net.broker.instances() if not instance.is_restored}
    net.run(20)
    assert {"short": 5.0, "usual": 3.0, "long": 12.0} == {
        change.id: change.at for change in net.broker.ops if change.op == "inactive"
    }


@pytest.mark.proves("CAT-051")
def test_who_was_suspected_before_the_start_has_the_same_time() -> None:
    net = Net()
    register(net, "A")
    net.run(2)
    assert {"A": "SUSPECT"} == net.states()
    net.crash("broker")
    net.start("broker")
    assert net.states()["A"] in ("ACTIVE", "SUSPECT")
    net.run(20)
    assert [7.0] == [change.at for change in net.broker.ops if change.op == "inactive"]


@pytest.mark.proves("CAT-051")
def test_who_was_away_before_the_start_is_forgotten_after_it() -> None:
    net = Net()
    register(net, "silent")
    register(net, "left")
    net.say(HOME, Message(wire.DISCONNECT, TIME, (b"left",)))
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
        self.context.now = now
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
    assert 1 == catalog.context.counters["pauses", ""]


@pytest.mark.proves("BEA-022")
@pytest.mark.parametrize(("late_s", "pauses"), [(0.5, 0), (0.501, 1)])
def test_a_little_lateness_is_no_pause(late_s: float, pauses: int) -> None:
    net = Net()
    register(net, "A")
    due_at = net.catalog.liveness.deadline()
    assert due_at is not None
    net.catalog.liveness.note_late(Now(due_at + seconds(late_s), 0))
    assert pauses == net.catalog.context.counters["pauses", ""]


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
