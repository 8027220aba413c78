"""What is durable and answered, and did not leave any more: beside real MoaT-KV servers it is said again (FLD-021)."""

import msgpack
import pytest

from tests.store.fleet import Fleet
from tests.store.foreign import GONE
from tests.store.rig import Node
from weft.base.ranges import RangeSet
from weft.cores.store import joining, limits
from weft.cores.store.states import State
from weft.cores.store.unsaid import Unsaid
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info


def pair(seed: int = 0, *others: str) -> Fleet:
    """A real server founded the store; w is a member of it."""
    fleet = Fleet(["w", *others], ["n"], seed=seed)
    fleet["n"].found("root")
    fleet.start_all()
    fleet.run(25)
    for number in range(3):
        fleet.write("w", f"a.{number}", number)
    fleet.run(2)
    return fleet


def killed(fleet: Fleet, *left_behind: str) -> None:
    """w is killed between the disk and the network, and comes back."""
    fleet.net.fail_at_next_write("w", "after")
    fleet.write("w", *left_behind)
    assert not fleet.net["w"].is_up
    fleet.run(3)
    fleet.start("w")


def value(fleet: Fleet, name: str, path: str) -> object:
    held = fleet.net[name].get(path)
    return GONE if held is None else msgpack.unpackb(held)


@pytest.mark.proves("FLD-021")
@pytest.mark.parametrize("seed", range(5))
def test_acknowledged_writes_were_dropped_as_stale_after_a_kill_beside_a_real_server(seed: int) -> None:
    fleet = pair(seed)
    killed(fleet, "last", 7)  # type: ignore[arg-type]  # its value
    fleet.run(30)
    assert (7, 7) == (value(fleet, "w", "last"), fleet["n"].value("last"))
    assert State.MEMBER is fleet.net["w"].state
    assert [0, 1, 2] == [fleet["n"].value(f"a.{number}") for number in range(3)]
    assert fleet.are_equal()


def test_the_writes_are_lost_again_without_any_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unsaid, "begin", lambda self: None)
    monkeypatch.setattr(joining, "_heard_of", lambda ticks, said: ticks)
    with pytest.raises(AssertionError):
        test_acknowledged_writes_were_dropped_as_stale_after_a_kill_beside_a_real_server(0)


@pytest.mark.proves("FLD-021")
@pytest.mark.parametrize("seed", range(3))
def test_the_guard_alone_holds_beside_a_server_that_calls_all_that_it_does_not_know_deleted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "_heard_of", lambda ticks, said: ticks)
    test_acknowledged_writes_were_dropped_as_stale_after_a_kill_beside_a_real_server(seed)


@pytest.mark.proves("FLD-021")
def test_a_deletion_that_did_not_leave_is_told_after_the_restart() -> None:
    fleet = pair()
    fleet.net.fail_at_next_write("w", "after")
    fleet.write("w", "a.1")
    fleet.start("w")
    fleet.run(30)
    assert (GONE, GONE) == (value(fleet, "w", "a.1"), fleet["n"].value("a.1"))
    assert fleet.are_equal()


@pytest.mark.proves("FLD-021")
def test_what_did_not_leave_is_the_first_word_of_the_next_start() -> None:
    fleet = pair()
    began = len(fleet.heard)
    killed(fleet, "last", 7)  # type: ignore[arg-type]  # its value
    said = [(topic, what) for _, who, topic, what in fleet.heard[began:] if who == "w"]
    first_other = next(place for place, (topic, _) in enumerate(said) if topic != "update")
    assert 7 in [what.get("value") for _, what in said[:first_other]]


@pytest.mark.proves("FLD-021")
@pytest.mark.parametrize("how", ["known", "deleted"])
def test_no_peer_settles_an_own_change_that_did_not_leave(how: str) -> None:
    fleet = pair()
    fleet.net.cut({"w"}, {"n"})
    fleet.write("w", "alone", 7)
    node = fleet.net["w"]
    tick = node.store.context.tick
    ticks = {"w": RangeSet([(1, tick)])}
    said = (
        Info(node="n", tick=1, tock=9, known=ticks) if how == "known" else Info(node="n", tick=1, tock=9, deleted=ticks)
    )
    node.store.recovery.hear_info(said, "mqtt", node.now)
    assert 7 == value(fleet, "w", "alone")
    assert RangeSet() == node.store.replica.book.deleted("w") & RangeSet([(tick, tick)])


def test_what_came_back_from_the_broker_is_not_said_again_after_a_restart() -> None:
    fleet = pair()
    for number in range(600):
        fleet.write("w", f"many.{number}", number)
        fleet.run(0.01)
    fleet.run(5)
    began = len(fleet.heard)
    fleet.net.kill("w")
    fleet.start("w")
    fleet.run(0.1)
    again = [what for _, who, topic, what in fleet.heard[began:] if (who, topic) == ("w", "update")]
    assert 0 < len(again) <= 256


def test_how_far_the_others_have_received_is_never_kept_as_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEARD_KEPT_EVERY", 3)
    node = Node("w", dialects=("moat",))
    for tick in range(1, 9):
        node.write(f"p{tick}", tick)
        node.turn()
        said_again = node.again().replica.unsaid.pending()["w"]
        assert tick in said_again
        assert said_again.count <= 3
        node.replica.unsaid.heard(tick)


def test_a_change_of_another_node_that_a_real_server_never_heard_of_is_not_dropped_either() -> None:
    fleet = pair(3, "v")
    fleet.net.cut({"w", "v"}, {"n"})
    fleet.write("v", "unheard", 5)
    fleet.run(1)
    assert 5 == value(fleet, "w", "unheard")
    fleet.net.kill("v")
    fleet.net.kill("w")
    fleet.net.heal()
    fleet.start("w")
    fleet.run(40)
    assert (5, 5) == (value(fleet, "w", "unheard"), fleet["n"].value("unheard"))


def test_a_real_server_without_changes_of_its_own_says_null_for_its_tick() -> None:
    payload = msgpack.packb({"missing": {"w": [3, [5, 9]]}, "tock": 12, "node": "n2", "tick": None})
    [info] = codec.decode("info", payload)
    assert isinstance(info, Info)
    assert ("n2", 0, 12, {"w": RangeSet([(3, 3), (5, 8)])}) == (info.node, info.tick, info.tock, info.missing)


def test_a_server_whose_tick_is_null_is_told_what_it_misses() -> None:
    fleet = pair()
    began = len(fleet.heard)
    asked = msgpack.packb({"missing": {"w": [[1, 4]]}, "tock": 900, "node": "n2", "tick": None})
    fleet.net.publish("n2", "info", asked)
    fleet.run(10)
    told = [what["path"] for _, who, topic, what in fleet.heard[began:] if (who, topic) == ("w", "update")]
    assert len(told) >= 2
    assert 0 == fleet.net["w"].store.context.counters["malformed", "bad-field"]
