"""What becomes of a change that meets another one (STO-010 to STO-016), in every order of arrival."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from tests.store.rig import DELETE, Node, change, events_of, ticks, vectors
from weft.base.changes import Chain, Event
from weft.base.errors import PeerError
from weft.cores.kit.refusals import Refusal
from weft.cores.store import conflicts, limits, memory, merging, replica
from weft.cores.store.messages import ConflictResolved, IdClash, LimitExceeded
from weft.wire.store.pack import LEFT_OUT, pack
from weft.wire.store.ranges import of_wire

MERGES = vectors("merge-")


def played(row: dict[str, Any]) -> dict[str, Any]:
    """A vector's meaning, as replicas see it: in each order the outcomes, the entry, the settled ticks."""
    events = events_of(row["frames"])
    found: dict[str, Any] = {}
    for order in permutations(range(len(events))):
        node = Node("me")
        outcomes = node.hear(*(events[i] for i in order))
        found["".join(map(str, order))] = outcomes, node.entries(), node.seen()
    return found


def promised(row: dict[str, Any]) -> dict[str, Any]:
    """The same as the vector says it."""
    events, means = events_of(row["frames"]), row["means"]
    alone = Node("other")
    alone.hear(events[means["final"]["index"]])
    seen = {node: list(of_wire(those)) for node, those in sorted(means["seen"].items())}
    return {order: (kinds, alone.entries(), seen) for order, kinds in means["kinds"].items()}


def check_vectors() -> None:
    for row in MERGES:
        assert promised(row) == played(row), row["id"]


@pytest.mark.proves("STO-010", "STO-011")
@pytest.mark.parametrize("row", MERGES, ids=lambda row: row["id"])
def test_every_order_of_arrival_gives_the_same_entry_by_the_outcomes_of_the_table(row: dict[str, Any]) -> None:
    assert promised(row) == played(row)


def test_there_are_vectors_for_every_line_of_the_table() -> None:
    outcomes = {kind for row in MERGES for kinds in row["means"]["kinds"].values() for kind in kinds}
    assert {"first", "newer", "stale", "conflict-taken", "conflict-kept"} == outcomes
    assert len(MERGES) == 13


@pytest.mark.parametrize("row", MERGES, ids=lambda row: row["id"])
def test_hearing_everything_again_changes_nothing_and_keeps_nothing(row: dict[str, Any]) -> None:
    node = Node("me")
    events = events_of(row["frames"])
    node.hear(*events)
    node.turn()
    expected = node.entries(), node.seen(), len(node.journal), len(node.told)
    for order in permutations(events):
        node.hear(*order)
        node.turn()
    assert expected == (node.entries(), node.seen(), len(node.journal), len(node.told))


@pytest.mark.proves("STO-011")
def test_the_longer_chain_of_a_duplicate_is_kept_and_its_links_are_settled() -> None:
    node = Node("me")
    assert ["first"] == node.hear(change("b:2", 20, "p", 1, "a:1 …"))
    node.turn()
    assert ["duplicate"] == node.hear(change("b:2", 20, "p", 1, "a:1 c:4"))
    assert (("b", 2), ("a", 1), ("c", 4)) == node.headed("b:2").chain.links
    assert ["duplicate"] == node.hear(change("b:2", 20, "p", 1))
    assert (("b", 2), ("a", 1), ("c", 4)) == node.headed("b:2").chain.links
    node.turn()
    assert node.digest() == node.again().digest()
    assert {"a": [(1, 1)], "b": [(2, 2)], "c": [(4, 4)]} == node.seen()


# Conflicts


def check_that_a_conflict_is_told_once() -> None:
    node = Node("me")
    kept, lost = change("b:1", 12, "p.q", 2), change("a:1", 10, "p.q", 1)
    node.hear(kept, lost, lost, kept, lost)
    node.turn()
    sides = (
        {"node": "b", "tick": 1, "tock": 12, "value": "02", "at": None, "by": ""},
        {"node": "a", "tick": 1, "tock": 10, "value": "01", "at": None, "by": ""},
    )
    assert [ConflictResolved(1, "p.q", "concurrent", *sides)] == node.told
    again = node.again()
    again.hear(lost, kept)
    again.turn()
    assert [] == again.told


