"""A collector that is the root after its next start, and a root that is none: nothing is lost, nothing kept twice."""

from collections.abc import Callable

import msgspec
import pytest

from tests.carrier.rig import Machine, Root, World
from weft.base.records import CoreRecord, Stream
from weft.base.vectors import VersionVector
from weft.cores.carrier.memory import Rooted, from_record
from weft.cores.carrier.messages import Drained, InLake, LakeUnknown, LakeUnread


class Heir(Root):
    """Forgets as a collector does as long as it is one, and only behind a snapshot, as a journal does."""

    written_lsn = 0
    """Where its journal ended when it became the root again, and"""
    written = InLake(())
    """what its lake held then."""

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


def come_home(lake: Callable[[InLake], InLake | LakeUnread | None] = lambda known: known) -> Heir:
    """A root drains, is a collector for a while, and the root again, which takes what comes home.

    Both as it goes on, and after a crash. `lake`: what it answers the new root.
    """
    world, root, heir, leaf = fleet()
    leaf.make(5)
    world.advance(5)
    known = lake_of(root)
    become(heir, "root", epoch=1)
    root.__class__ = Machine
    become(root, "collector", "heir")
    world.advance(20)
    assert 5 == len(numbers(heir)), "what was not safe in all streams went up"
    end = root.disk[-1][0]
    root.__class__ = Heir
    assert isinstance(root, Heir)
    root.written_lsn, root.written = end, known
    root.settings = msgspec.structs.replace(root.settings, has_lake=True)
    root.lake = lake(known)
    become(root, "root", epoch=2)
    heir.__class__ = Machine  # type: ignore[assignment]  # a collector from here on
    become(heir, "collector", "root")
    world.advance(10)
    return root


def taken(root: Heir) -> int:
    """How many samples it has taken since it is the root again."""
    return sum(lsn > root.written_lsn and record in root.samples() for lsn, record in root.disk)


def restart(root: Machine, seconds: float) -> None:
    root.crash()
    root.start()
    root.world.advance(seconds)


@pytest.mark.proves("LAK-007", part="what comes home to a root that has it in its lake is not taken again")
def test_what_a_root_drained_before_is_not_taken_again_when_it_comes_home() -> None:
    root = come_home()
    first = root.core.parent.seen
    restart(root, 0)
    assert first == root.core.parent.seen, "known after a crash, too"
    root.world.advance(20)
    assert (0, 1, []) == (taken(root), root.asked_lake, root.events(LakeUnknown))


def test_with_another_lake_a_root_takes_again_what_comes_home() -> None:
    assert taken(come_home(lambda _: InLake(()))) > 0


@pytest.mark.proves("LAK-007", part="nothing comes home to a new root before its lake has said what it holds")
@pytest.mark.parametrize("silent", [None, LakeUnread("not mounted")], ids=["late", "unread"])
def test_a_new_root_takes_nothing_before_its_lake_has_answered(silent: LakeUnread | None) -> None:
    root = come_home(lambda _: silent)
    world, before = root.world, len(root.samples())
    leaf = world.machines["leaf"]
    leaf.make()
    world.advance(10)
    assert (before, True) == (len(root.samples()), root.core.parent.is_closed)
    root.lake = root.written
    if silent is None:
        root.order(root.lake)
    world.advance(20)
    assert 1 == taken(root), "what is new"
    assert [] == root.events(LakeUnknown)
    restart(root, 20)
    assert 1 == taken(root)


@pytest.mark.proves("LAK-007", part="a root whose lake cannot be read goes on after 30 s, says so, and asks again")
@pytest.mark.parametrize("silent", [None, LakeUnread("not mounted")], ids=["late", "unread"])
def test_a_lake_that_never_answers_holds_nothing_up_for_ever_and_is_asked_in_the_next_start(
    silent: LakeUnread | None,
) -> None:
    root = come_home(lambda _: silent)
    root.world.advance(30)
    assert not root.core.parent.is_closed
    why = "it has not answered" if silent is None else "not mounted"
    assert ([LakeUnknown(is_unknown=True, detail=why)], why) == (root.events(LakeUnknown), root.core.take_over.trouble)
    assert taken(root) > 0, "kept twice, as it says"
    asked = root.asked_lake
    assert 1 <= asked <= 7
    assert (asked if silent else 0) == root.core.counters.lake_unread
    held = numbers(root)
    root.lake = lake_of(root)
    restart(root, 20)
    assert (asked + 1, held, "") == (root.asked_lake, numbers(root), root.core.take_over.trouble)
    restart(root, 20)
    assert asked + 1 == root.asked_lake, "known for good"


@pytest.mark.proves("LAK-007", part="a lake that is back after it was given up is learned")
def test_a_lake_that_is_back_is_learned_without_a_start() -> None:
    root = come_home(lambda _: LakeUnread("not mounted"))
    root.world.advance(60)
    root.lake = lake_of(root)
    root.world.advance(80)
    assert [True, False] == [event.is_unknown for event in root.events(LakeUnknown)]
    first, asked = root.core.parent.seen, root.asked_lake
    restart(root, 20)
    assert (first, asked, "") == (root.core.parent.seen, root.asked_lake, root.core.take_over.trouble)


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    world, root, *_ = fleet()
    root.make()
    world.advance(1)
    first = len(root.disk)
    root.order(lake_of(world.machines["heir"]))
    assert first == len(root.disk)
