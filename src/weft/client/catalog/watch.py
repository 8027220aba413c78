"""A watch of the catalog, which reports every change even if brokers restart (CAT-043), and a copy that it keeps current.

following.py decides what to do and when; this module has the socket, the requests and the clock.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

import zmq

from weft.client.catalog.entries import Change, Entry
from weft.client.catalog.errors import CatalogError, CatalogTimeout, Closed, GarbledAnswer
from weft.client.catalog.following import Ask, Follower, Reopen, Subscribe
from weft.client.catalog.limits import BACK_OFF_MAX_S, BACK_OFF_MIN_S, CHANGES_AHEAD_MAX
from weft.client.catalog.lines import Line, Place
from weft.client.link.backoff import BackOff
from weft.client.link.inbox import Feed

RESYNC: Final = Change("resync", "", "", None)


class Asking(Protocol):
    """The part of the client that a watch needs."""

    async def answered(self, *frames: bytes) -> dict[str, Any]:
        """The JSON object in the answer to a query, even if it is a refusal; CatalogError if no answer comes."""

    async def events(self, *, anew: bool) -> Place:
        """Where the broker publishes its events; `anew`: search for it, because the known address may be old.

        CatalogError.
        """


class Watch(Feed):
    """Iterates over changes: `async for op, name, instance, entry, *_ in client.watch(): …`.

    It begins with the first step, or with `async with`: first come all existing instances, then each change. A `resync`
    means that changes could not be reported one by one, because the broker was away for long or the reader was too slow;
    the differences follow it. Only one task may read it.
    """

    def __init__(self, client: Asking, wanted: dict[str, Any]) -> None:
        self._client = client
        self._follower = Follower(wanted)
        self._line: Line | None = None
        self._changes: deque[Change] = deque()
        self._latest: OrderedDict[tuple[str, str], Change] = OrderedDict()
        """After `_changes`: the newest change of each instance, once the reader is too slow."""
        self._has_begun = self._has_stood = self._is_closed = False
        self._error: Exception | None = None
        self._stirred = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._works: set[asyncio.Task[None]] = set()
        self.listener: Callable[[Change], None] | None = None
        """Called with each change at once; then there is nothing to iterate over."""

    @property
    def is_live(self) -> bool:
        """Whether `entries` is the broker's current state, apart from changes on their way."""
        return self._follower.is_live and not self._is_closed

    @property
    def entries(self) -> dict[tuple[str, str], Entry]:
        """The instances that match now, by name and instance."""
        return self._follower.entries

    async def __aenter__(self) -> Self:
        """Begin, and wait for the first state; CatalogError if the broker refuses, or cannot be reached."""
        self._begin()
        await self.until_live()
        return self

    def close(self) -> None:
        """End it; a task that waits for the next change gets StopAsyncIteration."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._timer is not None:
            self._timer.cancel()
        for work in self._works:
            work.cancel()
        self._stirred.set()

    async def until_live(self) -> None:
        """Wait until `is_live`."""
        while not self._follower.is_live:
            await self._stir()
            if self._is_closed:
                raise Closed("the watch has ended")

    async def __anext__(self) -> Change:
        """The next change."""
        if not self._has_begun:
            self._begin()
        while not (self._changes or self._latest):
            if self._is_closed:
                raise StopAsyncIteration
            await self._stir()
        return self._changes.popleft() if self._changes else self._latest.popitem(last=False)[1]

    async def _stir(self) -> None:
        """Wait until something has changed; raises a pending error."""
        if self._error is not None:
            error, self._error = self._error, None
            self.close()
            raise error
        await self._stirred.wait()
        self._stirred.clear()

    def _begin(self) -> None:
        if self._is_closed:
            raise Closed("the watch has ended")
        if not self._has_begun:
            self._has_begun = True
            self._loop = asyncio.get_running_loop()
            self._work(self._open())

    def _work(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    async def _open(self) -> None:
        """Open a new socket to the broker's current address."""
        if self._line is not None:
            self._line.close()
            self._line = None
        try:
            place = await self._found(anew=self._has_stood)
        except CatalogError as error:
            self._fail(error)
            return
        self._line, self._has_stood = Line(zmq.SUB, place, self._heard), True
        self._follower.opened(time.monotonic_ns())
        self._act()

    async def _found(self, *, anew: bool) -> Place:
        """Where the broker publishes. If it was found once, it is searched for until it is found again."""
        back_off = BackOff(BACK_OFF_MIN_S, BACK_OFF_MAX_S)
        while True:
            try:
                return await self._client.events(anew=anew)
            except CatalogTimeout:
                if not self._has_stood:
                    raise
            await back_off.wait()

    def _heard(self, frames: list[bytes]) -> None:
        self._follower.heard(frames, time.monotonic_ns())
        self._act()

    async def _ask(self, ask: Ask) -> None:
        try:
            await self._answer(ask)
        except CatalogError as error:
            self._fail(error)

    async def _answer(self, ask: Ask) -> None:
        try:
            answer = await self._client.answered(*ask.frames)
        except (CatalogTimeout, GarbledAnswer):
            self._follower.failed(ask.ticket, time.monotonic_ns())
        else:
            self._follower.answered(ask.ticket, answer, time.monotonic_ns())
        self._act()

    def _wake(self) -> None:
        self._timer = None
        self._follower.wake(time.monotonic_ns())
        self._act()

    def _act(self) -> None:
        """Carry out actions, report changes, and set the timer."""
        if self._is_closed:
            return
        for action in self._follower.actions():
            if isinstance(action, Subscribe):
                if self._line is not None:
                    self._line.subscribe(action.topic)
            elif isinstance(action, Ask):
                self._work(self._ask(action))
            elif isinstance(action, Reopen):
                self._work(self._open())
        for change in self._follower.changes():
            self._tell(change)
        self._stirred.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._follower.deadline()
        if due is not None:
            self._timer = self._loop.call_later(max(0.0, (due - time.monotonic_ns()) / 1e9), self._wake)

    def _tell(self, change: Change) -> None:
        if self.listener is not None:
            self.listener(change)
        elif len(self._changes) < CHANGES_AHEAD_MAX and not self._latest:
            self._changes.append(change)
        else:
            self._tell_latest(change)

    def _tell_latest(self, change: Change) -> None:
        """The reader is too slow: keep only the last change of each instance."""
        if not self._latest:
            changes = [one for one in self._changes if one.op != RESYNC.op]
            self._latest.update({(one.name, one.instance): one for one in changes})
            self._changes.clear()
            self._changes.append(RESYNC)
        if change.op != RESYNC.op:  # a resync stands at the front already
            self._latest[change.name, change.instance] = change

    def _fail(self, error: CatalogError) -> None:
        self._error = error
        self._stirred.set()


