"""Receiving is joining, so all orders end alike (P1); and nothing is settled but by something as great (P2; STO-012)."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.rig import DELETE, Node, change
from weft.base.changes import Event, Link

NAMES = ("a", "b", "n1", "n10")
PATHS = ("p", "q.r", ":")
VALUES = (DELETE, None, 1, 1.0, True, "x", b"", [1, {"k": 2}])
BELOW = ("", "a:1", "b:2", "n1:3 a:2", "n10:1", "a:4 b:1")
ONE = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(5, 8), st.integers(0, 7), st.integers(0, 5))


def made(node: int, tick: int, tock: int, value: int, below: int) -> Event:
    """A change that nobody may have made: any chain, many ties, one name for several contents; one change, one path."""
    others = " ".join(link for link in BELOW[below].split() if not link.startswith(f"{NAMES[node]}:"))
    return change(f"{NAMES[node]}:{tick}", tock, PATHS[(node + tick) % 3], VALUES[value], others)


ANY_EVENTS = st.lists(ONE, min_size=1, max_size=8).map(lambda those: [made(*one) for one in those])


def joined(events: list[Event]) -> tuple[Any, Any]:
    node = Node("me")
    node.hear(*events)
    return node.entries(), node.seen()


@pytest.mark.proves("STO-010", "STO-012")
@given(ANY_EVENTS, st.randoms(use_true_random=False), st.integers(0, 5))
def test_the_same_changes_give_the_same_replica_in_any_order_and_however_often(
    events: list[Event], shuffler: Any, more: int
) -> None:
    expected = joined(events)
    again = [*events, *shuffler.choices(events, k=more)]
    shuffler.shuffle(again)
    assert expected == joined(again)


@pytest.mark.proves("STO-012")
@given(ANY_EVENTS, ANY_EVENTS, ANY_EVENTS)
def test_joining_what_others_have_joined_is_associative(one: list[Event], two: list[Event], three: list[Event]) -> None:
    left, right = Node("l"), Node("r")
    left.hear(*one, *two)
    right.hear(*two, *three)
    whole = joined([*one, *two, *three])
    for first, second in ((left, right), (right, left)):
        node = Node("me")
        for other in (first, second):
            node.hear(*other.tree.walk())
            for name in other.book.nodes():
                node.replica.settle({name: other.book.superseded(name)}, "known")
        assert whole == (node.entries(), node.seen())


@pytest.mark.proves("STO-010")
@given(ANY_EVENTS)
def test_two_changes_are_never_equal_in_order(events: list[Event]) -> None:
    for one in events:
        for other in events:
            if one.chain.head != other.chain.head:
                assert one.beats(other) != other.beats(one)


# The invariant

STEP = st.tuples(
    st.sampled_from(["write", "write", "delete", "tell", "tell", "ask", "clock"]), *[st.integers(0, 99)] * 3
)


class Fabric:
    """Three nodes with short chains that hear of one another by chance."""

    def __init__(self) -> None:
        self.nodes = [Node(name, chain_length=2) for name in ("x", "y", "z")]
        self.events: dict[Link, Event] = {}

    def play(self, what: str, one: int, two: int, three: int) -> None:
        node, other = self.nodes[one % 3], self.nodes[two % 3]
        if what in ("write", "delete"):
            written = node.write(PATHS[two % 3], DELETE if what == "delete" else three)
            if written.changed:
                self.events[written.event.chain.head] = written.event
        elif what == "tell" and self.events:
            node.hear(list(self.events.values())[two % len(self.events)])
        elif what == "clock":
            for each in self.nodes:
                each.context.tock = max(each.context.tock, other.context.tock)
        elif what == "ask":
            self.catch_up(node, other)

    def catch_up(self, node: Node, other: Node) -> None:
        """Step 3 of the recovery: heads, then what they have replaced."""
        for name, top in other.book.tops().items():
            node.book.raise_top(name, top)
            heads, superseded, _ = other.book.held(name, node.book.missing_of(name))
            node.hear(*heads)
            node.replica.settle({name: superseded}, "known")

    def check(self) -> None:
        """I1: who counts a change as settled holds it, or a greater one of the same entry."""
        for node in self.nodes:
            for link, event in self.events.items():
                if not node.book.is_seen(*link):
                    continue
                held = node.tree.get(event.path)
                assert held is not None, link
                assert held.chain.head == link or held.beats(event), link
                assert not event.beats(held)


def play(steps: list[tuple[str, int, int, int]]) -> Fabric:
    fabric = Fabric()
    for step in steps:
        fabric.play(*step)
        fabric.check()
    return fabric


@pytest.mark.proves("STO-012")
@given(st.lists(STEP, max_size=40))
def test_nothing_is_settled_without_something_as_great_and_who_misses_nothing_is_equal(
    steps: list[tuple[str, int, int, int]],
) -> None:
    fabric = play(steps)
    for _ in range(2):
        for node, other in permutations(fabric.nodes, 2):
            fabric.catch_up(node, other)
    fabric.check()
    states = [(node.entries(), node.seen(), node.book.missing()) for node in fabric.nodes]
    assert [states[0]] * 3 == states
    assert {} == states[0][2]


CUT_OFF = [
    *[("write", 0, 0, 1), ("tell", 1, 0, 0), ("write", 1, 0, 2), ("tell", 0, 1, 0), ("write", 0, 0, 3)],
    *[("ask", 2, 0, 0), ("write", 2, 0, 4), ("delete", 1, 0, 0), ("ask", 0, 1, 0), ("ask", 1, 2, 0), ("ask", 0, 2, 0)],
]


def test_entries_that_go_by_arrival_break_the_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    play(CUT_OFF)
    monkeypatch.setattr("weft.cores.store.replica.judge", lambda event, current: ("newer", ""))
    with pytest.raises(AssertionError):
        play(CUT_OFF)
