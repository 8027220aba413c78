"""A watch: every change below a path, in order, across lost connections (CLN-010, CLN-011)."""

from typing import Any, Final, Literal, Self

from msgspec import UNSET

from weft.base.changes import Path
from weft.client.link.backoff import BackOff
from weft.client.link.inbox import Feed
from weft.client.store.errors import Closed, NotReady, Unanswered, Unreachable, Unsupported
from weft.client.store.finding import Grouped, Node
from weft.client.store.limits import BACK_OFF_MAX_S, BACK_OFF_MIN_S
from weft.client.store.streams import Items, Stream
from weft.client.store.values import Change, Mark
from weft.wire.store import clients

Mode = Literal["all", "latest"]
TEMPORARY: Final = (Unreachable, Unanswered, NotReady)
"""Errors after which the watch tries again."""


class Wanted:
    """The options of a watch."""

    def __init__(self, path: Path, *, fetch: bool, mode: Mode, since: Any, depths: tuple[int, int | None]) -> None:
        self.path, self.fetch, self.mode, self.since, self.depths = path, fetch, mode, since, depths


class Watch(Feed):
    """Iterates over changes: `async for change in client.watch("home")`.

    It begins with the first step, or with `async with`: everything written after that is reported. When the connection
    breaks it continues after the last change as soon as the node is back. If the server cannot do that, or no longer has
    the changes, all existing entries are reported again (`is_old`).
    """

    def __init__(self, node: Node | Grouped, wanted: Wanted, timeout_s: float, *, marks: bool) -> None:
        self._stream: Stream | None = None
        self._node, self._wanted, self._timeout_s, self._marks = node, wanted, timeout_s, marks
        self._items = Items(wanted.path)
        self._position = wanted.since
        self._has_begun = self._is_closed = self._is_old = False
        self._unread: list[Mark] = []

    @property
    def position(self) -> Any:
        """The position after the last reported change, for `since` of another watch; None: unknown."""
        return self._position

    async def __aenter__(self) -> Self:
        """Begin; Unreachable if no server is there."""
        await self._begin()
        return self

    def close(self) -> None:
        """End it; a task that waits for the next change gets StopAsyncIteration."""
        self._is_closed = True
        if self._stream is not None:
            self._stream.close()

    def __del__(self) -> None:
        """An `async for` that was left has not closed it: end the connection."""
        if self._stream is not None:
            self._stream.abandon()

    async def __anext__(self) -> Any:
        """The next change; with `marks` also a Mark."""
        while True:
            change = self._unread.pop(0) if self._unread else await self._next()
            if isinstance(change, Change):
                return change
            if change is None:
                raise StopAsyncIteration
            if self._marks:
                return change

    async def _next(self) -> Change | Mark | None:
        if not self._has_begun:
            await self._begin()
        while not self._is_closed:
            if self._stream is None:
                return await self._come_back()
            try:
                item = await self._stream.take()
            except TEMPORARY as error:
                self._stream.close()
                self._stream = None
                return Mark("lost", error.text)
            if (change := self._read(item)) is not None:
                return change
            if item.state == "end":
                break
        self.close()
        return None

    def _read(self, item: clients.Answer) -> Change | Mark | None:
        """The change or mark in an item; None if it has neither."""
        if item.state in ("start", "end"):
            return None
        change: Change | Mark
        if item.state:
            if item.state == "gap":
                self._items = Items(self._wanted.path)
            self._is_old = item.state == "gap"
            change = Mark(item.state)
        else:
            position = None if item.position is UNSET else item.position
            change = Change(**self._items.fields(item), position=position, is_old=self._is_old)
        if item.position is not UNSET:
            self._position = item.position
        return change

    async def _begin(self) -> None:
        if self._is_closed:
            raise Closed("the watch has ended")
        if self._has_begun:
            return
        stream = await self._open(since=self._position, fetch=self._wanted.fetch and self._position is None)
        if self._position is not None and not stream.can_resume:
            stream.close()
            raise Unsupported("this server knows no positions: start the watch without since=, with or without fetch=")
        self._follow(stream)
        self._has_begun = True

    async def _open(self, *, since: Any, fetch: bool) -> Stream:
        low, high = self._wanted.depths
        request = clients.Request(
            seq=1,
            action="watch",
            path=self._wanted.path,
            nchain=-1,
            fetch=fetch,
            since=since,
            mode=self._wanted.mode if self._wanted.mode != "all" else UNSET,
            min_depth=low or UNSET,
            max_depth=UNSET if high is None else high,
        )
        self._is_old = fetch
        stream = Stream(self._node, request, self._timeout_s)
        await stream.open()
        return stream

    def _follow(self, stream: Stream) -> None:
        self._stream, self._items = stream, Items(self._wanted.path)
        if stream.position is not None:
            self._position = stream.position

    async def _come_back(self) -> Mark | None:
        """Wait for the node to return; continue after the last change, or, if that fails, with all existing entries."""
        is_whole = self._position is None or self._is_old  # a snapshot cannot be resumed in the middle
        back_off = BackOff(BACK_OFF_MIN_S, BACK_OFF_MAX_S)
        while not self._is_closed:
            await back_off.wait()
            try:
                stream = await self._open(since=None if is_whole else self._position, fetch=is_whole)
            except TEMPORARY:
                self._is_old = is_whole
                continue
            if not is_whole and not stream.can_resume:
                stream.close()
                is_whole = True
                continue
            self._follow(stream)
            if is_whole:
                self._unread.append(Mark("gap"))
            return Mark("back", "all existing entries follow" if is_whole else "")
        return None
