"""A root that calls safe only what is in the lake: nodes below keep everything else (LAK-006)."""

import pytest

from tests.carrier.rig import Machine, World
from weft.base.records import StreamRecord
from weft.cores.carrier.messages import Drained
from weft.cores.carrier.parent import Parent


def forgotten(root: Machine, leaf: Machine) -> list[StreamRecord]:
    """What the leaf has let go."""
    kept = {(record.era, record.sequence) for record in leaf.samples()}
    return [record for record in root.samples() if (record.era, record.sequence) not in kept]


def drain(root: Machine, records: int) -> None:
    """So many of the samples that stand in the root's journal are in segments."""
    upto = [lsn for lsn, record in root.disk if record in root.samples()][records - 1]
    root.order(Drained(upto))


def life() -> None:
    """Sensor, collector and root; the root drains some, dies, drains the rest."""
    world = World()
    root = world.root(is_drained_first=True)
    world.collector("c")
    leaf = world.sensor("leaf", "c")
    for _ in range(6):
        leaf.make()
        world.advance(1)
    assert 6 == len(root.samples())
    assert [] == forgotten(root, leaf)
    drain(root, 3)
    world.advance(3)
    assert 3 == len(forgotten(root, leaf))
    root.crash()
    root.start()
    world.advance(10)
    assert 3 == len(forgotten(root, leaf)), "a restart makes nothing safe"
    drain(root, 6)
    world.advance(10)
    assert 0 == leaf.core.counters.spool_records
    assert [1, 2, 3, 4, 5, 6] == sorted(record.sequence for record in root.samples())


@pytest.mark.proves("LAK-006")
def test_nodes_below_forget_what_is_drained_and_nothing_else() -> None:
    life()


def test_a_root_that_calls_safe_what_it_has_on_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parent, "_safe", lambda _, link: link.upto)
    with pytest.raises(AssertionError):
        life()


@pytest.mark.proves("LAK-006")
def test_usually_what_is_on_the_disk_of_the_root_is_safe() -> None:
    world = World()
    root = world.root()
    leaf = world.sensor("leaf", "root")
    leaf.make()
    world.advance(3)
    assert 1 == len(root.samples())
    assert 0 == leaf.core.counters.spool_records
