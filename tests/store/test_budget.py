"""A store refuses writes of its own above its budget, and keeps what others have taken (FLD-032, STO-005)."""

import pytest

from tests.store.rig import DELETE, Node, change
from weft.cores.kit.refusals import Refusal
from weft.cores.store.messages import LimitExceeded


def small(entries: int) -> Node:
    """With room for so many bytes of entries."""
    node = Node("a")
    node.context.budget.give(entries * 5 // 4 + 1)
    return node


def refused(node: Node, path: str, value: object) -> str:
    before = node.context.tick
    with pytest.raises(Refusal) as error:
        node.write(path, value)
    assert before == node.context.tick
    return error.value.code


@pytest.mark.proves("FLD-032")
def test_a_write_beyond_the_memory_is_refused_as_storage_full_and_takes_no_tick() -> None:
    node = small(2 * 903)
    node.write("p", "x")
    node.write("q", "x")
    assert 2 * 903 == node.tree.cost
    assert "storage-full" == refused(node, "r", "x")
    assert "storage-full" == refused(node, "p", "xx")
    assert {"entries": 2} == dict(node.context.budget.refused)


@pytest.mark.proves("FLD-032")
def test_equal_and_shorter_values_and_deletions_are_always_taken_and_make_room() -> None:
    node = small(2 * 910)
    node.write("p", "x" * 8)
    node.write("q", "x" * 8)
    node.write("p", "y" * 8)
    node.write("p", "y")
    node.write("q", DELETE)
    assert 903 + 901 == node.tree.cost
    assert "storage-full" == refused(node, "r", "x")
    node.write("q", "x" * 8)


@pytest.mark.proves("FLD-032", "STO-005")
def test_what_others_have_taken_is_kept_above_the_budget_and_it_is_said_once() -> None:
    node = small(903)
    assert ["first"] * 3 == node.hear(*(change(f"b:{tick}", 10 + tick, f"p{tick}", "x") for tick in (1, 2, 3)))
    node.turn()
    assert [LimitExceeded("memory", 903)] == [event for event in node.told if isinstance(event, LimitExceeded)]
    assert "x" == node.value("p3")
    assert "storage-full" == refused(node, "own", "x")


@pytest.mark.proves("FLD-032")
def test_a_restart_counts_the_same_bytes() -> None:
    node = Node("a")
    node.write("p", "x" * 100)
    node.write("q.r", 1)
    node.write("q.r", DELETE)
    node.turn()
    assert node.tree.cost == node.again().tree.cost == 900 + 1 + 101 + 1 + 900 + 2


@pytest.mark.proves("FLD-032")
def test_remembered_conflicts_make_room_for_new_ones() -> None:
    node = Node("a")
    node.context.budget.give(20 * 2 * 1_204)
    for number in range(5):
        node.hear(change(f"b:{number + 1}", 30, f"p{number}", 1), change(f"c:{number + 1}", 30, f"p{number}", 2))
    assert (5, 1) == (node.replica.conflicts.last_number, min(1, len(node.replica.conflicts)))
    assert node.replica.conflicts.cost <= 2 * 1_204
