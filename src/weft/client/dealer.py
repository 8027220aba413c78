"""The ZeroMQ socket of one connection: a DEALER that is never used for a second one (CLI-002)."""

import asyncio
import os
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import zmq

from weft.base.errors import UserError
from weft.client.limits import FRAME_BYTES_MAX, LINGER_MS, NEVER_MS, SOCKET_QUEUE
from weft.wire.multipart import MULTIPART_BYTES_MAX, MULTIPART_FRAMES_MAX

NOW: Final = int(zmq.NOBLOCK)
NOW_AND_MORE: Final = int(zmq.NOBLOCK | zmq.SNDMORE)
ENDS: Final = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
"""What libzmq says when the other end is gone, or was never there."""
OPTIONS: Final[dict[int, int]] = {
    zmq.LINGER: LINGER_MS,
    zmq.MAXMSGSIZE: FRAME_BYTES_MAX,
    zmq.SNDHWM: SOCKET_QUEUE,
    zmq.RCVHWM: SOCKET_QUEUE,
    zmq.RECONNECT_IVL: NEVER_MS,
}
Context = zmq.Context[zmq.Socket[bytes]]


class Curve(NamedTuple):
    """Keys in Z85: the node's, and this program's own."""

    server: bytes
    public: bytes
    secret: bytes


class Wire(Protocol):
    """One connection to a node, whatever it is made of."""

    def send(self, frames: list[bytes]) -> bool:
        """Hand over a multipart; False: not now, try again when called."""

    def take(self) -> list[bytes] | None:
        """The next multipart; None: there is none now."""

    def is_ready(self) -> bool:
        """Whether `take` may have something that nobody was called for."""

    def close(self) -> None:
        """The end of it; what was handed over still leaves."""


Opener = Callable[[Callable[[], None], Callable[[], None]], Wire]
"""Opens a connection, given what to call when it is readable or writable, and when it broke."""


class Dealer:
    """A connection through ZeroMQ. To be used in a running loop."""

    def __init__(
        self, endpoint: str, curve: Curve | None, on_ready: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        context: Context = zmq.Context.instance()
        self._socket = context.socket(zmq.DEALER)
        for option, value in OPTIONS.items():
            self._socket.setsockopt(option, value)
        self._socket.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
        if endpoint.startswith("tcp://["):
            self._socket.setsockopt(zmq.IPV6, 1)
        if curve is not None:
            self._socket.curve_serverkey, self._socket.curve_publickey, self._socket.curve_secretkey = curve
        self._monitor = self._socket.get_monitor_socket(ENDS)
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._dial(endpoint)
        self._loop.add_reader(self._monitor.FD, self._look)
        self._loop.add_reader(self._socket.FD, on_ready)
        self._loop.call_soon(self._look)

    def send(self, frames: list[bytes]) -> bool:
        """Hand over a multipart; False if the queue is full."""
        send = self._socket.send
        try:
            for frame in frames[:-1]:
                send(frame, NOW_AND_MORE)
            send(frames[-1], NOW)
        except zmq.Again:
            return False
        return True

    def take(self) -> list[bytes] | None:
        """The next multipart, empty if it is beyond all limits; None: there is none now."""
        receive = self._socket.recv
        try:
            frame = receive(NOW, copy=False)
        except zmq.Again:
            return None
        frames = [frame.bytes]
        size = 0
        while frame.more:
            frame = receive(NOW, copy=False)
            size += len(frame)
            if len(frames) <= MULTIPART_FRAMES_MAX and size <= MULTIPART_BYTES_MAX:
                frames.append(frame.bytes)
        return frames

    def is_ready(self) -> bool:
        """Sending takes the edge from the descriptor: what came meanwhile is only seen by looking."""
        return bool(int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN)

    def close(self) -> None:
        """Close both sockets; what was handed over has a second to leave."""
        if self._socket.closed:
            return
        self._loop.remove_reader(self._socket.FD)
        self._loop.remove_reader(self._monitor.FD)
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()

    def _dial(self, endpoint: str) -> None:
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._socket.close(0)
            mend = "ipc:///path/to/chains.sock or tcp://host:port"
            raise UserError("bad-endpoint", f"{endpoint}: {error.strerror}", mend) from None

    def _look(self) -> None:
        """Hear of the end, which the monitor says once."""
        if self._socket.closed:
            return
        try:
            self._monitor.recv_multipart(NOW)
        except zmq.Again:
            return
        self._on_end()
