"""`weft.catalog.SyncClient`: the synchronous client of the catalog, for scripts (CAT-072).

An event loop in a thread of its own talks to the broker; a cache is kept up to date there while the script is busy.
"""

import builtins
from collections.abc import Iterator, Mapping
from typing import Any

from weft.client.catalog.client import Client, Entries, Payload, Table, Tables
from weft.client.catalog.entries import Change, Entry, Value
from weft.client.catalog.finding import Broker
from weft.client.catalog.limits import ANSWER_S, CALL_S
from weft.client.catalog.picking import Policy
from weft.client.catalog.tapped import Copied
from weft.client.link.keyring import Given
from weft.client.link.waiting import Waiting

Wanted = Mapping[str, Any] | None


class SyncClient(Waiting):
    """As `Client`, but each call waits for its result: `with weft.catalog.SyncClient() as catalog: catalog.get("thermo")`."""

    def __init__(  # tidy: as `Client`
        self,
        broker: Broker = None,
        *,
        net: str = "",
        cache: bool = False,
        timeout: float = ANSWER_S,
        keys: Given = None,
    ) -> None:
        self._client = Client(broker, net=net, cache=cache, timeout=timeout, keys=keys)
        super().__init__(self._client, "weft catalog")

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
        """As `Client.watch`; it has begun when this returns, and ends when the iterator is closed or the loop is left."""
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

    def tap(self, name: str, wanted: Wanted = None, /, **more: Any) -> Iterator[Copied]:
        """As `Client.tap`; it has begun when this returns, and ends as `watch`."""
        return self._begun(self._client.tap, name, wanted, **more)

    def taps(self) -> Tables:
        """As `Client.taps`."""
        return self._do(self._client.taps())

    def stop_tap(self, tap: str) -> None:
        """As `Client.stop_tap`."""
        self._do(self._client.stop_tap(tap))

    def bridges(self) -> Tables:
        """As `Client.bridges`."""
        return self._do(self._client.bridges())

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
        """Make a feed and begin it in the loop; returns an iterator for the script."""

        async def begin() -> Any:
            return await make(*words, **named).__aenter__()

        return self._each(self._do(begin()))
