"""The sockets of a service: ZeroMQ sockets, and UDP for beats.

Each service has a ZeroMQ context of its own, so that closing it waits for this service's last messages only.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final

import zmq

from weft.client.catalog.errors import CatalogError
from weft.client.catalog.servicelimits import CALLS_PER_TURN, DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX, QUEUE_MAX
from weft.client.link.channel import Channel, Hear
from weft.client.link.opening import BadEndpoint, Target, listen
from weft.client.link.sockets import LOST, Bounds, Context, Socket

BOUNDS: Final = Bounds(FRAME_BYTES_MAX, QUEUE_MAX)


class Plug(Channel):
    """One ZeroMQ socket in the running loop; `hear` is called for every message."""

    _socket: Socket

    def __init__(self, context: Context, kind: int, hear: Hear, bounds: Bounds = BOUNDS) -> None:
        self.dropped = 0
        """Messages that could not be sent: no room, or no such peer."""

        def opener(on_ready: Callable[[], None], _: Callable[[], None]) -> Socket:
            made = self._socket = Socket(kind, bounds, on_ready, context)
            if kind == zmq.ROUTER:
                made.set(zmq.ROUTER_MANDATORY, 1)
            return made

        super().__init__(opener, hear, per_turn=CALLS_PER_TURN)

    def bind(self, host: str, port: int) -> int:
        """Listen, and return the port.

        CatalogError `port-in-use` if it is taken, `bad-address` if the address is not ours.
        """
        try:
            return listen(self._socket.raw, host, port)
        except zmq.ZMQError as error:
            code = "port-in-use" if error.errno == zmq.EADDRINUSE else "bad-address"
            raise CatalogError(f"{host}:{port}: {error.strerror}", code) from None
        finally:
            self.look()

    def dial(self, target: Target) -> None:
        """Connect. The other end may start later; an invalid address is treated as one that never answers."""
        with suppress(BadEndpoint):
            self._socket.dial(target)
        self.look()

    def say(self, frames: list[bytes]) -> bool:  # type: ignore[override]  # a service never waits for a slow peer
        """Send a message now; False, and counted in `dropped`, if that is not possible."""
        is_sent = self.offer(frames)
        self.dropped += not is_sent
        return is_sent

    def put(self, frames: list[bytes]) -> bool:
        """As `say`, of several messages; `look` has to be called behind the last one."""
        is_sent = self._socket.send(frames)
        self.dropped += not is_sent
        return is_sent

    @property
    def heard_from(self) -> str:
        """The address of the sender of the last message taken; empty: libzmq does not know it."""
        return self._socket.heard_from

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call a function whenever an established connection breaks."""
        self._socket.watch({LOST: call})

    def close(self, linger_ms: int = 0) -> None:
        """Close it; the last messages have `linger_ms` to leave."""
        self._socket.close(linger_ms)
        super().close()


class Datagrams(asyncio.DatagramProtocol):
    """The UDP sockets for beats. A host's name is resolved once; meanwhile nothing else is sent."""

    def __init__(self, hear: Callable[[bytes, str], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._transports: dict[int, asyncio.DatagramTransport | None] = {}
        self._found: dict[str, tuple[Any, ...] | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def send(self, endpoint: str, data: bytes) -> None:
        """Send if the address is known; a datagram may be lost anyway."""
        host, _, port = endpoint.rpartition(":")
        host = host.strip("[]")
        address = _literal(host, int(port)) or self._found.get(endpoint)
        family = socket.AF_INET6 if address is not None and ":" in str(address[0]) else socket.AF_INET
        transport = self._transports.get(family)
        if address is not None and transport is not None and len(data) <= DATAGRAM_BYTES_MAX:
            with suppress(OSError):
                transport.sendto(data, address)
        elif not self._tasks and not self._is_closed:
            task = self._loop.create_task(self._prepare(endpoint, host, int(port), data))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _prepare(self, endpoint: str, host: str, port: int, data: bytes) -> None:
        """Resolve the name, open the socket, and send the datagram."""
        with suppress(OSError, UnicodeError):
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, _, _, _, address = found[0]
            self._found[endpoint] = address
            if self._transports.get(family) is None and not self._is_closed:
                transport, _ = await self._loop.create_datagram_endpoint(lambda: self, family=family)
                self._transports[family] = transport
                transport.sendto(data, address)

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:  # tidy: asyncio calls it
        self._hear(data, f"{address[0]}:{address[1]}")

    def error_received(self, error: Exception) -> None:  # tidy: asyncio calls it
        """Ignore that nobody listens there: the missing answers show the same."""

    def close(self) -> None:
        """Close it; everything sent has left."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for transport in self._transports.values():
            if transport is not None:
                transport.close()


def _literal(host: str, port: int) -> tuple[Any, ...] | None:
    """The address if the host is an IP address; None if it is a name."""
    try:
        ip_address(host)
    except ValueError:
        return None
    return (host, port)
