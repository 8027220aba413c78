"""The wall clock steps: while a node runs, and between two starts. Numbers have no holes, stamps are as they were taken."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.shell.world import WALL, Host, World, count, samples_in
from weft.base.now import SECOND
from weft.base.records import EraRecord, Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.wire import samples

HOUR_NS = 3_600 * SECOND
YEAR_NS = 365 * 24 * HOUR_NS


def own_samples(host: Host) -> list[StreamRecord]:
    return [
        record for _, record in host.records() if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES
    ]


def clock_check(host: Host) -> tuple[str, str]:
    (check,) = [check for check in host.up.telemetry.health_facts()["checks"] if check["name"] == "clock"]
    return check["state"], check["text"]


@pytest.mark.proves("MEA-005", "FLT-016")
@pytest.mark.varies("by_ns", [-HOUR_NS, HOUR_NS], [-HOUR_NS, HOUR_NS, -YEAR_NS], prove=[-YEAR_NS])
def test_a_step_while_the_node_runs_is_told_and_marks_one_batch(by_ns: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")
    sensor = world.host("sensor", "sensor", "root", metric={"memory": {"detail": "MEMORY", "rate": "1s"}})

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        await world.pass_time(5.5)
        before = sensor.clock.now().wall
        sensor.clock.wall_step_ns = by_ns
        await world.pass_time(5)
        assert ("degraded", True) == (clock_check(sensor)[0], f"{by_ns / SECOND:+.3f} s" in clock_check(sensor)[1])
        await world.until(lambda: sensor.counters("carrier").spool_records == 0)
        await world.pass_time(3)
        batches = own_samples(sensor)
        marked = [record for record in batches if "step" in record.attributes]
        assert [by_ns // 1_000_000] == [record.attributes["step"] for record in marked]
        assert [1, *(record.last + 1 for record in batches[:-1])] == [record.sequence for record in batches]
        taken = [samples.decode(record.payload).t0_ms * 1_000_000 for record in batches]
        is_after = [record.sequence >= marked[0].sequence for record in batches]
        assert is_after == [at > before + by_ns // 2 if by_ns > 0 else at < before + by_ns // 2 for at in taken]
        assert 1 == sensor.counters("measurement").steps
        assert (VersionVector(), 0) == (world.made() - samples_in(root.lake), root.lake.doubled)

    world.run(play())


@pytest.mark.proves("MEA-005", "FLT-016")
@pytest.mark.varies("by_ns", [HOUR_NS], [-HOUR_NS, HOUR_NS, -YEAR_NS], prove=[-HOUR_NS, -YEAR_NS])
def test_ten_minutes_after_a_step_the_clock_is_good_again(by_ns: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root", metric={"memory": {"detail": "MEMORY", "rate": "10s"}})

    async def play() -> None:
        root.start()
        await world.pass_time(15)
        root.clock.wall_step_ns = by_ns
        await world.pass_time(590)
        assert "degraded" == clock_check(root)[0]
        await world.pass_time(120)
        assert "ok" == clock_check(root)[0]

    world.run(play())


@pytest.mark.proves("FLT-016", "MEA-023")
def test_across_starts_with_clocks_that_went_back_eras_grow_and_are_linked(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")
    steps = (0, -HOUR_NS, HOUR_NS, -2 * HOUR_NS, -WALL)

    async def play() -> None:
        root.start()
        eras = []
        for turn, step in enumerate(steps):
            sensor.clock.wall_step_ns = step
            root.clock.wall_step_ns = -step // 2
            eras.append(sensor.start().identity.era)
            for _ in range(2):
                sensor.take(4)
                await world.pass_time(2)
            if turn % 2:
                sensor.kill()
            else:
                await sensor.stop()
            root.kill()
            root.start()
        sensor.start()
        await world.until(lambda: sensor.counters("carrier").spool_records == 0)
        await world.pass_time(5)
        assert sorted(set(eras)) == eras
        links = [r for _, r in sensor.records() if isinstance(r, EraRecord) and r.stream == Stream.SAMPLES]
        expected = [(era, before, 8) for before, era in pairwise(eras)]
        assert expected == [(link.era, link.era_before, link.last_before) for link in links]
        assert (VersionVector(), 0) == (world.made() - samples_in(root.lake), root.lake.doubled)
        assert 8 * len(steps) == count(samples_in(root.lake))
        by_origin = dict(samples_in(root.lake))
        assert [[(1, 8)]] * len(steps) == [list(ranges) for ranges in by_origin.values()]

    world.run(play())


@pytest.mark.proves("REC-001")
def test_no_step_of_a_wall_clock_ends_a_link(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        await world.until(lambda: sensor.up.telemetry.health.is_ready)
        for step in (HOUR_NS, -HOUR_NS, 0, -24 * HOUR_NS):
            sensor.clock.wall_step_ns, root.clock.wall_step_ns = step, -step
            await world.pass_time(20)
        lost = [event for host in (root, sensor) for event in host.told if type(event).__name__.endswith("Lost")]
        assert [] == lost

    world.run(play())
