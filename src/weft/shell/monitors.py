"""Passes on what libzmq reports of the connections of sockets, in the running loop."""

import asyncio
import struct
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import zmq

TURN_MAX: Final = 256  # events in one callback, so that a flood of them cannot starve the node
NOW: Final = zmq.NOBLOCK
_NUMBERS: Final = count()
"""Numbers for the addresses of monitors. Each is used once: libzmq frees an address only some time after the socket closed."""
_EVENT: Final = struct.Struct("=HI")
"""The first frame of a monitor: the event, and its value, mostly a descriptor."""

Tell = Callable[[int, int, str], None]
"""Gets an event, its value, and the endpoint, with its protocol."""


class Monitors:
    """The monitors of the sockets of one context. Each needs two more sockets, and their descriptors."""

    def __init__(self, context: "zmq.Context[Any]") -> None:
        self._context = context
        self._of: dict[zmq.Socket[Any], tuple[zmq.Socket[bytes], Tell]] = {}

    def watch(self, made: "zmq.Socket[Any]", events: int, tell: Tell) -> None:
        """Call `tell` for these events of a socket; call it before each bind or connect, also for the next port.

        A socket that is watched already stays so. The queue of a monitor has no limit: at a limit, libzmq's own thread would
        wait for this loop.
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
        loop.call_soon(self._read, made)  # the descriptor signals nothing before the first read

    def ignore(self, made: "zmq.Socket[Any]") -> bool:
        """Stop watching a socket, before it is closed; returns whether it was watched."""
        found = self._of.pop(made, None)
        if found is not None:
            made.disable_monitor()
            asyncio.get_running_loop().remove_reader(found[0].FD)
            found[0].close(0)
        return found is not None

    def close(self) -> None:
        """Stop watching all sockets."""
        for made in list(self._of):
            self.ignore(made)

    def _read(self, made: "zmq.Socket[Any]") -> None:
        for _ in range(TURN_MAX):
            if made not in self._of:
                return
            monitor, tell = self._of[made]
            try:
                frames = monitor.recv_multipart(NOW)
            except zmq.Again:
                return
            event, value = _EVENT.unpack_from(frames[0])
            tell(event, value, frames[1].decode("ascii", "replace"))
        asyncio.get_running_loop().call_soon(self._read, made)
