"""A collector that is the root after its next start, and a root that is none: nothing is lost, nothing kept twice."""

import msgspec
import pytest

from tests.carrier.rig import Machine, Root, World
from weft.base.records import CoreRecord, Stream
from weft.base.vectors import VersionVector
from weft.cores.carrier.memory import Rooted, from_record
from weft.cores.carrier.messages import Drained, InLake, ReadVectors


class Heir(Root):
    """Forgets as a collector does as long as it is one, and only behind a snapshot, as a journal does."""

    def _forget(self, upto: int) -> None:
        if self.settings.level != "root":
            Machine._forget(self, upto)


def become(machine: Machine, level: str, parent: str = "", epoch: int = 0) -> None:
    """Start again in another role."""
    machine.crash()
    machine.settings = msgspec.structs.replace(machine.settings, level=level, epoch=epoch)
    machine.parent = parent
    machine.start()


def numbers(*machines: Machine) -> list[tuple[bytes, int, int]]:
    """What they hold, each number as often as it is held."""
    return sorted(
        (record.origin, record.era or 0, number)
        for machine in machines
        for record in machine.samples()
        for number in range(record.sequence, record.last + 1)
    )


def fleet() -> tuple[World, Machine, Heir, Machine]:
    world = World()
    root = world.root()
    heir = world._add(Heir(world, "heir", "collector"), "root")
    assert isinstance(heir, Heir)
    return world, root, heir, world.sensor("leaf", "heir")


@pytest.mark.proves("REC-017", "MEA-027")
def test_a_root_dies_its_heir_takes_over_and_the_dead_one_returns_below() -> None:
    world, root, heir, leaf = fleet()
    made = 0
    for _ in range(6):
        leaf.make()
        heir.make()
        made += 2
        world.advance(1)
    heir.condense()
    drained = root.samples()[:5]
    root.order(Drained(next(lsn for lsn, record in root.disk if record is drained[-1])))
    world.advance(1)
    root.crash()
    leaf.make()
    heir.make()
    world.advance(1)
    become(heir, "root", epoch=1)
    world.advance(10)
    leaf.make()
    world.advance(10)
    root.__class__ = Machine
    become(root, "collector", "heir")
    world.advance(20)
    expected = made + 3 - len(drained)
    held = numbers(heir)
    assert expected == len(held) == len(set(held))
    assert not set(held) & {(r.origin, r.era or 0, r.sequence) for r in drained}
    assert 0 == root.core.counters.refused_above


@pytest.mark.proves("CHN-035")
def test_a_new_root_takes_nothing_before_it_knows_what_it_has() -> None:
    world, root, heir, leaf = fleet()
    root.crash()
    for _ in range(4):
        leaf.make()
        world.advance(1)
    heir.may_fetch = False
    become(heir, "root", epoch=3)
    leaf.crash()
    leaf.start()
    leaf.make()
    world.advance(4)
    assert 4 == len(numbers(heir))
    heir.may_fetch = True
    world.advance(20)
    held = numbers(heir)
    assert 5 == len(held) == len(set(held))
    rooted = [from_record(record) for record in heir.archive() if isinstance(record, CoreRecord)]
    assert [Rooted(3)] == [memory for memory in rooted if isinstance(memory, Rooted)]


@pytest.mark.proves("JRN-042")
def test_a_root_that_starts_again_in_its_epoch_counts_on() -> None:
    world, root, heir, leaf = fleet()
    root.crash()
    leaf.make()
    become(heir, "root", epoch=1)
    world.advance(10)
    leaf.make()
    world.advance(10)
    for is_condensed in (False, True):
        if is_condensed:
            heir.condense()
        before = heir.core.parent.seen
        heir.crash()
        heir.start()
        assert before == heir.core.parent.seen
        assert not heir.core.parent.is_waiting


@pytest.mark.proves("REC-015", "REC-017")
def test_what_a_former_root_took_from_its_new_parent_goes_back_through_it() -> None:
    world, root, heir, leaf = fleet()
    heir.make(3)
    leaf.make(2)
    world.advance(5)
    assert 5 == len(numbers(root))
    assert not heir.samples(), "safe at the root, so forgotten"
    third = world.root("third")
    become(heir, "collector", "third")
    root.__class__ = Machine
    become(root, "collector", "heir")
    world.advance(20)
    held = numbers(third)
    assert 5 == len(held) == len(set(held))


def lake_of(machine: Machine) -> InLake:
    """All samples that stand in its journal now, as its lake would name them."""
    vector = VersionVector()
    for record in machine.samples():
        vector.add(record.source, record.sequence, record.last)
    return InLake(((int(Stream.SAMPLES), vector.encode()),))


def come_home(*, is_told: bool) -> int:
    """A root drains, is a collector for a while, and the root again: how many samples it takes a second time.

    Both as it goes on, and after a crash.
    """
    _, root, heir, leaf = fleet()
    world = root.world
    leaf.make(5)
    world.advance(5)
    lake = lake_of(root)
    become(heir, "root", epoch=1)
    root.__class__ = Machine
    become(root, "collector", "heir")
    world.advance(20)
    assert 5 == len(numbers(heir)), "what was not safe in all streams went up"
    before = root.disk[-1][0]
    root.__class__ = Heir
    become(root, "root", epoch=2)
    world.advance(2)
    if is_told:
        root.order(lake)
    first = root.core.parent.seen
    root.crash()
    root.start()
    assert first == root.core.parent.seen, "known after a crash, too"
    heir.__class__ = Machine  # type: ignore[assignment]  # a collector from here on
    become(heir, "collector", "root")
    world.advance(20)
    return sum(lsn > before and record in root.samples() for lsn, record in root.disk)


@pytest.mark.proves("LAK-007", part="what comes home to a root that has it in its lake is not taken again")
def test_what_a_root_drained_before_is_not_taken_again_when_it_comes_home() -> None:
    assert 0 == come_home(is_told=True)


def test_without_its_lake_a_root_takes_again_what_comes_home() -> None:
    assert come_home(is_told=False) > 0


def test_a_new_root_that_writes_a_lake_asks_what_it_holds() -> None:
    _, root, heir, _ = fleet()
    root.crash()
    heir.settings = msgspec.structs.replace(heir.settings, has_lake=True)
    heir.may_fetch = False
    become(heir, "root", epoch=1)
    heir.world.advance(2)
    assert 1 == [type(work).__name__ for work in heir.orders].count(ReadVectors.__name__)
