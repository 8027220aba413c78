"""Nodes of a closed fabric that know nothing but where their root stands: it tells them whom they may connect to (SEC-013)."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fabric.closed import Hall
from weft.node.settings import settings_of
from weft.shell.keys import load_known, save_known
from weft.shell.process import Process
from weft.shell.serve import founded

pytestmark = pytest.mark.prove("a second story of keys")

EXPECTED = {"collector-1": "root", "sensor-1": "collector-1"}
TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1"}


class Unplaced(Hall):
    """The root finds every node a place; each knows the keys of all, and of places the root's only."""

    def start(self, name: str) -> None:
        if name != "sensor-1":  # it starts when the other one has its place, for who came first stays at the root
            self.begin(name)

    def begin(self, name: str) -> None:
        fabric = self.fabric
        at_root, state = f"127.0.0.1:{fabric.ports['root']}", fabric.place / name
        places = {at_root: fabric.nodes["root"].uuid.hex()}
        save_known(state, msgspec.structs.replace(load_known(state), places=places))
        node: dict[str, Any] = {"name": name, "port": fabric.ports[name], "beacons": False, "state": str(state)}
        node |= {"level": "root", "config": str(self._fleet_file())} if name == "root" else {"join": [at_root]}
        times = {"beat_s": 0.2, "dead_s": 1.0, "heartbeat": 0.2}
        document = {"node": node, "fleet": times, "lake": {"path": str(fabric.lake)}}
        process = self.up[name] = Process(founded(settings_of(document)))
        self._tasks.append(asyncio.create_task(process.run()))

    def _fleet_file(self) -> Path:
        file = self.fabric.place / "fleet.toml"
        file.write_text('[metric.cpu]\ndetail = "CPU"\nrate = "1s"\n', "utf-8")
        return file

    async def settle(self) -> None:
        """Until the one whose key may serve others stands below the root, and the other below it."""
        for pair in EXPECTED.items():
            if pair[0] not in self.up:
                self.begin(pair[0])
            await self.until(lambda pair=pair: self._has_parent(*pair), f"{pair} stand so")  # type: ignore[misc]  # bound

    def _has_parent(self, name: str, parent: str) -> bool:
        is_told = self.up[name].node.standing.parent == parent
        return is_told and name in self.up[parent].node.standing.children.values()

    def _is_ready(self, process: Process) -> bool:
        return True


@pytest.mark.proves("SEC-013")
@pytest.mark.proves("SEC-026", part="of real nodes, only whose key is a collector's is given children")
def test_who_knows_the_roots_place_only_is_told_of_its_parent(tmp_path: Path) -> None:
    async def main() -> None:
        async with Unplaced(tmp_path, TREE, {}) as hall:
            parents = {name: process.node.standing.parent for name, process in hall.up.items() if name != "root"}
            assert EXPECTED == parents

    asyncio.run(main())
