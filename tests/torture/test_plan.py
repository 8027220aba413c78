"""A plan is drawn from its seed alone, written, read again, and refused where it says what cannot be."""

from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.torture import plan
from weft.torture.plan import Event, Plan

ALL = tuple(plan.KINDS)


def test_a_seed_draws_the_same_plan_again_and_another_seed_another() -> None:
    assert plan.draw("7", 300.0, ALL) == plan.draw("7", 300.0, ALL)
    assert plan.draw("7", 300.0, ALL) != plan.draw("8", 300.0, ALL)


def test_five_minutes_play_every_kind_of_fault_and_hit_nobody_else() -> None:
    drawn = plan.draw("7", 300.0, ALL)
    assert set(ALL) == {event.kind for event in drawn.events}
    assert all(3.0 <= event.at < 300.0 for event in drawn.events)
    assert {name for event in drawn.events for name in event.who} <= {*plan.NODES, "pipeline"}
    assert [] == [event for event in drawn.events if event.kind not in ("kill", "pause") and "pipeline" in event.who]


def test_both_collectors_lose_their_keys_at_once_once_in_a_long_run_and_nothing_else_is_drawn_otherwise() -> None:
    kinds = plan.possible(has_room=True, is_closed=True)
    for seed in "123456789":
        drawn, earlier = plan.draw(seed, 1_200.0, kinds).events, plan.draw(seed, 1_199.9, kinds).events
        (both,) = [place for place, event in enumerate(drawn) if event.kind == "revoke" and len(event.who) == 2]
        assert plan.COLLECTORS == drawn[both].who
        assert [] == [event for event in earlier if event.kind == "revoke" and len(event.who) == 2]
        assert earlier[:both] == drawn[:both]
        assert earlier[both + 1 :] == drawn[both + 1 : len(earlier)]
    without = plan.draw("7", 3_600.0, plan.possible(has_room=True, is_closed=False))
    assert "revoke" not in {event.kind for event in without.events}


def test_only_a_room_without_keys_moves_machines_and_only_sensors_move() -> None:
    moved = [event.who for event in plan.draw("7", 900.0, ("move",)).events]
    assert set(plan.SENSORS) == {name for names in moved for name in names}
    assert ["move"] == [kind for kind in plan.possible(has_room=True, is_closed=False) if kind == "move"]
    assert "move" not in plan.possible(has_room=False, is_closed=False)
    assert "move" not in plan.possible(has_room=True, is_closed=True)


def test_only_machines_without_keys_lose_their_disks_and_the_root_by_its_file_keeps_its_own() -> None:
    for has_room in (True, False):
        assert {"lost-disk", "old-disk"} <= set(plan.possible(has_room=has_room, is_closed=False))
        assert {"lost-disk", "old-disk"} & set(plan.possible(has_room=has_room, is_closed=True)) == set()
    lost = [event.who for event in plan.draw("7", 900.0, ("lost-disk", "old-disk")).events]
    assert set(plan.BELOW) == {name for names in lost for name in names}
    assert {1} == set(map(len, lost))


def test_without_a_pipeline_it_is_hit_by_nothing() -> None:
    drawn = plan.draw("7", 3_000.0, ALL, has_pipeline=False)
    assert [] == [event for event in drawn.events if "pipeline" in event.who]


def test_half_of_the_nodes_are_older_where_there_is_an_older_version() -> None:
    assert 4 == len(plan.draw("7", 10.0, ALL).older)


def test_what_is_written_is_read_and_may_be_cut_down_by_hand() -> None:
    drawn = plan.draw("7", 60.0, ALL)
    assert drawn == plan.read(plan.write(drawn))
    by_hand = b'{"seed": "x", "span": 9, "events": [{"at": 5, "kind": "kill", "who": ["root"]}, {"at": 1, "kind": "restart-all"}]}'
    assert Plan("x", 9, (Event(1, "restart-all"), Event(5, "kill", ("root",)))) == plan.read(by_hand)


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"seed": "x", "span": 9, "events": [{"at": 5, "kind": "flood", "who": ["root"]}]}',
        b'{"seed": "x", "span": 9, "events": [{"at": 5, "kind": "kill", "who": ["nobody"]}]}',
        b'{"seed": "x", "span": 9, "events": [{"at": 5, "kind": "kill"}]}',
        b'{"seed": "x", "span": 9, "events": [{"at": -1, "kind": "restart-all"}]}',
        b'{"seed": "x", "span": 0, "events": []}',
    ],
)
def test_what_is_no_plan_is_refused(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        plan.read(text)
    assert "usage" == refused.value.code
