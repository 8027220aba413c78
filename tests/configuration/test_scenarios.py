"""What happens in a tree, step by step; the planted bugs of `test_canaries` are caught here."""

from typing import Any

import pytest

from tests.configuration.rig import SENSOR_TOPICS, ConfigurationWiped, Line, Machine, State, World
from tests.configuration.test_states import TOPICS, Child
from weft.base.now import SECOND
from weft.cores.configuration import limits
from weft.cores.configuration.messages import (
    FollowParent,
    PairsChanged,
    ParentHeard,
    ParentQuiet,
    ParentSilent,
    StepDown,
    Written,
)
from weft.wire.replication import Hugz, ICanHaz, KThxBai, KvPub, KvSync

A, B, HEART = "/CONFIG/web/a", "/CONFIG/web/b", "/CONFIG/global/heartbeat"


def line_of(machine: Machine, channel: str = "updates") -> Line:
    return machine.lines[channel]


def lose_updates(world: World, machine: Machine, *writes: tuple[str, str]) -> None:
    """Written at the root, and never heard by one node."""
    world.write(*writes)
    line_of(machine).down.clear()


def joins_after_a_deletion() -> None:
    world = World()
    world.root()
    world.write((A, "1"), (B, "1"))
    world.write((A, ""))
    sensor, collector = world.sensor("s"), world.collector("c")
    world.settle()
    world.write((B, "2"))
    world.advance(60)
    world.check()
    assert [["start"], ["start"]] == [sensor.resyncs, collector.resyncs]
    assert 0 == sensor.core.counters.resync_tip


@pytest.mark.proves("CFG-018")
def test_the_end_of_a_snapshot_counts_deletions() -> None:
    joins_after_a_deletion()


def hole_above_a_sensor() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    behind, healthy = world.sensor("s", "c"), world.sensor("t", "c", ("/CONFIG/db/",))
    world.settle()
    world.write((A, "1"), ("/CONFIG/db/x", "1"))
    world.advance(10)
    lose_updates(world, collector, (A, "2"))
    world.write((HEART, "5"))
    world.advance(0.5)
    world.check()
    assert (["start", "gap"], ["start"]) == (collector.resyncs, healthy.resyncs)
    assert {A: b"2", HEART: b"5"} == behind.known
    assert [] == behind.events(ConfigurationWiped)


@pytest.mark.proves("CFG-035", "CFG-041")
def test_a_collector_that_had_to_ask_tells_children_behind_it() -> None:
    hole_above_a_sensor()


def healthy_children_stay() -> None:
    world = World()
    world.root()
    world.collector("d")
    collector = world.collector("c")
    sensor = world.sensor("s", "c")
    world.settle()
    world.write((A, "1"), (HEART, "1"))
    world.write((A, "2"))
    world.advance(10)
    collector.order(FollowParent("d:27500", ("/",), True))
    world.advance(60)
    world.check()
    assert (["start", "parent"], ["start"]) == (collector.resyncs, sensor.resyncs)
    assert [] == sensor.events(ConfigurationWiped)


@pytest.mark.proves("CFG-041")
def test_a_collector_that_had_to_ask_leaves_healthy_children_alone() -> None:
    healthy_children_stay()


def unseen_deletion_of_a_foreign_parent() -> None:
    """The parent does not count deletions, so its end stands below the deletion that made us ask."""
    child = Child().bring_to(State.RUN)
    child.update(KvPub(A, 9, b"", b"", 8))
    assert State.SYNC is child.core.state
    child.hear(KThxBai("/.chains/CONFIG/web/", 7))
    child.hear(KThxBai("/CONFIG/web/", 7))
    assert State.RUN is child.core.state
    child.update(Hugz())
    assert (State.RUN, 2, 0) == (child.core.state, child.core.counters.attempts, child.core.counters.resync_lower)


@pytest.mark.proves("CFG-032")
def test_what_made_us_ask_is_not_kept_waiting() -> None:
    unseen_deletion_of_a_foreign_parent()


def lost_last_update() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.settle()
    world.write((A, "1"))
    world.advance(5)
    lose_updates(world, sensor, (A, "2"))
    world.advance(23)
    world.check()
    assert ["start", "tip"] == sensor.resyncs


@pytest.mark.proves("CFG-019")
def test_a_lost_last_update_is_found_by_asking_for_the_tip() -> None:
    lost_last_update()


@pytest.mark.proves("CFG-019")
def test_tips_are_asked_a_second_after_the_start_and_every_ten_heartbeats() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    begin, asked = world.mono, []
    for _ in range(450):
        sensor.said.clear()
        world.advance(0.1)
        asked += [round((world.mono - begin) / SECOND, 1)] * any(
            a.subtree[:5] == "/.tip" for a in sensor.messages(ICanHaz)
        )
    assert [1.0, 21.0, 41.0] == asked


def parent_goes_back() -> None:
    """The other parent has less: asked for the tip, it says so, and the replica asks anew, at last loudly."""
    child = Child().bring_to(State.RUN)
    child.wake(1.1)
    child.hear(KThxBai("/.tip/CONFIG/web/", 6))
    assert (State.SYNC, 1) == (child.core.state, child.core.counters.resync_tip)


