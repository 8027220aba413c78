"""When deletions are forgotten, and what becomes of nodes that do not come back (DEL-002..007; T14, S10, P10)."""

import random
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from tests.store.fleet import Fleet
from tests.store.net import Net
from tests.store.rig import DELETE, Node, change, ticks
from weft.base.changes import Event
from weft.base.effects import Reply, Send
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.bus import MQTT
from weft.cores.store.deletion import Deletion
from weft.cores.store.messages import (
    BecameReadOnly,
    ChangesOrphaned,
    DropNode,
    NodeDropped,
    ReplayOrphans,
    SetDeleters,
    StoreRefused,
    TombstonesPurged,
)
from weft.cores.store.replica import Replica
from weft.cores.store.states import State
from weft.cores.store.ticks import TickBook
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Message, Update
from weft.wire.store.pack import pack
from weft.wire.store.path import key_of

C = 5 * SECOND
AGE = limits.BURIED_CLOCKS * C


class Keeper(Node):
    """A replica that forgets deletions."""

    def __init__(self, name: str, *, is_head: bool = True, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.deletion = Deletion(self.context, self.bus, self.replica)
        self.replies: list[Any] = []
        self.deletion.positions = lambda: [name] if is_head else ["other", name]
        self.replica.listeners.append(self.deletion.listen)
        self.shown: dict[bytes, Event] = {}
        """Per path the greatest deletion that readers here have seen."""

    def until(self, mono: int) -> list[Message]:
        """Time passes; what it says then."""
        while (due := self.deletion.deadline()) is not None and due <= mono:
            self.context.now = Now(max(due, self.context.now.mono), max(due, self.context.now.mono))
            self.deletion.wake(self.context.now)
        self.context.now = Now(mono, mono)
        return self.said()

    def said(self) -> list[Message]:
        found: list[Message] = []
        for effect in self.turn():
            if isinstance(effect, Send) and effect.channel == MQTT:
                found += codec.decode(effect.peer.decode(), effect.message.payload)
            elif isinstance(effect, Reply):
                self.replies.append(effect.answer)
        return found

    def take(self, *messages: Message) -> None:
        """Hear them, as the core and its recovery do with what is said of changes."""
        for message in messages:
            if isinstance(message, Update):
                self.hear(message.event)
            elif isinstance(message, Info) and message.node != self.context.name:
                if message.deleted:
                    self.replica.settle(message.deleted, "deleted")
                self.deletion.hear_info(message, message.node, self.context.now)

    def stands_right(self) -> bool:
        """DEL-005: nothing that a deletion shown here beat is shown again."""
        for event in self.tree.walk():
            if event.is_deletion:
                before = self.shown.get(key_of(event.path))
                if before is None or event.beats(before):
                    self.shown[key_of(event.path)] = event
        return not any(
            event is not None and not event.is_deletion and not event.beats(shown)
            for shown in self.shown.values()
            for event in [self.tree.get(shown.path)]
        )


def haves(messages: list[Message]) -> list[Any]:
    return [message.have for message in messages if isinstance(message, Info) and message.have is not None]


def gone(messages: list[Message]) -> list[Any]:
    return [message.deleted for message in messages if isinstance(message, Info) and message.deleted]


def trio(**settings: Any) -> tuple[Keeper, Keeper, Keeper]:
    """a wrote p, b deleted it, all three have heard of both, and each has a change of its own."""
    a, b, c = Keeper("a", **settings), Keeper("b", is_head=False), Keeper("c", is_head=False)
    a.write("p", 1)
    first = a.said()
    b.take(*first)
    b.write("p")
    c.write("own", 3)
    second, third = b.said(), c.said()
    c.take(*first, *second)
    b.take(*third)
    a.take(*second, *third)
    return a, b, c


# Saying what one has


@pytest.mark.proves("DEL-002")
def test_a_node_says_what_it_has_every_twenty_clocks_if_it_changed_and_all_of_it_each_tenth_time() -> None:
    node = Keeper("a")
    node.write("x", 1)
    node.deletion.recall(Now(0, 0))
    assert [ticks(a=[1])] == haves(node.until(0))
    assert [] == haves(node.until(20 * C - 1))
    node.hear(change("b:1", 50, "y", 1))
    assert [ticks(b=[1])] == haves(node.until(20 * C))
    assert [] == haves(node.until(199 * C))
    assert [ticks(a=[1], b=[1])] == haves(node.until(200 * C))


@pytest.mark.proves("DEL-002")
def test_what_has_no_room_in_one_message_is_said_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RANGES_PER_INFO", 3)
    node = Keeper("a")
    for name, count in (("b", 2), ("c", 2), ("d", 9)):
        node.book.see_all(name, RangeSet((tick, tick) for tick in range(1, 2 * count, 2)))
    node.deletion.recall(Now(0, 0))
    assert [ticks(b=[1, 3]), ticks(c=[1, 3]), ticks(d=[1, 3, 5])] == haves(node.until(0))


# Forgetting


@pytest.mark.proves("DEL-003", "DEL-004")
def test_a_deletion_that_all_have_is_forgotten_and_its_ticks_are_told() -> None:
    a, b, c = trio()
    for node in (b, c):
        a.take(Info(node=node.context.name, tick=1, tock=99, have=ticks(a=[1], b=[1], c=[1])))
    assert [] == gone(a.until(AGE - C))
    a.deletion.heard("b", a.context.now)
    a.deletion.heard("c", a.context.now)
    said = a.until(AGE + C)
    assert [ticks(a=[1], b=[1])] == gone(said)
    assert (0, [TombstonesPurged(1)]) == (a.tree.tombstones, a.told)
    c.take(*said)
    assert 0 == c.tree.tombstones
    again = a.again()
    assert (a.seen(), ticks(a=[1])["a"], []) == (again.seen(), again.book.deleted("a"), list(again.book.missing()))


@pytest.mark.proves("DEL-003")
@pytest.mark.parametrize("lack", ["head", "link", "level", "silent", "young", "not-head", "guest"])
def test_a_deletion_is_kept_as_long_as_anything_is_open(lack: str) -> None:
    a, _, _ = trio()
    have = {"head": ticks(a=[1], c=[1]), "link": ticks(b=[1], c=[1])}.get(lack, ticks(a=[1], b=[1], c=[1]))
    if lack == "level":
        have["c"] = RangeSet([(1, 2)])  # a change that c made before it had the deletion, and a has not heard of
    a.take(Info(node="b", tick=1, tock=99, have=have if lack == "head" else ticks(a=[1], b=[1], c=[1])))
    a.take(Info(node="c", tick=1, tock=99, have=have))
    a.deletion.is_member = lambda: lack != "guest"
    if lack == "not-head":
        a.deletion.positions = lambda: ["b", "a"]
    now = AGE - C if lack == "young" else AGE + C
    a.until(now - 2 * C)
    for name in ("b", "c"):
        if lack != "silent" or name == "b":
            a.deletion.heard(name, a.context.now)
    assert ([], 1) == (gone(a.until(now)), a.tree.tombstones)


@pytest.mark.proves("DEL-003")
def test_named_deleters_are_waited_for_and_nobody_else() -> None:
    a, b, _ = trio()
    a.deletion.set_deleters(SetDeleters(1, ("a", "b")), a.context.now)
    b.take(*a.said())
    assert [{"deleters": ["a", "b"]}] == a.replies
    a.take(Info(node="b", tick=1, tock=99, have=ticks(a=[(1, 2)], b=[1], c=[1])))
    a.until(AGE - C)
    a.deletion.heard("b", a.context.now)
    assert [ticks(a=[1], b=[1])] == gone(a.until(AGE + C))
    a.deletion.set_deleters(SetDeleters(2, ()), a.context.now)
    assert ["a", "b", "c"] == a.deletion.deleters


@pytest.mark.proves("DEL-004")
def test_an_old_copy_goes_and_an_entry_that_was_written_again_stays() -> None:
    old, new = Keeper("c"), Keeper("d")
    old.hear(change("a:1", 1, "p", 1))
    new.hear(change("d:1", 9, "p", 2, "b:1 a:1"))
    deleted = Info(node="a", tick=1, tock=9, deleted=ticks(a=[1], b=[1]))
    old.take(deleted)
    new.take(deleted)
    assert (None, 2) == (old.tree.get(("p",)), new.value("p"))


def test_an_entry_written_again_would_go_if_deleted_named_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def removes(self: Replica, wrong: Any) -> Any:
        new, removed = right(self, wrong)
        for event in list(self.tree.walk()):
            if any(tick in wrong.get(node, RangeSet()) for node, tick in event.chain.links):
                self.tree.remove(event)
        return new, removed

    right = Replica._deleted
    monkeypatch.setattr(Replica, "_deleted", removes)
    with pytest.raises(KeyError):
        test_an_old_copy_goes_and_an_entry_that_was_written_again_stays()


def test_an_absent_node_asks_what_is_forgotten_of_what_it_has() -> None:
    node, asked = Keeper("a"), []
    node.hear(change("b:3", 9, "p", 1, "a:1"))
    node.deletion.on_ask = lambda names, of, now: asked.append((names, of))
    node.deletion.away(["b"], node.context.now)
    assert [(["b"], ticks(b=[3], a=[]))] == asked


# No order of messages brings it back (P10)

Op = tuple[int, int, int]


def play(ops: list[Op]) -> tuple[bool, list[Keeper], list[Message]]:
    """Three nodes write and delete two entries, say what they have, purge; messages arrive in any order, often or never."""
    nodes = [Keeper(name) for name in "abc"]
    for node in nodes:
        node.write(f":n.node.{node.context.name}", {})
    pool: list[Message] = [message for node in nodes for message in node.said()]
    for node in nodes:
        node.take(*pool)
    for kind, one, two in ops:
        if kind == 9:
            pool += half_an_age(nodes)
        else:
            act(nodes[one % 3], kind, two, pool)
        pool += [message for node in nodes for message in node.said()]
        if not all(each.stands_right() for each in nodes):
            return False, nodes, pool
    return True, nodes, pool


def act(node: Keeper, kind: int, choice: int, pool: list[Message]) -> None:
    if kind < 2:
        node.write("pq"[choice % 2], choice)
    elif kind < 4:
        node.write("pq"[choice % 2])
    elif kind == 10:
        node.take(*pool)
    elif pool:
        node.take(pool[choice % len(pool)])


def half_an_age(nodes: list[Keeper]) -> list[Message]:
    now = nodes[0].context.now.mono + AGE // 2
    for node in nodes:
        for peer in "abc":
            node.deletion.heard(peer, Now(now, now))
    return [message for node in nodes for message in node.until(now)]


OPS = strategies.lists(
    strategies.tuples(strategies.integers(0, 10), strategies.integers(0, 2), strategies.integers(0, 40)), max_size=60
)


@pytest.mark.proves("DEL-005", "STO-012")
@hypothesis.given(OPS)
def test_no_order_of_messages_lets_a_purged_entry_return(ops: list[Op]) -> None:
    is_right, _, _ = play(ops)
    assert is_right


def drawn(seed: int) -> list[Op]:
    chance = random.Random(seed)
    return [
        (chance.choice([0, 2, 2, 4, 5, 6, 9, 10, 10]), chance.randrange(3), chance.randrange(99)) for _ in range(60)
    ]


def returns(seeds: range) -> tuple[list[int], int]:
    """Seeds after which something purged was shown again, be it by all that was ever said, twice and the wrong way round."""
    found, purged = [], 0
    for seed in seeds:
        is_right, nodes, pool = play(drawn(seed))
        purged += sum(event.count for node in nodes for event in node.told if isinstance(event, TombstonesPurged))
        for order in (pool[::-1], pool):
            for node in nodes if is_right else ():
                node.take(*order)
                is_right = is_right and node.stands_right()
        if not is_right:
            found.append(seed)
    return found, purged


SEEDS = range(40)


@pytest.mark.proves("DEL-005")
def test_purged_entries_stay_away_in_drawn_orders_and_many_are_purged() -> None:
    found, purged = returns(SEEDS)
    assert [] == found
    assert purged > 9


@pytest.mark.parametrize(("lack", "check"), [("level", "_are_level"), ("head", "_have_all"), ("silent", "_are_here")])
def test_each_condition_of_a_purge_is_needed(lack: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deletion, check, lambda *_: True)
    with pytest.raises(AssertionError):
        test_a_deletion_is_kept_as_long_as_anything_is_open(lack)


@pytest.mark.proves("DEL-005")
def test_a_purged_change_never_shows_though_its_deletion_was_never_here() -> None:
    node = Keeper("z")
    node.take(Info(node="a", tick=1, tock=9, deleted=ticks(a=[1], b=[1])))
    assert ["stale", "stale"] == node.hear(change("a:1", 3, "p", "old"), change("b:1", 4, "p", DELETE, "a:1"))
    assert None is node.tree.get(("p",))


def test_a_purged_change_would_show_if_deleted_ticks_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TickBook, "is_deleted", lambda *_: False)
    with pytest.raises(AssertionError):
        test_a_purged_change_never_shows_though_its_deletion_was_never_here()


