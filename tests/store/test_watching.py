"""A watch loses nothing and shows nothing older after something newer, however slow its client is (CLN-010, CLN-011)."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.examples import examples
from tests.store.desk import Desk, Visitor, value_of
from tests.store.rig import DELETE, Node, change
from weft.base.now import SECOND
from weft.base.ranges import RangeSet
from weft.base.records import StreamRecord
from weft.base.spool import Journaled
from weft.cores.store import limits
from weft.cores.store.watching import WatchStream
from weft.wire.store.clients import Answer, PathExpander
from weft.wire.store.pack import unpack
from weft.wire.store.path import text_of


def filled(count: int = 5) -> Desk:
    desk = Desk("n1")
    for number in range(count):
        desk.node.write(f"a.{number}", number)
    desk.settle()
    return desk


@pytest.mark.proves("CLN-010")
def test_a_watch_shows_what_is_there_and_then_what_changes() -> None:
    desk = filled(2)
    client = desk.client()
    seq = client.open("watch", path="a", fetch=True)
    assert ["start", ("0", 0), ("1", 1), "uptodate"] == client.told(seq)
    client.ask("set_value", path="a.0", value=7)
    client.ask("set_value", path="b", value=7)
    client.ask("delete_value", path="a.1")
    desk.node.hear(change("b:1", 99, "a.x", "far"))
    desk.settle()
    assert [("0", 7), ("1",), ("x", "far")] == client.told(seq)


def test_without_fetch_only_changes_are_shown() -> None:
    desk = filled(2)
    client = desk.client()
    seq = client.start("watch", path="a")
    client.start("set_value", path="a.0", value=5)
    client.start("set_value", path="a.0", value=6)
    desk.settle()
    assert ["start", ("0", 5), ("0", 6)] == client.told(seq)


def test_what_was_written_before_in_the_same_turn_is_not_shown_twice() -> None:
    desk = filled(1)
    client = desk.client()
    client.start("set_value", path="a.0", value=5)
    seq, plain = client.start("watch", path="a", fetch=True), client.start("watch", path="a")
    client.start("set_value", path="a.0", value=6)
    desk.settle()
    assert (["start", ("0", 5), "uptodate", ("0", 6)], ["start", ("0", 6)]) == (client.told(seq), client.told(plain))


def test_losers_are_not_shown_and_winners_are() -> None:
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a")
    before = ["n1", len(desk.node.journal), 0]
    desk.node.hear(change("b:1", 90, "a.0", "won"), change("c:1", 80, "a.0", "lost"), change("d:1", 95, "a.0", "later"))
    desk.settle()
    assert ["start", ("0", "won"), ("0", "later")] == client.told(seq)
    # The same from the journal.
    late = client.open("watch", path="a", mode="all", since=before)
    assert ["start", ("0", "won"), ("0", "later"), "uptodate"] == client.told(late)


def come_back(desk: Desk, records: list[StreamRecord]) -> None:
    """What this node has written once comes up the tree: its node, a root now, forwards it for another."""
    back = tuple(msgspec.structs.replace(record, received=record.received + SECOND) for record in records)
    first = len(desk.node.journal) + 1
    desk.node.journal += enumerate(back, first)
    desk.serving.journaled(Journaled(first, back), desk.now)


@pytest.mark.proves("CLN-010")
def test_a_change_that_comes_back_up_the_tree_to_who_made_it_was_shown_again_behind_later_ones() -> None:
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a", mode="all")
    position = ["n1", len(desk.node.journal), 0]
    client.ask("set_value", path="a.0", value="later")
    come_back(desk, [record for _, record in desk.node.journal if isinstance(record, StreamRecord)][:1])
    desk.settle()
    assert ["start", "uptodate", ("0", "later")] == client.told(seq)
    # The same from the journal, and after a restart.
    for at in (desk, Desk("n1", desk.node.journal)):
        again = at.client()
        late = again.open("watch", path="a", mode="all", since=position)
        assert ["start", ("0", "later"), "uptodate"] == again.told(late)


@pytest.mark.proves("DEL-005")
def test_a_stale_copy_that_is_removed_is_shown_as_a_deletion() -> None:
    desk = filled(1)
    desk.node.hear(change("b:1", 90, "a.old", "long deleted elsewhere"))
    desk.settle()
    client = desk.client()
    seq = client.open("watch", path="a", fetch=True, mode="all")
    client.told(seq)
    position = ["n1", len(desk.node.journal), 0]
    desk.node.replica.settle({"b": RangeSet([(1, 1)])}, "deleted")
    desk.settle()
    assert [("old",)] == client.told(seq)
    late = client.open("watch", path="a", mode="all", since=position)
    assert ["start", ("old",), "uptodate"] == client.told(late)


def test_depths_bound_what_is_watched() -> None:
    desk = Desk("n1")
    client = desk.client()
    seq = client.open("watch", path="a", min_depth=1, max_depth=2)
    for path in ("a", "a.b", "a.b.c", "a.b.c.d", "ab"):
        client.ask("set_value", path=path, value=1)
    assert ["start", ("b", 1), ("b.c", 1)] == client.told(seq)


def test_what_stands_at_the_watched_path_itself_is_watched_too() -> None:
    desk = filled(1)
    client = desk.client()
    seqs = [client.open("watch", path=path) for path in ("a.0", ":")]
    client.ask("set_value", path="a.0", value=7)
    client.ask("set_value", path=":", value=8)
    assert [["start", (":", 7)], ["start", ("a.0", 7), (":", 8)]] == [client.told(seq) for seq in seqs]


def test_elements_that_python_takes_for_one_are_watched_apart() -> None:
    desk = Desk("n1")
    client = desk.client()
    one, true = client.open("watch", path=("a", 1)), client.open("watch", path=("a", True))
    client.ask("set_value", path=("a", 1, "x"), value="one")
    client.ask("set_value", path=("a", True, "x"), value="true")
    assert ["start", ("x", "one")] == client.told(one)
    assert ["start", ("x", "true")] == client.told(true)


def test_a_snapshot_of_many_pieces_misses_nothing_that_changes_meanwhile() -> None:
    desk = filled(3_000)
    client = desk.client()
    seq = client.start("watch", path="a", fetch=True)
    desk.turn()
    for number, value in ((0, "early"), (2_999, "late"), (1_500, "x"), (1_500, "y")):
        desk.node.write(f"a.{number}", value)
    desk.node.write("a.7")
    desk.node.write("a.new", 1)
    desk.settle()
    words = client.told(seq)
    assert ("start", "uptodate", 1) == (words[0], words[-1], words.count("uptodate"))
    mirror: dict[str, Any] = {}
    for path, *value in words[1:-1]:
        mirror[path] = value[0] if value else DELETE
    assert {"0": "early", "2999": "late", "1500": "y", "7": DELETE, "new": 1} == {
        key: value for key, value in mirror.items() if value != (int(key) if key.isdecimal() else None)
    }


@pytest.mark.proves("CLN-010", "CLN-001")
def test_a_watcher_that_acknowledges_late_gets_everything_in_order() -> None:
    desk = filled(1)
    client = desk.client(qlen=10, acks=False)
    seq = client.open("watch", path="a", fetch=True)
    for number in range(1_000):
        desk.node.write("a.0", number)
        if number % 3 == 0:
            desk.settle()
    desk.settle()
    heard = client.heard(seq)
    assert 10 == len(heard)
    while heard[-1].wseq < 1_003:
        client.acknowledge(seq, heard[-1].wseq)
        desk.settle()
        heard += client.heard(seq)
    values = [value_of(answer) for answer in heard if answer.path is not UNSET]
    assert [0, *range(1_000)] == values
    assert list(range(1, 1_004)) == [answer.wseq for answer in heard]


def behind(count: int) -> tuple[Desk, Visitor, int, int]:
    """A paused watcher, so many changes later; and how many changes are held for it."""
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a", fetch=True)
    client.heard(seq)
    client.pause()
    desk.node.write("a.0", -1)
    desk.settle()
    for number in range(count):
        desk.node.write("a.0", number)
        if number % 100 == 0:
            desk.settle()
            desk.turns.clear()
    desk.settle()
    [watcher] = desk.serving._clients[client.peer].streams.values()
    assert isinstance(watcher, WatchStream)
    return desk, client, seq, len(watcher._ahead)


@pytest.mark.proves("CLN-010")
def test_a_watcher_far_behind_costs_no_more_than_one_a_little_behind() -> None:
    held = [behind(count)[3] for count in (200, 2_000)]
    assert [64, 64] == held
    desk, client, seq, _ = behind(2_000)
    client.resume()
    desk.settle()
    assert [-1, *range(2_000)] == [value_of(answer) for answer in client.heard(seq)]


def test_an_unbounded_queue_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary: watcher queue unbounded."""
    monkeypatch.setattr(limits, "WATCH_AHEAD", 1 << 30)
    held = [behind(count)[3] for count in (200, 400)]
    assert held[0] != held[1]


