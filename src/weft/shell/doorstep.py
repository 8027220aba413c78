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

LOOK_S: Final = 0.02
PATIENCE_S: Final = 3.0
AT_ONCE: Final = 16  # probes in progress
_ENDS: Final[dict[int, str]] = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: OK,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: REFUSED,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: OTHER,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: OTHER,
}


class _Knock(NamedTuple):
    place: Place
    socket: Socket
    monitor: Socket


async def knock(context: Context, places: Iterable[Place], keys: Keys) -> dict[str, str]:
    """The result of one probe at each place, by endpoint; of several keys one that is accepted suffices."""
    found: dict[str, str] = {}
    with ExitStack() as closing:
        knocks = [_begin(context, closing, place, server, keys) for place in places for server in place.servers]
        await _watch(knocks, found)
    return {each.place.endpoint: found.get(each.place.endpoint, AWAY) for each in knocks}


def _begin(context: Context, closing: ExitStack, place: Place, server: str, keys: Keys) -> _Knock:
    made = prober(context, closing, place.socket, place.endpoint)
    connect_with(made, keys, server)
    monitor = watched(made, closing, sum(_ENDS))
    made.connect(f"tcp://{place.endpoint}")
    return _Knock(place, made, monitor)


async def _watch(knocks: list[_Knock], found: dict[str, str]) -> None:
    """Wait until each has ended, or the time is over; a socket that has ended stops probing."""
    loop, waiting = asyncio.get_running_loop(), list(knocks)
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
    """For one node with keys; one check at a time. `tell` gets the peers that started or stopped refusing."""

    def __init__(
        self, links: Links, tell: Callable[[Any], None], others: Callable[[], Iterable[Dialler]] = lambda: ()
    ) -> None:
        """`others`: what dials with the node's keys beside its channels."""
        self._links, self._tell, self._others = links, tell, others
        self._look: asyncio.Task[None] | None = None

    def look(self) -> None:
        """If it is time, probe dialled peers that are silent; the result follows."""
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