# A deleter is away (T14, S10)


def away(net: Net) -> None:
    """a, b delete what c has, and c, cut off, wrote it once more before, at a lower tock; 60 clocks pass."""
    net.found("a")
    net.run(60)
    net["a"].write("p", "old")
    net.run(10)
    net.cut({"a", "b"}, {"c"})
    net["c"].write("p", "while away")
    for number in range(30):
        net["a"].write("busy", number)
    net["b"].delete("p")
    net.run(60 * 5)


@pytest.mark.proves("DEL-003", "DEL-004", "DEL-005")
def test_a_tombstone_waits_for_a_deleter_that_is_away_and_its_old_copy_never_shows() -> None:
    """T14."""
    net = Net("abc", seed=1, link="mesh")
    away(net)
    assert [1, 1] == [net[name].store.replica.tree.tombstones for name in "ab"]
    net.heal()
    shown = []
    for _ in range(100):
        net.run(5)
        shown += [name for name in "ab" if net[name].get("p") is not None]
    assert [] == shown
    assert [0, 0, 0] == [net[name].store.replica.tree.tombstones for name in "abc"]
    assert ([None] * 3, True, {}) == ([net[name].get("p") for name in "abc"], net.are_equal(), net.missing())


def test_a_purge_without_the_absent_deleter_would_let_its_old_copy_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_are_here", "_have_all", "_are_level"):
        monkeypatch.setattr(Deletion, name, lambda *_: True)
    with pytest.raises(AssertionError):
        test_a_tombstone_waits_for_a_deleter_that_is_away_and_its_old_copy_never_shows()


