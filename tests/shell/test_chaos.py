"""Everything at once, from a seed: whole nodes are killed, cut off, their disks fill and fail, their clocks jump.

Afterwards all is mended, and what was numbered is in the lake once, or announced as lost by who gave it up.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shell.world import Host, World, lost_in, samples_in
from weft.base.chance import Chance
from weft.base.errors import StorageFailed
from weft.base.now import SECOND
from weft.base.vectors import VersionVector
from weft.testing.disk import CHANGES, Fault

pytestmark = pytest.mark.prove("many nodes under drawn faults")

STEPS = 150
HOUR_NS = 3_600 * SECOND
Act = Callable[[World, Host, Chance], None]


def _take(world: World, host: Host, draw: Chance) -> None:
    if host.is_up:
        host.take(draw.randint(1, 800))


def _kill(world: World, host: Host, draw: Chance) -> None:
    if host.is_up:
        host.kill()


def _start(world: World, host: Host, draw: Chance) -> None:
    if host.process is None:
        with contextlib.suppress(StorageFailed):
            host.start()


def _cut(world: World, host: Host, draw: Chance) -> None:
    world.cut ^= {host.name}


def _fill(world: World, host: Host, draw: Chance) -> None:
    host.fill(left=draw.randint(0, 40_000))


def _make_room(world: World, host: Host, draw: Chance) -> None:
    host.memory.capacity = 1 << 40


def _break_disk(world: World, host: Host, draw: Chance) -> None:
    host.faulty.fault = draw.choice(list(Fault))
    host.faulty.log, host.faulty._calls, host.faulty.at = [], CHANGES, draw.randint(0, 30)


def _step_clock(world: World, host: Host, draw: Chance) -> None:
    host.clock.wall_step_ns = draw.randint(-HOUR_NS, HOUR_NS)


def _spoil_lake(world: World, host: Host, draw: Chance) -> None:
    host.lake.fails = "" if host.lake.fails else "read-only file system"


ACTS: tuple[tuple[Act, int], ...] = (
    (_take, 30),
    (_kill, 3),
    (_start, 12),
    (_cut, 4),
    (_fill, 3),
    (_make_room, 6),
    (_break_disk, 2),
    (_step_clock, 2),
    (_spoil_lake, 1),
)
DECK = tuple(act for act, weight in ACTS for _ in range(weight))


def _bury(world: World) -> None:
    """Who has ended, of a full or failed disk, is dead until somebody starts it."""
    for host in world.hosts.values():
        if host.process is not None and not host.is_up:
            process, host.process = host.process, None
            host.bury(process)
            host.faulty.mend()


async def _mend(world: World) -> None:
    world.cut.clear()
    for host in world.hosts.values():
        host.faulty.mend()
        host.memory.capacity, host.lake.fails = 1 << 40, ""
    _bury(world)
    for host in world.hosts.values():
        if host.process is None:
            host.start()
    tree = [host for name, host in world.hosts.items() if name != "root"]
    await world.until(lambda: all(h.counters("carrier").spool_records == 0 for h in tree), within_s=3_600)
    await world.pass_time(60)


def play_chaos(place: Path, seed: int) -> World:
    world, draw = World(place), Chance(f"chaos/{seed}")
    small = {"journal": {"megabytes": 1, "free_megabytes": 0}}
    world.host("root", "root", journal={"megabytes": 4, "free_megabytes": 0})
    for name, parent in (("c1", "root"), ("s1", "c1"), ("s2", "c1"), ("s3", "root")):
        world.host(name, "collector" if name[0] == "c" else "sensor", parent, **small)

    async def play() -> None:
        for host in world.hosts.values():
            host.start()
        for _ in range(STEPS):
            draw.choice(DECK)(world, draw.choice(list(world.hosts.values())), draw)
            await world.pass_time(draw.random() * 3)
            _bury(world)
        await _mend(world)

    world.run(play())
    return world


@pytest.mark.proves("FLT-018", "FLT-033", "CHN-032", "MEA-023")
@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_every_number_is_in_the_lake_once_or_named(seed: int, tmp_path: Path, soak: bool) -> None:
    for further in range(200 if soak else 1):
        world = play_chaos(tmp_path / str(further), seed + 1_000 * further)
        lake = world.hosts["root"].lake
        missing = world.made() - samples_in(lake)
        assert 0 == lake.doubled, f"seed {seed + 1_000 * further}"
        assert VersionVector() == missing - lost_in(lake), f"seed {seed + 1_000 * further}: neither there nor named"
