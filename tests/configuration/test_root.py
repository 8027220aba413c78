"""The root: orders, numbers, history, times to live, acknowledgement."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.configuration.rig import ConfigurationSettings, Machine, World
from weft.base.effects import Persist, Send, Source
from weft.base.now import SECOND
from weft.base.records import CoreRecord, StreamRecord
from weft.cores.configuration import limits
from weft.cores.configuration.messages import (
    ConfigurationRewound,
    FollowParent,
    HistoryRead,
    KeysListed,
    ListKeys,
    LoadTree,
    NoteVoters,
    OrderRefused,
    PairsChanged,
    ReadHistory,
    RollBack,
    StepDown,
    TakeRoot,
    Write,
    WriteDone,
    WriteKeys,
    WriteLost,
    Written,
)
from weft.cores.configuration.store import Store
from weft.wire.replication import KvPub

A, B, C = "/CONFIG/web/a", "/CONFIG/web/b", "/CONFIG/db/c"


def ask(machine: Machine, order: Any) -> Any:
    machine.order(order)
    return machine.replies[order.ticket]


def published(machine: Machine) -> list[tuple[str, int, bytes, int | None]]:
    return [(update.key, update.number, update.value, update.prev) for update in machine.messages(KvPub)]


@pytest.mark.proves("CFG-003", "CFG-017", "CFG-022", "CFG-023")
def test_numbers_have_no_holes_and_name_the_write_before_in_their_chain() -> None:
    world = World()
    root = world.root()
    assert Written(2, 2) == world.write((A, "1"), (C, "1"))
    assert Written(0, 0) == world.write((A, "1"))
    assert Written(4, 2) == world.write((B, "2"), (A, ""))
    assert Written(0, 0) == world.write((A, ""))
    assert [(A, 1, b"1", 0), (C, 2, b"1", 0), (B, 3, b"2", 1), (A, 4, b"", 3)] == published(root)
    assert {update.uuid for update in root.messages(KvPub)} == {root.node}


def _dead(store: Store, writes: Sequence[Write]) -> tuple[str, ...]:
    """Whether B would be there without A: what the node above judges of alerts and their metrics."""
    after = {key: pair.value for key, pair in store.pairs.items()} | {write.key: write.value for write in writes}
    return (B,) if after.get(B) and not after.get(A) else ()


@pytest.mark.proves("MET-003", part="the root judges each order of a program as a whole")
def test_an_order_that_would_leave_an_alert_dead_is_refused_and_what_brings_both_is_not() -> None:
    world = World()
    root = world.root()
    root.core.root.newly_dead = _dead
    refused = world.write((B, "1"))
    assert isinstance(refused, OrderRefused)
    assert ((B,), B) == (refused.dead, refused.key)
    assert Written(2, 2) == world.write((B, "1"), (A, "1"))
    refused = ask(root, LoadTree(71, ((B, b"2"),), ("/CONFIG/web/",)))
    assert (B,) == refused.dead
    assert {A: b"1", B: b"1"} == {pair.key: pair.value for pair in root.core.store.view("")}
    assert Written(3, 1) == ask(root, LoadTree(72, ((A, b"1"), (B, b"2")), ("/CONFIG/web/",)))
    assert Written(5, 2) == ask(root, LoadTree(73, (), ("/CONFIG/web/",)))


@pytest.mark.proves("MET-003", part="what cannot wait for a person goes through, and is named")
def test_a_rollback_and_the_writes_of_other_cores_are_not_refused() -> None:
    world = World()
    root = world.root()
    world.write((C, "1"))
    world.write((A, "1"), (B, "1"))
    root.core.root.newly_dead = _dead
    assert Written(4, 1, dead=(B,)) == ask(root, RollBack(71, 1, A))
    root.order(WriteKeys(72, (Write(B, b"2"),), by="clone"))
    assert [WriteDone("clone", 72, 5)] == root.events(WriteDone)


@pytest.mark.proves("CFG-023")
def test_a_write_is_durable_before_anyone_hears_of_it() -> None:
    world = World()
    root = world.root()
    root.core.command(WriteKeys(1, (Write(A, b"1"), Write(B, b"2")), "me"), world.now)
    effects = root.core.effects()
    assert isinstance(effects[0], Persist)
    assert ["Persist", "Send", "Send", "Tell", "Tell", "Reply"] == [type(effect).__name__ for effect in effects]
    kinds = [type(record) for record in effects[0].records]
    assert [CoreRecord, StreamRecord, CoreRecord, StreamRecord] == kinds
    record = effects[0].records[1]
    assert isinstance(record, StreamRecord)
    assert ("root", 0, 1, A, b"1") == (
        record.origin,
        record.era,
        record.sequence,
        record.key,
        record.payload,
    )
    assert {"who": "me", "prev": 0, "deleted": False} == record.attributes


@pytest.mark.proves("CFG-022")
def test_an_order_is_written_wholly_or_not_at_all() -> None:
    world = World()
    root = world.root()
    world.write((A, "1"))
    refused = [
        WriteKeys(11, (Write(B, b"1"), Write("/CONFIG//x", b"1"))),
        WriteKeys(12, (Write(B, b"1"), Write("/.tip/x", b"1"))),
        WriteKeys(13, (Write(B, b"1"), Write(A, b"2", if_number=7))),
        WriteKeys(14, (Write(B, b"1"), Write(C, b"2", if_number=1))),
        WriteKeys(15, (Write(B, bytes(limits.VALUE_BYTES_MAX + 1)),)),
        WriteKeys(16, tuple(Write(f"/x/{n}", bytes(limits.VALUE_BYTES_MAX)) for n in range(5))),
        WriteKeys(17, (Write(B, b"1", ttl_s=-1),)),
    ]
    answers = [ask(root, order) for order in refused]
    assert [1, 1, 0, 0, 6, 6, 1] == [answer.code for answer in answers]
    assert [(A, 1), (C, 0)] == [(answer.key, answer.number) for answer in answers[2:4]]
    assert ({A: b"1"}, 1) == (root.pairs, root.core.store.number)
    assert Written(3, 2) == ask(root, WriteKeys(18, (Write(A, b"2", if_number=1), Write(B, b"1", if_number=0))))


def test_a_name_that_no_record_can_hold_is_refused_before_anything_is_written() -> None:
    root = World().root()
    longest = "ä" * (limits.WHO_BYTES_MAX // 2)
    assert Written(1, 1) == ask(root, WriteKeys(1, (Write(A, b"1"),), longest))
    for order in (
        WriteKeys(2, (Write(A, b"2"),), f"{longest}a"),
        LoadTree(3, ((A, b"2"),), ("/CONFIG/web/",), "a" * 70_000),
        RollBack(4, 0, "", f"{longest}a"),
    ):
        assert isinstance(ask(root, order), OrderRefused)
    assert ({A: b"1"}, 1) == (root.pairs, root.core.store.number)


def test_a_full_store_refuses_the_order() -> None:
    world = World()
    root = world.root(keys_max=2, bytes_max=200)
    world.write((A, "1"), (B, "1"))
    assert 6 == world.write((C, "1")).code
    assert Written(3, 1) == world.write((A, "2"))
    assert 6 == world.write((A, "1" * (202 - root.core.store.bytes))).code


@pytest.mark.proves("CFG-021")
def test_only_the_root_writes_and_the_others_say_who_it_is() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    world.settle()
    world.write(("/TOPO/root", '{"endpoint":"root:27500","uuid":"00"}'))
    world.settle()
    orders = [
        WriteKeys(1, (Write(A, b"1"),)),
        LoadTree(2, ((A, b"1"),), ("/CONFIG/",)),
        RollBack(3, 0),
        ReadHistory(4),
    ]
    assert [(12, "root:27500")] * 4 == [(a.code, a.root) for a in (ask(collector, order) for order in orders)]
    collector.order(WriteKeys(5, (Write(A, b"1"),), by="topology"))
    assert [WriteDone("topology", 5, 0, 12)] == collector.events(WriteDone)
    listed = ask(collector, ListKeys(6, "/"))
    assert (1, True) == (len(listed.pairs), listed.is_current)


@pytest.mark.proves("CFG-022", "CFG-045")
def test_a_large_load_is_made_in_portions_and_other_orders_are_obeyed_between() -> None:
    world = World()
    root = world.root()
    count = 2_005
    tree = tuple((f"/CONFIG/web/k{i}", b"1") for i in range(count))
    root.order(LoadTree(1, tree, ("/CONFIG/",), "me"))
    assert (1_000, {}) == (len(root.messages(KvPub)), root.replies)
    assert root.core.deadline() == world.now.mono
    assert Written(1_001, 1) == ask(root, WriteKeys(2, (Write(A, b"9"),), "me"))
    root.order(LoadTree(3, ((A, b"9"), *tree[:1]), ("/CONFIG/",), "me"))
    assert 3 not in root.replies
    world.settle()
    assert Written(2_006, 2_005) == root.replies[1]
    assert Written(4_010, 2_004) == root.replies[3]
    assert {A: b"9", tree[0][0]: b"1"} == {pair.key: pair.value for pair in root.core.store.view("")}
    world.check()


@pytest.mark.proves("CFG-022")
def test_a_root_that_steps_down_refuses_what_is_left_of_its_large_orders() -> None:
    world = World()
    root = world.root()
    count = 1_005
    tree = tuple((f"/CONFIG/web/k{i}", b"1") for i in range(count))
    for ticket in range(1, 7):
        root.order(LoadTree(ticket, tree, ("/CONFIG/",), "me"))
    assert [6] == list(root.replies), "more than may wait are refused"
    root.order(StepDown())
    texts = [root.replies[ticket].text for ticket in range(1, 6)]
    assert ["this node stopped being root after 1000 of 1005 writes"] == texts[:1]
    assert ["this node stopped being root"] * 4 == texts[1:]
    assert 1_000 == len(root.core.store.pairs)


@pytest.mark.proves("CFG-022", "CFG-026")
def test_load_is_the_smallest_list_of_writes_and_is_shown_at_once() -> None:
    world = World()
    root = world.root()
    sensor = world.sensor("s")
    world.settle()
    world.write((A, "1"), (B, "1"), (C, "1"), ("/TOPO/root", "x"))
    world.settle()
    root.said.clear()
    sensor.told.clear()
    tree = ((A, b"1"), (C, b"2"), ("/CONFIG/web/d", b"3"))
    assert Written(7, 3) == ask(root, LoadTree(1, tree, ("/CONFIG/",), "me"))
    world.settle()
    more = [(update.key, update.value, update.is_more) for update in root.messages(KvPub)]
    assert [(C, b"2", False), (B, b"", True), ("/CONFIG/web/d", b"3", False)] == sorted(more, key=lambda m: m[0] != C)
    assert [PairsChanged(((B, None), ("/CONFIG/web/d", b"3")), 7, numbers=(6, 7))] == sensor.changes()
    assert OrderRefused is type(ask(root, LoadTree(2, ((A, b"1"),), ("/TOPO/",))))
    assert Written(0, 0) == ask(root, LoadTree(3, tree, ("/CONFIG/",)))
    world.check()


@pytest.mark.proves("CFG-026")
def test_writes_whose_last_never_comes_are_shown_after_a_second() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.settle()
    line = next(line for line in world.lines() if line.channel == "updates")
    world.write((A, "1"), (B, "1"))
    line.down.pop()
    world.settle()
    assert {} == sensor.known
    world.advance(0.9)
    assert {} == sensor.known
    world.advance(0.2)
    assert {A: b"1"} == sensor.known
    world.advance(10)
    world.check()


@pytest.mark.proves("CFG-022")
def test_list_goes_through_a_subtree_in_pages() -> None:
    world = World()
    root = world.root()
    world.write(*((f"/CONFIG/web/{n}", str(n)) for n in range(5)), (C, "x"))
    pairs = tuple((f"/CONFIG/web/{n}", n + 1, b"%d" % n) for n in range(5))
    assert KeysListed(pairs, 6, True, False) == ask(root, ListKeys(1, "/CONFIG/web/"))
    assert KeysListed(pairs[:2], 6, True, True) == ask(root, ListKeys(2, "/CONFIG/web/", 2))
    assert KeysListed(pairs[2:4], 6, True, True) == ask(root, ListKeys(3, "/CONFIG/web/", 2, "/CONFIG/web/1"))
    assert KeysListed(pairs[4:], 6, True, False) == ask(root, ListKeys(4, "/CONFIG/web/", 2, "/CONFIG/web/3"))
    assert KeysListed(((C, 6, b"x"),), 6, True, False) == ask(root, ListKeys(5, C))
    assert 6 == len(ask(root, ListKeys(6, "/")).pairs)


@pytest.mark.proves("CFG-027")
def test_history_is_newest_first_and_rolls_back_by_new_writes() -> None:
    world = World()
    root = world.root()
    world.write((A, "1"))
    world.write((A, "2"))
    world.write((B, "1"), (C, "1"))
    world.write((A, ""))
    at = world.now.wall
    history = ask(root, ReadHistory(1, "/CONFIG/web/"))
    assert (
        HistoryRead(
            (
                (5, "test", at, A, b"2", b""),
                (3, "test", at, B, b"", b"1"),
                (2, "test", at, A, b"1", b"2"),
                (1, "test", at, A, b"", b"1"),
            )
        )
        == history
    )
    assert history.writes[:2] == ask(root, ReadHistory(2, "/CONFIG/web/", 2)).writes
    assert Written(7, 2) == ask(root, RollBack(3, 1, "/CONFIG/web/", "me"))
    assert {A: b"1", C: b"1"} == root.pairs
    assert Written(9, 2) == ask(root, RollBack(4, 5, "/CONFIG/web/"))
    assert {B: b"1", C: b"1"} == root.pairs
    restored = world.restored(root)
    assert list(root.core.condense()) == restored


@pytest.mark.proves("CFG-027")
def test_history_is_bounded_and_says_where_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_MAX", 3)
    world = World()
    root = world.root()
    for number in range(6):
        world.write((A, str(number)))
    assert [6, 5, 4] == [write[0] for write in ask(root, ReadHistory(1)).writes]
    assert OrderRefused is type(ask(root, RollBack(2, 2)))
    assert Written(7, 1) == ask(root, RollBack(3, 3))
    assert {A: b"2"} == root.pairs


@pytest.mark.proves("CFG-025")
def test_a_key_ends_at_the_root_also_after_a_restart_unless_it_is_overwritten() -> None:
    world = World()
    root = world.root()
    sensor = world.sensor("s")
    world.settle()
    world.write((A, "1"), (B, "1"), ttl_s=10)
    world.write((B, "1"))
    world.advance(4)
    root.crash()
    root.start()
    world.advance(5.9)
    assert {A: b"1", B: b"1"} == sensor.known
    world.advance(0.2)
    assert {B: b"1"} == sensor.known == root.pairs
    world.advance(60)
    assert {B: b"1"} == sensor.known == root.pairs
    assert ("ttl", A) == next((w[1], w[3]) for w in ask(root, ReadHistory(1)).writes)
    assert 1 == root.core.counters.expired


def test_a_key_that_is_renewed_for_ever_is_waited_for_once() -> None:
    """Each renewal left an entry in memory until the end that the one before had had."""
    world = World()
    root = world.root()
    for number in range(2 * limits.EXPIRING_SPARE):
        world.write((A, str(number)), ttl_s=1_000_000)
    assert len(root.core.root._expiring) <= limits.EXPIRING_SPARE + 3
    world.write((A, "last"), ttl_s=10)
    world.advance(9)
    assert {A: b"last"} == root.pairs
    world.advance(2)
    assert {} == root.pairs


@pytest.mark.proves("CFG-024")
def test_a_write_may_wait_for_a_majority() -> None:
    world = World()
    root = world.root()
    names = ("c", "d")
    for name in names:
        world.collector(name)
    world.voters = names
    world.settle()
    world.write((A, "1"))
    world.settle()
    world.cut("c")
    assert None is world.write((A, "2"), ack="")
    world.advance(0.2)
    assert Written(2, 1, True) == root.replies[2]
    world.cut("d")
    assert None is world.write((A, "3"), ack="quorum")
    world.advance(4.9)
    assert 3 not in root.replies
    world.advance(0.2)
    assert Written(3, 1, False) == root.replies[3]
    assert Written(4, 1, True) == world.write((A, "4"), ack="local")
    assert {A: b"4"} == root.pairs
    world.heal()
    world.advance(60)
    assert {4} == {report.number for report in root.core.root.majority.nodes.values()}
    world.check()


def test_without_collectors_nobody_waits() -> None:
    world = World()
    world.root()
    assert Written(1, 1, True) == world.write((A, "1"), ack="")
    assert Written(2, 1, True) == world.write((A, "2"), ack="quorum")


def test_a_new_root_goes_on_with_the_counter_held_in_its_epoch() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    world.settle()
    world.write((A, "1"), (A, "2"))
    world.write((A, "3"))
    world.settle()
    world.machines["root"].crash()
    world.take("c", 3)
    assert Written((3 << 40) + 3, 1) == world.write((A, "4"), root="c")
    collector.crash()
    collector.place = TakeRoot(3)
    collector.start()
    assert Written((3 << 40) + 4, 1) == world.write((A, "5"), root="c")


def test_an_acting_root_beats_and_serves_but_does_not_write() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    sensor = world.sensor("s", "c")
    world.settle()
    world.write((A, "1"))
    world.settle()
    collector.order(TakeRoot(1, is_acting=True))
    assert 11 == world.write((A, "2"), root="c").code
    collector.order(WriteKeys(9, (Write(A, b"2"),), by="topology", ack="local"))
    assert [WriteDone("topology", 9, 0, 11)] == collector.events(WriteDone)
    sensor.crash()
    sensor.disk.clear()
    sensor.start()
    world.advance(3)
    assert {A: b"1"} == sensor.known
    world.take("c", 2)
    assert Written((2 << 40) + 2, 1) == world.write((A, "2"), root="c")
    world.advance(5)
    assert {A: b"2"} == sensor.known


def test_a_former_root_tells_what_the_new_one_lacks() -> None:
    world = World()
    root = world.root()
    world.collector("c")
    world.settle()
    world.write((A, "1"), (C, "1"), ("/TOPO/root", "old"))
    world.settle()
    world.cut("root")
    world.write((A, "lost"), (B, "lost too"), (C, ""))
    world.take("c", 1)
    world.write(("/TOPO/root", "new"), root="c")
    world.write((A, "theirs"), root="c")
    world.heal()
    root.order(StepDown())
    root.place = FollowParent("c:27500", ("/",), True)
    root.order(root.place)
    world.advance(5)
    world.check()
    lost = sorted((event.key, event.value, event.number) for event in root.events(WriteLost))
    assert [(C, b"", 6), (A, b"lost", 4), (B, b"lost too", 5)] == lost
    root.crash()
    root.start()
    world.advance(5)
    assert 3 == len(root.events(WriteLost))


def test_what_the_new_root_has_is_not_lost() -> None:
    world = World()
    root = world.root()
    world.collector("c")
    world.settle()
    world.write((A, "1"), (C, "1"), (B, "1"))
    world.write((B, ""))
    world.settle()
    world.take("c", 1)
    world.write((A, "theirs"), root="c")
    root.place = FollowParent("c:27500", ("/",), True)
    root.order(root.place)
    world.advance(5)
    world.check()
    assert [] == root.events(WriteLost)


@pytest.mark.proves("CHK-012")
def test_a_node_whose_values_a_new_root_never_had_says_that_they_go_back() -> None:
    world = World()
    world.root()
    heir, child = world.collector("c"), world.collector("d")
    world.settle()
    world.write((A, "1"), (B, "1"), ("/TOPO/root", "old"))
    world.settle()
    world.cut("c")
    world.write((A, "unconfirmed"), (C, "new"))
    world.settle()
    world.heal()
    world.take("c", 1)
    world.write(("/TOPO/root", "new"), root="c")
    child.order(FollowParent("c:27500", ("/",), True))
    world.advance(5)
    assert {A: b"1", B: b"1", "/TOPO/root": b"new"} == heir.pairs == child.pairs
    assert [((1 << 40) + 4, 5, 2)] == [
        (told.number, told.last, told.keys) for told in child.events(ConfigurationRewound)
    ]
    assert [] == heir.events(ConfigurationRewound)


def test_what_a_new_root_has_changed_or_deleted_does_not_go_back() -> None:
    world = World()
    world.root()
    world.collector("c")
    child = world.collector("d")
    world.settle()
    world.write((A, "1"), (B, "1"), ("/TOPO/root", "old"))
    world.settle()
    world.take("c", 1)
    world.write(("/TOPO/root", "new"), (A, "2"), (B, ""), root="c")
    child.order(FollowParent("c:27500", ("/",), True))
    world.advance(5)
    assert {A: b"2", "/TOPO/root": b"new"} == child.pairs
    assert [] == child.events(ConfigurationRewound)


def test_settings_out_of_range_are_brought_into_it() -> None:
    world = World()
    slow = world.root(heartbeat_ns=10_000 * SECOND, dead_after=0).core.context
    assert (3_600 * SECOND, 2 * 3_600 * SECOND) == (slow.heartbeat_ns, slow.dead_ns)
    assert 5 == ConfigurationSettings().dead_after


def test_what_is_said_is_said_behind_the_wall() -> None:
    world = World()
    root = world.root()
    collector = world.collector("c")
    world.settle()
    collector.core.effects()
    root.core.command(WriteKeys(1, (Write(A, b"1"),)), world.now)
    update = next(e.message for e in root.core.effects() if isinstance(e, Send))
    line = collector.lines["updates"]
    collector.core.receive(update, Source("updates", line.tag), world.now)
    kinds = [type(effect).__name__ for effect in collector.core.effects()]
    assert ["Persist", "Send", "Tell"] == kinds


@pytest.mark.proves("REC-015")
def test_a_root_that_most_collectors_cannot_reach_tries_no_quorum() -> None:
    world = World()
    root = world.root()
    root.order(NoteVoters(3, 2))
    world.advance(60)
    root.order(NoteVoters(3, 1))
    world.advance(9)
    assert None is world.write((A, "1"), ack="quorum")
    world.advance(2)
    refused = world.write((A, "2"), ack="quorum")
    assert isinstance(refused, OrderRefused)
    assert (11, b"1") == (refused.code, root.pairs[A])
    assert Written(2, 1, True) == world.write((A, "2"), ack="local")
    root.order(NoteVoters(3, 2))
    assert None is world.write((A, "3"), ack="quorum")


@pytest.mark.proves("SEC-024", part="no file and no rollback touches a binding")
def test_a_key_that_was_revoked_did_not_come_back_with_an_older_configuration() -> None:
    world = World()
    root = world.root()
    kept, revoked = (f"/CONFIG/global/key/{letter * 32}" for letter in "ab")
    world.write((A, "1"), (kept, '{"k":1}'), (revoked, '{"k":2}'))
    world.write((A, "2"), (revoked, ""))
    assert Written(6, 1) == ask(root, RollBack(1, 3))
    assert {A: b"1", kept: b'{"k":1}'} == root.pairs
    assert Written(8, 2) == ask(root, LoadTree(2, ((B, b"1"), (revoked, b'{"k":2}')), ("/CONFIG/",)))
    assert {B: b"1", kept: b'{"k":1}'} == root.pairs
