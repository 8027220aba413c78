"""The sockets of a node: its channels on ZeroMQ and UDP, drained in batches (specs/07, section 2.1).

`zmq.asyncio` reaches 25 to 50 thousand messages a second and core; draining a socket's descriptor with NOBLOCK
`recv` per frame several hundred thousand. So the event loop only watches descriptors, and `drain` takes what is
there, up to a budget. The descriptor is edge-triggered: after a budget that ran out, and after any send, a socket
must be looked at again, or its messages wait for the next edge.
"""

import asyncio
import contextlib
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import zmq

from weft.base.errors import UserError

BUDGET: Final = 256  # messages per socket and turn: a flood on one must not starve the other
BUDGET_BYTES: Final = 4 << 20  # per turn: what is heard in one turn is written in one batch, of at most 16 MiB
FRAME_BYTES_MAX: Final = (1 << 20) + (1 << 16)  # CLI-002
QUEUE_MESSAGES: Final = 64  # per peer; the hop window of 8 MiB is the real bound (SEC-010: 64 MiB / MAXMSGSIZE)
BACKLOG: Final = 512
FRAMES_MAX: Final = 1 << 12  # more in one message is a flood, not a message
DATAGRAM_BYTES: Final = 2_048
LOOPBACK_BROADCAST: Final = "127.255.255.255"  # reaches every listener of this machine without any interface up

OPTIONS: Final[dict[int, int]] = {
    zmq.LINGER: 0,
    zmq.MAXMSGSIZE: FRAME_BYTES_MAX,
    zmq.SNDHWM: QUEUE_MESSAGES,
    zmq.RCVHWM: QUEUE_MESSAGES,
    zmq.HANDSHAKE_IVL: 5_000,
}


class Heard(NamedTuple):
    """One message as it came in."""

    channel: str
    peer: bytes
    proved: bytes | None
    frames: list[bytes]


def make_socket(context: zmq.Context[zmq.Socket[bytes]], kind: int) -> zmq.Socket[bytes]:
    """The one place where ZeroMQ sockets are made and limited (SEC-010, CLI-002)."""
    made = context.socket(kind)
    for option, value in OPTIONS.items():
        made.setsockopt(option, value)
    if kind == zmq.ROUTER:
        made.setsockopt(zmq.ROUTER_MANDATORY, 1)
        made.setsockopt(zmq.BACKLOG, BACKLOG)
    else:
        made.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))  # new for every socket (SIM-021)
    return made


