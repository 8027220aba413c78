"""A disk without room: the node stays up, keeps what it has promised, says what it gives up, and goes on with room."""

from pathlib import Path
from typing import Any

import pytest

from tests.shell.world import Host, World, count, lost_in, samples_in
from weft.base.vectors import VersionVector
from weft.cores.carrier.messages import SpoolDropped
from weft.shell.journal import StorageFull
from weft.shell.serve import outcome

SMALL: dict[str, Any] = {"journal": {"megabytes": 1, "free_megabytes": 0}}


def tree(world: World) -> tuple[Host, Host]:
    root = world.host("root", "root", journal={"free_megabytes": 0})
    return root, world.host("sensor", "sensor", "root", **SMALL)


def given_up(host: Host) -> int:
    return sum(
        span.last - span.first + 1
        for event in host.told
        if isinstance(event, SpoolDropped)
        for span in event.spans
        if span.stream == 1
    )


async def joined(world: World, *hosts: Host) -> None:
    for host in hosts:
        host.start()
    await world.until(lambda: all(host.up.telemetry.health.is_ready for host in hosts))


async def all_is_safe(world: World, *hosts: Host) -> None:
    await world.until(lambda: all(host.counters("carrier").spool_records == 0 for host in hosts))
    await world.pass_time(3)


def missing(world: World, root: Host) -> VersionVector:
    return world.made() - samples_in(root.lake)


