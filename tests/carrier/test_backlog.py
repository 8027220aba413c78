"""The end of a backlog is told."""

import pytest

from tests.carrier.rig import Machine, World
from weft.cores.carrier.messages import CaughtUp


def linked() -> tuple[World, Machine]:
    world = World()
    world.root("root")
    sensor = world.sensor("a")
    world.advance(2)
    return world, sensor


def make(sensor: Machine, count: int) -> None:
    for _ in range(count):
        sensor.make()


@pytest.mark.proves("CFG-091", part="the records of a break have arrived: `carrier.caught-up`")
def test_what_waited_for_the_link_is_told_of_once_when_the_parent_has_it() -> None:
    world, sensor = linked()
    world.cut("a")
    make(sensor, 5_000)
    world.advance(8)
    assert [] == sensor.events(CaughtUp)
    world.heal("a")
    world.advance(10)
    make(sensor, 200)
    world.advance(10)
    assert [CaughtUp(5_001)] == sensor.events(CaughtUp)  # with the record that opens the era


@pytest.mark.proves("CFG-091", part="and so have those from before a restart")
def test_what_a_start_finds_in_its_journal_is_a_backlog_too() -> None:
    world, sensor = linked()
    world.cut("a")
    make(sensor, 100)
    world.advance(1)
    sensor.crash()
    world.heal("a")
    sensor.start()
    world.advance(10)
    assert [101] == [event.records for event in sensor.events(CaughtUp)]


def test_a_break_in_which_little_was_said_and_a_burst_without_a_break_are_no_backlog() -> None:
    world, sensor = linked()
    make(sensor, 500)
    world.advance(10)
    world.cut("a")
    make(sensor, 63)
    world.advance(8)
    world.heal("a")
    world.advance(10)
    assert [] == sensor.events(CaughtUp)
