"""Which changes are settled, superseded, deleted, missing (STO-020, STO-021)."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.rig import DELETE, Node, change, ticks
from weft.base.ranges import RangeSet
from weft.cores.store.replica import Replica
from weft.cores.store.ticks import TickBook
from weft.wire.store.messages import Ticks


def book_of(*tops: tuple[str, int]) -> TickBook:
    node = Node("me")
    for name, tick in tops:
        node.book.raise_top(name, tick)
    return node.book


@pytest.mark.proves("STO-020")
def test_what_is_missing_is_what_was_heard_of_and_is_neither_present_nor_superseded_nor_deleted() -> None:
    node = Node("me")
    node.hear(change("a:2", 9, "p", 1), change("a:4", 10, "q", 1, "b:3"))
    node.hear(change("a:5", 11, "p", 2, "b:1"))
    node.replica.settle(ticks(b=[2], c=[(4, 6)]), "deleted")
    assert node.book.raise_top("a", 9)
    book = node.book
    assert {"a": 9, "b": 3, "c": 6} == book.tops()
    assert ticks(a=[1, 3, (6, 9)], c=[(1, 3)]) == book.missing()
    sets: list[Ticks] = [
        {name: found for name in book.nodes() if (found := of(name))}
        for of in (book.present, book.superseded, book.deleted, book.seen)
    ]
    assert [
        ticks(a=[(4, 5)]),
        ticks(a=[2], b=[1, 3]),
        ticks(b=[2], c=[(4, 6)]),
        ticks(a=[2, (4, 5)], b=[(1, 3)], c=[(4, 6)]),
    ] == sets
    assert (9, 0) == (book.top("a"), book.top("z"))
    assert (True, False, False) == (book.is_seen("a", 4), book.is_seen("a", 6), book.is_seen("z", 1))


def test_what_a_node_holds_of_what_is_asked_is_told_apart() -> None:
    node = Node("me")
    node.hear(change("a:2", 9, "p", 1), change("a:4", 10, "q", 1), change("a:5", 11, "p", 2))
    node.replica.settle(ticks(a=[1]), "deleted")
    for asked in (ticks(a=[(1, 5)])["a"], ticks(a=[(1, 1 << 60)])["a"]):
        heads, superseded, deleted = node.book.held("a", asked)
        assert [4, 5] == [event.tick for event in heads]
        assert (RangeSet([(2, 2)]), RangeSet([(1, 1)])) == (superseded, deleted)
    assert ([], RangeSet(), RangeSet()) == node.book.held("z", RangeSet([(1, 9)]))


def test_a_gap_is_said_when_it_opens_and_not_again() -> None:
    book = book_of()
    assert [True, False, False, True] == [book.raise_top("a", tick) for tick in (3, 3, 2, 4)]
    assert not book.is_whole
    for tick in (4, 2, 1, 3):
        assert book.see("a", tick)
    assert book.is_whole
    assert not book.see("a", 3)
    assert ({}, RangeSet()) == (book.missing(), book.missing_of("a"))


def test_what_is_told_of_this_node_itself_is_noticed_only_above_its_own_tick() -> None:
    node = Node("me")
    called: list[int] = []
    node.book.on_own_ahead = called.append
    node.write("p", 1)
    assert not node.book.raise_top("me", 1)
    node.hear(change("me:1", 1, "p", 1), change("b:1", 5, "p", 2, "me:1"))
    node.replica.settle(ticks(me=[1]), "known")
    assert ([], 0) == (called, node.book.own_ahead)
    node.replica.settle(ticks(me=[3]), "known")
    assert ([3], 3) == (called, node.book.own_ahead)


NODES = st.sampled_from("ab")
ONE = st.tuples(st.just("see"), NODES, st.integers(1, 12), st.just(0))
MANY = st.tuples(st.sampled_from(["known", "deleted"]), NODES, st.integers(1, 12), st.integers(0, 5))
TOP = st.tuples(st.just("top"), NODES, st.integers(1, 15), st.just(0))


@given(st.lists(ONE | MANY | TOP, max_size=30))
def test_the_book_is_what_sets_of_numbers_say(steps: list[tuple[str, str, int, int]]) -> None:
    node = Node("me")
    seen: dict[str, set[int]] = {"a": set(), "b": set()}
    deleted: dict[str, set[int]] = {"a": set(), "b": set()}
    tops = {"a": 0, "b": 0}
    for what, name, first, more in steps:
        those = set(range(first, first + more + 1))
        if what == "see":
            assert (first not in seen[name]) == node.book.see(name, first)
        elif what == "top":
            assert (first > tops[name]) == node.book.raise_top(name, first)
        else:
            node.replica.settle({name: RangeSet([(first, first + more)])}, what)
        if what != "top":
            seen[name] |= those
        if what == "deleted":
            deleted[name] |= those
        tops[name] = max(tops[name], *those)
    for name in "ab":
        missing = set(range(1, tops[name] + 1)) - seen[name]
        found = (node.book.missing_of(name), node.book.deleted(name), node.book.superseded(name))
        assert [_as_ranges(missing), _as_ranges(deleted[name]), _as_ranges(seen[name] - deleted[name])] == list(found)
        assert bool(missing) == (name in node.book.missing())


def _as_ranges(numbers: set[int]) -> RangeSet:
    return RangeSet((number, number) for number in sorted(numbers))


# Work (STO-021)


class Counted(RangeSet):
    """Counts how many ranges are moved."""

    moved = 0

    def _merge(self, first: int, last: int) -> int:
        Counted.moved += 1
        return super()._merge(first, last)


@pytest.mark.proves("STO-021")
def test_one_more_change_costs_no_more_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.store.ticks.RangeSet", Counted)
    calls: list[int] = []
    for count in (100, 3_000):
        node = Node("me")
        node.hear(*(change(f"a:{tick}", tick, f"x{tick % 97}.y{tick}", 1) for tick in range(1, count + 1)))
        calls.append(_steps_of(node, change(f"a:{count + 1}", count + 1, "x1.y1", 2, "b:1")))
        assert 0 == Counted.moved
    assert calls[0] == calls[1]


@pytest.mark.proves("STO-021")
def test_ticks_that_are_told_cost_no_more_where_many_holes_are() -> None:
    steps = []
    for count in (50, 2_000):
        node = Node("me")
        node.replica.settle({"a": RangeSet((tick, tick) for tick in range(1, 2 * count, 2))}, "known")
        steps.append(_calls_of(partial(node.replica.settle, ticks(a=[(20, 24)]), "known")))
    assert steps[0] == steps[1]


def _steps_of(node: Node, event: Any) -> int:
    """How many functions are called for it."""
    return _calls_of(lambda: node.hear(event))


def _calls_of(work: Callable[[], Any]) -> int:
    count = 0

    def trace(frame: Any, what: str, arg: Any) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_join_that_walks_the_tree_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    join = Replica._join

    def slow(self: Replica, event: Any) -> Any:
        assert all(other is not None for other in self.tree.walk())
        return join(self, event)

    monkeypatch.setattr(Replica, "_join", slow)
    steps = []
    for count in (10, 20):
        node = Node("me")
        node.hear(*(change(f"a:{tick}", tick, f"p{tick}", DELETE) for tick in range(1, count + 1)))
        steps.append(_steps_of(node, change("b:1", 99, "p1", 1)))
    assert steps[0] < steps[1]
