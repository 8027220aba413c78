"""A catalog takes no more than its memory holds; who takes no more than before is always obeyed (FLD-032, CAT-080)."""

from typing import Any

import pytest

from tests.catalog.rig import Broker
from weft.cores.catalog.records import cost_of
from weft.cores.catalog.ring import Ring
from weft.cores.catalog.states import On

ONE = "10.0.0.1"


def small(records: int) -> Broker:
    """With room for so many bytes of records."""
    broker = Broker()
    broker.core.budget.give(2 * records)
    return broker


def record(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "id": "t1", "port": 9, **more}


def test_a_record_costs_its_copies_its_values_and_what_an_instance_takes() -> None:
    assert 2_000 + 4 * 20 + 64 * 2 == cost_of({"id": "t1", "port": 9})
    assert 2_000 + 4 * 13 + 64 * 5 == cost_of({"x": [[], []]})


@pytest.mark.proves("FLD-032", "CAT-080")
def test_a_registration_beyond_the_memory_is_denied_as_limit_counted_and_not_kept() -> None:
    broker = small(2 * 2_208)
    peer = broker.req(ONE)
    assert [b"OwO", b"OwO"] == [peer.commands(b"UwU", record(name))[0] for name in "ab"]
    kept = len(broker.journal)
    assert "limit" == peer.code(b"UwU", record("c"))
    assert (kept, 2) == (len(broker.journal), len(broker.core.book))
    assert {"records": 1} == dict(broker.core.budget.refused)
    assert 2 * 2_208 == broker.core.book.bytes


@pytest.mark.proves("FLD-032")
def test_what_is_registered_already_may_say_the_same_less_and_be_removed_and_room_comes_back() -> None:
    broker = small(2 * 2_208)
    peer = broker.req(ONE)
    for name in "ab":
        peer.say(b"UwU", record(name))
    assert [b"OwO"] == peer.commands(b"UwU", record("a"))
    assert "limit" == peer.code(b"UoU", record("a", function="x" * 100))
    assert [b"OwO"] == peer.commands(b"UwU", {"name": "a", "id": "t1"})
    broker.move("b", On.LEFT, On.REAPED)
    assert [b"OwO"] == peer.commands(b"UwU", record("c"))


@pytest.mark.proves("SEC-014")
def test_near_the_limit_of_the_process_nothing_changes_and_who_says_the_same_again_is_approved() -> None:
    broker = small(1 << 20)
    peer = broker.req(ONE)
    peer.say(b"UwU", record("a", function="x"))
    broker.core.budget.freeze(is_frozen=True)
    assert ["limit", "limit"] == [peer.code(b"UoU", record("a", function="y")), peer.code(b"UwU", record("b"))]
    assert [b"OwO"] == peer.commands(b"UwU", record("a", function="x"))


@pytest.mark.proves("FLD-032")
def test_a_restart_counts_what_it_takes_back() -> None:
    broker = small(10_000)
    broker.req(ONE).say(b"UwU", record("a"))
    assert 2_208 == broker.restart().core.book.bytes


@pytest.mark.proves("FLD-032")
def test_changes_that_can_be_asked_for_again_make_room_for_new_ones() -> None:
    ring = Ring(100)
    ring.room.bytes_max = 3 * 310
    gone = [found for index in range(1, 6) for found in ring.add(index, "a", b"x" * 10)]
    assert ([(1, "a"), (2, "a")], 3, 930) == (gone, len(ring), ring.cost)


@pytest.mark.proves("FLD-032")
def test_last_values_and_logs_stay_within_their_parts() -> None:
    broker = Broker()
    broker.core.budget.give(100_000)
    for number in range(100):
        broker.core.values.hear(("a", "t1"), (b"t/%d" % number, b"x" * 1_000), broker.now)
    assert 20_000 // 1_605 == len(broker.core.values)
    assert broker.core.budget.parts["values"].held() <= 20_000
