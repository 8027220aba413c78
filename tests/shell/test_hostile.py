"""Garbage on every channel of a running node: refused, counted, without effect, and good traffic does not notice."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shell.hostile import ERA, EVIL, Intruder, frames_of, vectors
from tests.shell.test_lake import RealLake, TroubledFiles
from tests.shell.world import Host, World, samples_in
from weft.base.effects import Source
from weft.base.records import CoreRecord, EraRecord
from weft.base.vectors import VersionVector
from weft.shell.ends import Heard
from weft.wire import hop
from weft.wire.hop import HopItem

PEER = b"\x01" + b"intruder" * 2


def tree(world: World) -> tuple[Host, Host, Host]:
    root = world.host("root", "root")
    collector = world.host("collector", "collector", "root")
    return root, collector, world.host("sensor", "sensor", "collector")


def state(host: Host) -> tuple[list[CoreRecord], int]:
    """What a node would remember, and how far its journal reaches."""
    return list(host.up.node.condense()), host.up.journal.next_lsn


class Inert:
    """Says something to a host, and holds that it changes nothing but counters (CHK-019).

    The first refusal of its kind in a minute is an event, and an event is a record: then only the counters are held.
    """

    def __init__(self, host: Host) -> None:
        self.host = host

    def hear(self, channel: str, peer: bytes, frames: list[bytes]) -> int:
        """How many refusals were counted."""
        host = self.host
        before, count, told = state(host), refusals(host), len(host.told)
        host.links.hear(Heard(Source(channel, peer), frames))
        assert host.is_up, frames
        if len(host.told) == told:
            assert before == state(host), frames
        return refusals(host) - count


def refusals(host: Host) -> int:
    return int(sum(host.up.node.refused.values())) + int(sum(host.counters("carrier").refused.values()))


async def all_ready(world: World) -> None:
    for host in world.hosts.values():
        host.start()
    await world.until(lambda: all(host.up.telemetry.health.is_ready for host in world.hosts.values()))


def check_all(world: World) -> None:
    lake = world.hosts["root"].lake
    assert {} == dict(world.made() - samples_in(lake))
    assert 0 == lake.doubled


@pytest.mark.proves("CHK-019", "FUZ-001", "CLI-005", "SEC-027")
@pytest.mark.varies("seed", range(1), range(3), prove=range(1, 3))
def test_what_a_stranger_says_changes_nothing_and_is_counted(seed: int, tmp_path: Path, soak: bool) -> None:
    world = World(tmp_path)
    root, collector, sensor = tree(world)
    intruder = Intruder(f"stranger/{seed}")

    async def play() -> None:
        await all_ready(world)
        for number in range(20_000 if soak else 1_000):
            frames = intruder.noise()
            peer = PEER + number.to_bytes(2, "big")
            count = Inert((root, collector)[number % 2]).hear("down", peer, frames)
            assert count > 0 or is_greeting(frames), frames  # who says hello rightly is taken
            if number % 50 == 0:
                sensor.take(5)
            await world.pass_time(0.02)
        await world.pass_time(30)
        check_all(world)

    world.run(play())


def is_greeting(frames: list[bytes]) -> bool:
    return bool(frames) and (b"hello" in frames[0] or b"bye" in frames[0])


@pytest.mark.proves("CHK-019", "CLI-006")
def test_what_a_parent_says_wrongly_changes_nothing_and_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    *_, sensor = tree(world)
    intruder = Intruder("parent")

    async def play() -> None:
        await all_ready(world)
        ops = (b"welcome", b"hack", b"bye", b"refuse")  # what a parent may say may have its effect
        for number in range(1_000):
            frames = intruder.noise()
            if frames and any(op in frames[0] for op in ops):
                continue
            count = Inert(sensor).hear("up", b"", frames)
            assert count > 0 or b"beat" in frames[0], frames
            if number % 50 == 0:
                sensor.take(5)
            await world.pass_time(0.02)
        await world.pass_time(30)
        check_all(world)

    world.run(play())


@pytest.mark.proves("BEA-003")
@pytest.mark.proves("SEC-015", part="what is no beacon")
def test_a_datagram_that_is_no_beacon_changes_nothing_and_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, *_ = tree(world)
    intruder = Intruder("beacon")
    beacon = b"WEFTN1 weft other " + b"0f" * 16 + b" sensor 27510 3"

    async def play() -> None:
        await all_ready(world)
        for number in range(500):
            data = bytearray(b"".join(intruder.noise())[:2_048] if number % 2 else beacon)
            if not number % 2:
                data[intruder.draw.randrange(7)] ^= 1 << intruder.draw.randrange(8)
            assert 1 == Inert(root).hear("beacon", b"127.0.0.1", [bytes(data)]), data
        assert [] == root.up.telemetry.status()["neighbours"]

    world.run(play())


@pytest.mark.proves("SEC-042", "CHN-031")
@pytest.mark.varies("seed", range(1), range(3), prove=range(1, 3))
def test_a_child_that_lies_in_every_field_stops_neither_the_root_nor_its_lake(
    seed: int, tmp_path: Path, soak: bool
) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")
    root.lake = lake = RealLake(tmp_path / "lake", TroubledFiles())
    intruder = Intruder(f"liar/{seed}")

    async def play() -> None:
        await all_ready(world)
        root.links.hear(Heard(Source("down", PEER), intruder.hello()))
        for number in range(1_000 if soak else 60):
            root.links.hear(Heard(Source("down", PEER), intruder.hop()))
            if number % 10 == 0:
                sensor.take(5)
            await world.pass_time(0.2)
        assert root.counters("carrier").accepted > 100
        assert root.counters("carrier").turned_away > 50
        await world.pass_time(5)
        root.kill()
        root.start()  # what was taken can be read again
        await world.until(lambda: root.up.telemetry.health.is_ready)
        await world.pass_time(5)
        assert (0, 0) == root.up.node.cores["drain"].behind  # type: ignore[attr-defined]  # a drain has
        assert [] == [event for event in root.told if "Lake" in type(event).__name__]
        mine, doubled = lake.rows()
        assert (VersionVector(), 0) == (world.made() - mine, doubled)

    world.run(play())


def test_nobody_can_number_what_a_node_makes_itself(tmp_path: Path) -> None:
    """A root to whom a child had foretold its own eras did not start again."""
    world = World(tmp_path)
    root = world.host("root", "root")
    intruder = Intruder("prophet")

    def foretold(kind: str) -> HopItem:
        return HopItem(mid=(root.up.identity.node_id, (1 << 64) - 1, 7), type=kind, via=(EVIL,), depth=0, ts=1)

    async def play() -> None:
        root.start()
        root.links.hear(Heard(Source("down", PEER), intruder.hello()))
        items = [foretold("weft.metric"), foretold("weft.event")]
        note = EraRecord(1, root.up.identity.node_id, (1 << 64) - 1, (1 << 64) - 2, 9)
        items.append(HopItem(mid=(EVIL, ERA, 1), type="weft.era", via=(EVIL,), depth=0, ts=1))
        frames = [b"body", b"{}", msgspec.msgpack.encode(note)]
        root.links.hear(Heard(Source("down", PEER), hop.encode(hop.Hop(ERA, 1, items, frames))))
        assert 3 == root.counters("carrier").refused["loop"]
        root.kill()
        root.start()
        root.take(3)
        await world.pass_time(2)
        assert {} == dict(world.made() - samples_in(root.lake))

    world.run(play())


@pytest.mark.proves("CHN-030", "CLI-006")
@pytest.mark.parametrize("what", ["version", "role", "era"])
def test_wrong_versions_and_roles_get_a_typed_answer(what: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.keeps_sent = True
    root = world.host("root", "root")
    fields: dict[str, Any] = {
        "op": "hello", "v": 1, "role": "node", "name": "child", "id": EVIL, "era": 5, "first": 1, "next": 1
    }  # fmt: skip
    wrong: dict[str, Any] = {"version": {"v": 2}, "role": {"role": "client"}, "era": {"first": 9, "next": 3}}

    async def play() -> None:
        root.start()
        count = Inert(root).hear("down", PEER, [msgspec.msgpack.encode(fields | wrong[what])])
        ((channel, peer, frames),) = root.sent
        assert ("down", PEER) == (channel, peer)
        answer = msgspec.msgpack.decode(frames[0])
        assert ("refuse", "version" if what == "version" else "bad-hello") == (answer["op"], answer["why"])
        assert 1 == count

    world.run(play())


def test_every_line_of_the_vectors_is_heard_by_a_root_and_by_a_child(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, _, sensor = tree(world)

    async def play() -> None:
        await all_ready(world)
        sensor.take(5)
        for line in vectors("chains-frames.jsonl").values():
            if frames := frames_of(line):
                root.links.hear(Heard(Source("down", PEER), frames))
                await world.pass_time(0.1)
        await world.pass_time(10)
        check_all(world)

    world.run(play())