@pytest.mark.proves("STO-013")
def test_a_conflict_is_told_once_by_each_node_even_after_a_restart_with_both_sides() -> None:
    check_that_a_conflict_is_told_once()


@pytest.mark.proves("STO-013")
def test_the_loser_of_a_conflict_stands_in_the_journal() -> None:
    node = Node("me")
    lost = change("a:1", 10, "p", "mine")
    node.hear(change("b:1", 12, "p", "other"), lost)
    node.turn()
    assert lost in [memory.event_of(record, ["me"]) for _, record in node.journal]
    assert [change("b:1", 12, "p", "other")] == [e for _, r in node.journal if (e := memory.shown(r, ["me"]))]


@pytest.mark.proves("STO-013")
def test_a_value_that_lost_is_written_again_by_its_number() -> None:
    node = Node("me")
    node.hear(change("b:1", 12, "p", "other"), change("a:1", 10, "p", "mine"))
    written = node.replica.write_again(1, by="joe")
    assert (("me", 1), "mine") == (written.event.chain.head, node.value("p"))
    assert (("me", 1), ("b", 1)) == written.event.chain.links
    node.turn()
    assert [] == list(node.again().replica.conflicts)
    with pytest.raises(Refusal) as error:
        node.replica.write_again(1)
    assert "not-found" == error.value.code


@pytest.mark.proves("ADM-014", part="what lost a conflict")
def test_what_ends_by_itself_ends_when_it_is_written_again_too() -> None:
    node = Node("me")
    lent = replace(change("a:1", 10, "p", "mine"), until=500.0)
    node.hear(change("b:1", 12, "p", "other"), lent)
    assert 500.0 == node.replica.write_again(1).event.until


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((change("b:1", 12, "p", 1), change("a:1", 10, "p", 2)), "concurrent"),
        ((change("b:1", 12, "p", 1), change("a:1", 10, "p", 2, "b:1")), "tock-regression"),
        ((change("a:1", 10, "p", 2, "b:1"), change("b:1", 12, "p", 1)), "tock-regression"),
        ((change("a:1", 10, "p", 1), change("a:1", 10, "p", 2)), "id-clash"),
    ],
)
@pytest.mark.proves("STO-013")
def test_a_conflict_says_why_it_is_one(events: tuple[Event, Event], reason: str) -> None:
    for order in permutations(events):
        node = Node("me")
        node.hear(*order)
        node.turn()
        told = [event for event in node.told if isinstance(event, ConflictResolved)]
        assert [(reason, False)] == [(event.reason, "deleted" in event.lost) for event in told]


def test_old_conflicts_go_when_there_are_too_many_or_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONFLICTS_MAX", 3)
    node = Node("me")
    for tick in range(1, 6):
        node.hear(change(f"b:{tick}", 100 + tick, f"p{tick}", 1), change(f"a:{tick}", tick, f"p{tick}", 2))
    assert [3, 4, 5] == [conflict.number for conflict in node.replica.conflicts]
    monkeypatch.setattr(limits, "CONFLICT_BYTES_MAX", 5_000)
    node.hear(change("b:6", 106, "p6", "x" * 3_000), change("a:6", 6, "p6", "x" * 1_500))
    assert [4, 5, 6] == [conflict.number for conflict in node.replica.conflicts]
    node.hear(change("b:7", 107, "p7", "x" * 3_000), change("a:7", 7, "p7", "x" * 1_500))
    assert [7] == [conflict.number for conflict in node.replica.conflicts]
    monkeypatch.setattr(limits, "LOSSES_MAX", 2)
    kept = conflicts.Conflicts()
    for tick in range(1, 4):
        kept.note(change(f"b:{tick}", 9, "p"), change(f"a:{tick}", 8, "p"), "concurrent")
    assert kept.note(change("b:3", 9, "p"), change("a:3", 8, "p"), "concurrent") is None
    assert kept.note(change("b:1", 9, "p"), change("a:1", 8, "p"), "concurrent") is not None


# One name, two contents


@pytest.mark.proves("STO-016")
def test_of_two_contents_of_one_change_the_greater_bytes_stand_everywhere() -> None:
    low, high = change("a:1", 10, "p", 1), change("a:1", 10, "p", 2)
    gone = change("a:1", 10, "p")
    for order in permutations((low, high, gone)):
        node = Node("me")
        node.hear(*order)
        node.turn()
        assert 2 == node.value("p")
        assert IdClash("p", "a", 1) in node.told
        assert node.digest() == node.again().digest()


