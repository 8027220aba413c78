"""What a node does with its own changes, with deletions, and with its name (STO-002 to STO-007, STO-030, STO-034, DEL)."""

from typing import Any

import pytest

from tests.store.rig import DELETE, Node, change, link, ticks
from weft.base.changes import Chain, Event, Path
from weft.base.effects import Persist, Send
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import Stream, StreamRecord
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits, memory, tree
from weft.cores.store.admitting import Admitting
from weft.cores.store.context import Context
from weft.cores.store.messages import NameChanged, StaleDropped
from weft.cores.store.replica import Replica
from weft.cores.store.tree import Tree
from weft.wire.store.messages import Update
from weft.wire.store.pack import LEFT_OUT, pack


def head_and_chain(event: Event) -> str:
    """`a:2 b:1 …` in words."""
    said = " ".join(f"{node}:{tick}" for node, tick in event.chain.links)
    return said + (" …" if event.chain.is_cut else "")


# Own changes


@pytest.mark.proves("STO-006")
def test_an_own_change_puts_its_link_on_the_chain_without_the_old_own_one_and_dropped_links_stay_settled() -> None:
    node = Node("a", chain_length=3)
    node.hear(change("b:4", 10, "p", 1, "c:7"))
    assert ["a:1 b:4 c:7", "a:2 b:4 c:7"] == [head_and_chain(node.write("p", n).event) for n in range(2)]
    check_dropped_links()


def check_dropped_links() -> None:
    node = Node("a", chain_length=3)
    node.hear(change("f:1", 41, "p", 1, "e:1 d:1 c:1 …"))
    event = node.write("p", 4).event
    assert "a:1 f:1 e:1 …" == head_and_chain(event)
    expected = [[(1, 1)]] * 4
    assert expected == [list(node.book.superseded(name)) for name in "fedc"]
    assert ({}, [(1, 1)]) == (node.book.missing(), list(node.book.present("a")))


def check_own_link() -> None:
    node = Node("a")
    node.write("p", 1)
    node.hear(change("b:1", 30, "p", 1, "a:1"))
    assert "a:2 b:1" == head_and_chain(node.write("p", 2).event)


def test_an_own_link_that_stays_on_the_chain_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    check_own_link()
    planted = Replica._next_event

    def with_old_link(self: Replica, path: Path, value: bytes | None, by: str, below: Chain, *more: Any) -> Event:
        event = planted(self, path, value, by, below, *more)
        return Event(Chain((event.chain.head, *below.links)), event.tock, path, value)

    monkeypatch.setattr(Replica, "_next_event", with_old_link)
    with pytest.raises(AssertionError):
        check_own_link()


def test_a_dropped_link_that_is_not_settled_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Replica._next_event

    def forgetful(self: Replica, path: Path, value: bytes | None, by: str, below: Chain, *more: Any) -> Event:
        event = planted(self, path, value, by, below, *more)
        for node, tick in set(below.links) - set(event.chain.links):
            self.book._nodes[node].seen.remove(tick)
            self.book._judge(self.book._nodes[node])
        return event

    monkeypatch.setattr(Replica, "_next_event", forgetful)
    with pytest.raises(AssertionError):
        check_dropped_links()


@pytest.mark.proves("STO-030")
def test_what_a_turn_wrote_is_durable_in_one_piece_before_any_of_it_leaves() -> None:
    node = Node("a")
    node.context.now = Now(5, 7_500_000_000)
    first = node.write("p.q", 1, by="joe", via="tcp").event
    second = node.write("p.q", DELETE).event
    persist, *sent = node.turn()
    assert isinstance(persist, Persist)
    assert all(isinstance(effect, Send) for effect in sent)
    named, one, two, limit = persist.records
    assert memory.Named("a", 0) == memory.memory_of(named)
    assert memory.TockLimit(1 + 10_000) == memory.memory_of(limit)
    attributes = {
        "tock": 1,
        "path": b"\xa1p\xa1q",
        "chain": [["a", 1]],
        "cut": False,
        "deleted": False,
        "by": "joe",
        "through": "tcp",
        "before": None,
        "at": 7.5,
    }
    at = 7_500_000_000
    assert StreamRecord(Stream.STORE, "a", None, 1, at, at, "p.q", b"\x01", attributes) == one
    attributes |= {"tock": 2, "chain": [["a", 2]], "deleted": True, "by": "", "through": "", "before": ["a", 1]}
    assert StreamRecord(Stream.STORE, "a", None, 2, at, at, "p.q", b"", attributes) == two
    assert [first, second] == [memory.event_of(record, ["a"]) for record in (one, two)]


