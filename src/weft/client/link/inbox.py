"""Base classes of objects that are read with `async for` and closed by `async with`, and their queue of unread items."""

import asyncio
from abc import abstractmethod
from collections import deque
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Feed:
    """An asynchronous iterator with an end. A subclass begins it in `__aenter__`; leaving `async with` closes it."""

    @abstractmethod
    def close(self) -> None:
        """End it; a task that waits for the next item gets StopAsyncIteration."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    def __aiter__(self) -> Self:
        """The object itself."""
        return self


class Inbox(Generic[T]):
    """A queue of unread items, in order. One task reads it."""

    def __init__(self, most: int | None = None) -> None:
        self.dropped = 0
        """Number of unread items that were dropped: beyond `most` the oldest goes."""
        self._waiting: deque[T] = deque()
        self._most = most
        self._error: Exception | None = None
        self._has_ended = False
        self._stirred = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T) -> None:
        """Add an item."""
        if self._most is not None and len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(item)
        self._stirred.set()

    def put_back(self, item: T) -> None:
        """Put an item back, to be read next."""
        self._waiting.appendleft(item)
        self._stirred.set()

    def end(self, error: Exception | None = None) -> None:
        """No more items come. Every read after the last item raises `error`. Only the first call counts."""
        if not self._has_ended:
            self._has_ended, self._error = True, error
        self._stirred.set()

    async def take(self) -> T:
        """The next item; after the last one StopAsyncIteration, or the error given to `end`."""
        while not self._waiting:
            if self._has_ended:
                raise self._error or StopAsyncIteration
            self._stirred.clear()
            await self._stirred.wait()
        return self._waiting.popleft()


class ReadAhead(Feed, Generic[T]):
    """A feed with a queue of at most `most` unread items. It begins with the first step, or with `async with`."""

    def __init__(self, most: int) -> None:
        self._inbox: Inbox[T] = Inbox(most)
        self._has_begun = self._is_closed = False

    @property
    def dropped(self) -> int:
        """How many unread items were dropped: when there are too many, the oldest goes."""
        return self._inbox.dropped

    async def __aenter__(self) -> Self:
        """Begin; raises the client's error if it cannot."""
        await self._begin()
        return self

    async def __anext__(self) -> T:
        """The next item."""
        if not self._has_begun:
            await self._begin()
        return await self._inbox.take()

    @abstractmethod
    async def _begin(self) -> None:
        """Send the request, only once, and set `_has_begun`; raises an error if the feed is closed."""
