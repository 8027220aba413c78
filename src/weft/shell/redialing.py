"""Dials endpoints again that libzmq has given up.

libzmq reconnects by itself within 100 ms if a peer is gone, but never after a ZMTP error, such as an altered byte in a
greeting: the socket stays silent, and only its monitor reports that the connection is lost. So an endpoint without a new
handshake one second after a loss is dialled again, once for each loss.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import zmq

from weft.shell.monitors import Monitors
from weft.shell.sockets import Context, Socket

REDIAL_S: Final = 1.0  # ten times what libzmq needs; a peer whose handshakes always fail is dialled this often
GREETED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED
LOST: Final = zmq.EVENT_DISCONNECTED


class Tell(Protocol):
    """Called when a connection is accepted or lost."""

    def __call__(self, key: bytes, endpoint: str, /, *, is_up: bool) -> None:
        """`key`: that of the socket; `is_up`: the peer has accepted the connection; else it is lost."""


def leave(made: Socket, endpoint: str) -> None:
    """Let the socket stop dialling an endpoint; messages that wait for that peer are dropped."""
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
        """`is_of_many`: each socket dials many endpoints; libzmq reports the lost one, with an address for a host name.

        `tell` is called when a connection is accepted or lost.
        """
        self._monitors, self._redial, self._is_of_many = Monitors(context), redial, is_of_many
        self._tell = tell
        self._dialled: dict[bytes, str] = {}
        """The endpoint that each socket has dialled last."""
        self._waiting: dict[tuple[bytes, str], asyncio.TimerHandle] = {}

    def watch(self, key: bytes, made: Socket) -> None:
        """Watch a socket, before it dials."""
        self._monitors.watch(made, GREETED | LOST, partial(self._note, key))

    def note(self, key: bytes, endpoint: str) -> None:
        """Note that a socket dials an endpoint."""
        self._dialled[key] = endpoint

    def ignore(self, key: bytes, made: Socket) -> None:
        """Stop watching a socket, before it is closed."""
        self._dialled.pop(key, None)
        if self._monitors.ignore(made):
            for place in [place for place in self._waiting if place[0] == key]:
                self._cancel(place)

    def _note(self, key: bytes, event: int, _: int, reported: str) -> None:
        place = key, reported.removeprefix("tcp://") if self._is_of_many else ""
        self._tell(key, place[1] or self._dialled.get(key, ""), is_up=event == GREETED)
        if event == GREETED:
            self._cancel(place)
        elif place not in self._waiting:
            self._waiting[place] = asyncio.get_running_loop().call_later(REDIAL_S, self._again, place)

    def _again(self, place: tuple[bytes, str]) -> None:
        del self._waiting[place]
        key, reported = place
        self._redial(key, reported or self._dialled[key])

    def _cancel(self, place: tuple[bytes, str]) -> None:
        waiting = self._waiting.pop(place, None)
        if waiting is not None:
            waiting.cancel()
