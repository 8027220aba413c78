"""Connects clients in the process of their node, without a socket, with the same messages and limits (CLI-023).

    async with weft.chain_client("tagger", node=process.inside) as chain: ...

`Inside` opens connections in the form that a client of the library expects (`weft.client.link.sockets.Opener`). No
client outside can have such a routing id: libzmq reserves ids that begin with a zero byte for the five-byte ones that
it makes itself.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import Final

from weft.base.effects import Source
from weft.shell.runner import Runner

CHANNEL: Final = "clients"
PREFIX: Final = b"\x00inside"
OWN: Final = f"localhost:{os.geteuid()}::"
"""What a local socket of this user is called. Without a process id: this client's process is the node's."""


class Inside:
    """Opens connections to the node of this process."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._opened = 0

    def __call__(self, on_ready: Callable[[], None], on_end: Callable[[], None]) -> "InsideWire":
        """Open a connection. `on_ready` is called when there is a message to take, `on_end` when the node has ended."""
        self._opened += 1
        self.runner.ended.add_done_callback(lambda _: on_end())
        return InsideWire(self.runner, PREFIX + self._opened.to_bytes(9, "big"), on_ready)


class InsideWire:
    """One connection of a client in this process."""

    def __init__(self, runner: Runner, peer: bytes, on_ready: Callable[[], None]) -> None:
        self._runner, self._peer, self._on_ready = runner, peer, on_ready
        self._inbox: deque[list[bytes]] = deque()
        runner.inside[CHANNEL, peer] = self._hear

    def send(self, frames: list[bytes]) -> bool:
        """Send a multipart message; the node receives it in its next turn."""
        self._runner.post(Source(CHANNEL, self._peer, None, OWN), frames)
        return True

    def take(self) -> list[bytes] | None:
        """The next multipart message; None: there is none now."""
        return self._inbox.popleft() if self._inbox else None

    def is_ready(self) -> bool:
        """Whether there is a message to take."""
        return bool(self._inbox)

    def close(self) -> None:
        """Close the connection; later messages to it are dropped."""
        self._runner.inside.pop((CHANNEL, self._peer), None)

    def _hear(self, frames: list[bytes]) -> None:
        self._inbox.append(frames)
        if len(self._inbox) == 1:
            self._runner.soon(self._on_ready)
