"""Damage of a journal: what others still have is asked for again, and what is in the lake is not kept twice (JRN-023)."""

import pytest

from tests.carrier.rig import Machine, Root, World
from weft.base.records import DamageRecord, Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.carrier.messages import AnnounceDamage, ChildLost, Drained, InLake, LakeUnread


def damage(machine: Machine, sequence: int) -> AnnounceDamage:
    """A machine's journal loses the samples of that number; returns what a start on it is told."""
    place = next(lsn for lsn, record in machine.disk if getattr(record, "sequence", 0) == sequence)
    lost = DamageRecord(place, place + 1, "0000000000000001.seg", "checksum")
    machine.disk = [(lsn, lost if lsn == place else record) for lsn, record in machine.disk]
    return AnnounceDamage(place, place + 1, ())


def spooling() -> tuple[World, Machine, Machine, Machine]:
    """A sensor has given six batches to its collector, which is cut off from the root."""
    world = World()
    root, collector = world.root(), world.collector("c")
    leaf = world.sensor("leaf", "c")
    world.advance(2)
    world.cut("c")
    for _ in range(6):
        leaf.make()
        world.advance(1)
    assert [1, 2, 3, 4, 5, 6] == [record.sequence for record in collector.samples()]
    return world, root, collector, leaf


def arrived(root: Machine) -> list[int]:
    return sorted(record.sequence for record in root.samples())


@pytest.mark.proves("JRN-023", part="a parent whose journal lost records asks its children for them")
@pytest.mark.parametrize("starts", [1, 2])
def test_a_collector_asks_its_children_again_for_what_damage_has_taken(starts: int) -> None:
    world, root, collector, leaf = spooling()
    collector.crash()
    told = damage(collector, 4)
    for _ in range(starts):
        collector.start()
        collector.order(told)
        world.advance(1)
        collector.crash()
    collector.start()
    collector.order(told)
    world.heal("c")
    world.advance(20)
    assert [1, 2, 3, 4, 5, 6] == arrived(root)
    assert 0 == leaf.core.counters.spool_records


@pytest.mark.proves("JRN-023", part="a parent whose journal lost records asks its children for them")
def test_it_is_the_same_when_the_damage_is_found_while_the_node_runs() -> None:
    world, root, collector, _ = spooling()
    collector.order(damage(collector, 4))
    assert ["damaged"] == [event.why for event in collector.events(ChildLost)]
    world.heal("c")
    world.advance(20)
    assert [1, 2, 3, 4, 5, 6] == arrived(root)


def test_what_was_asked_for_again_is_not_asked_for_a_third_time() -> None:
    world, _, collector, leaf = spooling()
    told = damage(collector, 4)
    collector.order(told)
    world.advance(5)
    collector.crash()
    collector.start()
    collector.order(told)
    world.advance(5)
    sent = [each.sequence for each in collector.samples()]
    assert [1, 2, 3, 5, 6, 4, 5, 6] == sent
    assert leaf.is_up


def test_damage_of_what_is_safe_asks_for_nothing() -> None:
    world = World()
    root, collector = world.root(), world.collector("c")
    leaf = world.sensor("leaf", "c")
    for _ in range(3):
        leaf.make()
        world.advance(3)
    collector.order(AnnounceDamage(1, 2, ()))
    assert [] == collector.events(ChildLost)
    world.advance(5)
    assert [1, 2, 3] == arrived(root)


def in_lake(record: StreamRecord, upto: int) -> InLake:
    """The lake has the numbers of the record's origin up to that one."""
    vector = VersionVector()
    vector.add(record.source, 1, upto)
    return InLake(((int(Stream.SAMPLES), vector.encode()),))


class Forgetful(Root):
    """A root with a lake."""


def drained() -> tuple[World, Machine, Machine]:
    """A root has drained three batches, of which the sensor does not know that they are safe, and lost two of them by damage."""
    world = World()
    root = world._add(Forgetful(world, "root", "root", has_lake=True))
    leaf = world.sensor("leaf")
    leaf.make()
    world.advance(2)
    world.cut("leaf")
    for _ in range(2):
        leaf.make()
    kept = leaf.samples()
    world.heal("leaf")
    world.advance(10)
    assert [1, 2, 3] == arrived(root)
    root.order(Drained(max(lsn for lsn, _ in root.disk)))
    root.lake = in_lake(kept[0], 3)
    root.crash()
    leaf.crash()
    leaf.disk += [(leaf.next_lsn + place, record) for place, record in enumerate(kept)]
    leaf.next_lsn += len(kept)
    return world, root, leaf


@pytest.mark.proves("JRN-023", part="a root whose journal lost records learns from its lake what it holds")
def test_a_root_learns_from_its_lake_what_damage_has_taken_before_it_takes_anything() -> None:
    world, root, leaf = drained()
    told = damage(root, 2)
    root.start()
    root.order(told)
    leaf.start()
    world.advance(20)
    assert 1 == root.asked_lake
    assert [1, 3] == arrived(root), "the lake has the other one"
    assert 0 == leaf.core.counters.spool_records
    root.crash()
    root.start()
    root.order(told)
    world.advance(20)
    assert 1 == root.asked_lake, "it knows"


def test_a_lake_that_does_not_answer_is_asked_again_at_the_next_start() -> None:
    world, root, _ = drained()
    told, root.lake = damage(root, 2), LakeUnread("not mounted")
    for asked in (1, 2):
        before = root.asked_lake
        root.start()
        root.order(told)
        world.advance(1)
        assert root.asked_lake > before, asked
        root.crash()


def test_a_root_without_a_lake_asks_nobody() -> None:
    world = World()
    root, leaf = world.root(), world.sensor("leaf")
    leaf.make()
    world.advance(2)
    root.order(AnnounceDamage(1, 2, ()))
    leaf.make()
    world.advance(2)
    assert 0 == root.asked_lake
    assert [1, 2] == arrived(root)
    assert all(isinstance(record, StreamRecord) for record in root.samples())
