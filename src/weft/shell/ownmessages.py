"""Sends messages of the node itself through its chains, as a program would (MET-004, CLI-023).

Each message has its own connection: hello, welcome, send, status, bye. It is refused for the same reasons as a program's.
"""

import asyncio
import os
from typing import Any, Final

from weft.base.errors import PeerError
from weft.node.notifytable import MessageTable
from weft.shell.inside import Inside
from weft.wire import clients

PATIENCE_S: Final = 20.0  # a rewriting program may hold a message for seconds
TAG: Final = 1
PLACES: Final[dict[str, list[Any]]] = {"local": ["DIRECT"], "children": ["CHILDRENOF"]}
"""Destinations with a name of their own; every other one is the name of a node."""


async def send_own(inside: Inside, name: str, message: MessageTable, payload: bytes) -> clients.StatusItem:
    """Send a JSON message as the client `name`; returns its status, OSError if none comes."""
    to = PLACES.get(message.to) or ["DIRECT", message.to]
    sending = _Sending(inside, name, clients.SendItem(tag=TAG, type=message.type, to=to, fmt="json"), payload)
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await sending.status
    except TimeoutError:
        raise OSError(f"the chains have not answered for {PATIENCE_S:g} s") from None
    finally:
        sending.close()


class _Sending:
    """One connection to the node of this process, for one message."""

    def __init__(self, inside: Inside, name: str, item: clients.SendItem, payload: bytes) -> None:
        self.status: asyncio.Future[clients.StatusItem] = asyncio.get_running_loop().create_future()
        self._item, self._payload = item, payload
        self._wire = inside(self._hear, lambda: self._fail("the node has ended"))
        # a new id for each message: a repeated send of a known client would get the old status
        ident = os.urandom(clients.CLIENT_ID_BYTES)
        self._send(clients.Hello(v=clients.VERSION, role="client", name=name, id=ident, pid=os.getpid()))

    def close(self) -> None:
        self._send(clients.Bye())
        self._wire.close()

    def _send(self, message: clients.Asked) -> None:
        self._wire.send(clients.encode(message))

    def _hear(self) -> None:
        while (frames := self._wire.take()) is not None:
            try:
                answer = clients.decode_answered(frames)
            except PeerError as error:
                self._fail(str(error))
                return
            if isinstance(answer, clients.Welcome):
                self._send(clients.Send([self._item], [self._payload]))
            elif isinstance(answer, clients.Refuse):
                self._fail(f"{answer.why} {answer.text}".rstrip())
            elif isinstance(answer, clients.Status) and not self.status.done():
                self.status.set_result(answer.m[0])

    def _fail(self, why: str) -> None:
        if not self.status.done():
            self.status.set_exception(OSError(f"the chains refuse it: {why}"))