@pytest.mark.proves("STO-016")
def test_a_later_tock_alone_is_taken_in_silence() -> None:
    node = Node("me")
    assert ["first", "duplicate", "duplicate"] == node.hear(*(change("a:1", tock, "p", 1) for tock in (10, 14, 12)))
    node.turn()
    assert [] == node.told
    assert 14 == node.at("p").tock
    assert node.digest() == node.again().digest()


@pytest.mark.proves("STO-016")
def test_one_change_of_two_entries_heads_both_until_each_is_replaced() -> None:
    node = Node("me")
    node.hear(change("a:1", 10, "p", 1), change("a:1", 10, "q", 2))
    assert [1, 2] == [node.value("p"), node.value("q")]
    node.hear(change("b:1", 20, "q", 3, "a:1"))
    assert ("p",) == node.headed("a:1").path
    node.hear(change("b:2", 21, "p", 4, "a:1"))
    assert node.tree.by_link(("a", 1)) is None
    assert [] == list(node.book.present("a"))
    other = Node("me")
    other.hear(change("a:1", 10, "p", 1), change("a:1", 10, "q", 2), change("b:2", 21, "p", 4, "a:1"))
    assert ("q",) == other.headed("a:1").path


def test_floats_that_a_server_cut_are_the_same_change_and_the_whole_ones_are_kept() -> None:
    whole = change("a:1", 10, "p", [1.1, {"x": 2.5}])
    cut = Event(whole.chain, 10, ("p",), bytes.fromhex("92ca3f8ccccd81a178ca40200000"))
    widened = change("a:1", 10, "p", [1.100000023841858, {"x": 2.5}])
    for order in (*permutations((whole, cut, widened)), (whole, cut), (cut, whole)):
        node = Node("me")
        assert ["first", *["duplicate"] * (len(order) - 1)] == node.hear(*order)
        node.turn()
        assert ([], [1.1, {"x": 2.5}]) == (node.told, node.value("p"))
        assert node.digest() == node.again().digest()


# What may not be


@pytest.mark.proves("STO-006")
@pytest.mark.parametrize(
    ("event", "code"),
    [
        (Event(Chain((("a", 1), ("b", 2), ("a", 3))), 5, ("p",), None), "bad-chain"),
        (Event(Chain(()), 5, ("p",), None), "bad-chain"),
        (Event(Chain((("a", 0),)), 5, ("p",), None), "bad-chain"),
        (Event(Chain((("a", 1 << 63),)), 5, ("p",), None), "bad-chain"),
        (Event(Chain(tuple((f"n{i}", 1) for i in range(65))), 5, ("p",), None), "bad-chain"),
        (change("a:1", 5, ".".join("x" * 65)), "bad-path"),
        (Event(Chain((("a", 1),)), 5, ("p", None), None), "bad-path"),
        (Event(Chain((("a", 1),)), 5, ("p", 1.5), None), "bad-path"),
        (change("a:1", (1 << 32) + 2, "p"), "tock-jump"),
        (change("gone:8", 5, "p"), "dropped"),
    ],
)
def test_what_may_not_be_said_changes_nothing(event: Event, code: str) -> None:
    node = Node("me")
    node.context.takes_any_tock = False
    node.book.caps["gone"] = 7
    node.context.tock = 1
    node.turn()
    expected = node.digest(), node.book.tops(), node.context.tock
    with pytest.raises(PeerError) as error:
        node.hear(event)
    assert code == error.value.code
    assert ([], []) == (node.turn(), node.changes)
    assert expected == (node.digest(), node.book.tops(), node.context.tock)


@pytest.mark.proves("STO-007")
def test_any_jump_of_the_tock_is_taken_by_one_who_knows_nothing_yet() -> None:
    node = Node("me")
    assert ["first"] == node.hear(change("a:1", 1 << 61, "p", 1))
    assert (1 << 61) + 1 == node.write("q", 1).event.tock