def test_two_nodes_in_virtual_time_carry_samples_to_the_lake(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        for _ in range(3):
            sensor.take(10)
            await world.pass_time(1)
        await all_is_safe(world, sensor)
        assert {} == dict(missing(world, root))
        assert (30, 0) == (sensor.counters("measurement").numbered, root.lake.doubled)

    world.run(play())


async def fill_spool(world: World, sensor: Host, kilobytes: int) -> None:
    while sensor.up.journal.bytes_used < kilobytes << 10:
        sensor.take(200)
        await world.pass_time(0.5)


@pytest.mark.proves("JRN-030", "FLT-018", "MEA-025", "CHN-039")
def test_a_full_disk_costs_the_oldest_which_are_named_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        world.cut.add("sensor")
        await fill_spool(world, sensor, 700)
        numbered = sensor.counters("measurement").numbered
        sensor.fill(left=1_000)
        sensor.take(1_000)
        assert ("FULL", True) == (sensor.state, sensor.up.node.is_full)
        assert numbered + 1_000 == sensor.counters("measurement").numbered  # the stuck turn was promised, and is kept
        sensor.take(300)
        assert 300 == sensor.up.node.unrecorded_samples
        await world.until(lambda: sensor.state == "OPEN")
        assert 0 < given_up(sensor) < numbered
        sensor.take(10)
        world.cut.clear()
        await all_is_safe(world, sensor)
        counters = sensor.counters("measurement")
        assert sensor.taken == counters.numbered + sensor.up.node.unrecorded_samples
        assert lost_in(root.lake) == missing(world, root)
        assert given_up(sensor) == count(lost_in(root.lake))
        assert 0 == root.lake.doubled

    world.run(play())


@pytest.mark.proves("JRN-030")
def test_room_that_comes_back_is_told_and_counters_add_up(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        sensor.fill(left=1_000)
        sensor.take(500)
        sensor.take(70)
        assert "FULL" == sensor.state
        (check,) = [c for c in sensor.up.telemetry.health_facts()["checks"] if c["name"] == "journal"]
        assert ("degraded", True) == (check["state"], "70 samples" in check["text"])
        await world.pass_time(5)
        assert "FULL" == sensor.state
        sensor.fill(left=8 << 20)
        await world.until(lambda: sensor.state == "OPEN", within_s=2)
        sensor.take(30)
        await all_is_safe(world, sensor)
        changes = [event for event in sensor.told if type(event).__name__ == "JournalChanged"]
        assert [("FULL", 0), ("OPEN", 70)] == [(event.state, event.samples) for event in changes]
        assert {} == dict(missing(world, root))
        assert (0, 0) == (root.lake.doubled, given_up(sensor))

    world.run(play())


def test_a_full_journal_with_everything_safe_has_room_again_though_nothing_more_is_written(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        await world.pass_time(30)  # the last snapshot is long ago: the next one comes when all is safe, and covers it
        while sensor.state == "OPEN":
            sensor.take(1_000)
        await world.until(lambda: sensor.state == "OPEN", within_s=10)
        assert sensor.up.journal.next_lsn == sensor.up.node.next_lsn
        await sensor.stop()
        sensor.start()
        sensor.take(10)
        await all_is_safe(world, sensor)
        assert (0, {}) == (root.lake.doubled, dict(missing(world, root)))
        assert (0, sensor.taken) == (given_up(sensor), count(samples_in(root.lake)))

    world.run(play())


def test_a_start_without_room_waits_for_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        sensor.take(100)
        await all_is_safe(world, sensor)
        await sensor.stop()
        sensor.fill()
        sensor.start()
        assert ("FULL", True) == (sensor.state, sensor.up.node.is_full)
        sensor.take(5)
        await world.pass_time(3)
        sensor.fill(left=8 << 20)
        await world.until(lambda: sensor.state == "OPEN", within_s=2)
        sensor.take(5)
        await all_is_safe(world, sensor)
        assert 105 == count(samples_in(root.lake))
        assert {} == dict(missing(world, root))

    world.run(play())


@pytest.mark.proves("JRN-032")
def test_without_room_for_the_promises_of_a_turn_the_node_ends_and_restores_itself(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.keeps_sent = True
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        world.cut.add("sensor")
        await fill_spool(world, sensor, 300)
        kept = len(sensor.records())
        before = sensor.sent_count
        ballast = sensor.up.journal.limits.ballast_bytes
        sensor.memory.capacity -= sensor.memory.capacity  # less than nothing: not even the ballast's place is free
        for _ in range(2):
            sensor.take(ballast // 20)
        reason = await sensor.end()
        assert isinstance(reason, StorageFull)
        assert 74 == outcome(reason)
        assert before == sensor.sent_count
        sensor.memory.capacity = 1 << 40
        world.cut.clear()
        sensor.start()
        assert kept <= len(sensor.records())
        await all_is_safe(world, sensor)
        assert (0, VersionVector()) == (root.lake.doubled, lost_in(root.lake))
        held = count(samples_in(root.lake))
        assert sensor.taken - 2 * (ballast // 20) == held

    world.run(play())


@pytest.mark.proves("JRN-031", "MEA-025")
def test_a_spool_never_outgrows_its_budget(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = tree(world)

    async def play() -> None:
        await joined(world, root, sensor)
        world.cut.add("sensor")
        most = 0
        for _ in range(150):
            sensor.take(500)
            await world.pass_time(1)
            most = max(most, sensor.up.journal.bytes_used)
        assert given_up(sensor) > 0
        limits = sensor.up.journal.limits
        assert most <= limits.budget_bytes + limits.segment_bytes
        world.cut.clear()
        await all_is_safe(world, sensor)
        assert lost_in(root.lake) == missing(world, root)
        assert given_up(sensor) == count(lost_in(root.lake))
        assert (0, sensor.taken) == (root.lake.doubled, sensor.counters("measurement").numbered)

    world.run(play())


@pytest.mark.proves("JRN-030", "CHN-040", "LAK-015")
def test_a_full_root_holds_its_children_back_until_the_drain_has_made_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root", **SMALL)
    collector = world.host("collector", "collector", "root", journal={"free_megabytes": 0})
    sensor = world.host("sensor", "sensor", "collector", journal={"free_megabytes": 0})

    async def play() -> None:
        await joined(world, root, collector, sensor)
        root.lake.fails = "read-only file system"
        while root.state == "OPEN":
            sensor.take(500)
            await world.pass_time(0.5)
        for _ in range(5):
            sensor.take(500)
            await world.pass_time(1)
        assert "STOPPED" == collector.up.node.cores["carrier"].state.name  # type: ignore[attr-defined]  # a carrier has
        assert collector.counters("carrier").spool_records > 0
        assert {"journal": "degraded", "lake": "degraded"} == {
            check["name"]: check["state"]
            for check in root.up.telemetry.health_facts()["checks"]
            if check["name"] in ("journal", "lake")
        }
        root.lake.fails = ""
        await world.until(lambda: root.state == "OPEN", within_s=600)
        sensor.take(5)
        await all_is_safe(world, sensor)
        assert {} == dict(missing(world, root))
        assert (0, VersionVector()) == (root.lake.doubled, lost_in(root.lake))
        assert sensor.taken == sensor.counters("measurement").numbered

    world.run(play())
