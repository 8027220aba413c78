"""A small tree: a root, collectors, sensors; everybody ends with the root's pairs of their topics."""

import pytest

from tests.configuration.rig import World

CPU, ROOT = "/CONFIG/web/metric/cpu", "/TOPO/root"


@pytest.mark.proves("CFG-031")
def test_a_write_reaches_every_replica_and_nobody_asks_twice() -> None:
    world = World()
    world.root()
    collector = world.collector("c")
    sensor = world.sensor("s", "c")
    near = world.sensor("t", "root")
    world.settle()
    world.write((CPU, "60"), (ROOT, '{"endpoint":"root:27500"}'), ("/CONFIG/db/metric/cpu", "5"))
    world.advance(60)
    world.check()
    assert {CPU: b"60", ROOT: b'{"endpoint":"root:27500"}'} == sensor.known
    assert [["start"]] * 3 == [machine.resyncs for machine in (collector, sensor, near)]


@pytest.mark.proves("CFG-095", part="bytes of the joins; an update is one message for each link that subscribes to it")
@pytest.mark.parametrize("groups", [1, 4, 8])
def test_joins_cost_bytes_by_nodes_and_groups_and_an_update_costs_a_message_a_link(groups: int) -> None:
    members, world = 24, World()
    heard: list[int] = []

    def weigh(frames: list[bytes]) -> list[bytes]:
        heard.append(sum(len(frame) + (2 if len(frame) < 256 else 9) for frame in frames))
        return frames

    world.root()
    for group in range(groups):
        metrics = ("cpu", "memory", "disk", "network")
        world.write(*[(f"/CONFIG/g{group}/metric/{name}", f'{{"detail":"{name}","rate":60}}') for name in metrics])
    world.weather = weigh
    for group in range(groups):
        world.collector(f"c{group}")
        for number in range(members):
            topics = ("/TOPO/root", "/CONFIG/global/", f"/CONFIG/g{group}/")
            world.sensor(f"s{group}-{number}", f"c{group}", topics)
    world.settle()
    nodes = groups * (members + 1)
    assert nodes * (1_200 + 250 * groups) >= sum(heard) > 0
    heard.clear()
    world.write(("/CONFIG/g0/metric/cpu", '{"detail":"cpu","rate":5}'))
    world.settle()
    world.check()
    assert groups + members == len(heard)
