"""A spool that fills up is told of while there is still time to mend the link (CHN-083)."""

import pytest

from tests.carrier.rig import Machine, World
from weft.cores.carrier.messages import SpoolHigh

ROOM = 40_000


def cut_off() -> tuple[World, Machine]:
    world = World()
    world.root("root")
    sensor = world.sensor("a", journal_bytes=ROOM)
    world.advance(2)
    world.cut("a")
    return world, sensor


def told(machine: Machine) -> list[tuple[bool, bool]]:
    """Of each event: whether it is high, and whether what it says of the spool agrees with that."""
    return [(one.is_high, one.bytes >= one.bytes_max // 2) for one in machine.events(SpoolHigh)]


@pytest.mark.proves(
    "CHN-083", part="a spool that takes half of the journal's room is told of, and when it is empty again"
)
def test_a_spool_that_fills_up_is_told_of_once_and_so_is_its_end() -> None:
    world, sensor = cut_off()
    for _ in range(9):
        sensor.make(size=1_000)
    assert [] == sensor.events(SpoolHigh)
    for _ in range(12):
        sensor.make(size=1_000)
        world.advance(1)
    assert [(True, True)] == told(sensor)
    world.heal("a")
    world.advance(30)
    assert [(True, True), (False, False)] == told(sensor)


def test_a_new_start_tells_again_what_still_waits() -> None:
    world, sensor = cut_off()
    for _ in range(25):
        sensor.make(size=1_000)
    world.advance(1)
    sensor.crash()
    sensor.start()
    world.advance(1)
    assert [(True, True), (True, True)] == told(sensor)


def test_a_node_whose_journal_has_no_bound_tells_nothing() -> None:
    world = World()
    world.root("root")
    sensor = world.sensor("a")
    world.cut("a")
    for _ in range(50):
        sensor.make(size=1_000)
    world.advance(1)
    assert [] == sensor.events(SpoolHigh)
