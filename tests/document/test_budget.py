"""A session takes no operation above its node's budget, own or not, and says so (FLD-032, GSP-014)."""

import pytest

from tests.document.logs import Desk, Node, run
from tests.document.rig import A, B, settings
from weft.base.budget import Budget
from weft.cores.document.core import Documents
from weft.cores.document.log import cost_of
from weft.cores.document.messages import LogFull
from weft.cores.kit.refusals import Refusal


def test_an_operation_costs_its_body_three_times_its_tags_and_its_places() -> None:
    assert 1_500 + 3 * 8 + 400 * 2 == cost_of(b"<a>x</a>")


@pytest.mark.proves("FLD-032")
def test_operations_of_others_beyond_the_memory_are_full_and_told_once() -> None:
    desk = Desk()
    first, second, third = run(B, 1, 3)
    room = Budget().part("log", 100, lambda: desk.log.bytes, cap=cost_of(first) + 1)
    desk.log.share(room, desk.log._holding.room)
    assert ["new", "new", "full", "full"] == desk.take(B, first, second, third, third)
    assert [LogFull("", "memory")] == [event for event in desk.told() if isinstance(event, LogFull)]
    assert desk.log.refuses(B)
    assert cost_of(first) + cost_of(second) == desk.log.bytes


@pytest.mark.proves("FLD-032")
def test_what_was_full_is_taken_when_there_is_room() -> None:
    desk = Desk()
    room = Budget().part("log", 100, lambda: desk.log.bytes, cap=0)
    desk.log.share(room, desk.log._holding.room)
    assert ["full"] == desk.take(B, *run(B, 1, 1))
    room.bytes_max = 10_000
    assert (["new"], False) == (desk.take(B, *run(B, 1, 1)), desk.log.refuses(B))


@pytest.mark.proves("FLD-032")
def test_an_own_entry_beyond_the_memory_is_refused_as_log_full_and_not_kept() -> None:
    node = Node()
    node.issue()
    node.log.room.bytes_max = node.log.bytes
    with pytest.raises(Refusal) as refused:
        node.issue()
    assert ("log-full", 1) == (refused.value.code, node.log.count)


@pytest.mark.proves("FLD-032")
def test_all_sessions_of_a_node_share_one_budget() -> None:
    documents = Documents([settings(A, name="one"), settings(B, name="two")])
    documents.budget.give(4_000)
    logs = [session.log for session in documents.sessions.values()]
    logs[0].bytes = 3_000
    assert [True, True] == [log.is_full for log in logs]
    assert {"queued": 400, "log": 3_000, "held": 400} == {
        name: part.full_max for name, part in documents.budget.parts.items()
    }