@pytest.mark.proves("STO-030")
def test_who_listens_hears_of_own_changes_and_of_those_of_others_in_order() -> None:
    node = Node("a")
    node.write("p", 1)
    node.hear(change("b:1", 9, "p", 2, "a:1"), change("b:1", 9, "p", 2, "a:1"))
    node.write("p", DELETE)
    heard = [(c.outcome, c.event.chain.head, c.other and c.other.chain.head) for c in node.changes]
    a1, b1, a2 = map(link, ("a:1", "b:1", "a:2"))
    assert [("first", a1, None), ("newer", b1, a1), ("duplicate", b1, b1), ("newer", a2, b1)] == heard


REFUSALS: list[tuple[str, Path, bytes | None]] = [
    ("bad-path", ("p", None), pack(1)),
    ("bad-path", (1.5,), pack(1)),
    ("bad-path", ("x",) * 65, pack(1)),
    ("too-large", ("p",), pack("x" * (64 << 10))),
    ("too-large", ("p",), pack([0] * 16_385)),
    ("too-large", ("p",), b"\x91" * 33 + b"\xc0"),
    ("bad-value", ("p",), b"\x92\x01"),
    ("bad-value", ("p",), LEFT_OUT),
]


def check_refusals() -> None:
    node = Node("a")
    node.write("p", 1)
    node.turn()
    for code, path, value in REFUSALS:
        expected = node.digest(), node.context.tick, node.context.tock
        with pytest.raises(Refusal) as error:
            node.replica.write(path, value)
        assert code == error.value.code
        assert expected == (node.digest(), node.context.tick, node.context.tock)
        assert [] == node.turn()
    assert 2 == node.write("p", 2).event.tick


@pytest.mark.proves("STO-030", "STO-005")
def test_an_order_that_is_refused_takes_no_tick_and_no_tock() -> None:
    check_refusals()


def test_a_tick_that_is_taken_before_the_check_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Admitting.checked

    def hasty(self: Admitting, path: Path, value: bytes | None) -> Path:
        self._context.tick += 1
        path = checked(self, path, value)
        self._context.tick -= 1
        return path

    monkeypatch.setattr(Admitting, "checked", hasty)
    with pytest.raises(AssertionError):
        check_refusals()


@pytest.mark.proves("STO-002", "STO-032")
@pytest.mark.parametrize(
    ("change_of", "code"),
    [
        ({"is_full": True}, "storage-full"),
        ({"read_only": "dropped"}, "read-only"),
        ({"tick": limits.TICK_MAX}, "tick-exhausted"),
    ],
)
def test_a_node_that_may_not_write_refuses_orders_and_goes_on_merging(change_of: dict[str, Any], code: str) -> None:
    node = Node("a")
    for name, value in change_of.items():
        setattr(node.context, name, value)
    with pytest.raises(Refusal) as error:
        node.write("p", 1)
    assert code == error.value.code
    assert ["first"] == node.hear(change("b:1", 4, "p", 2))
    assert 2 == node.value("p")


@pytest.mark.proves("STO-006")
def test_a_repair_keeps_all_links_that_it_is_given() -> None:
    node = Node("a")
    below = Chain((("b", 1), *((f"n{i}", 1) for i in range(61)), ("a", 9), ("z", 1)))
    node.context.tick = 9
    event = node.write("p", 1, chain=below).event
    assert 64 == len(event.chain.links)
    assert (("a", 10), ("b", 1), "z") == (*event.chain.links[:2], event.chain.links[-1][0])
    node.hear(change("b:2", 50, "q"))
    again = node.write("q", DELETE, chain=Chain((("b", 2), ("c", 3))))
    assert (True, "a:11 b:2 c:3") == (again.changed, head_and_chain(again.event))


# Tocks


def check_tocks() -> None:
    node = Node("a")
    sent = [node.write("p", 1).event.tock]
    node.hear(change("b:1", 500, "p", 2, "a:1"))
    sent.append(node.write("p", 3).event.tock)
    node.turn()
    sent.append(node.context.info().tock)
    for _ in range(3):
        node.turn()
        node = node.again()
        assert node.context.tock >= sent[-1]
        sent += [node.context.info().tock, node.write("p", 1).event.tock]
    assert sorted(set(sent)) == sent
    assert 501 == sent[1]


@pytest.mark.proves("STO-007")
def test_no_tock_is_said_twice_or_below_one_that_was_heard_even_after_restarts() -> None:
    check_tocks()


