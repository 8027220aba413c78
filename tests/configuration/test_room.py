"""When a store of the configuration is full, how long an answer is, and how much of the past a root remembers."""

import pytest

from tests.configuration.rig import World
from tests.configuration.test_root import ask
from weft.cores.configuration import limits
from weft.cores.configuration.messages import ListKeys, OrderRefused, ReadHistory, Written
from weft.cores.configuration.store import Room, Store

A, B = "/CONFIG/web/a", "/CONFIG/web/b"


def test_a_store_with_all_its_keys_takes_another_value_of_one_and_no_further_key() -> None:
    store = Store(Room(keys=1, bytes=999))
    assert store.has_room(A, b"1")
    store.apply(A, 1, b"1", 0)
    assert (True, False) == (store.has_room(A, b"2"), store.has_room(B, b"2"))


def test_a_store_takes_as_many_bytes_as_it_has_room_for() -> None:
    store = Store(Room(keys=9, bytes=28))
    store.apply(A, 1, b"1", 0)
    assert (True, False) == (store.has_room(B, b"2"), store.has_room(B, b"22"))


def test_a_full_store_takes_what_makes_it_no_larger_and_every_replica_with_it() -> None:
    world = World()
    root = world.root(bytes_max=2 * (len(A) + 1))
    sensor = world.sensor("s", bytes_max=2 * (len(A) + 1))
    world.settle()
    world.write((A, "1"), (B, "1"))
    world.settle()
    refused = world.write((A, "22"))
    assert isinstance(refused, OrderRefused)
    for key, value in ((A, "2"), (B, ""), (A, "333")):
        assert isinstance(world.write((key, value)), Written), (key, value)
        world.settle()
    assert {A: b"333"} == root.pairs == sensor.pairs
    assert 1 == sensor.core.counters.attempts, "nothing was missed"


def test_a_list_ends_before_it_has_more_bytes_than_an_answer_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIST_BYTES_MAX", 2 * (len(A) + 1))
    world = World()
    root = world.root()
    world.write(*[(f"/CONFIG/web/{name}", "1") for name in "abc"])
    first = ask(root, ListKeys(1, "/CONFIG/"))
    assert ([A, B], True) == ([key for key, *_ in first.pairs], first.is_more)
    last = ask(root, ListKeys(2, "/CONFIG/", after=B))
    assert (["/CONFIG/web/c"], False) == ([key for key, *_ in last.pairs], last.is_more)


@pytest.mark.proves("CFG-027")
def test_many_long_writes_are_remembered() -> None:
    world = World()
    root = world.root()
    for number in range(100):
        world.write((A, f"{number:01000}"))
    assert 100 == len(ask(root, ReadHistory(3, "/CONFIG/", 1_000)).writes)
