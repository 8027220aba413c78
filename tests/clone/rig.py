"""A root with its configuration and its clone core on real sockets; its disk is a list."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from tests.patience import PATIENCE_S
from weft.cores.clone.core import Clone
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import Write, WriteKeys
from weft.cores.topology.messages import RootTaken
from weft.node.assembly import MAKERS
from weft.node.channels import CLONE
from weft.node.node import Node
from weft.node.settings import NodeSettings, settings_of
from weft.node.start import Start
from weft.node.wires import index
from weft.node.wiring import WIRES
from weft.shell.blocks import free_blocks
from weft.shell.clock import Clock
from weft.shell.journal import State
from weft.shell.links import Links
from weft.shell.runner import Runner

UUID = bytes.fromhex("00112233445566778899aabbccddeeff")  # as the server that the reference clients heard


def settings(base: int, **chp: Any) -> NodeSettings:
    """Of a root on that block of ports."""
    return settings_of({"node": {"name": "r", "level": "root", "port": base}, "chp": chp})


class Place:
    """A running root."""

    def __init__(self, epoch: int = 0, *, serves: bool = True, **chp: Any) -> None:
        port, clients = free_blocks(2, 16_000)
        chosen = settings(port, **chp, port=clients if serves else 0)
        start = Start(chosen, UUID, 1, "tests/clone", b"")
        cores = [MAKERS[name](start) for name in ("configuration", "clone")]
        self.node = Node(UUID, 1, cores, index(WIRES), chosen)
        self.links = Links(self._on_readable)
        self.kept: list[Any] = []
        self.told: list[Any] = []
        journal: Any = SimpleNamespace(state=State.OPEN, forget=lambda _: None, next_lsn=1, write=self._write)
        self.runner = Runner(self.node, Clock(), journal, self.links)
        self.runner.on_tell = self.told.append
        self.links.serve("127.0.0.1", port, self.node.channels, {CLONE: clients} if serves else None)
        self.runner.tell(RootTaken(epoch, is_acting=False, votes=1, voters=1))

    @property
    def clients(self) -> int:
        """The first of the clients' ports."""
        return self.node.settings.chp.port

    @property
    def clone(self) -> Clone:
        core = self.node.cores["clone"]
        assert isinstance(core, Clone)
        return core

    @property
    def pairs(self) -> dict[str, bytes]:
        """What the configuration holds."""
        core = self.node.cores["configuration"]
        assert isinstance(core, Configuration)
        return {key: pair.value for key, pair in core.store.pairs.items()}

    def write(self, key: str, value: bytes) -> None:
        """As a person with `weft config set`."""
        self.runner.order("configuration", WriteKeys(1, (Write(key, value),)))

    def _write(self, records: Any, *_: Any, **__: Any) -> None:
        self.kept += records

    def _on_readable(self) -> None:
        self.runner.work()

    def close(self) -> None:
        self.runner.finish()
        self.links.close()


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  # sockets tell no event
            await asyncio.sleep(0.001)  # tidy: sockets tell no event


def run(play: Callable[[Place], Awaitable[None]], **chp: Any) -> None:
    """Play with one root."""

    async def main() -> None:
        place = Place(**chp)
        try:
            await play(place)
        finally:
            place.close()

    asyncio.run(main())