@pytest.mark.parametrize("name", ["hear_tock", "restore_tock"])
def test_a_tock_that_is_not_adopted_or_used_again_after_a_restart_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, name, lambda self, tock: None)
    with pytest.raises(AssertionError):
        check_tocks()


@pytest.mark.proves("STO-007")
def test_the_limit_of_tocks_is_durable_before_one_of_them_leaves() -> None:
    node = Node("a")
    node.context.info()
    (persist,) = node.turn()
    assert isinstance(persist, Persist)
    assert [memory.TockLimit(10_001)] == [memory.memory_of(record) for record in persist.records]
    node.context.info()
    assert [] == node.turn()
    node.context.hear_tock(10_001)
    node.context.info()
    (persist,) = node.turn()
    assert isinstance(persist, Persist)
    assert [memory.TockLimit(20_002)] == [memory.memory_of(record) for record in persist.records]


# Entries


def check_elements() -> None:
    node = Node("a")
    paths: list[Path] = [(1,), (True,), ("1",), (b"1",), ("",), (0,), (False,), (1 << 70,), (), (None, "x")]
    for number, path in enumerate(paths):
        node.replica.write(path, pack(number))
    assert [pack(number) for number in range(len(paths))] == [node.at(*path).value for path in paths]
    assert [type(path[0]) for path in node.tree.children(())] == [type(path[0]) for path in [*paths[:8], paths[9]]]
    assert pack(4) == node.at(b"").value
    node.turn()
    assert node.entries() == node.again().entries()


@pytest.mark.proves("STO-004")
def test_elements_are_one_only_if_their_type_is_in_keys_of_the_seed() -> None:
    check_elements()


def test_elements_that_python_takes_for_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "key_of_element", lambda element: element)
    with pytest.raises(AssertionError):
        check_elements()


@pytest.mark.proves("STO-004")
def test_equal_numbers_are_one_in_keys_of_moat() -> None:
    node = Node("a", keys="moat")
    same: list[Path] = [(1,), (True,), (1.0,)]
    for number, path in enumerate(same):
        node.replica.write(path, pack(number))
    node.hear(Event(Chain((("b", 1), ("a", 3))), 9, (1.0,), pack(9)))
    assert [pack(9)] * 3 == [node.at(*path).value for path in same]
    assert [(1,)] == node.tree.children(())
    assert int is type(node.tree.children(())[0][0])


@pytest.mark.proves("STO-003", "DEL-001")
def test_a_deletion_is_a_change_that_keeps_tock_and_chain_and_deleting_nothing_is_none() -> None:
    node = Node("a")
    assert not node.write("p", DELETE).changed
    node.hear(change("b:1", 9, "p", 1))
    gone = node.write("p", DELETE)
    assert (True, "a:1 b:1", 10) == (gone.changed, head_and_chain(gone.event), gone.event.tock)
    again = node.write("p", DELETE)
    assert (False, gone.event) == (again.changed, again.event)
    assert (1, 0, 1) == (node.context.tick, node.tree.entries, node.tree.tombstones)
    assert "a:2 b:1" == head_and_chain(node.write("p", 5).event)
    assert (1, 0) == (node.tree.entries, node.tree.tombstones)


def check_that_deletions_stay() -> None:
    for late in (change("x:1", 1001, "s", "w"), change("x:1", 1002, "s", "w", "y:1")):
        node = Node("a")
        node.hear(change("x:1", 1001, "s", "w"), change("y:1", 1003, "s"))
        node.hear(late)
        assert DELETE is node.value("s")
        assert 0 == node.tree.entries


@pytest.mark.proves("DEL-005")
def test_what_was_deleted_shows_again_only_by_a_greater_change() -> None:
    check_that_deletions_stay()
    node = Node("a")
    node.hear(change("y:1", 1003, "s"), change("z:1", 1004, "s", 1, "y:1"))
    assert 1 == node.value("s")


def test_a_tombstone_that_is_ignored_in_a_join_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    at = Tree.at

    def forgetful(self: Tree, path: Path) -> Event | None:
        event = at(self, path)
        return None if event is None or event.value is None else event

    monkeypatch.setattr(Tree, "at", forgetful)
    with pytest.raises(AssertionError):
        check_that_deletions_stay()