def test_a_parent_that_has_less_than_it_gave_us_has_another_history() -> None:
    parent_goes_back()


def new_root_goes_on() -> None:
    world = World()
    old = world.root()
    world.collector("c")
    sensor = world.sensor("s", "c")
    far = world.sensor("t")
    world.settle()
    world.write((A, "1"))
    world.write((A, "2"))
    world.settle()
    old.crash()
    world.take("c", 1)
    far.place = FollowParent("c:27500", SENSOR_TOPICS, False)
    far.order(far.place)
    assert Written((1 << 40) + 3, 1) == world.write((A, "3"), root="c")
    world.advance(5)
    world.check()
    assert (["start", "epoch"], ["start", "parent"]) == (sensor.resyncs, far.resyncs)


@pytest.mark.proves("CFG-003", "CFG-035")
def test_a_new_root_writes_above_everything_and_everybody_asks_anew() -> None:
    new_root_goes_on()


def keys_of_others_are_written_often() -> None:
    world = World()
    world.root()
    world.collector("c")
    sensor = world.sensor("s", "c")
    world.settle()
    for number in range(60):
        world.write(("/app/x", str(number)))
        world.advance(0.5)
    assert ([], ["start"]) == (sensor.events(ParentSilent), sensor.resyncs)


@pytest.mark.proves("CFG-045", "CFG-046")
def test_a_parent_that_publishes_what_its_child_did_not_ask_for_is_heard_all_the_same() -> None:
    keys_of_others_are_written_often()


def sync_collector_beats() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    sensor = world.sensor("s", "c")
    world.advance(5)
    world.machines["root"].crash()
    collector.crash()
    collector.start()
    world.advance(29)
    assert State.SYNC is collector.core.state
    assert [] == sensor.events(ParentSilent)
    world.advance(15)
    assert [10 * SECOND] == [event.silent_ns for event in sensor.events(ParentSilent)]


@pytest.mark.proves("CFG-045")
def test_a_collector_beats_while_it_asks_but_not_when_it_is_an_orphan() -> None:
    sync_collector_beats()


def groups_are_told_apart() -> None:
    world = World()
    world.root()
    world.write(("/CONFIG/g1/a", "1"), ("/CONFIG/g10/a", "1"))
    topics = ("/TOPO/root", "/CONFIG/global/", "/CONFIG/g1/")
    collector = world.collector("c", topics=topics)
    sensor = world.sensor("s", "c", topics)
    world.settle()
    world.write(("/CONFIG/g1/a", "2"), ("/CONFIG/g10/a", "2"))
    world.advance(60)
    world.check()
    assert ({"/CONFIG/g1/a": b"2"}, []) == (sensor.known, world.refused)
    assert [["start"], ["start"]] == [collector.resyncs, sensor.resyncs]


def test_g1_does_not_match_g10() -> None:
    groups_are_told_apart()


def crash_in_the_middle_of_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "PART_BYTES", 100)
    world = World()
    world.root()
    world.write(*((f"/CONFIG/web/{n:02}", "x" * 20) for n in range(20)))
    sensor = world.sensor("s")
    for _ in range(12):
        for line in world.busy():
            world.deliver(line)
    assert len(sensor.disk) > 3
    assert ({}, {}) == (sensor.pairs, sensor.known)
    assert {} == world.restarted(sensor).store.pairs
    assert world.restored(sensor) == list(sensor.core.condense())
    sensor.crash()
    sensor.start()
    assert {} == sensor.pairs
    world.advance(5)
    world.check()
    assert list(sensor.core.condense()) == world.restored(sensor)


@pytest.mark.proves("CFG-048")
def test_half_a_snapshot_is_not_found_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    crash_in_the_middle_of_a_snapshot(monkeypatch)


@pytest.mark.proves("CFG-036", "CFG-048")
def test_a_restarted_node_goes_on_by_what_it_had_until_something_newer_is_in() -> None:
    world = World()
    root = world.root()
    sensor = world.sensor("s")
    world.settle()
    world.write((A, "1"), (B, "1"))
    world.settle()
    sensor.crash()
    root.crash()
    sensor.start()
    assert {A: b"1", B: b"1"} == sensor.known
    assert State.SYNC is sensor.core.state
    sensor.told.clear()
    root.start()
    world.write((A, "2"))
    world.advance(60)
    assert [PairsChanged(((A, b"2"),), 3, numbers=(3,))] == sensor.changes()


@pytest.mark.proves("CFG-034", "CFG-036")
def test_after_a_wipe_users_are_told_only_what_is_different() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.settle()
    world.write((A, "1"), (B, "1"))
    world.write((A, "2"))
    world.settle()
    sensor.told.clear()
    line_of(sensor).down.append([A.encode(), (2).to_bytes(8), b"", b'{"prev":1}', b"9"])
    world.deliver(line_of(sensor))
    assert ({}, {A: b"2", B: b"1"}) == (sensor.pairs, sensor.known)
    assert [ConfigurationWiped(2, 3)] == sensor.events(ConfigurationWiped)
    world.write((B, ""))
    world.advance(5)
    world.check()
    assert [PairsChanged(((B, None),), 4, numbers=(4,))] == sensor.changes()


