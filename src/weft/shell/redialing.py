"""Dials again what libzmq has given up.

libzmq reconnects by itself within 100 ms where a peer is gone, but never after a ZMTP error, such as an altered byte in
a greeting: the socket stays silent for good, and only its monitor says that the connection is lost. So whatever is
lost and has not greeted again a second later is dialled anew, once per loss.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import zmq

from weft.shell.monitors import Monitors
from weft.shell.sockets import Context, Socket

REDIAL_S: Final = 1.0  # ten times what libzmq takes; also how often a peer is dialled that never greets well
GREETED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED
LOST: Final = zmq.EVENT_DISCONNECTED


class Tell(Protocol):
    """Gets the key of a socket, an endpoint, and whether that has accepted the socket now, or is lost."""

    def __call__(self, key: bytes, endpoint: str, /, *, is_up: bool) -> None:
        """Once per event of libzmq."""


def leave(made: Socket, endpoint: str) -> None:
    """The socket stops dialling an endpoint, and messages queued for that peer are dropped."""
    with suppress(zmq.ZMQError):  # it was not dialled, or libzmq has given it up
        made.disconnect(f"tcp://{endpoint}")


class Redialing:
    """Watches the dialled sockets of one channel. `redial` gets the key of a socket, and the endpoint that was lost."""

    def __init__(
        self,
        context: Context,
        redial: Callable[[bytes, str], None],
        *,
        is_of_many: bool = False,
        tell: Tell,
    ) -> None:
        """`is_of_many`: one socket dials many endpoints, so which one is lost is as libzmq says: a name is resolved.

        `tell` gets each socket and endpoint where it was accepted, or lost.
        """
        self._monitors, self._redial, self._is_of_many = Monitors(context), redial, is_of_many
        self._tell = tell
        self._dialled: dict[bytes, str] = {}
        """The endpoint that each socket has dialled last."""
        self._waiting: dict[tuple[bytes, str], asyncio.TimerHandle] = {}

    def watch(self, key: bytes, made: Socket) -> None:
        """Watch a socket, before it is dialled."""
        self._monitors.watch(made, GREETED | LOST, partial(self._note, key))

    def note(self, key: bytes, endpoint: str) -> None:
        """A socket dials an endpoint."""
        self._dialled[key] = endpoint

    def ignore(self, key: bytes, made: Socket) -> None:
        """A socket is about to be closed."""
        self._dialled.pop(key, None)
        if self._monitors.ignore(made):
            for place in [place for place in self._waiting if place[0] == key]:
                self._calm(place)

    def _note(self, key: bytes, event: int, _: int, said: str) -> None:
        place = key, said.removeprefix("tcp://") if self._is_of_many else ""
        self._tell(key, place[1] or self._dialled.get(key, ""), is_up=event == GREETED)
        if event == GREETED:
            self._calm(place)
        elif place not in self._waiting:
            self._waiting[place] = asyncio.get_running_loop().call_later(REDIAL_S, self._again, place)

    def _again(self, place: tuple[bytes, str]) -> None:
        del self._waiting[place]
        key, said = place
        self._redial(key, said or self._dialled[key])

    def _calm(self, place: tuple[bytes, str]) -> None:
        waiting = self._waiting.pop(place, None)
        if waiting is not None:
            waiting.cancel()
