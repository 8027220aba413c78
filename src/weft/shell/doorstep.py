"""Checks at times whether a dialled peer refuses this node, and pauses its sockets while that lasts (SEC-052)."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Protocol

import zmq
from zmq.utils.monitor import parse_monitor_message

from weft.base.endpoints import shifted
from weft.node.securityevents import DoorOpened, DoorShut
from weft.shell.ends import End
from weft.shell.keys import Keys
from weft.shell.links import Links
from weft.shell.redialing import leave
from weft.shell.shutdoors import AWAY, OK, OTHER, REFUSED, Place
from weft.shell.sockets import Context, Credentials, Socket, connect_with
from weft.shell.trying import prober, watched

LOOK_S: Final = 0.02  # seconds between two looks at the probes
PATIENCE_S: Final = 3.0  # seconds for a probe; without an outcome the peer is away
AT_ONCE: Final = 16  # probes in progress
_ENDS: Final[dict[int, str]] = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: OK,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: REFUSED,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: OTHER,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: OTHER,
}


class _Probe(NamedTuple):
    place: Place
    socket: Socket
    monitor: Socket


async def knock(context: Context, places: Iterable[Place], keys: Keys) -> dict[str, str]:
    """Try a handshake at each place; returns the outcomes by endpoint. If a place may have several keys, one suffices."""
    found: dict[str, str] = {}
    with ExitStack() as closing:
        probes = [_begin(context, closing, place, server, keys) for place in places for server in place.servers]
        await _watch(probes, found)
    return {each.place.endpoint: found.get(each.place.endpoint, AWAY) for each in probes}


def _begin(context: Context, closing: ExitStack, place: Place, server: str, keys: Keys) -> _Probe:
    made = prober(context, closing, place.socket, place.endpoint)
    connect_with(made, keys, server)
    monitor = watched(made, closing, sum(_ENDS))
    made.connect(f"tcp://{place.endpoint}")
    return _Probe(place, made, monitor)


async def _watch(probes: list[_Probe], found: dict[str, str]) -> None:
    """Wait until all probes have ended, or the time is over. A socket whose probe has ended is disconnected."""
    loop, waiting = asyncio.get_running_loop(), list(probes)
    ends_at = loop.time() + PATIENCE_S
    while waiting and loop.time() < ends_at:
        for each in [each for each in waiting if each.monitor.poll(0)]:
            waiting.remove(each)
            endpoint = each.place.endpoint
            outcome = _ENDS[parse_monitor_message(each.monitor.recv_multipart())["event"]]
            each.socket.disconnect(f"tcp://{endpoint}")
            found[endpoint] = OK if OK in (outcome, found.get(endpoint)) else outcome
        await asyncio.sleep(LOOK_S)


class Dialler(Protocol):
    """Sockets that dial peers with keys."""

    def silent(self, now: float) -> Iterable[Place]:
        """The peers that have been silent for a while, or are not dialled because they refuse this node."""

    def pause(self, endpoint: str) -> None:
        """The peer refuses this node: dial it no more, and queue nothing for it."""

    def resume(self, endpoint: str) -> None:
        """The peer accepts this node: dial it again."""


class _OfChannel(NamedTuple):
    """The sockets of one channel."""

    end: End
    credentials: Credentials

    def silent(self, now: float) -> Iterator[Place]:
        row = self.end.row
        for endpoint in self.end.awaited.silent(now):
            pairs = self.credentials.pairs(shifted(endpoint, -row.place))
            yield Place(endpoint, row.socket, tuple(key for _, key in pairs))

    def pause(self, endpoint: str) -> None:
        for key in self.end.awaited.keys_at(endpoint):
            leave(self.end.sockets[key], endpoint)

    def resume(self, endpoint: str) -> None:
        for key in self.end.awaited.keys_at(endpoint):
            self.end.redial(key, endpoint)


class Doorstep:
    """Probes the silent peers of a node with keys. `tell` gets an event for each that begins or ceases to refuse it."""

    def __init__(
        self, links: Links, tell: Callable[[Any], None], others: Callable[[], Iterable[Dialler]] = lambda: ()
    ) -> None:
        """`others`: sockets that dial with the node's keys, beside its channels."""
        self._links, self._tell, self._others = links, tell, others
        self._look: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Probe the silent peers that are due, in a task; nothing happens while one runs."""
        if self._look is not None and not self._look.done():
            return
        now = asyncio.get_running_loop().time()
        due = (each for each in self._silent(now) if self._links.credentials.shut.is_due(each.endpoint, now))
        if places := list(islice(due, AT_ONCE)):
            self._look = asyncio.create_task(self._knock(places))

    async def close(self) -> None:
        """Stop probing."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])

    def _silent(self, now: float) -> list[Place]:
        places = {each.endpoint: each for dialler in self._diallers() for each in dialler.silent(now)}
        return [each for each in places.values() if each.servers]

    def _diallers(self) -> Iterator[Dialler]:
        credentials = self._links.credentials
        return chain((_OfChannel(end, credentials) for end in self._links.ends.values()), self._others())

    async def _knock(self, places: list[Place]) -> None:
        credentials = self._links.credentials
        if credentials.keys is None:
            return
        for endpoint, outcome in (await knock(self._links.context, places, credentials.keys)).items():
            if credentials.shut.note(endpoint, outcome, asyncio.get_running_loop().time()):
                self._change(endpoint, outcome)

    def _change(self, endpoint: str, outcome: str) -> None:
        is_shut = self._links.credentials.shut.is_shut(endpoint)
        for dialler in self._diallers():
            (dialler.pause if is_shut else dialler.resume)(endpoint)
        self._tell(DoorShut(endpoint, outcome) if is_shut else DoorOpened(endpoint))
