"""Who may begin a link when others have one, and what is kept when a link ends."""

import pytest

from tests.carrier.rig import World
from tests.carrier.test_children import A, B, Play, sample
from weft.base.effects import Source
from weft.cores.carrier import limits
from weft.cores.carrier.messages import (
    AssignParent,
    Bye,
    Garbled,
    Hack,
    HoldBack,
    Hop,
    Refuse,
    RolledBack,
    Stop,
    Welcome,
)
from weft.wire.carried import to_item


def test_the_name_of_a_silent_node_is_free_before_anybody_has_looked_for_silence() -> None:
    play = Play()
    play.greet(b"1", id=A)
    play.world.sleep(6)
    assert isinstance(play.greet(b"2", id=B), Welcome)


def test_there_is_a_number_of_children_that_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHILDREN_MAX", 1)
    play = Play()
    play.greet(b"1", id=A, name="a")
    assert Refuse("busy", "1 children are enough") == play.greet(b"2", id=B, name="b")
    assert isinstance(play.greet(b"3", id=A, name="a"), Welcome), "who is here may come again"


def test_who_has_no_parent_says_none() -> None:
    assert Play().greet(b"1").parent is None


def test_a_child_that_had_all_but_its_next_number_acknowledged_has_seen_no_disk_go_back() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(1))
    play.greet(b"2", first=2, next=2)
    assert [] == play.told(RolledBack)
    play.greet(b"3", first=3, next=3)
    assert [(1, 1)] == [(event.behind, event.lost) for event in play.told(RolledBack)]


@pytest.mark.parametrize("end", ["bye", "garbled", "stop"])
def test_what_came_in_the_same_turn_as_the_end_of_a_link_is_kept_and_answered_before_the_goodbye(end: str) -> None:
    play = Play()
    play.greet(b"1")
    machine, now = play.machine, play.world.now
    item, frames = to_item(sample(1), A)
    machine.said.clear()
    machine.core.receive(Hop(7, 1, [item], frames), Source("down", b"1"), now)
    if end == "bye":
        machine.core.receive(Bye("done"), Source("down", b"1"), now)
    else:
        machine.core.command(Garbled("down", b"1", "bad-sum") if end == "garbled" else Stop(), now)
    machine.do()
    assert 1 == len(machine.samples())
    assert [Hack, Bye][: 1 if end == "bye" else 2] == [type(said) for said in machine.said]


def test_children_are_told_once_that_their_parent_is_full() -> None:
    play = Play()
    play.greet(b"1")
    told = []
    for is_full in (True, True, False, False):
        play.machine.said.clear()
        play.machine.order(HoldBack(is_full=is_full))
        told.append(len(play.machine.said))
    assert [1, 0, 1, 0] == told


@pytest.mark.proves("TOP-012")
def test_a_parent_whose_name_its_root_did_not_know_yet_is_named_as_it_says_itself() -> None:
    world = World()
    world.root()
    leaf = world.sensor("leaf", parent="")
    leaf.order(AssignParent("root", ""))
    assert "" == leaf.core.child.parent_name
    world.settle()
    assert "root" == leaf.core.child.parent_name
