"""The store over real processes: written at one node, seen at another, kept over kills and splits, and rows of the lake."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.fabric.fabric import Fabric
from tests.fabric.test_chains import run, until
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.store import Client

TREE = {"root": "", "sensor-1": "root", "sensor-2": "root"}
MESH = """
[store]
clock = "1s"
"""
BROKER = """
[store]
clock = "1s"
mesh = false
broker = "{broker}"
"""


class Stores(Fabric):
    """Every node holds the store; the root founds it."""

    def settings(self, name: str, port: int, state: Path) -> str:
        text = super().settings(name, port, state) + self.store_of(name)
        return text + ('found = "home"\n' if name == "root" else "")

    def store_of(self, name: str) -> str:
        """The table `[store]` of a node."""
        return MESH

    def client(self, name: str) -> Client:
        """A client of one node."""
        return Client(node=self.place / name)

    def of(self, name: str) -> dict[str, Any]:
        """What the store of a node says of itself."""
        return dict(self.status(name).get("cores", {}).get("store", {}))

    def are_joined(self) -> bool:
        """Whether all serve, and lack nothing."""
        found = [self.of(name) for name in self.parents]
        return all(store.get("serves") and not store["missing"] for store in found)

    def is_connected(self, name: str) -> bool:
        """Whether it has reached the broker."""
        return bool(self.of(name).get("has_broker"))

    def rows(self) -> list[dict[str, Any]]:
        """The changes in the lake's segments."""
        files = sorted((self.lake / "drain" / "store").rglob("*.parquet"))
        return [row for path in files for row in pq.read_table(path).to_pylist()]


class Brokered(Stores):
    """The same through a broker inside the root, and without a mesh."""

    port = 0

    def store_of(self, name: str) -> str:
        self.port = self.port or free_port()
        return BROKER.format(broker=f"embedded:{self.port}" if name == "root" else f"127.0.0.1:{self.port}")


@pytest.mark.proves("STO-032", "PNG-001", "HEA-006", "CLN-010")
def test_what_one_node_was_told_every_other_one_shows_also_after_a_kill(tmp_path: Path) -> None:
    seen: list[tuple[str, Any]] = []
    values = {f"home.{number}.temp": number + 0.5 for number in range(100)}

    async def watch(fabric: Stores) -> None:
        async with fabric.client("sensor-2") as client:
            async for item in client.watch("home", fetch=True):  # the first may be written before it has come
                seen.append((item.text, item.value))  # noqa: PERF401  # it never ends

    async def play(fabric: Stores) -> None:
        watcher = asyncio.create_task(watch(fabric))
        async with fabric.client("sensor-1") as client:
            for path, value in values.items():
                await client.set(path, value)
            fabric.kill("sensor-1")
        fabric.start("sensor-1")
        await until(fabric.are_joined, "it is back")
        for name in TREE:
            async with fabric.client(name) as client:
                assert values == {path: await client.get(path) for path in values}
        await until(lambda: values.keys() == {path for path, _ in seen}, "the watcher has seen all")
        told = len(seen)
        async with fabric.client("sensor-1") as client:
            await client.delete("home.7.temp")
        await until(lambda: ["home.7.temp"] == [path for path, _ in seen[told:]], "the watcher has seen the end of it")
        watcher.cancel()

    with Stores(tmp_path, TREE) as fabric:
        fabric.until(fabric.are_joined, "all have joined")
        run(play(fabric))
        fabric.until(lambda: len(fabric.rows()) >= len(values) + 4, "all changes are in the lake")
        rows = fabric.rows()
    numbers = sorted(row["sequence"] for row in rows if row["origin"] == "sensor-1")
    assert list(range(1, len(values) + 3)) == numbers
    assert {path: str(value) for path, value in values.items()} == {
        row["key"]: row["body"] for row in rows if row["key"] in values and row["body"] is not None
    }


@pytest.mark.prove("a second story of the store")
@pytest.mark.proves("LNK-002", "LNK-010")
def test_both_sides_of_a_dead_broker_go_on_writing_and_agree_when_it_is_back(tmp_path: Path) -> None:
    async def write(fabric: Stores, name: str) -> None:
        async with fabric.client(name) as client:
            for number in range(20):
                await client.set(("split", name, number), number)
                await client.set(("split", "both", number), name)

    async def holds(fabric: Stores, name: str) -> dict[Any, Any]:
        async with fabric.client(name) as client:
            return {entry.path: entry.value async for entry in client.tree("split")}

    async def play(fabric: Stores) -> None:
        fabric.kill("root")
        await until(lambda: not fabric.is_connected("sensor-1"), "the broker is missed")
        await asyncio.gather(write(fabric, "sensor-1"), write(fabric, "sensor-2"))
        fabric.start("root")
        await until(lambda: all(map(fabric.is_connected, TREE)), "the broker is back")
        found: list[dict[Any, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < 3 or found[0] != found[1] or found[1] != found[2] or len(found[0]) < 60:
                await asyncio.sleep(0.2)  # tidy: other processes tell nobody; bounded above
                found = [await holds(fabric, name) for name in TREE if fabric.of(name).get("serves")]

    with Brokered(tmp_path, TREE) as fabric:
        fabric.until(fabric.are_joined, "all have joined")
        run(play(fabric))
        # Who hears of the winner first asks for its own loser no more: at least one of the two has met both.
        assert 20 <= sum(fabric.of(name)["conflicts"] for name in TREE)