@pytest.mark.proves("DEL-005")
def test_what_a_purge_forgot_stays_forgotten_over_a_restart() -> None:
    net = Net("ab", seed=2, link="mesh")
    net.found("a")
    net.run(60)
    old = net["a"].write("p", 1)
    assert old is not None
    net["a"].delete("p")
    net.run(60 * 5)
    assert [0, 0] == [net[name].store.replica.tree.tombstones for name in "ab"]
    for name in "ab":
        net.kill(name)
        net.start(name)
    net.run(60)
    for name in "ab":
        assert "stale" == net[name].store.replica.receive(old, "late").outcome
    assert [None, None] == [net[name].get("p") for name in "ab"]


# Nodes that do not come back (DEL-006)


def dropped(net: Net) -> None:
    """c is away, has written what nobody heard, and is dropped at a."""
    net.found("a")
    net.run(60)
    net["c"].write("mine", 1)
    net.run(10)
    net.cut({"a", "b"}, {"c"})
    net["c"].write("mine", 2)
    net["c"].write("other", 3)
    assert {"node": "c", "tick": 2} == net.command("a", DropNode(5, "c"))
    net.run(60)


@pytest.mark.proves("DEL-006")
def test_later_changes_of_a_dropped_node_are_refused_and_it_comes_back_empty_as_another() -> None:
    net = Net("abc", seed=3, link="mesh")
    dropped(net)
    assert [NodeDropped("c", 2)] == [event for event in net["b"].told if isinstance(event, NodeDropped)]
    late = net["c"].written[-1]
    with pytest.raises(PeerError, match="dropped"):
        net["b"].store.replica.receive(late, "c")
    net.heal()
    net.settle(400)
    told = [event for event in net["c"].told if isinstance(event, BecameReadOnly | ChangesOrphaned)]
    assert [BecameReadOnly("dropped"), ChangesOrphaned(2)] == told
    core = net["c"].store
    assert ("c~2", State.MEMBER, 2) == (core.context.name, core.membership.state, len(core.deletion.orphans))
    assert [b"\x01"] * 3 == [net[name].get("mine") for name in "abc"]
    assert [None] * 3 == [net[name].get("other") for name in "abc"]
    core.command(ReplayOrphans(7), net["c"].now)
    assert Reply(7, {"written": 2}) in core.context.effects
    assert [] == core.deletion.orphans
    net.do_turn(net["c"])
    net.settle(100)
    assert [b"\x03"] * 3 == [net[name].get("other") for name in "abc"]


