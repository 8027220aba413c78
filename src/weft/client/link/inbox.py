"""What is read by `async for` and ended by `async with`, whatever it tells, and what waits there to be read."""

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
        """Itself."""
        return self


class Inbox(Generic[T]):
    """What has come and was not read yet, in order. One task reads it."""

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
        """One more."""
        if self._most is not None and len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(told)
        self._stirred.set()

    def put_back(self, told: T) -> None:
        """It was taken, and is to be read next all the same."""
        self._waiting.appendleft(told)
        self._stirred.set()

    def end(self, error: Exception | None = None) -> None:
        """No more comes; `error` is raised behind what is there, each time. The first end counts."""
        if not self._has_ended:
            self._has_ended, self._error = True, error
        self._stirred.set()

    async def take(self) -> T:
        """The next one; behind the last StopAsyncIteration, or the error with which it ended."""
        while not self._waiting:
            if self._has_ended:
                raise self._error or StopAsyncIteration
            self._stirred.clear()
            await self._stirred.wait()
        return self._waiting.popleft()


class ReadAhead(Feed, Generic[T]):
    """Feed one by one, at most `most` ahead of who reads. It begins with the first step, or with `async with`."""

    def __init__(self, most: int) -> None:
        self._inbox: Inbox[T] = Inbox(most)
        self._has_begun = self._is_closed = False

    @property
    def dropped(self) -> int:
        """What was not read in time: of too much the oldest is left out."""
        return self._inbox.dropped

    async def __aenter__(self) -> Self:
        """Begin; the error of its protocol if it cannot."""
        await self._begin()
        return self

    async def __anext__(self) -> T:
        """The next."""
        if not self._has_begun:
            await self._begin()
        return await self._inbox.take()

    @abstractmethod
    async def _begin(self) -> None:
        """Ask for it, once, and note that in `_has_begun`; an error if it is closed."""
