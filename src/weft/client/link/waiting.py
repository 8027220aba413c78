"""Synchronous clients: an event loop in a separate thread talks to the server, and each call waits for the result."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
_END = object()


class Waiting:
    """Base of the synchronous clients: `with` starts a thread with a loop, and the asynchronous client runs in that."""

    def __init__(self, client: AbstractAsyncContextManager[Any], name: str) -> None:
        self._async_client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Connect; raises the error of the asynchronous client if it fails."""
        self._thread.start()
        try:
            self._do(self._entered())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect, and end the thread."""
        self._do(self._left(kind, error, trace))
        self._stop()

    async def _entered(self) -> None:
        await self._async_client.__aenter__()

    async def _left(self, *why: Any) -> None:
        await self._async_client.__aexit__(*why)

    def _each(self, source: AsyncIterator[Any]) -> Iterator[Any]:
        """Iterate over an asynchronous iterator. When the iteration ends or is abandoned, the iterator is closed."""
        try:
            while (item := self._do(_step(source))) is not _END:
                yield item
        finally:
            if not self._loop.is_closed():  # a closed loop means that leaving the client has closed the iterator
                self._do(_close(source))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return _wait(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _step(source: AsyncIterator[Any]) -> Any:
    return await anext(source, _END)


async def _close(source: Any) -> None:
    await source.aclose() if hasattr(source, "aclose") else source.close()


def _wait(asked: "Future[T]") -> T:
    """Wait for the result. An interrupt of the script cancels the work, too."""
    try:
        return asked.result()
    except BaseException:
        asked.cancel()
        raise