def test_the_tree_is_walked_parents_first_between_depths_while_it_changes() -> None:
    node = Node("a")
    for path in (":", "a", "a.b.c", "a.b", "a.d", "e"):
        node.write(path, path)
    names = [".".join(map(str, event.path)) for event in node.tree.walk()]
    assert ["", "a", "a.b", "a.b.c", "a.d", "e"] == names
    assert ["a", "e"] == [event.path[-1] for event in node.tree.walk((), 1, 1)]
    assert ["b", "c", "d"] == [event.path[-1] for event in node.tree.walk(("a",), 1)]
    assert [] == list(node.tree.walk(("nothing", "there")))
    seen = []
    for event in node.tree.walk():
        seen.append(event.path)
        node.write(".".join(("a", "new", str(len(seen)))), 1)
    assert 6 <= len(seen) <= 12
    assert (len(seen) + 5, 1, 0) == (node.tree.live(("a",)) + 1, node.tree.live(("e",)), node.tree.live(("f",)))


def test_what_leads_nowhere_is_forgotten_with_what_it_led_to() -> None:
    node = Node("a")
    node.hear(change("b:1", 9, "x.y.z", 1), change("b:2", 10, "x.q", 1))
    node.hear(change("b:3", 11, "x.y.z", DELETE))
    assert [("x",)] == node.tree.children(())
    node.replica.purge(ticks(b=[3]))
    assert [("x", "q")] == node.tree.children(("x",))
    assert (1, 0, 1) == (node.tree.entries, node.tree.tombstones, node.tree.live(("x",)))


# Purging


@pytest.mark.proves("DEL-004")
def test_purging_forgets_tombstones_by_their_heads_and_leaves_other_entries_alone() -> None:
    node = Node("a")
    node.hear(change("b:1", 9, "p", 1), change("c:1", 10, "p", DELETE, "b:1"), change("c:2", 11, "q", 1))
    node.turn()
    gone = node.replica.purge(ticks(c=[(1, 5)], z=[1]))
    assert ticks(c=[1], b=[1]) == gone
    with pytest.raises(KeyError):
        node.value("p")
    assert 1 == node.value("q")
    assert (ticks(b=[1])["b"], ticks(c=[1])["c"]) == (node.book.deleted("b"), node.book.deleted("c"))
    node.turn()
    assert [] == node.told
    assert node.digest() == node.again().digest()


def check_that_links_do_not_delete() -> None:
    node = Node("a")
    node.hear(change("c:2", 11, "q", 1, "b:1"))
    node.replica.settle(ticks(b=[1]), "deleted")
    assert 1 == node.value("q")
    node.replica.settle(ticks(c=[2]), "deleted")
    node.turn()
    assert [StaleDropped("q", "c", 2, "01")] == node.told
    assert [change("c:2", 11, "q", 1, "b:1")] == [e for _, record in node.journal if (e := memory.stale_of(record))]
    assert (0, 0) == (node.tree.entries, node.tree.tombstones)
    assert node.digest() == node.again().digest()


@pytest.mark.proves("DEL-004")
def test_a_live_entry_goes_as_a_stale_copy_only_if_its_head_is_named() -> None:
    check_that_links_do_not_delete()


def test_deleting_by_links_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    within = Tree.heads_within

    def by_link(self: Tree, node: str, asked: Any) -> list[Event]:
        named = [e for e in self.walk() if any(name == node and tick in asked for name, tick in e.chain.links)]
        return named or within(self, node, asked)

    monkeypatch.setattr(Tree, "heads_within", by_link)
    with pytest.raises((AssertionError, KeyError)):
        check_that_links_do_not_delete()


@pytest.mark.proves("DEL-005")
def test_a_copy_of_what_was_purged_never_shows_in_whatever_order_it_comes() -> None:
    copy, tomb = change("b:1", 9, "p", 1), change("c:1", 10, "p", DELETE, "b:1")
    late = change("d:1", 8, "p", "lost a race")
    node = Node("a")
    node.hear(copy, late, tomb)
    node.replica.purge(ticks(c=[1]))
    node.turn()
    for again in (node, node.again()):
        assert ["stale", "stale", "stale"] == again.hear(copy, tomb, late)
        assert 0 == again.tree.entries + again.tree.tombstones
        assert ["first"] == again.hear(change("e:1", 20, "p", "written anew"))
    other = Node("a")
    other.replica.settle(ticks(c=[1], b=[1]), "deleted")
    assert ["stale", "stale"] == other.hear(copy, tomb)


@pytest.mark.proves("HEA-004")
def test_what_was_purged_is_no_more_deleted_once_an_entry_that_shows_was_built_on_it() -> None:
    node = Node("a")
    node.hear(change("c:1", 10, "p", DELETE, "b:1"))
    node.replica.purge(ticks(c=[1]))
    node.hear(change("d:1", 20, "p", 1, "c:1 b:1"))
    assert ([], [(1, 1)]) == (list(node.book.deleted("c")), list(node.book.superseded("b")))
    node.turn()
    assert node.digest() == node.again().digest()