@pytest.mark.proves("CLN-010")
def test_the_latest_values_are_enough_for_who_asks_for_them() -> None:
    desk = filled(3)
    client = desk.client()
    seq = client.open("watch", path="a", mode="latest")
    client.told(seq)
    client.pause()
    for number in range(2_000):
        desk.node.write(f"a.{number % 3}", number)
        desk.settle()
    client.resume()
    desk.settle()
    words = client.told(seq)
    assert {("0", 1_998), ("1", 1_999), ("2", 1_997)} == set(words[-3:])
    assert len(words) <= 64 + 3


def last_position(answers: list[Answer]) -> Any:
    return [answer.position for answer in answers if answer.position is not UNSET][-1]


@pytest.mark.proves("CLN-011")
def test_a_watch_goes_on_where_it_was_after_a_reconnect_and_a_restart() -> None:
    desk = filled(2)
    client = desk.client()
    seq = client.open("watch", path="a", mode="all")
    client.ask("set_value", path="a.0", value="seen")
    position = last_position(client.heard(seq))
    client.leave()
    desk.node.write("a.0", "missed")
    desk.node.write("a.1")
    desk.settle()
    again = desk.client()
    late = again.open("watch", path="a", mode="all", since=position, fetch=True)
    assert ["start", ("0", "missed"), ("1",), "uptodate"] == again.told(late)
    restarted = Desk("n1", desk.node.journal)
    other = restarted.client()
    later = other.open("watch", path="a", mode="all", since=position)
    restarted.node.write("a.0", "more")
    restarted.settle()
    assert ["start", ("0", "missed"), ("1",), "uptodate", ("0", "more")] == other.told(later)


