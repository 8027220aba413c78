"""A node with a document that answers what a test tells it to answer: a ROUTER in the loop of the test."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import zmq

from weft.wire.document import programs
from weft.wire.document.clients import Answer, Asked

Answering = Callable[[Asked], Any]


class FakeNode:
    """Answers by a table of verbs; a verb without a row is heard, and left for the test to answer."""

    def __init__(self, directory: Path, **table: Answering) -> None:
        self.endpoint = f"ipc://{directory / 'doc.sock'}"
        self.table: dict[str, Answering] = {"sessions": lambda _: [], **table}
        self.heard: list[Asked] = []
        self._inbox: asyncio.Queue[tuple[bytes, Asked]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self.live()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._socket.closed:
            self.die()

    def live(self) -> None:
        """Bind, again if it had died."""
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(self.endpoint)
        asyncio.get_running_loop().add_reader(self._socket.FD, self._read)
        asyncio.get_running_loop().call_soon(self._read)

    def die(self) -> None:
        """Be gone without a word."""
        asyncio.get_running_loop().remove_reader(self._socket.FD)
        self._socket.close(0)

    async def hears(self, verb: str) -> tuple[bytes, Asked]:
        """The next of that verb among those that are not answered by the table."""
        while True:
            peer, asked = await self._inbox.get()
            if asked.verb == verb:
                return peer, asked

    def says(self, peer: bytes, answer: Answer) -> None:
        """Answer one of them."""
        self._socket.send_multipart([peer, *programs.encode(answer)])
        asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        while not self._socket.closed and int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN:
            peer, *frames = self._socket.recv_multipart()
            asked = programs.decode(frames)
            self.heard.append(asked)
            if asked.verb in self.table:
                told = self.table[asked.verb](asked)
                self.says(peer, told if isinstance(told, Answer) else Answer(asked.id, told))
            else:
                self._inbox.put_nowait((peer, asked))
