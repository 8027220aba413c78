"""Copies of a service's messages as they pass: `async for copy in client.tap("thermo"): …` (MON-001, MON-006)."""

import asyncio
import contextlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import zmq

from weft.base.errors import UNREADABLE
from weft.client.catalog.errors import CatalogError, Closed
from weft.client.catalog.limits import CONNECT_S, SHARED_S, VALUES_AHEAD_MAX
from weft.client.catalog.lines import Line, Place
from weft.client.link.inbox import ReadAhead

QUERY: Final = b"dbp.tap"
TOPIC: Final = b"tap/"
Table = dict[str, Any]
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Copied(NamedTuple):
    """One message that passed."""

    header: Table
    """`service instance seq dir socket peer ts frames bytes cut`; of a call also `word`, of its answer also `took_us`."""
    frames: tuple[bytes, ...]
    """The frames, as far as they were copied; empty if the tap reports lengths only."""


class Asking(Protocol):
    """The part of the client that it needs."""

    async def request(self, *frames: bytes) -> Table:
        """The JSON object in the answer to a request; CatalogError."""

    async def events(self, *, anew: bool) -> Place:
        """Where the broker publishes; CatalogError."""


class Tapped(ReadAhead[Copied]):
    """Iterates over copies, until the tap ends or is closed."""

    def __init__(self, client: Asking, service: str, wanted: Mapping[str, Any]) -> None:
        super().__init__(VALUES_AHEAD_MAX)
        self.id = secrets.token_hex(8)
        """The tap's id. The client chooses it, to subscribe before the tap begins and miss nothing."""
        self.instances: list[str] = []
        """The ids of the instances that copy their messages."""
        self.accounts: Table = {}
        """`seen copied dropped sampled`, summed over all instances, as reported last; after the end also `why` it ended."""
        self._client, self._service, self._wanted = client, service, dict(wanted)
        self._line: Line | None = None
        self._greeted = asyncio.Event()
        self._reports: dict[str, Table] = {}

    async def __aexit__(self, *words: object) -> None:
        """End the tap at the broker, and stop reading."""
        await self.stop()
        self.close()

    async def stop(self) -> None:
        """Ask the broker to end the tap, which then reports its counts. A tap that has ended already is no error."""
        if self._has_begun and "why" not in self.accounts:
            with contextlib.suppress(CatalogError):
                await self._client.request(QUERY, msgspec.json.encode({"stop": self.id}))

    def close(self) -> None:
        """Stop reading; the tap itself continues until `stop`, or until its time is over."""
        self._is_closed = True
        if self._line is not None:
            self._line.close()
            self._line = None
        self._inbox.end()

    async def _begin(self) -> None:
        if self._has_begun:
            return
        if self._is_closed:
            raise Closed("the client has been closed")
        self._has_begun = True
        self._line = Line(zmq.SUB, await self._client.events(anew=False), self._heard, self._greeted.set)
        self._line.subscribe(TOPIC + self.id.encode())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._greeted.wait(), CONNECT_S)
        await asyncio.sleep(SHARED_S)
        asked = {"service": self._service, "id": self.id, **self._wanted}
        answer = await self._client.request(QUERY, msgspec.json.encode(asked))
        self.instances = list(map(str, answer.get("instances", ())))

    def _heard(self, frames: list[bytes]) -> None:
        try:
            header = _decode(frames[1])
        except (IndexError, *UNREADABLE):
            return
        if header.get("type") == "copy":
            self._inbox.put(Copied(header, tuple(frames[2:])))
        elif header.get("type") == "report":
            self._reports[str(header.get("instance"))] = header
            names = ("seen", "copied", "dropped", "sampled")
            self.accounts = {name: sum(_count(report, name) for report in self._reports.values()) for name in names}
        elif header.get("type") == "end":
            self.accounts = {name: value for name, value in header.items() if name not in ("type", "tap")}
            self._inbox.end()


class Flow:
    """The messages of one kind in one direction between a service and one peer."""

    def __init__(self) -> None:
        self.count = self.bytes = 0
        self.first_at = self.last_at = 0.0
        self.took_us: list[int] = []

    def note(self, header: Table) -> None:
        """Count one more copy."""
        at = float(header.get("ts") or 0)
        self.first_at = self.first_at if self.count else at
        self.count, self.last_at = self.count + 1, max(self.last_at, at)
        self.bytes += _count(header, "bytes")
        if len(self.took_us) < VALUES_AHEAD_MAX and isinstance(took := header.get("took_us"), int):
            self.took_us.append(took)

    @property
    def rate(self) -> float:
        """Messages per second."""
        span_s = self.last_at - self.first_at
        return (self.count - 1) / span_s if span_s > 0 else 0.0

    def quantile(self, share: float) -> float | None:
        """Seconds within which this share of the calls was answered; None: no answer was copied.

        >>> flow = Flow(); flow.took_us = [4_000_000, 1_000_000, 2_000_000]; flow.quantile(0.5)
        2.0
        """
        if not self.took_us:
            return None
        return sorted(self.took_us)[min(len(self.took_us) - 1, int(share * len(self.took_us)))] / 1e6


def flows_of(copies: Iterable[Copied]) -> dict[tuple[str, str, str, str], Flow]:
    """The flows by service, direction, peer address and kind."""
    found: dict[tuple[str, str, str, str], Flow] = {}
    for copy in copies:
        note_flow(found, copy)
    return found


def note_flow(flows: dict[tuple[str, str, str, str], Flow], copy: Copied) -> None:
    """Count one more copy."""
    header = copy.header
    other = str(header.get("peer", "")).partition("/")[0] if header.get("peer") else "subscribers"
    word = str(header.get("word") or header.get("socket") or "")
    key = (str(header.get("service", "")), str(header.get("dir", "")), other, word)
    flows.setdefault(key, Flow()).note(header)


def _count(table: Table, name: str) -> int:
    value = table.get(name, 0)
    return value if isinstance(value, int) else 0