@pytest.mark.proves("CLN-011", "CLN-001")
def test_a_watch_that_goes_on_far_behind_is_shown_everything_as_it_takes_it() -> None:
    desk = filled(1)
    position = ["n1", len(desk.node.journal), 0]
    for number in range(1_500):
        desk.node.write("a.0", number)
    desk.settle()
    client = desk.client(qlen=10)
    words = client.told(client.open("watch", path="a", mode="all", since=position))
    assert ["start", *(("0", number) for number in range(1_500)), "uptodate"] == words


@pytest.mark.proves("CLN-011")
def test_the_position_of_uptodate_is_one_too() -> None:
    desk = filled(2)
    client = desk.client()
    position = last_position(client.heard(client.open("watch", path="a", mode="all", fetch=True)))
    desk.node.write("a.0", "next")
    desk.settle()
    late = client.open("watch", path="a", mode="all", since=position)
    assert ["start", ("0", "next"), "uptodate"] == client.told(late)
    last = client.open("watch", path="a", mode="all", since=["n1", len(desk.node.journal), 0])
    assert ["start", "uptodate"] == client.told(last)


@pytest.mark.proves("CLN-010", "CLN-011")
def test_a_position_in_a_journal_that_is_lost_is_a_gap_though_the_new_one_is_longer() -> None:
    client = filled(2).client()
    position = last_position(client.heard(client.open("watch", path="a", mode="all", fetch=True)))
    replaced = Desk("n1")
    replaced.node.context.tock = 1_000  # of the others, from whom it joined
    for number in range(9):
        replaced.node.write(f"a.{number}", number)
    replaced.settle()
    late = replaced.client()
    words = late.told(late.open("watch", path="a", mode="all", since=position))
    assert ["start", "gap", *((str(number), number) for number in range(9)), "uptodate"] == words


@pytest.mark.proves("CLN-010")
def test_a_position_that_retention_has_passed_is_a_gap_and_a_snapshot() -> None:
    desk = filled(20)
    client = desk.client()
    desk.forgotten = 10
    for since in (["n1", 5, 0], ["n1", 10, 0], ["elsewhere", 3, 0], ["n1", 9_999, 0], ["n1", 15, 12_345]):
        words = client.told(client.open("watch", path="a", mode="all", since=since))
        assert (["start", "gap", ("0", 0)], "uptodate", 23) == (words[:3], words[-1], len(words))


