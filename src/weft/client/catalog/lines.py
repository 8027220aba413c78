"""The sockets of a client of the catalog: a DEALER to a broker or a service, a SUB to a publisher."""

import asyncio
from collections.abc import Callable
from typing import Final

import zmq

from weft.client.catalog.entries import Address
from weft.client.catalog.limits import FRAME_BYTES_MAX, QUEUE_MAX, REDIAL_S
from weft.client.link.channel import Channel, Hear
from weft.client.link.opening import Target
from weft.client.link.sockets import GREETED, LOST, Bounds, Socket

BOUNDS: Final = Bounds(FRAME_BYTES_MAX, QUEUE_MAX)
Place = Address | Target | str
"""Where to connect: an address or an endpoint of ZeroMQ, without keys; or a target, which may have keys."""
TURN: Final = 256
"""Messages that are read in one turn of the loop."""


def target_of(place: Place) -> Target:
    """A place as a target."""
    if isinstance(place, Target):
        return place
    return Target(place if isinstance(place, str) else place.endpoint)


class Line(Channel):
    """A channel over one ZeroMQ socket. Closing it drops unsent messages.

    A SUB calls `greeted` after each handshake, and reconnects by itself: it sends no requests, so no missing answer would
    show a lost connection. A DEALER does not reconnect; its user replaces it when an answer does not come.
    """

    _socket: Socket

    def __init__(self, kind: int, place: Place, hear: Hear, greeted: Callable[[], None] | None = None) -> None:
        """Connect; raises BadEndpoint if the address is invalid."""
        self._target, self._greeted = target_of(place), greeted
        self._redialing: asyncio.TimerHandle | None = None

        def opener(on_ready: Callable[[], None], _: Callable[[], None]) -> Socket:
            made = self._socket = Socket(kind, BOUNDS, on_ready)
            if kind == zmq.SUB:
                made.watch({GREETED: self._on_greeting, LOST: self._lost})
            made.dial(self._target)
            return made

        super().__init__(opener, hear, per_turn=TURN)

    def subscribe(self, *topics: bytes) -> None:
        """Subscribe a SUB to topics with these prefixes."""
        for topic in topics:
            self._socket.set(zmq.SUBSCRIBE, topic)
        self.look()

    def close(self) -> None:
        """Close the socket, and do not reconnect."""
        self._cancel_redial()
        super().close()

    def _on_greeting(self) -> None:
        self._cancel_redial()
        if self._greeted is not None:
            self._greeted()

    def _lost(self) -> None:
        """The connection is lost. libzmq reconnects within 100 ms, but never after a ZMTP error: then `_redial` does."""
        if self._redialing is None and not self.is_closed:
            self._redialing = asyncio.get_running_loop().call_later(REDIAL_S, self._redial)

    def _redial(self) -> None:
        self._redialing = None
        self._socket.redial(self._target)
        self.look()

    def _cancel_redial(self) -> None:
        if self._redialing is not None:
            self._redialing.cancel()
            self._redialing = None
