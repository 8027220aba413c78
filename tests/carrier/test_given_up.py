"""What a collector gives up, its children keep until the loss is known at the root."""

import pytest

from tests.carrier.rig import Machine, World, joined, spans


def dropped_while_cut(*, restarts: bool = False) -> tuple[World, Machine, Machine, Machine]:
    """Sensor `a` below collector `b`; `b` is cut off from the root, and gives up what it holds of `a`."""
    world = World()
    root = world.root("root")
    b = world.collector("b", "root")
    a = world.sensor("a", "b")
    world.advance(2)
    world.cut("b")
    for _ in range(8):
        a.make()
        world.advance(0.1)
    world.advance(1)
    b.drop_oldest(share=1)
    world.advance(2)
    if restarts:
        b.crash()
        b.start()
        world.advance(2)
    return world, root, b, a


@pytest.mark.proves("CHN-032", "MEA-025")
@pytest.mark.parametrize("restarts", [False, True])
def test_children_let_go_what_was_given_up_before_the_root_knew_of_the_loss(restarts: bool) -> None:
    world, root, b, a = dropped_while_cut(restarts=restarts)
    assert 0 == a.core.outbox.safe
    b.crash()
    b.disk.clear()  # the announcement goes with the disk
    world.heal("b")
    b.start()
    world.advance(60)
    (arrived,) = [joined(pieces) for pieces in spans(root.samples()).values()]
    assert [(1, 8)] == arrived
    assert [] == root.lost()


@pytest.mark.proves("CHN-032", "MEA-025")
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_given_up_is_safe_when_the_root_knows_of_the_loss(restarts: bool) -> None:
    world, root, _, a = dropped_while_cut(restarts=restarts)
    world.heal("b")
    world.advance(60)
    assert [(1, 8)] == [(record.first, record.last) for record in root.lost()]
    assert a.core.outbox.safe == a.core.outbox.given
