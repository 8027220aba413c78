"""Changes of the store on their way up: numbered by names without an era, and foreign ones told by several nodes."""

from typing import Any

import pytest

from tests.carrier.rig import WALL, Machine, World
from weft.base.records import Stream, StreamRecord
from weft.wire.carried import is_mail


def change(origin: str, tick: int, told_at: int = WALL, **more: Any) -> StreamRecord:
    """A change as a node journals it: its own, or one of a foreign server that it has heard."""
    attributes = {
        "tock": 100 + tick, "path": b"\xa1s\xa1k", "chain": [[origin, tick]], "cut": False, "deleted": False,
        "by": "", "before": None, "at": None,
    } | more  # fmt: skip
    return StreamRecord(Stream.STORE, origin, None, tick, told_at, told_at, "s.k", b"\xcd\x01\x02", attributes)


def changes(machine: Machine) -> list[tuple[str, int]]:
    """Who changed what, as the journal holds it."""
    return [
        (record.origin, record.sequence)
        for record in machine.archive()
        if isinstance(record, StreamRecord) and not is_mail(record) and record.stream == Stream.STORE
    ]


@pytest.mark.proves("STO-030", "CHN-036")
def test_a_change_arrives_at_the_root_as_it_was_written() -> None:
    world = World()
    root, _, sensor = world.root(), world.collector("between"), world.sensor("leaf", "between")
    world.advance(1)
    said = change("leaf", 1, by="joe", before=["b", 7], at=1.5)
    sensor.write(said)
    world.advance(2)
    (found,) = [record for record in root.samples() if record.stream == Stream.STORE]
    assert (said.source, said.sequence, said.at, said.key, said.payload, said.attributes) == (
        (found.source, found.sequence, found.at, found.key, found.payload, found.attributes)
    )


@pytest.mark.proves("CHN-033")
def test_what_several_nodes_tell_of_one_foreign_change_is_kept_once_at_the_root() -> None:
    world = World()
    root, one, two = world.root(), world.sensor("one"), world.sensor("two")
    world.advance(1)
    one.write(change("x", 4, told_at=WALL + 5), change("x", 9), change("one", 1))
    world.advance(2)
    two.write(change("two", 1), change("x", 9, told_at=WALL + 7, cut=True), change("x", 2), change("y", 4))
    world.advance(2)
    assert [("x", 4), ("x", 9), ("one", 1), ("two", 1), ("x", 2), ("y", 4)] == changes(root)


def test_numbers_without_an_era_survive_a_restart_of_everybody() -> None:
    world = World()
    root, leaf = world.root(), world.sensor("leaf")
    world.advance(1)
    leaf.write(change("leaf", 1), change("x", 3))
    world.advance(2)
    for machine in (leaf, root):
        machine.condense()
        machine.crash()
        machine.start()
    world.advance(5)
    leaf.write(change("x", 3), change("leaf", 2), change("x", 5))
    world.advance(5)
    assert [("leaf", 1), ("x", 3), ("leaf", 2), ("x", 5)] == changes(root)


def test_what_the_root_has_heard_itself_is_not_kept_again() -> None:
    world = World()
    root, leaf = world.root(), world.sensor("leaf")
    world.advance(1)
    root.write(change("x", 3), change("root", 1))
    leaf.write(change("x", 3), change("x", 4))
    world.advance(2)
    assert [("x", 3), ("root", 1), ("x", 4)] == changes(root)
