"""`weft.catalog.SyncClient`: the client of the catalog for scripts that wait (CAT-072).

An event loop in a thread of its own speaks with the broker; a cache is kept up to date there while the script is busy.
"""

import asyncio
import builtins
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from weft.client.catalog.client import Client, Entries, Payload, Table, Tables
from weft.client.catalog.entries import Change, Entry, Value
from weft.client.catalog.finding import Broker
from weft.client.catalog.limits import ANSWER_S, CALL_S
from weft.client.catalog.picking import Policy

T = TypeVar("T")
Wanted = Mapping[str, Any] | None


class SyncClient:
    """As `Client`, each call waits: `with weft.catalog.SyncClient() as catalog: catalog.get("thermo").address`."""

    def __init__(self, broker: Broker = None, *, net: str = "", cache: bool = False, timeout: float = ANSWER_S) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = Client(broker, net=net, cache=cache, timeout=timeout)
        self._thread = threading.Thread(target=self._loop.run_forever, name="weft catalog", daemon=True)

    def __enter__(self) -> Self:
        """Find the broker; Unreachable if there is none."""
        self._thread.start()
        try:
            self._do(self._client.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go."""
        self._do(self._client.__aexit__(kind, error, trace))
        self._stop()

    @property
    def broker(self) -> str:
        """As `Client.broker`."""
        return self._client.broker

    def get(self, name: str) -> Entry:
        """As `Client.get`."""
        return self._do(self._client.get(name))

    def instances(self, name: str) -> Entries:
        """As `Client.instances`."""
        return self._do(self._client.instances(name))

    def list(self) -> dict[str, Entry]:
        """As `Client.list`."""
        return self._do(self._client.list())

    def query(self, wanted: Wanted = None, /, **more: Any) -> Entries:
        """As `Client.query`."""
        return self._do(self._client.query(wanted, **more))

    def watch(self, wanted: Wanted = None, /, **more: Any) -> Iterator[Change]:
        """As `Client.watch`; it has begun when this returns. It ends when it is closed, or the body breaks off."""
        return self._begun(self._client.watch, wanted, **more)

    def subscribe(self, name: str, prefix: str = "", *, latest: bool = True) -> Iterator[Value]:
        """As `Client.subscribe`; it has begun when this returns, and ends as `watch`."""
        return self._begun(self._client.subscribe, name, prefix, latest=latest)

    def pick(self, name: str, policy: Policy = "first") -> Entry:
        """As `Client.pick`."""
        return self._do(self._client.pick(name, policy))

    def call(  # tidy: as `Client.call`
        self,
        name: str,
        endpoint: str,
        payload: Payload = None,
        *,
        timeout: float = CALL_S,
        policy: Policy = "first",
    ) -> tuple[bytes, ...]:
        """As `Client.call`."""
        return self._do(self._client.call(name, endpoint, payload, timeout=timeout, policy=policy))

    def ping(self, entry: Entry, *, timeout: float = ANSWER_S) -> float:
        """As `Client.ping`."""
        return self._do(self._client.ping(entry, timeout=timeout))

    def topics(self, prefix: str = "") -> Tables:
        """As `Client.topics`."""
        return self._do(self._client.topics(prefix))

    def last_values(self, topic: str, *, publisher: str = "") -> builtins.list[Value]:
        """As `Client.last_values`."""
        return self._do(self._client.last_values(topic, publisher=publisher))

    def logs(self, wanted: Wanted = None, /, **more: Any) -> Tables:
        """As `Client.logs`."""
        return self._do(self._client.logs(wanted, **more))

    def follow_logs(self, wanted: Wanted = None, /, **more: Any) -> Iterator[Table]:
        """As `Client.follow_logs`; it has begun when this returns, and ends as `watch`."""
        return self._begun(self._client.follow_logs, wanted, **more)

    def status(self) -> Table:
        """As `Client.status`."""
        return self._do(self._client.status())

    def liveness(self) -> Tables:
        """As `Client.liveness`."""
        return self._do(self._client.liveness())

    def details(self, name: str) -> Entries:
        """As `Client.details`."""
        return self._do(self._client.details(name))

    def register(self, name: str, record: Wanted = None, /, **more: Any) -> Table:
        """As `Client.register`."""
        return self._do(self._client.register(name, record, **more))

    def update(self, name: str, changes: Wanted = None, /, **more: Any) -> None:
        """As `Client.update`."""
        self._do(self._client.update(name, changes, **more))

    def beat(self, name: str, instance: str = "") -> bool:
        """As `Client.beat`."""
        return self._do(self._client.beat(name, instance))

    def leave(self, name: str, instance: str = "") -> None:
        """As `Client.leave`."""
        self._do(self._client.leave(name, instance))

    def deregister(self, name: str, instance: str = "", *, state: str | None = None) -> Table:
        """As `Client.deregister`."""
        return self._do(self._client.deregister(name, instance, state=state))

    def _begun(self, make: Any, *words: Any, **named: Any) -> Iterator[Any]:
        """Made and begun in the loop, read here."""

        async def begin() -> Any:
            return await make(*words, **named).__aenter__()

        return self._each(self._do(begin()))

    def _each(self, source: AsyncIterator[Any]) -> Iterator[Any]:
        """Step by step; the source ends with the iteration."""
        try:
            while (told := self._do(_step(source))) is not _END:
                yield told
        finally:
            if not self._loop.is_closed():  # else the client was left before the iteration, and ended it
                self._do(_close(source))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return _wait(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


_END = object()


async def _step(source: AsyncIterator[Any]) -> Any:
    return await anext(source, _END)


async def _close(source: Any) -> None:
    source.close()


def _wait(asked: "Future[T]") -> T:
    """Until it is done; whoever interrupts the script interrupts the work, too."""
    try:
        return asked.result()
    except BaseException:
        asked.cancel()
        raise
