"""Limits connections that have not proved a key yet (SEC-053), by address and in total, before any handshake.

libzmq gives each connection five seconds for its handshake, and has no limit of how many one address holds meanwhile.
Beyond a limit the one that has waited longest goes, not the one that comes: a machine of the fabric proves its key
within milliseconds, a stranger never does. So a crowd ends its own connections, and machines of the same address still
come in.
"""

import contextlib
import os
import socket
from collections import OrderedDict
from typing import Final, NamedTuple

# a machine with many nodes opens tens of connections at once, and each proves its key in milliseconds
PER_ADDRESS_MAX: Final = 64
IN_ALL_MAX: Final = 512  # descriptors held by strangers at most: half of a process's usual limit
UNPROVED_S: Final = 6.0  # an older one has proved a key, or libzmq has ended it (HANDSHAKE_IVL)


class Knock(NamedTuple):
    """A new connection."""

    door: int
    """The socket that accepted it."""
    fd: int
    """Its descriptor in this process, which may be reused by now."""
    peer: tuple[str, int]
    """Address and port of the other end; they identify the connection if the descriptor is reused."""


def peer_of(fd: int) -> tuple[str, int] | None:
    """The peer of a descriptor of this process; None if it is closed, or a local socket."""
    try:
        with socket.socket(fileno=os.dup(fd)) as link:
            return _address_of(link)
    except OSError:
        return None


def hang_up(knock: Knock) -> bool:
    """End a connection of libzmq; False if it had already ended, so that the descriptor belongs to another or none."""
    try:
        with socket.socket(fileno=os.dup(knock.fd)) as link:
            if _address_of(link) != knock.peer:
                return False
            with contextlib.suppress(OSError):  # it ended just now
                link.shutdown(socket.SHUT_RDWR)
            return True
    except OSError:
        return False


def _address_of(link: socket.socket) -> tuple[str, int] | None:
    name = link.getpeername()
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class Crowd:
    """Connections without a proof, by address, oldest first."""

    def __init__(self, per_address: int = PER_ADDRESS_MAX, in_all: int = IN_ALL_MAX) -> None:
        self._per_address, self._in_all = per_address, in_all
        self._waiting: OrderedDict[tuple[int, int], tuple[Knock, float]] = OrderedDict()
        self._of: dict[str, OrderedDict[tuple[int, int], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def of(self, address: str) -> int:
        """How many connections of an address wait."""
        return len(self._of.get(address, ()))

    def came(self, knock: Knock, at: float) -> Knock | None:
        """A new connection; returns those to close if there are now too many."""
        self._expire(at)
        self.went(knock.door, knock.fd)
        key = knock.door, knock.fd
        self._waiting[key] = knock, at
        self._of.setdefault(knock.peer[0], OrderedDict())[key] = None
        if self.of(knock.peer[0]) > self._per_address:
            return self._take(next(iter(self._of[knock.peer[0]])))
        if len(self._waiting) > self._in_all:
            largest = max(self._of, key=self.of)
            return self._take(next(iter(self._of[largest])))
        return None

    def proved(self, address: str) -> None:
        """A connection of that address has proved a known key. It is unknown which one; most likely the newest."""
        if keys := self._of.get(address):
            self._take(next(reversed(keys)))

    def went(self, door: int, fd: int) -> None:
        """A connection has ended."""
        if (door, fd) in self._waiting:
            self._take((door, fd))

    def leave(self, door: int) -> None:
        """A socket is closed, with all its connections."""
        for key in [key for key in self._waiting if key[0] == door]:
            self._take(key)

    def _expire(self, at: float) -> None:
        while self._waiting:
            key, (_, since) = next(iter(self._waiting.items()))
            if at - since < UNPROVED_S:
                return
            self._take(key)

    def _take(self, key: tuple[int, int]) -> Knock:
        knock, _ = self._waiting.pop(key)
        keys = self._of[knock.peer[0]]
        del keys[key]
        if not keys:
            del self._of[knock.peer[0]]
        return knock