def test_a_dropped_name_whose_ticks_are_taken_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deletion, "dropped", {})
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_later_changes_of_a_dropped_node_are_refused_and_it_comes_back_empty_as_another()


@pytest.mark.proves("DEL-006")
def test_nobody_waits_for_a_dropped_deleter() -> None:
    net = Net("abc", seed=4, link="mesh")
    away(net)
    net.command("a", DropNode(5, "c"))
    net.run(60 * 5)
    assert [0, 0] == [net[name].store.replica.tree.tombstones for name in "ab"]


@pytest.mark.proves("DEL-006")
@pytest.mark.parametrize(("node", "code"), [("a", "bad-request"), ("x", "not-found"), ("b", "bad-request")])
def test_a_drop_that_may_not_be_is_refused(node: str, code: str) -> None:
    keeper = Keeper("a")
    keeper.context.foreign["f"] = None
    keeper.hear(change("b:1", 3, "p", 1))
    keeper.deletion.drop(DropNode(7, node), keeper.context.now)
    keeper.said()
    (answer,) = keeper.replies
    assert (StoreRefused, code) == (type(answer), answer.code)


@pytest.mark.proves("DEL-006")
def test_who_knew_more_of_a_dropped_node_says_so() -> None:
    one, two = Keeper("a"), Keeper("b")
    for node in (one, two):
        node.hear(change("c:1", 3, "p", 1))
    two.hear(change("c:2", 4, "p", 2))
    one.deletion.drop(DropNode(1, "c"), one.context.now)
    two.take(*one.said())
    one.take(*two.until(0))
    assert ({"c": 2}, {"c": 2}) == (one.deletion.dropped, two.deletion.dropped)
    assert ["newer"] == one.hear(change("c:2", 9, "p", 2, "a:1"))


