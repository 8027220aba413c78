"""A broker that says what a test tells it to, and a caller of services: plain sockets in the loop of the test."""

import asyncio
import itertools
import json
from typing import Any, Self

import zmq

from tests.client.node import until

EPOCH = "0123456789abcdef"
TIME = b"\xfd\x01\xd6N"
NUMBERS = itertools.count(1)


class Plain:
    """A plain ZeroMQ socket whose messages wait to be taken."""

    def __init__(self, kind: int) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.inbox: asyncio.Queue[list[bytes]] = asyncio.Queue()
        asyncio.get_running_loop().add_reader(self.socket.FD, self.look)

    def look(self) -> None:
        while not self.socket.closed:
            try:
                self.heard(self.socket.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return

    def heard(self, frames: list[bytes]) -> None:
        self.inbox.put_nowait(frames)

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart(list(frames))
        asyncio.get_running_loop().call_soon(self.look)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.socket.FD)
        self.socket.close(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class FakeBroker(Plain):
    """Approves, acknowledges, and writes down all that it hears."""

    def __init__(self, **told: Any) -> None:
        super().__init__(zmq.ROUTER)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.told = {"dbp": 1, "epoch": EPOCH, "heartbeat": 50, "liveness": 10, "instance": "i1", **told}
        self.denial: dict[str, Any] | None = None
        self.status: dict[str, Any] = {"dbp": 1, "epoch": EPOCH, "hb": 5, "pub": 6, "net": "blue", "caps": ["f64"]}
        self.words: list[bytes] = []
        self.records: list[dict[str, Any]] = []
        self.last: list[bytes] = []
        """Of the last message: peer, and the frames behind the delimiter."""
        self.bodies: dict[bytes, list[bytes]] = {}

    @property
    def seed(self) -> str:
        return f"127.0.0.1:{self.port}"

    def heard(self, frames: list[bytes]) -> None:
        peer, _, word, when, *body = frames
        self.words.append(word)
        self.last, self.bodies[word] = [peer, word, when, *body], body
        if word in (b"UwU", b"UoU") and self.denial is not None:
            self.say(peer, b"", b"(O_O)", when, json.dumps(self.denial).encode())
        elif word == b"UwU":
            self.records.append(json.loads(body[0]))
            self.say(peer, b"", b"OwO", when, json.dumps(self.told).encode())
        elif word in (b"UoU", b"<3"):
            self.say(peer, b"", b"u.u", when)
        elif word == b"u_U":
            self.say(peer, b"", b"o_O", when, json.dumps(self.status).encode())

    async def hears(self, word: bytes, count: int = 1) -> list[bytes]:
        """Wait until a word has come so often; its last body."""
        await until(lambda: self.words.count(word) >= count)
        return self.bodies[word]

    async def returns_to(self, port: int) -> None:
        """Listen where a closed broker did: a moment passes between the end of a ZeroMQ socket and that of its port."""

        def is_bound() -> bool:
            try:
                self.socket.bind(f"tcp://127.0.0.1:{port}")
            except zmq.ZMQError as error:
                if error.errno != zmq.EADDRINUSE:
                    raise
                return False
            return True

        await until(is_bound)


class Caller(Plain):
    """Calls one service, one call at a time."""

    def __init__(self, address: tuple[str, int] | None, kind: int = zmq.DEALER) -> None:
        super().__init__(kind)
        assert address is not None
        self.socket.connect(f"tcp://{address[0]}:{address[1]}")

    async def call(self, endpoint: bytes, *payload: bytes) -> tuple[bytes, list[bytes]]:
        """The word and the body of the answer."""
        self.say(b"", endpoint, TIME, *payload)
        delimiter, word, _, *body = await self.inbox.get()
        assert delimiter == b""
        return word, body

    async def told(self, endpoint: bytes, *payload: bytes) -> Any:
        """The JSON of an answer."""
        _, body = await self.call(endpoint, *payload)
        return json.loads(body[0])