def make_beacon_socket(port: int) -> socket.socket:
    """A UDP socket that hears every beacon of this machine, however many nodes listen (BEA-003)."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT, socket.SO_BROADCAST):
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    made.settimeout(0)
    made.bind(("", port))
    return made


def within(budget_bytes: int, source: Iterator[Heard]) -> Iterator[Heard]:
    """What comes, until so many bytes of it have come."""
    for heard in source:
        yield heard
        budget_bytes -= _bytes_of(heard)
        if budget_bytes <= 0:
            return


def _bytes_of(heard: Heard) -> int:
    return sum(map(len, heard.frames))


class Links:
    """All channels of one node. `on_readable` is called when there is something to drain."""

    def __init__(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router: zmq.Socket[bytes] | None = None
        self._dealer: zmq.Socket[bytes] | None = None
        self._beacon: socket.socket | None = None
        self._beacon_port = 0
        self.dropped: Counter[str] = Counter()

    def serve(self, host: str, port: int) -> None:
        """Bind the node link for children (`down`)."""
        self._router = make_socket(self._context, zmq.ROUTER)
        try:
            self._router.bind(f"tcp://{host}:{port}")
        except zmq.ZMQError as error:
            self.close()
            raise UserError(
                "port-taken",
                f"port {port} of {host} cannot be bound: {error.strerror}",
                "another --port, 10 or more away",
            ) from error
        self._watch(self._router)

    def listen(self, port: int) -> None:
        """Hear and send beacons on a UDP port of this machine."""
        self._beacon, self._beacon_port = make_beacon_socket(port), port
        asyncio.get_running_loop().add_reader(self._beacon, self._on_readable)

    def connect(self, endpoint: str) -> None:
        """Open the link to the parent, closing the one before it."""
        self.disconnect()
        self._dealer = make_socket(self._context, zmq.DEALER)
        self._dealer.connect(f"tcp://{endpoint}")
        self._watch(self._dealer)

    def disconnect(self) -> None:
        """Close the link to the parent."""
        if self._dealer is not None:
            asyncio.get_running_loop().remove_reader(self._dealer.FD)
            self._dealer.close()
            self._dealer = None

    def drain(self) -> tuple[list[Heard], bool]:
        """What has come in, at most `BUDGET` messages per socket and about `BUDGET_BYTES`; True if there may be more."""
        heard: list[Heard] = []
        more = False
        for socket_, channel in ((self._dealer, "up"), (self._router, "down")):
            if socket_ is not None:
                taken = list(within(BUDGET_BYTES // 2, self._drain_socket(socket_, channel)))
                more |= len(taken) >= BUDGET or sum(map(_bytes_of, taken)) >= BUDGET_BYTES // 2
                heard += taken
        if self._beacon is not None:
            heard.extend(self._drain_beacons(self._beacon))
        return heard, more

    def send(self, channel: str, peer: bytes, frames: list[bytes]) -> None:
        """Hand a message to its socket. A peer that is gone or takes nothing loses it; protocols above send again."""
        if channel == "beacon":
            self._shout(frames[0])
            return
        target = self._dealer if channel == "up" else self._router
        if target is None:
            self.dropped[f"{channel}:closed"] += 1
            return
        try:
            target.send_multipart([peer, *frames] if channel == "down" else frames, zmq.NOBLOCK)
        except zmq.ZMQError as error:
            self.dropped[f"{channel}:{error.strerror}"] += 1

    def close(self) -> None:
        """Close all; what libzmq still holds is lost, as at a crash."""
        loop = asyncio.get_running_loop()
        self.disconnect()
        if self._router is not None:
            with contextlib.suppress(zmq.ZMQError):
                loop.remove_reader(self._router.FD)
            self._router.close()
        if self._beacon is not None:
            loop.remove_reader(self._beacon)
            self._beacon.close()
        self._router = self._beacon = None
        self._context.term()

    def _watch(self, made: zmq.Socket[bytes]) -> None:
        asyncio.get_running_loop().add_reader(made.FD, self._on_readable)

    def _drain_socket(self, source: zmq.Socket[bytes], channel: str) -> Iterator[Heard]:
        for _ in range(BUDGET):
            if not int(source.get(zmq.EVENTS)) & zmq.POLLIN:
                return
            frames = self._receive(source)
            if frames is None:
                self.dropped[f"{channel}:frames"] += 1
            elif channel == "down":
                yield Heard(channel, frames[0], None, frames[1:])
            else:
                yield Heard(channel, b"", None, frames)

    def _receive(self, source: zmq.Socket[bytes]) -> list[bytes] | None:
        frames = [source.recv(zmq.NOBLOCK)]
        count = 1
        while source.get(zmq.RCVMORE):
            frame = source.recv(zmq.NOBLOCK)
            count += 1
            if count <= FRAMES_MAX:
                frames.append(frame)
        return frames if count <= FRAMES_MAX else None

    def _drain_beacons(self, source: socket.socket) -> Iterator[Heard]:
        for _ in range(BUDGET):
            try:
                data, address = source.recvfrom(DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            host = "127.0.0.1" if address[0] == "0.0.0.0" else address[0]  # noqa: S104  # nothing is bound: BEA-003
            yield Heard("beacon", host.encode(), None, [data])

    def _shout(self, data: bytes) -> None:
        if self._beacon is None:
            return
        try:
            self._beacon.sendto(data, (LOOPBACK_BROADCAST, self._beacon_port))
        except OSError as error:
            self.dropped[f"beacon:{error.strerror}"] += 1
