"""A file's store is taken over as it is by a node that has nothing, and by no other (ADM-013)."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.store.net import Net
from tests.store.rig import change
from weft.base.changes import Event
from weft.base.ranges import RangeSet
from weft.cores.store.messages import CopyFile, StoreMalformed, StoreRefused
from weft.cores.store.states import State as Standing
from weft.wire.store.files import State, Writer
from weft.wire.store.pack import pack

KNOWN = State({"a": 6, "b": 2}, {"a": RangeSet([(2, 2)])}, {"a": RangeSet([(3, 4)])}, "a", 40)
"""a:3 was purged, a:4 is a deletion that stands."""
ENTRIES = [
    change("a:1", 2, ":", "root"),
    change("a:6", 30, "x.y", 6, "b:1"),
    change("a:5", 20, "x.z", 5),
    change("b:2", 25, "q", None),
    change("a:4", 19, "gone"),
]


TOO_LATE = (1 << 62) + 1


def records(state: State = KNOWN, entries: Iterable[Event] = ENTRIES) -> tuple[bytes, ...]:
    writer = Writer()
    return (Writer.state(state), *map(writer.entry, entries))


def fresh() -> Net:
    net = Net(["n"])
    net.run(1)
    return net


def copy(net: Net, name: str, parts: list[tuple[bytes, ...]]) -> list[Any]:
    last = len(parts) - 1
    return [net.command(name, CopyFile(7, part, not number, number == last)) for number, part in enumerate(parts)]


@pytest.mark.proves("ADM-013")
def test_a_copy_has_the_same_changes_and_the_node_enters_itself() -> None:
    net = fresh()
    whole = records()
    assert [{"merged": 2, "refused": 0}, {"merged": 3, "refused": 0}] == copy(net, "n", [whole[:3], whole[3:]])
    net.run(1)
    node = net["n"]
    assert Standing.MEMBER is node.state
    held = node.entries()
    assert (("a", 6), 30, pack(6)) == held["x", "y"]
    assert (("a", 4), 19, None) == held[("gone",)]
    assert {"", "x", "q", "gone"} >= {str(path[0]) if path else "" for path in held if path[:1] != (None,)}
    assert [(None, "node", "n")] == [path for path in held if path[:1] == (None,)]
    assert 40 < held[None, "node", "n"][1], "it says nothing that is older than what it took over"
    book = node.store.replica.book
    assert ({"a": 6, "b": 2, "n": 1}, {}) == (book.tops(), book.missing())
    assert [(3, 3)] == list(book.deleted("a"))
    net.kill("n")
    assert held == net.start("n").entries(), "and it is durable"


@pytest.mark.proves("ADM-013")
def test_a_copy_that_broke_off_is_begun_again() -> None:
    net = fresh()
    whole = records()
    net.command("n", CopyFile(7, whole[:3], True, False))
    net.kill("n")
    net.start("n")
    net.run(1)
    assert Standing.LISTEN is net["n"].state
    assert [{"merged": 5, "refused": 0}] == copy(net, "n", [whole])
    net.run(1)
    assert Standing.MEMBER is net["n"].state
    assert {} == net.missing()


def test_what_the_file_has_not_is_asked_for_and_then_done_without() -> None:
    net = fresh()
    copy(net, "n", [records(State({"a": 9}, {}, {}), ENTRIES)])
    net.run(1)
    assert Standing.CATCHUP is net["n"].state
    net.run(60)
    assert Standing.MEMBER is net["n"].state


@pytest.mark.proves("ADM-013")
def test_what_the_file_has_not_is_nowhere_if_people_say_so() -> None:
    net = fresh()
    whole = records(State({"a": 9}, {}, {}), ENTRIES)
    net.command("n", CopyFile(7, whole, is_first=True, is_last=True, is_whole=True))
    net.run(1)
    assert (Standing.MEMBER, {}) == (net["n"].state, net.missing())
    assert [(2, 3), (7, 9)] == list(net["n"].store.replica.book.superseded("a"))


def test_a_copy_under_the_name_of_a_node_of_the_file_is_another_node() -> None:
    net = Net(["a"])
    net.run(1)
    copy(net, "a", [records()])
    net.run(60)
    assert ("a~2", Standing.MEMBER) == (net["a"].store.context.name, net["a"].state)


@pytest.mark.proves("ADM-013", "COD-007")
def test_a_member_takes_no_copy_and_nonsense_changes_nothing() -> None:
    net = fresh()
    for bad in (
        (b"\x81\xa4tock\xc0",),
        records(State({"a": TOO_LATE}, {}, {}), []),
        records(State({}, {}, {}, "", TOO_LATE), []),
    ):
        [refused] = copy(net, "n", [bad])
        assert (StoreRefused, "bad-value") == (type(refused), refused.code)
    [told] = copy(net, "n", [records(entries=[ENTRIES[0], change("c:1", 5, "c", 1, "c:1")])])
    assert {"merged": 1, "refused": 1} == told
    assert [("file", "bad-chain")] == [(e.peer, e.code) for e in net["n"].told if isinstance(e, StoreMalformed)]
    net.run(60)
    before = net["n"].entries()
    [refused] = copy(net, "n", [records()])
    assert (StoreRefused, "exists", before) == (type(refused), refused.code, net["n"].entries())
