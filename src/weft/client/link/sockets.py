"""A ZeroMQ socket in the running loop, and the protocol `Wire` of whatever a channel reads and writes.

libzmq's descriptor becomes readable once per change, not as long as messages wait, and sending resets it, too.
So after each use of a socket `is_ready` must be checked before waiting for `on_ready`; channel.py does that.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Final, NamedTuple, Protocol

import zmq
from zmq.utils.monitor import parse_monitor_message

from weft.client.link.opening import Target, dial

NOW: Final = int(zmq.NOBLOCK)
NOW_AND_MORE: Final = int(zmq.NOBLOCK | zmq.SNDMORE)
put: Final = zmq.backend.Socket.send  # the function below `Socket.send`: half of its cost is the call of the wrapper
poll: Final = zmq.backend.zmq_poll  # costs less than EVENTS of the socket, whose name pyzmq looks up for each call
READABLE: Final = int(zmq.POLLIN)
GREETED: Final = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
"""Event: both ends have exchanged the greeting of ZMTP."""
LOST: Final = int(zmq.EVENT_DISCONNECTED)
"""Event: an open connection has ended."""
ENDED: Final = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
"""Events: an open connection has ended, or a connection could not be made."""
NOT_NOW: Final = frozenset({zmq.EAGAIN, zmq.EHOSTUNREACH})
"""Errors: the queue is full, or no peer has that routing id."""
Context = zmq.Context[zmq.Socket[bytes]]


class Wire(Protocol):
    """A connection that carries multiparts."""

    def send(self, frames: list[bytes]) -> bool:
        """Send a multipart; False: there is no room now, try again in the next turn."""

    def take(self) -> list[bytes] | None:
        """The next multipart; None if there is none now."""

    def is_ready(self) -> bool:
        """Whether `take` may return a multipart although no callback has announced it."""

    def close(self) -> None:
        """Close; messages that `send` accepted still leave."""


Opener = Callable[[Callable[[], None], Callable[[], None]], Wire]
"""Opens a connection. Its arguments are called when the connection is readable or writable, and when it has ended."""


class Bounds(NamedTuple):
    """Limits of a socket."""

    frame_bytes: int
    """Bytes; libzmq ends the connection of a peer that sends more."""
    queue: int
    """Multiparts that wait in each direction."""
    linger_ms: int = 0
    """Milliseconds that unsent messages have to leave after closing."""
    frames: int | None = None
    """Frames of a multipart that is read: further ones are dropped before any decoder sees them. None: any number."""
    bytes: int | None = None
    """Bytes of all frames of a multipart that is read: further frames are dropped. None: any number."""


class Socket:
    """One ZeroMQ socket. Use it in a running loop."""

    def __init__(
        self, kind: int, bounds: Bounds, on_ready: Callable[[], None] | None, context: Context | None = None
    ) -> None:
        self.raw = (context or zmq.Context.instance()).socket(kind)
        self._bounds = bounds
        self._on_ready = on_ready
        self._monitor: zmq.Socket[bytes] | None = None
        self._last: zmq.Frame | None = None
        self._loop = asyncio.get_running_loop()
        for option, value in (
            (zmq.LINGER, bounds.linger_ms),
            (zmq.MAXMSGSIZE, bounds.frame_bytes),
            (zmq.SNDHWM, bounds.queue),
            (zmq.RCVHWM, bounds.queue),
        ):
            self.raw.setsockopt(option, value)
        if on_ready is not None:
            self._loop.add_reader(self.raw.FD, on_ready)

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return bool(self.raw.closed)

    @property
    def heard_from(self) -> str:
        """The address of the sender of the last message taken; empty: libzmq does not know it."""
        try:
            return str(self._last.get("Peer-Address")) if self._last is not None else ""
        except zmq.ZMQError:
            return ""

    def set(self, option: int, value: int | bytes) -> None:
        """Set a further option of libzmq, before `dial` or `bind`."""
        self.raw.setsockopt(option, value)

    def dial(self, target: Target) -> None:
        """Connect; raises BadEndpoint, and is then closed."""
        try:
            dial(self.raw, target)
        except BaseException:
            self.close(0)
            raise

    def redial(self, target: Target) -> None:
        """Connect again: after a ZMTP error, such as altered bytes in a greeting, libzmq does not do so itself."""
        with suppress(zmq.ZMQError):  # libzmq may have dropped the endpoint already
            self.raw.disconnect(target.endpoint)
        self.dial(target)

    def watch(self, calls: dict[int, Callable[[], None]]) -> None:
        """Call a function whenever one of its events happens. To be called before `dial`, else the first events are missed."""
        monitor = self._monitor = self.raw.get_monitor_socket(reduce(or_, calls))

        def look() -> None:
            while not monitor.closed:
                try:
                    event = int(parse_monitor_message(monitor.recv_multipart(NOW))["event"])
                except zmq.Again:
                    return
                for events, call in calls.items():
                    if events & event:
                        call()

        self._loop.add_reader(monitor.FD, look)
        self._loop.call_soon(look)

    def send(self, frames: list[bytes]) -> bool:
        """Send a multipart; False if there is no room, or no peer."""
        raw = self.raw
        try:
            for frame in frames[:-1]:
                put(raw, frame, NOW_AND_MORE)
            put(raw, frames[-1], NOW)
        except zmq.ZMQError as error:
            if error.errno in NOT_NOW or raw.closed:
                return False
            raise
        return True

    def take(self) -> list[bytes] | None:
        """The next multipart, truncated to the limits; None if there is none now."""
        if self.raw.closed:
            return None
        receive = self.raw.recv
        try:
            frame = receive(NOW, copy=False)
        except zmq.Again:
            return None
        self._last = frame
        frames, (_, _, _, frames_max, bytes_max) = [frame.bytes], self._bounds
        size = 0
        while frame.more:
            frame = receive(NOW, copy=False)
            size += len(frame)
            if (frames_max is None or len(frames) <= frames_max) and (bytes_max is None or size <= bytes_max):
                frames.append(frame.bytes)
        return frames

    def is_ready(self) -> bool:
        """Whether a message waits; `on_ready` may not have been called for it."""
        return not self.raw.closed and bool(poll([(self.raw, READABLE)], 0))

    def close(self, linger_ms: int | None = None) -> None:
        """Close it; unsent messages have `linger_ms` to leave, by default as long as the bounds say."""
        if self.raw.closed:
            return
        if self._monitor is not None:
            self._loop.remove_reader(self._monitor.FD)
            self.raw.disable_monitor()
            self._monitor.close(0)
        if self._on_ready is not None:
            self._loop.remove_reader(self.raw.FD)
        self.raw.close(linger_ms)