@pytest.mark.proves("CLN-010")
def test_a_watcher_that_retention_passes_while_it_waits_hears_of_the_gap() -> None:
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a", fetch=True)
    client.told(seq)
    client.pause()
    for number in range(500):
        desk.node.write("a.0", number)
        desk.settle()
    desk.forgotten = 400
    client.resume()
    desk.settle()
    words = client.told(seq)
    assert [("0", number) for number in range(64)] == words[:64]
    assert ["gap", ("0", 499), "uptodate"] == words[64:]
    client.ask("set_value", path="a.0", value="on")
    assert [("0", "on")] == client.told(seq)


def test_many_watchers_that_are_behind_are_read_for_in_turn() -> None:
    desk = filled(1)
    clients = [desk.client() for _ in range(5)]
    seqs = [client.open("watch", path="a") for client in clients]
    for client in clients:
        client.pause()
    for number in range(1_000):
        desk.node.write("a.0", number)
        if number % 50 == 0:
            desk.settle()
    for client in clients:
        client.resume()
    desk.settle()
    for client, seq in zip(clients, seqs, strict=True):
        assert [("0", number) for number in range(1_000)] == client.told(seq)[1:]


def test_stopping_a_watch_ends_it() -> None:
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a")
    assert client.ask("stop", task=seq).result is True
    assert client.ask("stop", task=seq).result is False
    client.ask("set_value", path="a.0", value=1)
    assert ["start", "end"] == client.told(seq)


def test_nothing_is_told_behind_the_end_of_a_watch_that_the_journal_is_read_for() -> None:
    desk = filled(1)
    client = desk.client()
    seq = client.open("watch", path="a")
    client.pause()
    for number in range(1_000):
        desk.node.write("a.0", number)
        desk.turn()
    client.resume()
    while not desk.fetches:
        desk.turn()
    assert client.ask("stop", task=seq).result is True
    assert "end" == client.told(seq)[-1]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.just("hear"), st.integers(0, 3)),
        st.tuples(st.sampled_from(("settle", "turn", "pause", "resume", "cut", "restart")), st.just(0)),
    ),
    max_size=60,
)


def write_something(desk: Desk, number: int, what: str, which: int) -> bool:
    """A change of this node or of another one, newer or older than what is there; False: that is none."""
    if what == "hear":
        tock = max(1, desk.node.context.tock + (number % 5) - 2)
        desk.node.context.hear_tock(tock)
        desk.node.hear(change(f"b:{number + 1}", tock, f"a.{which}", number))
    elif what in ("write", "delete"):
        desk.node.write(f"a.{which}", *([number] if what == "write" else []))
    else:
        return False
    return True


class Follower:
    """A client that watches, is cut off now and then, and comes back at its position."""

    def __init__(self, desk: Desk, qlen: int) -> None:
        self.qlen = qlen
        self.position: Any = None
        self.seen: list[tuple[str, Any]] = []
        self.come(desk)

    def come(self, desk: Desk) -> None:
        self.client = desk.client(qlen=self.qlen)
        self.seq = self.client.open("watch", path="a", mode="all", since=self.position)
        self.paths = PathExpander()

    def look(self) -> None:
        for answer in self.client.heard(self.seq):
            assert answer.state != "gap"
            if answer.position is not UNSET:
                self.position = answer.position
            if answer.path is not UNSET and answer.depth is not UNSET:
                path = text_of(self.paths.full(answer.depth, answer.path))
                self.seen.append((path, value_of(answer) if bytes(answer.value) else DELETE))


