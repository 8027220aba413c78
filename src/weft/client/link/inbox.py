"""The base of objects that are read with `async for` and ended with `async with`, and the queue of unread items."""

import asyncio
from abc import abstractmethod
from collections import deque
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Feed:
    """Begun by `__aenter__` of who derives from this, ended by `close`."""

    @abstractmethod
    def close(self) -> None:
        """End it; whoever waits for more is told that there is none."""

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
        """What was not read in time: beyond `most` the oldest is left out."""
        self._waiting: deque[T] = deque()
        self._most = most
        self._error: Exception | None = None
        self._has_ended = False
        self._stirred = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, told: T) -> None:
        """Add an item."""
        if self._most is not None and len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(told)
        self._stirred.set()

    def put_back(self, told: T) -> None:
        """Put an item back, to be read next."""
        self._waiting.appendleft(told)
        self._stirred.set()

    def end(self, error: Exception | None = None) -> None:
        """No more items come; after the last one `error` is raised, at each read. Only the first call counts."""
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
    """Reads at most `most` items ahead. It begins with the first step, or with `async with`."""

    def __init__(self, most: int) -> None:
        self._inbox: Inbox[T] = Inbox(most)
        self._has_begun = self._is_closed = False

    @property
    def dropped(self) -> int:
        """How many unread items were dropped: when there are too many, the oldest goes."""
        return self._inbox.dropped

    async def __aenter__(self) -> Self:
        """Begin; raises the protocol's error if it cannot."""
        await self._begin()
        return self

    async def __anext__(self) -> T:
        """The next."""
        if not self._has_begun:
            await self._begin()
        return await self._inbox.take()

    @abstractmethod
    async def _begin(self) -> None:
        """Request it once, and set `_has_begun`; raises an error if it is closed."""
