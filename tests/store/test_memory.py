"""What stands in the journal brings the same replica back, wherever it ends (STO-031 to STO-033, P7, P11)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.rig import DELETE, Node, change, ticks
from weft.base.changes import Chain, Event
from weft.base.effects import Persist
from weft.base.errors import OurFault
from weft.base.records import CoreRecord, DamageRecord, Stream, StreamRecord
from weft.cores.kit.refusals import Refusal
from weft.cores.store import memory
from weft.cores.store.replica import Replica
from weft.wire.journal import decode_record, encode_record
from weft.wire.store.pack import pack
from weft.wire.store.path import text_of


def durable(node: Node) -> Node:
    """The node from what its disk gives back, byte for byte."""
    journal = [(lsn, decode_record(encode_record(record))) for lsn, record in node.journal]
    return Node(node.context.settings.name, journal, **node.settings)


def condensed(node: Node) -> Node:
    """The node from a snapshot."""
    records = [decode_record(encode_record(record)) for record in node.replica.condense()]
    return Node(node.context.settings.name, enumerate(records, 1), **node.settings)


# Records


@pytest.mark.proves("STO-031")
def test_a_change_of_another_node_is_kept_with_what_it_settles_in_the_persist_of_its_turn() -> None:
    node = Node("me")
    event = change("b:2", 9, "p", 1, "a:1")
    node.hear(event)
    node.replica.settle(ticks(b=[1]), "known")
    (persist,) = node.turn()
    assert isinstance(persist, Persist)
    assert [memory.kept_of(event), memory.Settled({"b": [(1, 1)]})] == list(map(memory.memory_of, persist.records))
    assert [event, None] == [memory.shown(record, ["me"]) for record in persist.records]


def test_a_change_of_a_foreign_server_is_a_record_that_travels_up_and_only_its_keeper_takes_it_back() -> None:
    node = Node("me")
    node.context.foreign["real"] = None
    event, lost = change("real:1", 9, "p", {"x": b"y"}, "a:1 …"), change("real:2", 8, "p", 2)
    node.hear(event, lost)
    node.turn()
    (_, one), (_, two) = node.journal
    assert isinstance(one, StreamRecord)
    assert (Stream.STORE, "real", 1, "p", event.value) == (one.stream, one.origin, one.sequence, one.key, one.payload)
    assert ("me", True) == (one.attributes["keeper"], one.attributes["cut"])
    assert [event, None] == [memory.shown(record, ["me"]) for record in (one, two)]
    assert [event, lost] == [memory.event_of(record, ["me"]) for record in (one, two)]
    assert node.digest() == durable(node).digest()
    parent = Node("root", node.journal)
    assert {} == parent.entries()
    assert [None, None] == [memory.event_of(record, ["root"]) for record in (one, two)]


def test_changes_that_are_only_carried_for_a_child_are_not_the_nodes_own() -> None:
    child = Node("child")
    child.write("p", 1)
    child.turn()
    carried = [(lsn, record) for lsn, record in child.journal if isinstance(record, StreamRecord)]
    root = Node("root", carried)
    assert ({}, 0) == (root.entries(), root.context.tick)
    assert [None] == [memory.shown(record, root.replica.names) for _, record in carried]


def test_the_longest_paths_and_all_elements_come_back() -> None:
    node = Node("me")
    paths: list[tuple[Any, ...]] = [("\x1f" * 1_000,), (1 << 70, "x"), (None, b"\xff", "", True, -5), ()]
    for path in paths:
        node.replica.write(path, pack(1))
        node.hear(Event(Chain((("b", len(node.changes) + 1),)), 99, (*path, "below")[:64], pack(2)))
    node.turn()
    assert node.digest() == durable(node).digest() == condensed(node).digest()
    assert 4_096 >= max(len(record.key.encode()) for _, record in node.journal if isinstance(record, StreamRecord))
    assert len(text_of(paths[0])) > 4_096


def test_what_a_later_version_wrote_stops_the_start_and_other_parts_are_left_alone() -> None:
    node = Node("me", [(1, CoreRecord("store", 48, b"\x00")), (2, CoreRecord("other", 1, b"\xff"))])
    assert {} == node.entries()
    for record in (
        CoreRecord("store", 31, b"\x90"),
        CoreRecord("store", 1, b"\xc0"),
        StreamRecord(Stream.STORE, "me", None, 1, 0, 0, "p", b"", {}),
        StreamRecord(Stream.STORE, "me", None, 1, 0, 0, "p", b"", {"chain": [("me", "first")], "cut": False}),
    ):
        with pytest.raises(OurFault):
            node.replica.restore([(3, record)])


def test_records_of_one_event_stay_small() -> None:
    event = change("node1:123456", 1_000_000, "area.host.metric.name", "x" * 38, "node2:77")
    assert 140 > len(encode_record(memory.record_of(memory.kept_of(event))))


@pytest.mark.proves("STO-032")
def test_after_damage_no_tick_is_taken_until_it_is_mended() -> None:
    node = Node("me", [(1, DamageRecord(1, 5, "x", "y"))])
    assert (True, True) == (node.replica.admitting.is_damaged, condensed(node).replica.admitting.is_damaged)
    with pytest.raises(Refusal) as error:
        node.write("p", 1)
    assert "not-ready" == error.value.code
    node.replica.mended()
    node.replica.mended()
    node.turn()
    assert (2, False) == (len(node.journal), node.again().replica.admitting.is_damaged)


@pytest.mark.proves("STO-033", part="the state is condensed: streamed, and the same whatever the order")
def test_the_state_is_streamed_and_does_not_depend_on_the_order_in_which_it_came() -> None:
    events = [change(f"{name}:{tick}", tick, f"{name}.x{tick}", tick) for name in "cab" for tick in range(1, 9)]
    one, other = Node("me"), Node("me")
    one.hear(*events)
    other.hear(*reversed(events))
    assert one.digest() == other.digest()
    streamed = one.replica.condense()
    assert not isinstance(streamed, list)
    assert isinstance(next(iter(streamed)), CoreRecord)


# Any boundary (P7), any ticks (P11)

NAMES = ("x", "y", "z")
PATHS = ("p", "p.q", "r")
WRITE = st.tuples(st.just("write"), st.sampled_from(PATHS), st.integers(0, 3))
DROP = st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just(0))
HEAR = st.tuples(st.just("hear"), st.integers(0, 30), st.integers(0, 2))
KNOWN = st.tuples(st.sampled_from(["known", "deleted"]), st.sampled_from(("me", *NAMES)), st.integers(1, 6))
PURGE = st.tuples(st.just("purge"), st.sampled_from(("me", *NAMES)), st.integers(1, 6))
TURN = st.tuples(st.just("turn"), st.just(0), st.just(0))
CRASH = st.tuples(st.just("crash"), st.just(0), st.just(0))
RENAME = st.tuples(st.just("rename"), st.just(0), st.just(0))
AGAIN = st.tuples(st.sampled_from(["again", "ahead", "empty"]), st.integers(1, 9), st.just(0))
STEPS = st.lists(
    WRITE | WRITE | DROP | HEAR | HEAR | HEAR | KNOWN | PURGE | TURN | TURN | CRASH | RENAME | AGAIN, max_size=40
)


def pool() -> list[Event]:
    """What others say: ties, ancestors, deletions, two contents of one change, foreign servers."""
    events = [
        change(f"{name}:{tick}", 3 * tick + len(below), PATHS[(tick + number) % 3], value, below)
        for number, name in enumerate(NAMES)
        for tick, value, below in ((1, 1, ""), (2, DELETE, ""), (3, "v", "me:1"), (4, 2, f"{NAMES[number - 1]}:2"))
    ]
    return [
        *events,
        change("x:1", 3, PATHS[1], 7),
        change("me:2", 9, "r", 5),
        change("y:3", 11, "p.q", "v", "me:1 z:2"),
    ]


POOL = pool()


class Life:
    """A node through turns and crashes, and what it ever let out."""

    def __init__(self) -> None:
        self.node = Node("me", chain_length=2)
        self.node.context.foreign["z"] = None
        self.said: dict[tuple[str, int], bytes] = {}
        self.states: list[tuple[int, Any]] = []

    def play(self, what: str, one: Any, two: int) -> None:
        node = self.node
        if what in ("write", "delete"):
            try:
                node.write(one, DELETE if what == "delete" else two)
            except Refusal as error:
                assert error.code == "not-ready"
        elif what == "hear":
            node.hear(POOL[one % len(POOL)])
        elif what in ("known", "deleted"):
            node.replica.settle(ticks(**{one: [(two, two + 1)]}), what)
        elif what == "purge":
            node.replica.purge(ticks(**{one: [(1, two)]}))
        elif what == "crash":
            self.begin_anew()
        else:
            self.play_rarer(what, one)

    def play_rarer(self, what: str, number: int) -> None:
        node = self.node
        if what == "turn":
            self.end_turn()
        elif what == "rename":
            node.replica.rename(node.replica.next_name())
        elif what == "ahead":
            node.book.raise_top(node.context.name, number)
        elif what == "empty":
            node.replica.empty()
            node.replica.rename(node.replica.next_name())
        elif what == "again" and (conflict := next(iter(node.replica.conflicts), None)):
            node.replica.go_on()
            node.replica.write_again(conflict.number)

    def end_turn(self) -> None:
        if self.node.turn():
            for _, record in self.node.journal:
                if isinstance(record, StreamRecord) and record.origin in self.node.replica.names:
                    said = encode_record(record)
                    assert said == self.said.setdefault((record.origin, record.sequence), said), "a tick twice"
        self.states.append((len(self.node.journal), self.node.digest()))

    def begin_anew(self) -> None:
        """What was not durable is gone, and was never said."""
        node = Node("me", self.node.journal, chain_length=2)
        node.context.foreign["z"] = None
        self.node = node


@pytest.mark.proves("STO-032")
@given(STEPS)
def test_the_journal_up_to_any_persist_gives_the_state_at_that_time(steps: list[tuple[str, Any, int]]) -> None:
    life = Life()
    for step in steps:
        life.play(*step)
    life.end_turn()
    for upto, state in [*life.states[-8::2], life.states[-1]]:
        again = Node("me", life.node.journal[:upto], chain_length=2)
        assert state == again.digest()
        assert again.context.tock >= again.context.tock_limit


@given(STEPS, st.integers(0, 40))
def test_a_snapshot_and_what_comes_after_it_give_the_same_state(steps: list[tuple[str, Any, int]], at: int) -> None:
    life = Life()
    for step in steps[:at]:
        life.play(*step)
    life.end_turn()
    first = len(life.node.journal)
    snapshot = list(enumerate(life.node.replica.condense()))
    assert life.node.digest() == Node("me", snapshot, chain_length=2).digest()
    for step in steps[at:]:
        life.play(*step)
    life.end_turn()
    again = Node("me", [*snapshot, *life.node.journal[first:]], chain_length=2)
    assert life.node.digest() == again.digest()
    twice = Node("me", [*snapshot, *life.node.journal], chain_length=2)
    assert twice.context.tick == again.context.tick


@pytest.mark.proves("STO-002", "STO-034")
@given(STEPS)
def test_the_ticks_of_each_name_have_no_hole_and_are_never_used_twice(steps: list[tuple[str, Any, int]]) -> None:
    life = Life()
    holes: set[tuple[str, int]] = set()
    for step in steps:
        before = life.node.context.name, life.node.context.tick
        life.play(*step)
        name, tick = life.node.context.name, life.node.context.tick
        if step[0] == "again" and name == before[0]:
            holes |= {(name, skipped) for skipped in range(before[1] + 1, tick)}
    life.end_turn()
    by_name: dict[str, set[int]] = {}
    for name, tick in [*life.said, *holes]:
        by_name.setdefault(name, set()).add(tick)
    for name, found in by_name.items():
        assert set(range(1, max(found) + 1)) == found, name


def check_that_ticks_survive() -> None:
    life = Life()
    life.play("write", "p", 1)
    life.end_turn()
    life.begin_anew()
    life.play("write", "p", 2)
    life.end_turn()
    assert [("me", 1), ("me", 2)] == list(life.said)


@pytest.mark.parametrize("bug", [lambda self, record: None, lambda self, record: self.book.clear()])
def test_a_tick_that_is_forgotten_in_a_crash_is_caught(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_ticks_survive()
    monkeypatch.setattr(Replica, "_restore_change", bug)
    with pytest.raises((AssertionError, Refusal)):
        check_that_ticks_survive()


def test_a_record_that_a_crash_took_was_never_said() -> None:
    life = Life()
    life.play("write", "p", 1)
    life.begin_anew()
    assert ({}, 0) == (life.node.entries(), life.node.context.tick)
    assert msgspec.msgpack.decode(life.node.write("p", 2).event.value or b"") == 2