@pytest.mark.proves("CFG-046")
def test_silence_is_told_once_quiet_then_every_d_and_ends_with_any_message() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.advance(3)
    sensor.told.clear()
    world.cut("s")
    world.advance(36)
    kinds = [event for event in sensor.told if isinstance(event, ParentQuiet | ParentSilent | ParentHeard)]
    spans = [round(e.silent_ns / SECOND) for e in kinds[1:] if isinstance(e, ParentSilent)]
    assert (ParentQuiet(), [10, 20, 30]) == (kinds[0], spans)
    world.heal()
    world.advance(3)
    assert ParentHeard() == next(e for e in reversed(sensor.told) if isinstance(e, ParentQuiet | ParentHeard))


@pytest.mark.proves("REC-001", "CFG-046")
def test_a_suspended_machine_does_not_take_its_parent_for_dead() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.advance(3)
    sensor.core.deadline()
    world.mono += 3_600 * SECOND
    sensor.core.wake(world.now)
    sensor.do()
    assert [] == sensor.events(ParentSilent)


@pytest.mark.proves("CFG-045")
def test_a_beat_goes_out_every_heartbeat_until_it_is_no_root_any_more() -> None:
    world = World()
    root = world.root()
    world.advance(9)
    assert 5 == len(root.messages(Hugz))
    root.said.clear()
    root.order(StepDown())
    world.advance(10)
    assert [] == root.messages(Hugz)


@pytest.mark.proves("CFG-006", "CFG-040")
def test_a_collector_forwards_unchanged_frames() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    sensor = world.sensor("s", "c")
    world.settle()
    world.history[1] = {A: b"1"}
    frames = [A.encode(), (1).to_bytes(8), b"u" * 16, b'{ "new": [1], "prev":0 }', b"1"]
    line_of(collector).down.append(frames)
    world.deliver(line_of(collector))
    assert [frames] == list(line_of(sensor).down)


@pytest.mark.proves("CFG-035")
def test_a_full_replica_sees_a_hole_in_any_chain() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    world.settle()
    world.write((A, "1"))
    lose_updates(world, collector, (HEART, "1"))
    world.write((A, "2"))
    world.settle()
    assert ["start", "gap"] == collector.resyncs
    world.check()


@pytest.mark.proves("CFG-032")
def test_too_many_waiting_updates_begin_the_attempt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_UPDATES_MAX", 3)
    child = Child()
    child.order(FollowParent("p:27500", TOPICS, False))
    for number in range(1, 6):
        child.update(KvPub(A, number, b"", b"%d" % number, number - 1))
    assert (State.SYNC, [5]) == (child.core.state, [update.number for update in child.core.replica.waiting])
    child.wake(0.6)
    child.hear(KvSync(A, 4, b"4"))
    child.hear(KThxBai("/CONFIG/web/", 4))
    assert (State.RUN, b"5") == (child.core.state, child.core.store.value(A))


def test_a_snapshot_that_is_too_large_leaves_the_old_store() -> None:
    child = Child(keys_max=2).bring_to(State.RUN)
    child.update(KvPub(A, 9, b"", b"1", 8))
    told: list[Any] = []
    for number in range(3):
        told += child.hear(KvSync(f"/CONFIG/web/{number}", 9, b"1"))
    assert "SyncFailing" in repr(told)
    assert {"/CONFIG/web/metric/cpu": b"60"} == {k: p.value for k, p in child.core.store.pairs.items()}


def test_the_same_place_again_changes_nothing() -> None:
    world = World()
    world.root()
    sensor = world.sensor("s")
    world.advance(3)
    sensor.order(sensor.place)
    assert (State.RUN, ["start"]) == (sensor.core.state, sensor.resyncs)


@pytest.mark.proves("JRN-042")
def test_a_snapshot_of_the_journal_in_the_middle_of_ours_keeps_the_parts_that_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PART_BYTES", 100)
    world = World()
    world.root()
    world.write(*((f"/CONFIG/web/{n:02}", "x" * 20) for n in range(20)))
    sensor = world.sensor("s")
    for _ in range(12):
        for line in world.busy():
            world.deliver(line)
    sensor.condense()
    world.advance(5)
    world.check()
    assert sensor.pairs == {key: pair.value for key, pair in world.restarted(sensor).store.pairs.items()}


def test_topics_that_were_answered_at_different_numbers_do_not_set_the_number_back() -> None:
    child = Child()
    child.order(FollowParent("p:27500", ("/CONFIG/global/", "/CONFIG/web/"), False))
    child.hear(KThxBai("/CONFIG/global/", 10))
    child.update(KvPub(HEART, 15, b"", b"5", 10))
    child.hear(KThxBai("/CONFIG/web/", 20))
    assert (State.RUN, 20, b"5") == (child.core.state, child.core.store.number, child.core.store.value(HEART))
    child.update(KvPub(A, 21, b"", b"1", 20))
    assert (State.RUN, 21) == (child.core.state, child.core.store.number)
