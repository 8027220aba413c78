"""What libzmq reports of the connections of a context's sockets, told on the running loop."""

import asyncio
import struct
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import zmq

TURN_MAX: Final = 256  # events in one callback, so that a flood of them cannot starve the node
NOW: Final = zmq.NOBLOCK
_NUMBERS: Final = count()
"""Of addresses, each used once: libzmq releases one some time after its socket was closed."""
_EVENT: Final = struct.Struct("=HI")
"""What a monitor says first: the event, and its value, mostly a descriptor."""

Tell = Callable[[int, int, str], None]
"""Gets an event, its value, and the endpoint, with its protocol."""


class Monitors:
    """Of the sockets of one context. Each costs two sockets more, and their descriptors."""

    def __init__(self, context: "zmq.Context[Any]") -> None:
        self._context = context
        self._of: dict[zmq.Socket[Any], tuple[zmq.Socket[bytes], Tell]] = {}

    def watch(self, made: "zmq.Socket[Any]", events: int, tell: Tell) -> None:
        """Tell these events of a socket, before it binds or connects; one that is watched already stays so.

        A socket that finds a port taken, and tries the next one, is to be watched each time.

        The queue of a monitor has no limit here: at one, libzmq's own thread would wait for this loop.
        """
        if made in self._of:
            return
        address = f"inproc://weft.monitor.{next(_NUMBERS)}"
        monitor = self._context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.RCVHWM, 0)
        made.monitor(address, events)
        monitor.connect(address)
        self._of[made] = monitor, tell
        loop = asyncio.get_running_loop()
        loop.add_reader(monitor.FD, self._read, made)
        loop.call_soon(self._read, made)  # the descriptor tells nothing before somebody has looked once

    def ignore(self, made: "zmq.Socket[Any]") -> bool:
        """The socket is about to be closed; whether it was watched."""
        found = self._of.pop(made, None)
        if found is not None:
            made.disable_monitor()
            asyncio.get_running_loop().remove_reader(found[0].FD)
            found[0].close(0)
        return found is not None

    def close(self) -> None:
        """Watch none any more."""
        for made in list(self._of):
            self.ignore(made)

    def _read(self, made: "zmq.Socket[Any]") -> None:
        for _ in range(TURN_MAX):
            if made not in self._of:
                return
            monitor, tell = self._of[made]
            try:
                said = monitor.recv_multipart(NOW)
            except zmq.Again:
                return
            event, value = _EVENT.unpack_from(said[0])
            tell(event, value, said[1].decode("ascii", "replace"))
        asyncio.get_running_loop().call_soon(self._read, made)
