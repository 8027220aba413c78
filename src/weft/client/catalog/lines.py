"""One ZeroMQ socket in the running loop: a DEALER to a broker or a service, a SUB to a publisher."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import zmq

from weft.client.catalog.entries import Address
from weft.client.catalog.limits import FRAME_BYTES_MAX, QUEUE_MAX

Hear = Callable[[list[bytes]], None]
OPTIONS: Final[dict[int, int]] = {
    zmq.LINGER: 0,
    zmq.MAXMSGSIZE: FRAME_BYTES_MAX,
    zmq.SNDHWM: QUEUE_MAX,
    zmq.RCVHWM: QUEUE_MAX,
}
TURN: Final = 256
"""Messages that are read without returning to the loop."""
NOW: Final = int(zmq.NOBLOCK)
READABLE: Final = int(zmq.POLLIN)


class Line:
    """A socket that calls whoever hears, for each message; what was not sent when it is closed never leaves.

    `greeted` is called each time that the other end has greeted.
    """

    def __init__(self, kind: int, place: Address | str, hear: Hear, greeted: Callable[[], None] | None = None) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._socket = context.socket(kind)
        for option, value in OPTIONS.items():
            self._socket.setsockopt(option, value)
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._monitor: Any = None
        if greeted is not None:
            self._watch(greeted)  # before it connects: a quick greeting would be missed
        self._connect(place if isinstance(place, str) else place.endpoint)

    def _connect(self, endpoint: str) -> None:
        if endpoint.startswith("tcp://["):
            self._socket.setsockopt(zmq.IPV6, 1)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError:
            self._close()
            raise
        self._loop.add_reader(self._socket.FD, self._read)
        self._loop.call_soon(self._read)

    def say(self, frames: list[bytes]) -> bool:
        """Hand over a message; False if there is no room for it."""
        try:
            self._socket.send_multipart(frames, NOW)
        except zmq.Again:
            return False
        self._look()
        return True

    def subscribe(self, *topics: bytes) -> None:
        """Of a SUB: ask for these."""
        for topic in topics:
            self._socket.setsockopt(zmq.SUBSCRIBE, topic)

    def _watch(self, call: Callable[[], None]) -> None:
        """Call it whenever the other end has greeted."""
        monitor = self._monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)

        def look() -> None:
            while not monitor.closed:
                try:
                    monitor.recv_multipart(NOW)
                except zmq.Again:
                    return
                call()

        self._loop.add_reader(monitor.FD, look)
        self._loop.call_soon(look)

    def close(self) -> None:
        """The end of it."""
        if not self._socket.closed:
            self._loop.remove_reader(self._socket.FD)
            self._close()

    def _close(self) -> None:
        if self._monitor is not None:
            self._loop.remove_reader(self._monitor.FD)
            self._socket.disable_monitor()
            self._monitor.close(0)
        self._socket.close(0)

    def _look(self) -> None:
        """Sending takes the edge from the descriptor: what came meanwhile is only seen by looking."""
        if int(self._socket.get(zmq.EVENTS)) & READABLE:
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        for _ in range(TURN):
            if self._socket.closed:
                return
            try:
                frames = self._socket.recv_multipart(NOW)
            except zmq.Again:
                return
            self._hear(frames)
        self._loop.call_soon(self._read)
