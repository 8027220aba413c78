"""A machine that slept gives everybody time to be heard, whoever speaks to its carrier first when it wakes."""

import pytest

from tests.carrier.rig import World
from weft.cores.carrier.messages import ChildLost, ParentLost
from weft.cores.carrier.states import State


@pytest.mark.proves("REC-001")
@pytest.mark.parametrize("asleep_s", [3, 5.2, 5.5, 6, 7, 9, 3_600])
def test_an_order_before_the_late_wake_made_it_look_punctual(asleep_s: float) -> None:
    world = World()
    root = world.root("root")
    a = world.sensor("a", "root")
    world.advance(3)
    world.sleep(asleep_s)
    a.make()  # a reading that was under way comes in, and is sent: only then does the machine look at its timers
    a.core.deadline()
    a.core.wake(world.now)
    a.do()
    assert State.OPEN is a.core.state
    assert [] == a.events(ParentLost)
    assert [] == root.events(ChildLost)


@pytest.mark.proves("REC-001")
def test_a_late_wake_is_forgiven_once() -> None:
    world = World()
    world.root("root")
    a = world.sensor("a", "root")
    world.advance(3)
    world.sleep(60)
    a.make()
    a.core.deadline()
    a.core.wake(world.now)
    a.do()
    world.cut("a")
    world.advance(5.5)
    assert ["silent"] == [event.why for event in a.events(ParentLost)]