@pytest.mark.proves("DEL-006")
def test_orphans_and_drops_survive_a_restart() -> None:
    node = Keeper("c")
    node.write("p", 1)
    node.write("q", 2)
    node.hear(change("a:1", 30, ":n.dropped.c", {"tick": 1}), change("a:2", 31, ":n.dropped.d", {"tick": 4}))
    node.until(0)
    assert ("c~2", ["q"]) == (node.context.name, [event.path[0] for event in node.deletion.orphans])
    again = Keeper("c", journal=node.journal)
    again.deletion.restore(node.journal)
    assert ["q"] == [event.path[0] for event in again.deletion.orphans]
    copy = Keeper("c")
    copy.deletion.restore(list(enumerate(again.deletion.condense(), 1)))
    assert again.deletion.orphans == copy.deletion.orphans
    again.deletion.replay()
    again.turn()
    twice = Keeper("c")
    twice.deletion.restore(again.journal)
    assert [] == twice.deletion.orphans


def test_an_orphan_that_was_to_end_ends_when_it_is_written_anew_too() -> None:
    node = Keeper("c")
    node.write("p", 1)
    node.replica.write(("q",), pack(2), until=1e9)
    node.hear(change("a:1", 30, ":n.dropped.c", {"tick": 1}))
    node.until(0)
    assert 1 == node.deletion.replay()
    event = node.tree.get(("q",))
    assert event is not None
    assert (1e9, "c~2") == (event.until, event.node)


