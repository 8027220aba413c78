"""Messages that the node itself puts into its chains, as a program beside it would (MET-004, CLI-023).

One connection for each message: hello, welcome, send, status, bye. What a program would be refused is refused here, too.
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
"""Destinations that have a word; every other one is the name of a node."""


async def send_own(inside: Inside, name: str, message: MessageTable, payload: bytes) -> clients.StatusItem:
    """Send a message of JSON, under a name that programs see; OSError if no status comes."""
    to = PLACES.get(message.to) or ["DIRECT", message.to]
    sending = _Sending(inside, name, clients.SendItem(tag=TAG, type=message.type, to=to, fmt="json"), payload)
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await sending.status
    except TimeoutError:
        raise OSError(f"the chains have said nothing for {PATIENCE_S:g} s") from None
    finally:
        sending.close()


class _Sending:
    """One connection to the node of this process, for one message."""

    def __init__(self, inside: Inside, name: str, item: clients.SendItem, payload: bytes) -> None:
        self.status: asyncio.Future[clients.StatusItem] = asyncio.get_running_loop().create_future()
        self._item, self._payload = item, payload
        self._wire = inside(self._hear, lambda: self._fail("the node has ended"))
        ident = os.urandom(
            clients.CLIENT_ID_BYTES
        )  # a client of the same id would be answered as for its message before
        self._say(clients.Hello(v=clients.VERSION, role="client", name=name, id=ident, pid=os.getpid()))

    def close(self) -> None:
        self._say(clients.Bye())
        self._wire.close()

    def _say(self, message: clients.Asked) -> None:
        self._wire.send(clients.encode(message))

    def _hear(self) -> None:
        while (frames := self._wire.take()) is not None:
            try:
                said = clients.decode_answered(frames)
            except PeerError as error:
                self._fail(str(error))
                return
            if isinstance(said, clients.Welcome):
                self._say(clients.Send([self._item], [self._payload]))
            elif isinstance(said, clients.Refuse):
                self._fail(f"{said.why} {said.text}".rstrip())
            elif isinstance(said, clients.Status) and not self.status.done():
                self.status.set_result(said.m[0])

    def _fail(self, why: str) -> None:
        if not self.status.done():
            self.status.set_exception(OSError(f"the chains do not take it: {why}"))