def test_known_ticks_are_settled_once_and_durably() -> None:
    node = Node("a")
    node.hear(change("b:3", 9, "p", 1))
    node.turn()
    assert {"b": ticks(b=[(1, 2)])["b"]} == node.book.missing()
    node.replica.settle(ticks(b=[(1, 4)]), "known")
    node.replica.settle(ticks(b=[(2, 3)]), "known")
    (persist,) = node.turn()
    assert isinstance(persist, Persist)
    assert [memory.Settled({"b": [(1, 2), (4, 4)]})] == [memory.memory_of(record) for record in persist.records]
    assert (4, True) == (node.book.top("b"), node.book.is_whole)
    assert node.digest() == node.again().digest()


def test_who_is_dropped_is_heard_only_up_to_there() -> None:
    node = Node("a")
    node.book.caps["b"] = 4
    assert node.book.raise_top("b", 9)
    assert 4 == node.book.top("b")
    assert ["first"] == node.hear(change("b:4", 9, "p", 1))
    with pytest.raises(PeerError):
        node.hear(change("b:5", 10, "p", 2, "b:4"))


def test_who_starts_anew_forgets_all_but_its_conflicts_and_its_tock() -> None:
    node = Node("a")
    node.hear(change("b:1", 12, "p", 1), change("c:1", 10, "p", 2))
    node.write("q", 1)
    node.replica.empty()
    node.replica.rename(node.replica.next_name())
    node.turn()
    for again in (node, node.again()):
        assert ({}, {}, "a~2", 0) == (again.entries(), again.seen(), again.context.name, again.context.tick)
        assert [1] == [conflict.number for conflict in again.replica.conflicts]
        assert again.context.tock > 12
    assert node.digest() == node.again().digest()


# Names


@pytest.mark.proves("STO-034")
def test_a_node_that_hears_of_changes_it_does_not_know_to_have_made_writes_none_until_it_is_told_how() -> None:
    node = Node("a")
    called: list[int] = []
    node.book.on_own_ahead = called.append
    node.write("p", 1)
    node.hear(change("b:1", 9, "q", 1, "a:7"))
    assert ([7], 7) == (called, node.book.own_ahead)
    with pytest.raises(Refusal) as error:
        node.write("p", 2)
    assert "not-ready" == error.value.code
    node.turn()
    assert 7 == node.again().book.own_ahead, "else a restart would write a:2 once more"
    node.book.raise_top("a", 9)
    assert [7, 9] == called
    node.replica.go_on()
    assert 10 == node.write("p", 2).event.tick
    node.turn()
    assert (10, 0) == (node.again().context.tick, node.again().book.own_ahead)
    assert node.digest() == node.again().digest()


@pytest.mark.proves("STO-034")
def test_a_node_that_goes_on_under_another_name_keeps_it_and_all_it_had_written() -> None:
    node = Node("a")
    node.write("p", 1)
    node.hear(change("b:1", 9, "q", 1, "a:7 a~2:1"))
    name = node.replica.next_name()
    assert "a~3" == name
    node.replica.rename(name)
    assert "a~3:1 a:1" == head_and_chain(node.write("p", 2).event)
    node.turn()
    assert NameChanged("a", "a~3", 7) in node.told
    again = node.again()
    assert ("a~3", 1, 2) == (again.context.name, again.context.tick, again.value("p"))
    assert "a~3:2 a:1" == head_and_chain(again.write("p", 3).event)
    again.turn()
    assert again.digest() == again.again().digest()
    assert {"a", "a~3"} == set(again.replica.names)


def test_a_name_that_is_long_is_cut_for_its_number() -> None:
    node = Node("é" * 32)
    name = node.replica.next_name()
    assert ("é" * 31 + "~2", 64) == (name, len(name.encode()))
    node.replica.rename(name)
    node.write("p", 1)
    node.turn()
    assert (name, 1) == (node.again().context.name, node.again().context.tick)


def test_who_is_called_otherwise_by_its_file_keeps_what_it_wrote_before() -> None:
    node = Node("a")
    node.write("p", 1)
    node.turn()
    other = Node("b", node.journal)
    assert ("b", 0, 1) == (other.context.name, other.context.tick, other.value("p"))
    assert "b:1 a:1" == head_and_chain(other.write("p", 2).event)
    other.turn()
    again = Node("b", other.journal)
    assert ("b", 1, 2) == (again.context.name, again.context.tick, again.value("p"))


def test_updates_are_said_as_they_are_kept() -> None:
    node = Node("a")
    written = node.write("p", 1)
    assert [("", Update(written.event))] == node.bus._queue
