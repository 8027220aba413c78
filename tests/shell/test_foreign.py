"""A foreign node that says anything it likes on DATA: what is sound reaches the lake, and nobody else notices (MEA-020)."""

import math
from pathlib import Path

import pytest

from tests.shell.test_lake import RealLake, TroubledFiles
from tests.shell.world import Host, World
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.vectors import VersionVector
from weft.shell.ends import Heard
from weft.wire import data
from weft.wire.data import Data
from weft.wire.samples import MS_MAX

WILD = (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308)


def wild(chance: Chance) -> list[bytes]:
    """DATA that a decoder takes, with whatever it may hold; or the like with one frame broken."""
    labels = {f"l{n}" * chance.randint(1, 20): "ü" * chance.randint(0, 128) for n in range(chance.randint(0, 16))}
    frames = data.encode(
        Data(
            source=chance.choice(
                ("10.0.0.7:5556", "[2001:db8::7]:5556", f"h{chance.randint(0, 99)}:1", "x" * 250 + ":65526")
            ),
            type=chance.choice(("basic", "delta", "rate", "average", "percent", "aggregate-sum", "\x00", "ü" * 32)),
            detail=chance.choice(("CPU", "\x1b[2J", "d" * 64)),
            config_name=chance.choice(("cpu", "a/b", "n" * 255, "\u202e")),
            labels=labels,
            time_ms=chance.choice((0, 1, MS_MAX, chance.randint(0, MS_MAX))),
            value=chance.choice(WILD),
            base=chance.choice((None, *WILD)),
        )
    )
    if chance.randint(0, 3) == 0:
        frames[chance.randint(0, 4)] = chance.choice((b"", b"\xff" * 300, b"{}", b"[" * 10_000))
    return frames


@pytest.mark.proves("MEA-020")
@pytest.mark.varies("seed", range(1), range(3), prove=range(1, 3))
def test_wild_samples_reach_the_lake_and_disturb_nothing(seed: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")
    collector = world.host("collector", "collector", "root")
    sensor = world.host("sensor", "sensor", "collector")
    root.lake = lake = RealLake(tmp_path / "lake", TroubledFiles())
    chance = Chance(f"wild/{seed}")

    def say(host: Host) -> None:
        for _ in range(20):
            host.links.hear(Heard(Source("data", b""), wild(chance)))

    async def play() -> None:
        for host in world.hosts.values():
            host.start()
        for number in range(20):
            for host in (root, collector, sensor):
                say(host)
            sensor.take(5)
            await world.pass_time(0.5)
            if number == 10:
                collector.kill()
                collector.start()
        await world.pass_time(10)
        counters = collector.counters("measurement")
        assert (counters.foreign > 50, counters.foreign_refused > 5) == (True, True)
        assert 0 == sensor.counters("measurement").foreign, "a sensor hears none"
        assert 100 == sensor.counters("measurement").numbered
        assert all(host.is_up for host in world.hosts.values())
        assert [] == [event for event in root.told if "Lake" in type(event).__name__]
        mine, doubled = lake.rows()
        assert (VersionVector(), 0) == (world.made() - mine, doubled)
        await sensor.stop()

    world.run(play())
