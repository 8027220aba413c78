"""Several writes of a client at once: in one Persist, all or none."""

from typing import Any

import pytest
from msgspec import UNSET, Raw

from tests.store.desk import Desk, Visitor
from tests.store.rig import DELETE
from weft.base.effects import Persist, Send
from weft.wire.store.clients import NO_VALUE, Links, Op
from weft.wire.store.pack import pack
from weft.wire.store.path import parse


def ready() -> tuple[Desk, Visitor]:
    """A founded node and a client."""
    desk = Desk("n1")
    desk.node.write(":", "root")
    return desk, desk.client()


def op(path: str, value: Any = DELETE, **how: Any) -> Op:
    """One write of a batch."""
    return Op(path=parse(path), value=NO_VALUE if value is DELETE else Raw(pack(value)), **how)


def test_a_batch_is_one_persist_and_each_write_has_its_own_tick() -> None:
    desk, client = ready()
    client.ask("set_value", path="old", value=1)
    client.ask("set_value", path="same", value={"x": 1, "y": 2})
    desk.turns.clear()
    first = desk.node.context.tick
    ops = [op("a", 1), op("b.c", None), op("old"), op("same", {"y": 2, "x": 1}, idem=True), op("never")]
    answer = client.ask("batch", ops=ops, nchain=1)
    assert answer.results is not UNSET
    assert [(True, first + 1), (True, first + 2), (True, first + 3), (False, first), (False, None)] == [
        (told["changed"], told["chain"]["tick"] if told["chain"] else None) for told in answer.results
    ]
    persisted = [len(effect.records) for turn in desk.turns for effect in turn if isinstance(effect, Persist)]
    assert [3] == persisted
    kinds = [type(effect) for turn in desk.turns for effect in turn if isinstance(effect, Persist | Send)]
    assert Persist is kinds[0], "nobody is told before it is durable"
    assert [1, None] == [desk.node.value("a"), desk.node.value("b.c")]


@pytest.mark.parametrize(
    ("ops", "code"),
    [
        ([], "bad-request"),
        ([op("x", 1), op("x", 2)], "bad-request"),
        ([op("x", 1), op("taken", 2, chain=None)], "exists"),
        ([op("x", 1), op("taken", 2, chain=Links("n9", 1))], "chain-mismatch"),
        ([op("x", 1), op("taken", 2, prev=Raw(pack(7)))], "value-mismatch"),
        ([op("x", 1), op("y", "x" * 70_000)], "too-large"),
        ([op("x", 1), Op(value=Raw(pack(1)))], "bad-request"),
        ([op("x", 1), Op(path=("a", None), value=Raw(pack(1)))], "bad-path"),
        ([op(f"x{number}", 1) for number in range(1_001)], "bad-request"),
    ],
)
def test_a_batch_is_done_whole_or_not_at_all(ops: list[Op], code: str) -> None:
    desk, client = ready()
    client.ask("set_value", path="taken", value=1)
    before = desk.node.context.tick
    assert code == client.ask("batch", ops=ops).etype
    assert (before, None) == (desk.node.context.tick, desk.node.tree.get(("x",)))


def test_a_batch_for_which_there_is_no_room_writes_nothing() -> None:
    desk, client = ready()
    desk.node.context.budget.give(1_200_000)
    before = desk.node.context.tick
    ops = [op(f"x{number}", "x" * 1_000) for number in range(600)]
    assert "storage-full" == client.ask("batch", ops=ops).etype
    assert before == desk.node.context.tick
    assert client.ask("batch", ops=ops[:10]).results is not UNSET


def test_a_batch_that_has_room_only_when_its_last_write_is_done_writes_nothing() -> None:
    desk, client = ready()
    client.ask("set_value", path="old", value="x" * 1_000)
    desk.node.context.budget.give((desk.node.tree.cost + 950) * 5 // 4 + 1)
    before = desk.node.context.tick
    ops = [op("a", 1), op("b", 1), op("old", 1)]
    assert "storage-full" == client.ask("batch", ops=ops).etype
    assert (before, None) == (desk.node.context.tick, desk.node.tree.get(("a",)))
    assert client.ask("batch", ops=[op("a", 1), op("old", 1)]).results is not UNSET


@pytest.mark.parametrize("why", ["is_full", "read_only"])
def test_a_batch_that_was_written_already_is_answered_where_nothing_can_be_written(why: str) -> None:
    desk, client = ready()
    ops = [op("a", 1, idem=True), op("b", 2, idem=True)]
    client.ask("batch", ops=ops)
    setattr(desk.node.context, why, "dropped" if why == "read_only" else True)
    answer = client.ask("batch", ops=ops)
    assert answer.results is not UNSET
    assert [False, False] == [result["changed"] for result in answer.results]
    assert client.ask("batch", ops=[*ops, op("c", 3)]).etype in ("storage-full", "read-only")
