"""Watches of a real broker: each change is told, also over a kill of the broker (CAT-043, CAT-050, CAT-051)."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.fabric import Fabric
from tests.fabric.test_chains import run, until
from tests.shell.ports import free_port
from weft.catalog import Client
from weft.client.catalog.watch import Watch
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("a second story of the catalog")

SETTINGS = """
[node]
name = "{name}"
level = "root"
runs = []
beacons = false
port = {port}
state = "{state}"

[catalog]
port = {router}
beacon_port = {beacon}
beacon = 0.2
"""
SLOW = 600_000
"""Milliseconds between beats: nobody is missed in this test."""


class Broker(Fabric):
    """One node that runs nothing but a catalog, on the same ports in each of its starts."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, {"root": ""})
        (self.router,), self.beacon = free_blocks(1, 24_000), free_port(socket.SOCK_DGRAM)

    def settings(self, name: str, port: int, state: Path) -> str:
        return SETTINGS.format(name=name, port=port, state=state, router=self.router, beacon=self.beacon)

    def serves(self) -> bool:
        """Whether its catalog runs."""
        return "catalog" in self.status("root").get("cores", {})


class Witness:
    """Notes what a watch tells."""

    def __init__(self, client: Client, **wanted: Any) -> None:
        self.client, self.wanted = client, wanted
        self.watch: Watch = client.watch(**wanted)
        self.seen: list[str] = []
        self.task = asyncio.ensure_future(self._note())

    async def _note(self) -> None:
        async for change in self.watch:
            self.seen.append(f"{change.op} {change.name}".strip())

    async def sees(self, *expected: str) -> None:
        """It tells just this next, whatever the order of what a snapshot shows."""
        await until(lambda: len(self.seen) >= len(expected), f"{self.wanted} sees {expected}: {self.seen}")
        seen, self.seen = self.seen, []
        assert sorted(expected) == sorted(seen)

    async def agrees(self) -> None:
        """It holds what the broker answers to the same question."""
        entries = await self.client.query(**self.wanted)
        assert {(entry.name, entry.instance): entry for entry in entries} == self.watch.entries


@pytest.mark.proves("CAT-041", "CAT-043", "CAT-050", "CAT-051")
def test_watches_tell_each_change_and_outlive_a_kill_of_the_broker(tmp_path: Path) -> None:
    async def play(broker: Broker) -> None:
        address = f"127.0.0.1:{broker.router}"
        async with Client(address) as services, Client(address) as client:
            await services.register("before", id="b", tags=["lab"], port=1, heartbeat=SLOW)
            every, lab = Witness(client), Witness(client, tags=["lab"])
            await every.sees("enter before")
            await lab.sees("enter before")

            await services.register("thermo", id="t", port=2, heartbeat=SLOW)
            await services.update("thermo", tags=["x", "lab"])
            await services.update("before", tags=["x"])
            await services.leave("thermo", "t")
            await every.sees("register thermo", "update thermo", "update before", "inactive thermo")
            await lab.sees("enter thermo", "leave before", "inactive thermo")
            await every.agrees()
            await lab.agrees()

            broker.kill("root")
            broker.start("root")
            await until(broker.serves, "the broker is back")
            await every.sees("resync", "update before", "update thermo")
            await lab.sees("resync", "update thermo")
            await services.register("after", id="a", tags=["lab"], port=3, heartbeat=SLOW)
            await every.sees("register after")
            await lab.sees("enter after")
            await every.agrees()
            await lab.agrees()
            for witness in (every, lab):
                witness.watch.close()
                await witness.task

    with Broker(tmp_path) as broker:
        broker.until(broker.serves, "the broker serves")
        run(play(broker))
