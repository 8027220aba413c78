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