class Copy:
    """A copy of the whole catalog, kept up to date by a watch: lookups need no request (CAT-072)."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._by_name: dict[str, dict[str, Entry]] = {}
        watch.listener = self._hear

    async def open(self) -> None:
        """Copy all entries."""
        await self._watch.__aenter__()

    def close(self) -> None:
        """Stop updating."""
        self._watch.close()

    @property
    def is_fresh(self) -> bool:
        """Whether it equals the broker's state."""
        return self._watch.is_live

    def of_name(self, name: str) -> list[Entry]:
        """The instances of a name that can be used, in the order of CAT-030."""
        entries = [entry for entry in self._by_name.get(name, {}).values() if entry.is_usable]
        return sorted(entries, key=_rank)

    def names(self) -> list[str]:
        """All names with a usable instance."""
        return sorted(name for name, entries in self._by_name.items() if any(e.is_usable for e in entries.values()))

    def _hear(self, change: Change) -> None:
        if change.op == "resync":
            self._by_name.clear()
            for (name, instance), entry in self._watch.entries.items():
                self._by_name.setdefault(name, {})[instance] = entry
        elif change.entry is not None:
            self._by_name.setdefault(change.name, {})[change.instance] = change.entry
        else:
            instances = self._by_name.get(change.name, {})
            instances.pop(change.instance, None)
            if not instances:
                self._by_name.pop(change.name, None)


HEALTHS: Final = {"passing": 0, "unknown": 1, "warning": 2}


def _rank(entry: Entry) -> tuple[int, bool, int, int]:
    return HEALTHS.get(entry.health, 1), entry.state != "active", -entry.weight, entry.index
