"""One stream of a store, on a separate connection, so that a slow reader delays nothing else (CLN-002, CLN-005)."""

import asyncio
from typing import Any, Final

from msgspec import UNSET

from weft.base.changes import Path
from weft.base.errors import PeerError
from weft.client.link.inbox import Inbox
from weft.client.store.errors import StoreError, Unanswered, error_of
from weft.client.store.finding import Grouped, Node
from weft.client.store.limits import ITEMS_AHEAD_MAX, ITEMS_AHEAD_MIN
from weft.client.store.link import Link, connect
from weft.client.store.values import MISSING, Entry
from weft.wire.store import clients
from weft.wire.store.pack import unpack

SEQUENCE: Final = 1
"""The id of the only request on the connection."""


class Broken(Unanswered):
    """The connection broke while the stream was read."""


class Stream:
    """Reads the answers to one request. After `open` it has begun: later writes are included."""

    def __init__(self, node: Node | Grouped, request: clients.Request, timeout_s: float) -> None:
        self.can_resume = False
        self.position: Any = None
        """The position of a watch at its start; None if the server does not say it."""
        self._node, self._request, self._timeout_s = node, request, timeout_s
        self._link: Link | None = None
        self._inbox: Inbox[clients.Answer] = Inbox()

    async def open(self) -> None:
        """Connect and begin; raises Unreachable, or the server's refusal."""
        self._link = await connect(self._node, self._hear, self._fall)
        self.can_resume = self._link.can_resume
        self._link.say(clients.encode(self._request))
        try:
            async with asyncio.timeout(self._timeout_s):
                first = await self.take()
        except TimeoutError:
            self.close()
            raise Unanswered(f"no answer within {self._timeout_s:g} s") from None
        except BaseException:
            self.close()
            raise
        if first.state != "start":
            self._inbox.put_back(first)  # the server has begun without announcing it
        elif first.position is not UNSET:
            self.position = first.position

    async def take(self) -> clients.Answer:
        """The next item or state; raises the server's error, or Broken."""
        answer = await self._inbox.take()
        if self._link is not None and len(self._inbox) == ITEMS_AHEAD_MIN:
            self._link.read_on()
        if answer.error:
            raise error_of(answer.etype, answer.error)
        return answer

    def close(self) -> None:
        """Close the connection, which ends the stream at the server, too."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._inbox.end(Broken("the stream has been closed"))

    def abandon(self) -> None:
        """As `close`, but in the next turn of the loop; may be called from any thread."""
        if self._link is not None:
            self._link.abandon()

    def _hear(self, answer: clients.Answer) -> None:
        self._inbox.put(answer)
        if self._link is not None and len(self._inbox) >= ITEMS_AHEAD_MAX:
            self._link.hold()

    def _fall(self, why: str) -> None:
        self._link = None
        self._inbox.end(Broken(f"the connection broke: {why}"))


class Items:
    """Converts a stream's items to entries: complete paths, decoded values."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._expander = clients.PathExpander()

    def entry(self, item: clients.Answer) -> Entry:
        """The entry of an item; StoreError if it cannot be read."""
        return Entry(**self.fields(item))

    def fields(self, item: clients.Answer) -> dict[str, Any]:
        """The fields of the entry, by name."""
        shortened = item.path if item.path is not UNSET else ()
        try:
            path = (*self._base, *self._expander.full(item.depth if item.depth is not UNSET else 0, shortened))
            chain = clients.chain_of(item.chain) if isinstance(item.chain, clients.Links) else None
            until = clients.until_of(item)
        except PeerError as error:
            raise StoreError(f"an item in the server's answer cannot be read: {error}", error.code) from None
        return {"path": path, "value": value_of(item.value), "chain": chain, "tock": item.tock, "until": until}


def value_of(raw: Any) -> Any:
    """A value of an answer; `MISSING` if there is none, StoreError if it cannot be read."""
    packed = bytes(raw)
    if not packed:
        return MISSING
    try:
        return unpack(packed)
    except PeerError as error:
        raise StoreError(f"a value in the server's answer cannot be read: {error}", error.code) from None