@pytest.mark.proves("STO-005")
def test_a_value_that_is_too_large_is_left_out_and_its_change_is_settled() -> None:
    node = Node("me")
    big = Event(Chain((("a", 1), ("b", 4))), 5, ("p",), pack("x" * (1 << 20)))
    assert ["first"] == node.hear(big)
    node.turn()
    assert LEFT_OUT == node.at("p").value
    assert {"a": [(1, 1)], "b": [(4, 4)]} == node.seen()
    assert ["duplicate"] == node.hear(big)
    assert node.digest() == node.again().digest()


@pytest.mark.proves("STO-005")
def test_more_entries_than_allowed_are_kept_from_others_told_once_and_refused_to_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ENTRIES_MAX", 2)
    node = Node("me")
    node.hear(*(change(f"a:{tick}", 10 + tick, f"p{tick}", tick) for tick in range(1, 5)))
    node.turn()
    assert [LimitExceeded("entries", 2)] == node.told
    assert 4 == node.tree.entries
    with pytest.raises(Refusal) as error:
        node.write("p9", 1)
    assert "too-large" == error.value.code
    assert node.write("p1", 7).changed


def test_orders_make_as_many_entries_as_allowed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES_MAX", 2)
    node = Node("me")
    assert node.write("p1", 1).changed
    assert node.write("p2", 1).changed
    with pytest.raises(Refusal):
        node.write("p3", 1)


def test_more_nodes_or_ranges_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODES_MAX", 2)
    monkeypatch.setattr(limits, "RANGES_MAX", 2)
    node = Node("me")
    node.hear(change("a:2", 10, "p", 1), change("a:4", 11, "p", 1), change("b:1", 12, "q", 1))
    for refused in (change("c:1", 13, "p"), change("a:9", 13, "p"), change("b:2", 13, "p", 1, "c:1")):
        with pytest.raises(PeerError) as error:
            node.hear(refused)
        assert "too-large" == error.value.code
    node.turn()
    assert {LimitExceeded("nodes", 2), LimitExceeded("ranges", 2)} == set(node.told)
    assert ["conflict-taken"] == node.hear(change("a:3", 13, "p", 1))
    node.replica.settle(ticks(z=[1], a=[1]), "known")
    assert {"a": [(1, 4)], "b": [(1, 1)]} == node.seen()
    assert not node.book.raise_top("z", 5)


# Planted bugs


def _in_order_of_arrival(self: Event, other: Event) -> bool:
    if self.tock != other.tock:
        return self.tock > other.tock
    return True


def _by_the_higher_name(self: Event, other: Event) -> bool:
    return (self.tock, self.tick, self.node) > (other.tock, other.tick, other.node)


def _by_text(self: Event, other: Event) -> bool:
    mine, theirs = (self.tock, self.tick), (other.tock, other.tick)
    return mine > theirs if mine != theirs else self.node.lower() < other.node.lower()


@pytest.mark.parametrize("bug", [_in_order_of_arrival, _by_the_higher_name, _by_text])
def test_a_wrong_order_is_caught_by_the_vectors(bug: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Event, "beats", bug)
    with pytest.raises(AssertionError):
        check_vectors()


def test_links_that_are_not_settled_are_caught_by_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chain, "covers", lambda self, link: self.links[0] == link)
    with pytest.raises(AssertionError):
        check_vectors()


def test_a_conflict_that_is_not_told_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "judge", lambda event, current: (merging.judge(event, current)[0], ""))
    with pytest.raises(AssertionError):
        check_that_a_conflict_is_told_once()


def check_that_null_is_a_value() -> None:
    node = Node("me")
    node.write("p", None)
    node.hear(change("a:1", 10, "q", None), change("a:2", 11, "r", None), change("b:3", 12, "r", DELETE, "a:2"))
    assert (2, 1) == (node.tree.entries, node.tree.tombstones)
    assert [None, None, DELETE] == [node.value(path) for path in "pqr"]


@pytest.mark.proves("STO-003")
def test_null_is_a_value_and_no_value_is_a_deletion() -> None:
    check_that_null_is_a_value()


def test_a_null_that_deletes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = replica.Replica._admitted

    def planted(self: replica.Replica, event: Event) -> Event:
        event = admitted(self, event)
        is_null = event.value == pack(None)
        return Event(event.chain, event.tock, event.path, None) if is_null else event

    monkeypatch.setattr(replica.Replica, "_admitted", planted)
    with pytest.raises(AssertionError):
        check_that_null_is_a_value()
