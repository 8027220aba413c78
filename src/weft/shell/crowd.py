"""Limits connections that have not proved a key yet (SEC-053), by address and in total, before any handshake.

libzmq gives each connection five seconds for its handshake, and does not limit how many of them one address has at a time.
Above the limit the oldest unproved connection is ended, not the new one: a machine of the fabric proves its key within
milliseconds, a stranger never does. So strangers end only their own connections, and machines at the same address can
still connect.

libzmq does not limit the size of a handshake either: it allocates memory for any message that is announced, up to the
largest message. The kernel counts the bytes of each connection, and one that has sent more than a handshake needs is ended,
too.
"""

import contextlib
import os
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

PER_ADDRESS_MAX: Final = (
    64  # a machine with many nodes opens tens of connections at once, and proves each key in milliseconds
)
IN_ALL_MAX: Final = 512  # unproved connections of all addresses: half of a process's usual limit of descriptors
UNPROVED_S: Final = 6.0  # seconds; an older connection has proved a key, or libzmq has ended it (HANDSHAKE_IVL)
SAID_BYTES_MAX: Final = 4_096  # received before a proof: a greeting, HELLO and INITIATE have less than 1,000
ANSWERED_BYTES_MAX: Final = (
    256  # sent before a proof: a greeting has 64, WELCOME 170, ERROR 12; READY follows the proof
)
_COUNTS: Final = struct.Struct("=120xQQ")
"""Two fields of Linux's `struct tcp_info`: bytes that the other end has acknowledged, and bytes received from it."""


class Knock(NamedTuple):
    """A new connection."""

    door: int
    """The socket that accepted it."""
    fd: int
    """Its descriptor in this process, which may be reused by now."""
    peer: tuple[str, int]
    """Address and port of the other end; they identify the connection if the descriptor is reused."""


class Spoken(NamedTuple):
    """How many bytes went over a connection."""

    answered: int
    """Bytes that this node has sent, and the other end has acknowledged."""
    received: int
    """Bytes that the other end has sent."""


def peer_of(fd: int) -> tuple[str, int] | None:
    """The peer of a descriptor of this process; None if it is closed, or a local socket."""
    link = _second(fd)
    if link is None:
        return None
    with link:
        return _address_of(link)


def hang_up(knock: Knock) -> bool:
    """End a connection of libzmq; False if it had already ended, so that the descriptor belongs to another or none."""
    with _link_of(knock) as link:
        if link is None:
            return False
        with contextlib.suppress(OSError):  # it ended just now
            link.shutdown(socket.SHUT_RDWR)
        return True


def spoken(knock: Knock) -> Spoken | None:
    """The kernel's counts of a connection; None if it has ended. Zeros if the kernel is too old to count."""
    with _link_of(knock) as link:
        if link is None:
            return None
        info = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _COUNTS.size)
        return Spoken(*_COUNTS.unpack(info)) if len(info) == _COUNTS.size else Spoken(0, 0)


@contextlib.contextmanager
def _link_of(knock: Knock) -> Iterator[socket.socket | None]:
    """A second descriptor of the connection, closed at the end; None if the connection has ended."""
    link = _second(knock.fd)
    if link is None:
        yield None
        return
    with link:
        yield link if _address_of(link) == knock.peer else None


def _second(fd: int) -> socket.socket | None:
    """A second descriptor of a socket; None if the descriptor is closed, or by now that of a file."""
    try:
        second = os.dup(fd)
    except OSError:
        return None
    try:
        return socket.socket(fileno=second)
    except OSError:
        os.close(second)  # else it would hold the lock of the file as long as this process lives
        return None


def _address_of(link: socket.socket) -> tuple[str, int] | None:
    try:
        name = link.getpeername()
    except OSError:
        return None
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class Crowd:
    """The connections that have not proved a key, by address, oldest first."""

    def __init__(
        self,
        per_address: int = PER_ADDRESS_MAX,
        in_all: int = IN_ALL_MAX,
        count: Callable[[Knock], Spoken | None] = spoken,
    ) -> None:
        self._per_address, self._in_all, self._count = per_address, in_all, count
        self._waiting: OrderedDict[tuple[int, int], tuple[Knock, float]] = OrderedDict()
        self._of: dict[str, OrderedDict[tuple[int, int], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def of(self, address: str) -> int:
        """How many connections of an address have not proved a key."""
        return len(self._of.get(address, ()))

    def came(self, knock: Knock, at: float) -> Knock | None:
        """Add a new connection; returns one to close if there are now too many."""
        self._expire(at)
        self.went(knock.door, knock.fd)
        key, address = (knock.door, knock.fd), knock.peer[0]
        self._waiting[key] = knock, at
        self._of.setdefault(address, OrderedDict())[key] = None
        while self.of(address) > self._per_address or len(self) > self._in_all:
            fullest = address if self.of(address) > self._per_address else max(self._of, key=self.of)
            gone = self._take(next(iter(self._of[fullest])))
            if self._unproved(gone) is not None:
                return gone
        return None

    def loud(self) -> list[Knock]:
        """Remove and return the connections that have sent too much without a proof.

        Those that have ended, or have proved a key, are removed, too, but not returned.
        """
        found = []
        for key, (knock, _) in list(self._waiting.items()):
            counted = self._unproved(knock)
            if counted is None or counted.received > SAID_BYTES_MAX:
                self._take(key)
                found += [knock] if counted is not None else []
        return found

    def went(self, door: int, fd: int) -> None:
        """Forget a connection that has ended."""
        if (door, fd) in self._waiting:
            self._take((door, fd))

    def leave(self, door: int) -> None:
        """Forget all connections of a closed socket."""
        for key in [key for key in self._waiting if key[0] == door]:
            self._take(key)

    def _unproved(self, knock: Knock) -> Spoken | None:
        """The counts of a connection; None if it has ended, or its key was accepted."""
        counted = self._count(knock)
        return counted if counted is not None and counted.answered <= ANSWERED_BYTES_MAX else None

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
