"""A real broker in the loop of a test, and a ROUTER that says what a test tells it to."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import zmq

from tests.shell.ports import free_port
from weft.client.catalog.client import Client
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process

Answer = Callable[[list[bytes]], list[bytes] | None]


class Ports(NamedTuple):
    """Of a broker, for all of its starts."""

    node: int
    router: int
    beacon: int

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.router}"


def ports() -> Ports:
    """Free ones."""
    return Ports(free_blocks(1, 18_000)[0], free_port(), free_port(socket.SOCK_DGRAM))


@asynccontextmanager
async def running(place: Path, at: Ports | None = None, **table: Any) -> AsyncIterator[Ports]:
    """A node that runs nothing but a catalog, from when it answers."""
    at = at or ports()
    node = {"name": "catalog", "level": "root", "runs": [], "beacons": False, "state": str(place), "port": at.node}
    catalog = {"port": at.router, "beacon_port": at.beacon, "beacon": 0.2, **table}
    process = Process(settings_of({"node": node, "catalog": catalog}))
    run = asyncio.ensure_future(process.run())
    try:
        async with Client(at.broker):
            pass
        yield at
    finally:
        process.stop()
        await run


class Scripted:
    """A ROUTER on loopback: each message goes to `answer`, whose frames, if any, go back. All that came is in `heard`."""

    def __init__(self, answer: Answer = lambda _: None) -> None:
        self.answer = answer
        self.heard: list[list[bytes]] = []
        self.peers: list[bytes] = []
        self.port = 0

    async def __aenter__(self) -> Self:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        asyncio.get_running_loop().add_reader(self._socket.FD, self._read)
        asyncio.get_running_loop().call_soon(self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.FD)
        self._socket.close()

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _read(self) -> None:
        while not self._socket.closed:
            try:
                peer, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.heard.append(frames)
            self.peers.append(peer)
            answer = self.answer(frames)
            if answer is not None:
                self._socket.send_multipart([peer, *answer])
