"""A node that says what a test tells it to say: a ROUTER on a Unix socket, in the loop of the test."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import zmq

import weft
from tests.patience import PATIENCE_S
from weft.client.chain.client import ChainClient
from weft.wire import clients

NODE = b"\x0b" * 16
MID = (b"\x0a" * 16, 7, 1)
M = TypeVar("M")


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that waits, in a loop of its own and not for ever."""

    @functools.wraps(test)
    def run(*values: Any, **named: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await test(*values, **named)

        asyncio.run(bounded())

    return run


class FakeNode:
    """Hears clients, and answers as it is told. `async with` binds and closes it."""

    def __init__(self, directory: Path, secret: bytes = b"") -> None:
        self._secret = secret
        self.endpoint = f"ipc://{directory / 'chains.sock'}"
        self.peer = b""
        """Who was heard last."""
        self.peers: list[bytes] = []
        """Every routing id that said hello."""
        self.heard: list[clients.Asked] = []
        """All that came, beats included."""
        self._inbox: asyncio.Queue[tuple[bytes, clients.Asked]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        if self._secret:
            self._socket.setsockopt(zmq.CURVE_SERVER, 1)
            self._socket.setsockopt(zmq.CURVE_SECRETKEY, self._secret)
        self._socket.bind(self.endpoint)
        asyncio.get_running_loop().add_reader(self._socket.FD, self._read)
        asyncio.get_running_loop().call_soon(self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._socket.closed:
            self.die()

    def die(self, linger_ms: int = 0) -> None:
        """Be gone without a word; what was said has so long to leave."""
        asyncio.get_running_loop().remove_reader(self._socket.FD)
        self._socket.close(linger_ms)

    async def hears(self, kind: type[M]) -> M:
        """The next that is said besides beats, which must be one of these."""
        while True:
            self.peer, message = await self._inbox.get()
            if isinstance(message, clients.Beat) and kind is not clients.Beat:
                continue
            assert isinstance(message, kind), message
            return message

    def says(self, message: clients.Answered) -> None:
        """Say it to whoever was heard last."""
        self._socket.send_multipart([self.peer, *clients.encode(message)])
        self._look()

    def says_frames(self, frames: list[bytes]) -> None:
        """Say what no codec would."""
        self._socket.send_multipart([self.peer, *frames])
        self._look()

    async def welcomes(self, **parts: Any) -> clients.Hello:
        """Hear hello and take the client."""
        hello = await self.hears(clients.Hello)
        self.peers.append(self.peer)
        self.says(welcome(**parts))
        return hello

    async def registers(self) -> clients.Reg:
        """Hear a registration and take it."""
        reg = await self.hears(clients.Reg)
        self.says(clients.Done("reg", reg.reg, 1, 1))
        return reg

    def gives(self, reg: int, *payloads: bytes, first: int = 1, **parts: Any) -> None:
        """Offer or copy messages, numbered from `first`, in one multipart."""
        items = [rec(first + i, **parts) for i in range(len(payloads))]
        self.says(clients.Rec(reg, items, list(payloads)))

    def ends(self, tag: int, why: str = "spooled") -> None:
        """Say the final status of a send."""
        good = why in ("spooled", "local", "delivered")
        self.says(clients.Status([clients.StatusItem(tag=tag, ok=good, why=why)]))

    async def has_heard(self, kind: type[Any], count: int) -> None:
        """Wait until so many of a kind have come."""
        while sum(isinstance(message, kind) for message in self.heard) < count:
            self.peer, _ = await self._inbox.get()

    def _look(self) -> None:
        if int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN:
            asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        while not self._socket.closed:
            try:
                peer, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            message = clients.decode_asked(frames)
            self.heard.append(message)
            self._inbox.put_nowait((peer, message))


@asynccontextmanager
async def attached(node: FakeNode, **parts: Any) -> AsyncIterator[ChainClient]:
    """A client that the node has taken."""
    welcomed = asyncio.ensure_future(node.welcomes(**parts))
    async with weft.chain_client("tagger", node.endpoint) as chain:
        await welcomed
        yield chain


async def until(is_so: Callable[[], bool]) -> None:
    """Let others run until something is so."""
    while not is_so():  # noqa: ASYNC110  # nothing tells when it is so
        await asyncio.sleep(0.001)  # tidy: as above; bounded by in_loop


def welcome(**parts: Any) -> clients.Welcome:
    """A welcome with the usual of everything that `parts` does not say."""
    usual = {
        "v": 1,
        "node": NODE,
        "name": "B",
        "addr": "127.0.0.1",
        "boot": 7,
        "level": "collector",
        "parent": "C",
        "children": ["A"],
        "credit": 1024,
        "credit_bytes": 8 << 20,
        "beat": 1000,
        "dead": 5000,
    }
    return clients.Welcome(**{**usual, **parts})


def rec(number: int, **parts: Any) -> clients.RecItem:
    """One message for a client."""
    usual = {
        "type": "demo.report",
        "mid": MID,
        "own": False,
        "to": ["PARENTSOF"],
        "via": (MID[0],),
        "depth": 0,
        "ts": 1_763_800_002_000_000_000,
    }
    return clients.RecItem(id=number, **{**usual, **parts})
