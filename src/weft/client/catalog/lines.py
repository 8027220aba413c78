"""What a client of the catalog asks through: a DEALER to a broker or a service, a SUB to a publisher."""

from collections.abc import Callable
from typing import Final

import zmq

from weft.client.catalog.entries import Address
from weft.client.catalog.limits import FRAME_BYTES_MAX, QUEUE_MAX
from weft.client.link.channel import Channel, Hear
from weft.client.link.opening import Target
from weft.client.link.sockets import GREETED, Bounds, Socket

BOUNDS: Final = Bounds(FRAME_BYTES_MAX, QUEUE_MAX)
Place = Address | Target | str
"""Where to connect: an address or an endpoint of ZeroMQ, without keys; or a target, which may have some."""
TURN: Final = 256
"""Messages that are read without returning to the loop."""


def target_of(place: Place) -> Target:
    """Of whatever names a place."""
    if isinstance(place, Target):
        return place
    return Target(place if isinstance(place, str) else place.endpoint)


class Line(Channel):
    """A channel through one ZeroMQ socket; what was not sent when it is closed never leaves.

    `greeted` is called each time that the other end has greeted.
    """

    _socket: Socket

    def __init__(self, kind: int, place: Place, hear: Hear, greeted: Callable[[], None] | None = None) -> None:
        """BadEndpoint if that is no place."""

        def opener(on_ready: Callable[[], None], _: Callable[[], None]) -> Socket:
            made = self._socket = Socket(kind, BOUNDS, on_ready)
            if greeted is not None:
                made.watch(GREETED, greeted)
            made.dial(target_of(place))
            return made

        super().__init__(opener, hear, per_turn=TURN)

    def subscribe(self, *topics: bytes) -> None:
        """Of a SUB: ask for these."""
        for topic in topics:
            self._socket.set(zmq.SUBSCRIBE, topic)
        self.look()
