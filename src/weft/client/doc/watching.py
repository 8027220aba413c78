"""A watch: every change of a document as it happens, across lost connections (DOC-054).

The node sends at most eight changes ahead of the reader. Further ones are combined into the next, so a slow reader gets
fewer, larger changes, and the last one always shows the current state.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import msgspec

from weft.client.doc.errors import Closed, DocError, error_of
from weft.client.doc.limits import BEAT_S
from weft.client.doc.link import Link, Waiter
from weft.client.doc.values import Change
from weft.client.link.inbox import Feed, Inbox
from weft.wire.document.clients import Answer

LOST = object()
"""In the queue of changes: the connection broke here, and changes made meanwhile are not reported one by one."""


class Watch(Feed, Waiter):
    """Iterates over changes: `async for change in doc.watch(): …`; begins with the first step, or with `async with`."""

    def __init__(self, link: Link, session: Callable[[], str], args: dict[str, Any]) -> None:
        self._link, self._session, self._args = link, session, args
        self._heard: Inbox[Any] = Inbox()
        self._number = b""
        self._is_closed = self._is_whole = False
        self._beat: asyncio.TimerHandle | None = None
        self._begun: asyncio.Event = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin: changes are reported from now on."""
        if self._is_closed:
            raise Closed("the watch has ended")
        if not self._number:
            self._number = self._link.ask("watch", self._session(), self._args, self)
            self._later()
        await self._begun.wait()
        return self

    async def __anext__(self) -> Change:
        """The next change."""
        if not self._number:
            await self.__aenter__()
        while True:
            news = await self._take()
            if news is LOST:
                self._is_whole = True
                continue
            self._link.add(self._number, "heard", self._session(), {"n": news["n"]})
            if "check" not in news:
                continue
            change = msgspec.convert(news, Change)
            if self._is_whole:
                change = msgspec.structs.replace(change, is_whole=True)
                self._is_whole = False
            return change

    async def _take(self) -> Any:
        try:
            return await self._heard.take()
        except DocError:
            self.close()
            raise

    def close(self) -> None:
        """End it; a task that waits for the next change gets StopAsyncIteration."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._beat is not None:
            self._beat.cancel()
        self._link.add(self._number, "end", self._session(), {})
        self._link.forget(self._number)
        self._heard.end()
        self._begun.set()

    async def aclose(self) -> None:
        """As `close`."""
        self.close()

    # Called by the link

    def hear(self, answer: Answer) -> None:
        self._begun.set()
        if answer.code:
            self._heard.end(error_of(answer.code, answer.body))
        elif answer.more:
            self._heard.put(answer.body)
        else:
            self._heard.end()

    def fall(self, error: DocError) -> None:
        self._begun.set()
        self._heard.end(None if isinstance(error, Closed) else error)

    def lost(self) -> bool:
        self._heard.put(LOST)
        return not self._is_closed

    def _later(self) -> None:
        """Send a sign of life every `BEAT_S`: the node notices the death of a program only by its silence."""
        self._link.add(self._number, "heard", self._session(), {})
        self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._later)