# Deleters of the moat dialect (PNG-037)


def group(seed: int) -> Fleet:
    """n0 and w0 agree about deletions; n1, w1 need not be asked."""
    fleet = Fleet(["w0", "w1"], ["n0", "n1"], seed=seed)
    fleet["n0"].found("root")
    fleet["n0"].write(":n.actor.del", {"nodes": ["n0", "w0"]})
    fleet.start_all()
    fleet.run(25)
    for name in ("n0", "w0"):
        fleet.write(name, f"gone.{name}", 1)
        fleet.write(name, f"stays.{name}", 1)
    fleet.run(5)
    fleet.write("w0", "gone.n0")
    fleet.write("n0", "gone.w0")
    fleet.run(2)
    return fleet


@pytest.mark.proves("PNG-037")
def test_deleters_of_both_kinds_tag_and_forget_and_nothing_returns() -> None:
    fleet = group(1)
    weft = fleet.net["w0"].store
    assert 2 == weft.replica.tree.tombstones
    fleet.run(70)
    said = [(who, what["value"]) for _, who, topic, what in fleet.heard if topic == "del" and what["t"] == "ping"]
    assert {"n0", "w0"} == {who for who, _ in said}
    assert (None, True) == (said[0][1], all(value[0] <= value[1] for _, value in said[-4:]))
    assert (0, {}) == (weft.replica.tree.tombstones, fleet["n0"].buried)
    assert 2 == len([key for key in fleet.contents()["n0"] if key.startswith(b"\xa5stays")])
    fleet.run(100)
    assert fleet.are_equal()
    assert (0, {}) == (fleet.net["w1"].store.replica.tree.tombstones, fleet["n1"].buried), (
        "who only listens forgets too"
    )


@pytest.mark.proves("PNG-037")
def test_a_deletion_is_kept_while_a_real_deleter_is_away() -> None:
    fleet = group(2)
    fleet.net.cut({"n0"}, {"w0", "w1", "n1"})
    fleet.run(100)
    assert 2 == fleet.net["w0"].store.replica.tree.tombstones


@pytest.mark.proves("PNG-037")
def test_who_is_no_deleter_only_listens() -> None:
    fleet = group(3)
    fleet.run(50)
    assert not [
        who for _, who, topic, what in fleet.heard if topic == "del" and what["t"] == "ping" and who in ("w1", "n1")
    ]


@pytest.mark.proves("PNG-037")
def test_who_was_away_longer_than_the_tags_reach_back_asks_what_is_forgotten() -> None:
    fleet = group(4)
    asked: list[list[str]] = []
    fleet.net["w0"].store.actors["del"].on_away = lambda names, now: asked.append(names)
    fleet.run(40)
    assert [] == asked
    fleet.net.cut({"w0"}, {"n0", "w1", "n1"})
    fleet["n0"].turns["del"].tags = []
    fleet.run(10)
    fleet["n0"].tock += 500
    fleet["n0"].turns["del"].tags = [fleet["n0"].tock - 9, fleet["n0"].tock]
    fleet.net.heal()
    fleet.run(20)
    assert ["n0"] in asked


def test_who_starts_again_with_what_it_had_asks_the_first_good_nodes_what_of_it_is_forgotten() -> None:
    fleet = group(5)
    fleet.net.kill("w1")
    fleet.run(10)
    fleet.net.start("w1")
    asked: list[list[str]] = []
    fleet.net["w1"].store.actors["ping"].on_away = lambda names, now: asked.append(names)
    fleet.run(20)
    assert 1 == len(asked)
    assert set(asked[0]) <= {"w0", "n0", "n1"}