@pytest.mark.proves("CLN-010", "CLN-011")
@given(STEPS, st.sampled_from((0, 2, 10)))
def test_a_watcher_with_cuts_sees_the_history(steps: list[tuple[str, int]], qlen: int) -> None:
    """P8: whatever interrupts it, a watcher is shown each change that readers could see, once, in order."""
    desk = Desk("n1")
    desk.node.write("a", "first")
    desk.settle()
    history: list[tuple[str, Any]] = []

    def listen(node: Node) -> None:
        node.replica.listeners.append(
            lambda change: (
                history.append((text_of(change.event.path[1:]), change.event.value)) if change.is_shown else None
            )
        )

    listen(desk.node)
    follower = Follower(desk, qlen)
    for number, (what, which) in enumerate(steps):
        if write_something(desk, number, what, which):
            continue
        if what == "settle":
            desk.settle()
        elif what == "turn":
            desk.turn()
        elif what in ("pause", "resume"):
            getattr(follower.client, what)()
        else:
            desk.settle()
            follower.look()
            follower.client.leave()
            if what == "restart":
                desk = Desk("n1", desk.node.journal)
                listen(desk.node)
            follower.come(desk)
    follower.client.resume()
    desk.settle()
    follower.look()
    assert [(path, DELETE if value is None else unpack(value)) for path, value in history] == follower.seen


ROUNDS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("hear"), st.integers(0, 9)),
        st.tuples(st.sampled_from(("turn", "pause", "resume", "watch")), st.just(0)),
    ),
    max_size=60,
)


def mirrored(rounds: list[tuple[str, int]], qlen: int) -> None:
    """Watchers begin with a snapshot in pieces of a few entries, whatever is written meanwhile."""
    desk = Desk("n1")
    for number in range(10):
        desk.node.write(f"a.{number}", number)
    desk.settle()
    watches: list[tuple[Visitor, int]] = []
    for number, (what, which) in enumerate(rounds):
        if what == "watch":
            client = watches[0][0] if watches else desk.client(qlen=qlen)
            watches.append((client, client.start("watch", path="a", fetch=True, empty=True)))
        elif what in ("pause", "resume"):
            getattr(watches[0][0], what)() if watches else None
        elif not write_something(desk, number, what, which):
            desk.turn()
    for client, _ in watches[:1]:
        client.resume()
    desk.settle()
    there = {text_of(event.path[1:]): (event.tock, event.value) for event in desk.node.tree.walk(("a",))}
    for client, seq in watches:
        assert (there, ["start", "uptodate"]) == mirror_of(client.heard(seq))


def mirror_of(answers: list[Answer]) -> tuple[dict[str, tuple[int, bytes | None]], list[str]]:
    """What a client knows after these, and the states that it was told; nothing older may follow something newer."""
    paths, seen, states = PathExpander(), dict[str, tuple[int, bytes | None]](), list[str]()
    for answer in answers:
        if answer.path is UNSET or answer.depth is UNSET:
            states.append(answer.state)
            continue
        path = text_of(paths.full(answer.depth, answer.path))
        assert answer.tock >= seen.get(path, (0, None))[0], "older after newer"
        seen[path] = (answer.tock, bytes(answer.value) or None)
    return seen, states


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAM_STEPS", 3)
    monkeypatch.setattr(limits, "TURN_STEPS", 4)
    monkeypatch.setattr(limits, "WATCH_AHEAD", 2)
    monkeypatch.setattr(limits, "WATCH_FETCH_BYTES", 1_000)


@pytest.mark.proves("CLN-010")
@pytest.mark.usefixtures("small_pieces")
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROUNDS, st.sampled_from((0, 2, 10)))
def test_a_snapshot_and_what_follows_mirror_the_tree_and_never_go_back(
    rounds: list[tuple[str, int]], qlen: int
) -> None:
    mirrored(rounds, qlen)


@pytest.mark.usefixtures("small_pieces")
def test_a_change_of_the_time_of_a_snapshot_that_is_shown_late_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [
        ("watch", 0),
        ("turn", 0),
        *(("write", 9) for _ in range(3)),
        ("turn", 0),
        ("write", 9),
        *[("turn", 0)] * 4,
    ]
    mirrored(rounds, 0)
    settle = WatchStream.settle

    def careless(self: WatchStream, last_lsn: int) -> None:
        settle(self, last_lsn)
        self._settled = 0

    monkeypatch.setattr(WatchStream, "settle", careless)
    monkeypatch.setattr(WatchStream, "_end_snapshot", _forgetful(WatchStream._end_snapshot))
    with pytest.raises(AssertionError):
        mirrored(rounds, 0)


def _forgetful(end: Any) -> Any:
    def end_snapshot(self: WatchStream) -> None:
        end(self)
        self._settled = 0

    return end_snapshot
