"""Follows log records: first those that the broker has kept, then each new one (LOG-005).

After each greeting of the broker's publisher, the broker is asked for the records since the last one reported. So no
record that the broker still has is missed, however often the connection breaks. A record that arrives twice is reported
once.
"""

import asyncio
from typing import Any, Final, Protocol

import msgspec
import zmq

from weft.client.catalog.errors import CatalogError, CatalogTimeout, Closed
from weft.client.catalog.limits import SHARED_S, TOLD_MAX, VALUES_AHEAD_MAX
from weft.client.catalog.lines import Line, Place
from weft.client.link.inbox import ReadAhead
from weft.cores.catalog.logforms import LEVELS

TOPIC: Final = b"logs/"
AT_ONCE: Final = 1_000
"""Missed records that are asked for at once."""
Record = dict[str, Any]


class Asking(Protocol):
    """The part of the client that it needs."""

    async def logs(self, wanted: Record) -> list[Record]:
        """The records that the broker has kept; CatalogError."""

    async def events(self, *, anew: bool) -> Place:
        """Where the broker publishes its events; CatalogError."""


class Tail(ReadAhead[Record]):
    """Iterates over log records: `async for record in client.follow_logs(level="ERROR"): …`."""

    def __init__(self, client: Asking, wanted: Record) -> None:
        super().__init__(VALUES_AHEAD_MAX)
        self._client, self._wanted = client, wanted
        self._severity = LEVELS.get(str(wanted.get("level", "DEBUG")).upper(), 0)
        self._line: Line | None = None
        self._known: dict[tuple[Any, ...], None] = {}
        self._since = 0.0
        self._live: list[Record] | None = []
        """New records while the broker is asked for earlier ones; None: new ones are reported at once."""
        self._work: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End it; a task that waits for the next record gets StopAsyncIteration."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._work is not None:
            self._work.cancel()
        self._inbox.end()

    async def _begin(self) -> None:
        if self._is_closed:
            raise Closed("the client has been closed")
        if not self._has_begun:
            self._has_begun = True
            place = await self._client.events(anew=False)
            self._line = Line(zmq.SUB, place, self._heard, self._greeted)
            self._line.subscribe(TOPIC)

    def _greeted(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._live = self._live or []
        self._work = asyncio.get_running_loop().create_task(self._catch_up())

    async def _catch_up(self) -> None:
        """Fetch earlier records: the first time those requested, later those missed since the last one."""
        await asyncio.sleep(SHARED_S)
        wanted = {**self._wanted, "since": self._since, "limit": AT_ONCE} if self._since else self._wanted
        while True:
            try:
                records = await self._client.logs(wanted)
                break
            except CatalogTimeout:
                continue
            except CatalogError as error:
                self._inbox.end(error)
                self.close()
                return
        live, self._live = self._live or [], None
        for record in [*records, *live]:
            self._tell(record)

    def _heard(self, frames: list[bytes]) -> None:
        try:
            record = msgspec.json.decode(frames[1])
        except (IndexError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(record, dict) or not self._is_wanted(record):
            return
        if self._live is None:
            self._tell(record)
        elif len(self._live) < VALUES_AHEAD_MAX:
            self._live.append(record)

    def _is_wanted(self, record: Record) -> bool:
        if LEVELS.get(str(record.get("level")), 0) < self._severity:
            return False
        if self._wanted.get("service") not in (None, record.get("service")):
            return False
        return str(self._wanted.get("contains") or "") in str(record.get("message"))

    def _tell(self, record: Record) -> None:
        key = tuple(str(record.get(name)) for name in ("service", "instance", "received", "seq", "level", "message"))
        if key in self._known:
            return
        self._known[key] = None
        if len(self._known) > TOLD_MAX:
            del self._known[next(iter(self._known))]
        received = record.get("received")
        self._since = max(self._since, received if isinstance(received, int | float) else 0.0)
        self._inbox.put(record)
