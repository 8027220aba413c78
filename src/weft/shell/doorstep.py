"""Checks at times whether a dialled peer refuses this node, and pauses its sockets while that lasts (SEC-052)."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final, NamedTuple

import zmq
from zmq.utils.monitor import parse_monitor_message

from weft.base.endpoints import shifted
from weft.node.securityevents import DoorOpened, DoorShut
from weft.shell.keys import Keys
from weft.shell.links import Links
from weft.shell.redialing import leave
from weft.shell.shutdoors import AWAY, OK, OTHER, REFUSED, Place
from weft.shell.sockets import Context, Socket, connect_with
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


class Doorstep:
    """For one node with keys; one check at a time. `tell` gets the peers that started or stopped refusing."""

    def __init__(self, links: Links, tell: Callable[[Any], None]) -> None:
        self._links, self._tell = links, tell
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
        places = {
            endpoint: Place(endpoint, end.row.socket, self._keys_at(shifted(endpoint, -end.row.place)))
            for end in self._links.ends.values()
            for endpoint in end.awaited.silent(now)
        }
        return [each for each in places.values() if each.servers]

    def _keys_at(self, place: str) -> tuple[str, ...]:
        return tuple(key for _, key in self._links.credentials.pairs(place))

    async def _knock(self, places: list[Place]) -> None:
        credentials = self._links.credentials
        if credentials.keys is None:
            return
        for endpoint, outcome in (await knock(self._links.context, places, credentials.keys)).items():
            if credentials.shut.note(endpoint, outcome, asyncio.get_running_loop().time()):
                self._change(endpoint, outcome)

    def _change(self, endpoint: str, outcome: str) -> None:
        is_shut = self._links.credentials.shut.is_shut(endpoint)
        for end in self._links.ends.values():
            for key in end.awaited.keys_at(endpoint):
                if is_shut:
                    leave(end.sockets[key], endpoint)
                else:
                    end.redial(key, endpoint)
        self._tell(DoorShut(endpoint, outcome) if is_shut else DoorOpened(endpoint))
