"""Subscriptions to a service's values: last values first, and never an old value after a new one (LVC-006).

Each instance has a feed: a SUB socket connected to its publisher. Once the publisher has sent its greeting, and enough
time has passed for our subscription to arrive, the broker is asked for the last values. Whatever was published before
that is among them, and whatever is published later arrives on the socket. If a value of a topic has already arrived on
the socket, the broker's value is older or the same, and is left out.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import zmq

from weft.client.catalog.entries import Address, Change, Entry, Value
from weft.client.catalog.errors import CatalogError, CatalogTimeout, Closed
from weft.client.catalog.limits import BACK_OFF_MIN_S, CONNECT_S, SETTLE_S, SHARED_S, VALUES_AHEAD_MAX
from weft.client.catalog.lines import Line
from weft.client.catalog.watch import Watch
from weft.client.link.inbox import ReadAhead
from weft.client.link.opening import BadEndpoint

PUB: Final = "pub"
Tell = Callable[[Value], None]
Cached = Callable[[str], Awaitable[list[Value]]]
"""Asks the broker for the last values of one instance."""


class Latest:
    """Decides which of the broker's values are reported: those of topics without a live value before."""

    def __init__(self) -> None:
        self._seen: set[str] | None = set()

    def live(self, topic: str) -> None:
        """A value came from the publisher itself."""
        if self._seen is not None:
            self._seen.add(topic)

    def cached(self, values: list[Value]) -> list[Value]:
        """Those of the broker's values that are to be reported. To be called once."""
        seen, self._seen = self._seen or set(), None
        return [value for value in values if value.topic not in seen]


class Feed:
    """One publisher: its last values, and its values from now on."""

    def __init__(self, entry: Entry, prefix: str, tell: Tell, cached: Cached | None) -> None:
        self.place = place_of(entry)
        """Where it publishes; None: it cannot be reached now, and only its last values are reported."""
        self._name, self._instance = entry.name, entry.instance
        self._tell, self._cached, self._latest = tell, cached, Latest()
        self._greeted = asyncio.Event()
        self._line: Line | None = None
        if self.place is not None:
            with suppress(BadEndpoint):  # one instance with an invalid address must not end the whole subscription
                self._line = Line(zmq.SUB, self.place, self._heard, self._greeted.set)
                self._line.subscribe(prefix.encode())
        self._work = asyncio.get_running_loop().create_task(self._tell_cached())

    def close(self) -> None:
        """Stop receiving."""
        self._work.cancel()
        if self._line is not None:
            self._line.close()
            self._line = None

    async def ready(self) -> None:
        """Wait until its last values have been reported."""
        await asyncio.wait([self._work])

    def _heard(self, frames: list[bytes]) -> None:
        topic = frames[0].decode("utf-8", "replace")
        self._latest.live(topic)
        self._tell(Value(topic, tuple(frames[1:]), self._name, self._instance))

    async def _tell_cached(self) -> None:
        if self._line is not None:
            try:
                async with asyncio.timeout(CONNECT_S):
                    await self._greeted.wait()
            except TimeoutError:
                pass  # the publisher may be gone; the broker still has its last values
            else:
                await asyncio.sleep(SHARED_S)
        if self._cached is None:
            return
        values = await self._asked(self._cached)
        await asyncio.sleep(SETTLE_S)
        for value in self._latest.cached(values):
            self._tell(value)

    async def _asked(self, cached: Cached) -> list[Value]:
        """Ask until the broker answers; a refusal counts as no values."""
        while True:
            try:
                return await cached(self._instance)
            except CatalogTimeout:
                await asyncio.sleep(BACK_OFF_MIN_S)
            except CatalogError:
                return []


class Subscription(ReadAhead[Value]):
    """Iterates over values: `async for value in client.subscribe("thermo", "room/"): …`.

    It begins with the first step, or with `async with`: when that returns, everything published from then on is
    reported. It covers all instances of the name, later ones too, and follows one that moves.
    """

    def __init__(self, watch: Watch, name: str, prefix: str, cached: Cached | None) -> None:
        super().__init__(VALUES_AHEAD_MAX)
        self._watch, self._name, self._prefix, self._cached = watch, name, prefix, cached
        watch.listener = self._changed
        self._feeds: dict[str, Feed] = {}

    def close(self) -> None:
        """End it; a task that waits for the next value gets StopAsyncIteration."""
        self._is_closed = True
        self._watch.close()
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
        self._inbox.end()

    async def _begin(self) -> None:
        if self._is_closed:
            raise Closed("the subscription has ended")
        if not self._has_begun:
            self._has_begun = True
            await self._watch.__aenter__()
            for feed in list(self._feeds.values()):
                await feed.ready()

    def _changed(self, change: Change) -> None:
        """An instance has come, moved or left."""
        if change.op == "resync":
            present = {entry.instance: entry for entry in self._watch.entries.values() if entry.name == self._name}
            for instance in [instance for instance in self._feeds if instance not in present]:
                self._feeds.pop(instance).close()
            for entry in present.values():
                self._follow(entry)
        elif change.entry is not None:
            self._follow(change.entry)
        elif change.name == self._name and change.instance in self._feeds:
            self._feeds.pop(change.instance).close()

    def _follow(self, entry: Entry) -> None:
        if entry.name != self._name:  # a name with `*` also matches other services
            return
        feed = self._feeds.get(entry.instance)
        if feed is not None:
            place = place_of(entry)
            if place in (None, feed.place):  # keep the feed of an instance that is gone: it may come back there
                return
            feed.close()
        self._feeds[entry.instance] = Feed(entry, self._prefix, self._inbox.put, self._cached)


def place_of(entry: Entry) -> Address | None:
    """The address at which an instance publishes, if it is available."""
    if not entry.is_usable and entry.state == "inactive":
        return None
    interfaces = entry.record.get("interfaces")
    for kind, interface in interfaces.items() if isinstance(interfaces, dict) else ():
        if kind == PUB or (isinstance(interface, dict) and interface.get("type") == "PUB"):
            return entry.interface(kind)
    return None
