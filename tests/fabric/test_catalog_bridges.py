"""Three networks, each with a broker, a service and a caller of its own, joined by bridges: real processes, one cable pulled."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from tests.client.node import in_loop
from weft.catalog import CallFailed, CatalogError, Client, NotFound
from weft.cli.demos.cable import Cable
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("three networks of the catalog")

NETS = ("green", "blue", "red")
PROGRAM = """
import asyncio, sys
from weft.catalog import Service

service = Service(f"thermo-{sys.argv[2]}", id="t1", topics=None, broker=sys.argv[1], beacon_port=0)

@service.endpoint
async def read(sensor: bytes) -> str:
    service.publish("room/" + sensor.decode(), "21.5")
    return f"{sys.argv[2]} {sensor.decode()}"

asyncio.run(service.run())
"""
BRIDGE = """
net = "{net}"
beacons = false
[catalog.bridge]
to = [{to}]
export = ["thermo-*"]
import = ["*"]
export_topics = ["*"]
import_topics = ["*"]
"""
FILE = """
[node]
name = "{net}"
level = "root"
runs = []
beacons = false
port = {base}
state = "{state}"
[catalog]
port = {port}
"""


class Networks:
    """Each broker's ports, and the cable by which it is dialled."""

    def __init__(self, place: Path) -> None:
        blocks = free_blocks(9, 24_500)
        self.place = place
        self.base = dict(zip(NETS, blocks[:3], strict=True))
        self.port = {net: block + 1 for net, block in zip(NETS, blocks[3:6], strict=True)}
        self.cable = {net: Cable(block + 1, self.port[net] + 3) for net, block in zip(NETS, blocks[6:9], strict=True)}
        self.cable_port = {net: block + 1 for net, block in zip(NETS, blocks[6:9], strict=True)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def broker(self, net: str) -> str:
        return f"127.0.0.1:{self.port[net]}"

    def start(self) -> None:
        """Each broker dials the one before it; that of the first, the last: a line of three."""
        for before, net in zip(("", *NETS), NETS, strict=False):
            to = f'"127.0.0.1:{self.cable_port[before]}"' if before else ""
            told = FILE.format(net=net, base=self.base[net], state=self.place / net, port=self.port[net])
            file = self.place / f"{net}.toml"
            file.write_text(told + BRIDGE.format(net=net, to=to))
            self._run("-m", "weft.cli.main", "up", str(file))
            self._run("-c", PROGRAM, self.broker(net), net)

    def _run(self, *words: str) -> None:
        self.processes.append(subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL))

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        for cable in self.cable.values():
            cable.close()


@asynccontextmanager
async def networks(place: Path) -> AsyncIterator[Networks]:
    made = Networks(place)
    made.start()
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


async def listed(at: Networks, net: str, *names: str) -> None:
    """Return when a broker lists exactly these."""
    while True:
        if await _listed(at, net) == sorted(names):
            return
        await asyncio.sleep(0.05)  # tidy: other processes tell nobody when they are so far; bounded by in_loop


async def _listed(at: Networks, net: str) -> list[str] | None:
    try:
        async with Client(at.broker(net)) as client:
            return sorted(await client.list())
    except CatalogError:
        return None


async def published(client: Client, name: str, topic: bytes) -> bytes:
    """Subscribe to a topic at the client's broker, and let the service publish until something comes."""
    context = zmq.asyncio.Context()
    subscription = context.socket(zmq.SUB)
    try:
        target = await client.events()
        subscription.connect(target.endpoint)
        subscription.setsockopt(zmq.SUBSCRIBE, topic)
        while not await subscription.poll(100):
            await client.call(name, "read", "hall")
        return (await subscription.recv_multipart())[0]
    finally:
        subscription.close(0)
        context.term()


@pytest.mark.proves("BRI-009", part="between brokers that start now, whose numbers are as large as they are")
@pytest.mark.proves("BRI-001", "BRI-004", "BRI-011", "BRI-013", "CAT-036")
@in_loop
async def test_three_networks_find_and_call_each_other_and_one_is_cut_off_and_back(tmp_path: Path) -> None:
    async with networks(tmp_path) as at:
        await listed(at, "green", "thermo-green", "thermo-blue@blue")
        await listed(at, "blue", "thermo-green@green", "thermo-blue", "thermo-red@red")
        await listed(at, "red", "thermo-blue@blue", "thermo-red")
        async with Client(at.broker("blue")) as client:
            assert (b"green hall",) == await client.call("thermo-green@green", "read", "hall")
            assert (b"red hall",) == await client.call("thermo-red@red", "read", "hall")
            for net in ("green", "red"):
                topic = f"net/{net}/room/".encode()
                assert topic + b"hall" == await published(client, f"thermo-{net}@{net}", topic)
            with pytest.raises(CallFailed) as wrong:
                await client.call("thermo-green@green", "nothing")
            assert "unknown-endpoint" == wrong.value.code
            at.cable["green"].cut()
            await listed(at, "blue", "thermo-blue", "thermo-red@red")
            await listed(at, "green", "thermo-green")
            with pytest.raises(NotFound) as gone:
                await client.get("thermo-green@green")
            assert "unreachable" == gone.value.state
            assert (b"red again",) == await client.call("thermo-red@red", "read", "again")
            assert {"red": "up"}.items() <= {row["net"]: row["state"] for row in await client.bridges()}.items()
            at.cable["green"].join()
            await listed(at, "blue", "thermo-green@green", "thermo-blue", "thermo-red@red")
            assert (b"green back",) == await client.call("thermo-green@green", "read", "back")
