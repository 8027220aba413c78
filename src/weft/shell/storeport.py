"""The store's client port: TCP connections that carry a sequence of MessagePack maps in both directions.

    port = StorePort(process.runner)
    await port.listen("127.0.0.1", 27586)   # clients: channel `store-clients`, peer: a name of the connection
    port.dial(Dial("10.0.0.7:27586", tag))  # servers: channel `store-join`, peer: the tag
    port.hang_up(HangUp(peer_or_tag))
    await port.close()

Each map is posted as one frame, undecoded; the core checks its content. While a client does not read its answers, its
requests are not read either, and the core is told to pause.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

import msgpack

from weft.base.effects import Source
from weft.base.endpoints import host_of, is_loopback, port_of
from weft.base.errors import UserError
from weft.cores.store.messages import (
    ClientCame,
    ClientGone,
    ClientPaused,
    ClientResumed,
    Dial,
    DialFailed,
    HangUp,
)
from weft.shell.kernel import Address
from weft.shell.listening import stop_listening, with_loopback
from weft.shell.runner import NodeRunner

CLIENTS: Final = "store-clients"
JOIN: Final = "store-join"
CORE: Final = "store"
MESSAGE_BYTES_MAX: Final = 4 << 20  # section 8
MAPS: Final = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))
"""First bytes of a map: every message of this protocol is one."""
GARBAGE: Final = b"\xc1"
"""Takes the place of unreadable bytes: no MessagePack begins with this byte."""
TURN_MESSAGES: Final = 500  # of one connection per turn
TURN_MESSAGES_ALL: Final = 4_000  # of all connections per turn: 100 ms of writes
TURN_BYTES_ALL: Final = 4 << 20  # same: a turn that takes long is silent for long
OUT_BYTES: Final = 1 << 20  # bytes that wait for a slow reader; with more, its streams pause
OUT_BYTES_LOW: Final = 256 << 10  # with less, they go on
LINGER_S: Final = 3.0  # time for the last messages on a connection that is being closed
DIAL_S: Final = 10.0  # time to connect


class Splitter:
    """Cuts a stream of bytes into messages; GARBAGE is the last one of a broken stream."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(max_buffer_size=MESSAGE_BYTES_MAX + (1 << 20))
        self._unsplit = bytearray()
        self._begin = 0
        """Offset in the stream of the first byte of `_unsplit`."""
        self.is_broken = False

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; returns the messages that are complete now."""
        found: list[bytes] = []
        if self.is_broken:
            return found
        self._unsplit += data
        try:
            self._unpacker.feed(data)
            self._split(found)
        except msgpack.OutOfData:
            self.is_broken = len(self._unsplit) > MESSAGE_BYTES_MAX
        except (ValueError, msgpack.UnpackException):
            self.is_broken = True
        if self.is_broken:
            found.append(GARBAGE)
            self._unsplit.clear()
        return found

    def _split(self, found: list[bytes]) -> None:
        """Append complete messages to `found`; always ends by an exception, OutOfData if nothing is wrong."""
        while True:
            if self._unsplit and self._unsplit[0] not in MAPS:
                raise ValueError("no map")
            self._unpacker.skip()
            size = self._unpacker.tell() - self._begin
            if size > MESSAGE_BYTES_MAX:
                raise ValueError("too large")
            found.append(bytes(self._unsplit[:size]))
            del self._unsplit[:size]
            self._begin += size


class Connection(asyncio.Protocol):
    """One TCP connection, accepted or dialled."""

    def __init__(self, port: "StorePort", channel: str, peer: bytes) -> None:
        self._port, self.source = port, Source(channel, peer)
        self._splitter = Splitter()
        self._waiting: deque[bytes] = deque()
        """Messages that wait for the next turn."""
        self._is_paused = self._is_leaving = False
        self.ends: tuple[Address, Address] = (("", 0), ("", 0))
        """Address and port of the other end, and of this one."""
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        assert isinstance(transport, asyncio.Transport), "a TCP connection"
        self._transport = transport
        transport.set_write_buffer_limits(OUT_BYTES, OUT_BYTES_LOW)
        wire = transport.get_extra_info("socket")
        if wire is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        address = transport.get_extra_info("peername") or ("", 0)
        here = transport.get_extra_info("sockname") or ("", 0)
        self.ends = ((str(address[0]), int(address[1])), (str(here[0]), int(here[1])))
        self._port.made(self, str(address[0]), int(address[1]), str(here[0]))

    def data_received(self, data: bytes) -> None:
        """Split received bytes, which may end anywhere, into messages."""
        self._waiting.extend(self._splitter.feed(data))
        self._post()

    def pause_writing(self) -> None:  # tidy: asyncio calls it
        """The send buffer is full: the other end does not read."""
        self._is_paused = True
        self._listen()
        self._tell(ClientPaused(self.source.peer))

    def resume_writing(self) -> None:  # tidy: asyncio calls it
        """The other end reads again."""
        self._is_paused = False
        self._listen()
        self._tell(ClientResumed(self.source.peer))
        self._post()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, by either side."""
        self._transport = None
        self._waiting.clear()
        self._port.lost(self, str(exc) if exc else "closed")

    # Called by the node

    def hear(self, frames: list[bytes]) -> None:
        """Send everything that the node has for this peer in this turn."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def hang_up(self) -> None:
        """Close the connection after its last messages, if they are read in time."""
        self._is_leaving = True
        if self._transport is not None:
            self._transport.close()
            self._loop.call_later(self._port.linger_s, self.abort)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _post(self) -> None:
        """Post as many messages as one turn may have; the rest follows in the next turn."""
        if self._is_paused or self._is_leaving:
            return
        for _ in range(min(TURN_MESSAGES, len(self._waiting))):
            if not self._port.has_room:
                break
            self._port.post(self.source, self._waiting.popleft())
        self._listen()
        if self._waiting:
            self._loop.call_soon(self._post)

    def _listen(self) -> None:
        """Read from the socket only while no message waits and the other end reads its answers."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._waiting or self._is_paused or self._splitter.is_broken:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _tell(self, order: ClientPaused | ClientResumed) -> None:
        """Tell the core in a later callback, because the node may be in the middle of a turn."""
        if self.source.channel == CLIENTS:
            self._loop.call_soon(self._port.runner.order, CORE, order)


class StorePort:
    """All connections of a node in this protocol."""

    def __init__(self, runner: NodeRunner) -> None:
        self.runner = runner
        self.linger_s = LINGER_S
        self.judge: Callable[[tuple[Address, Address]], bool] | None = None
        """Whether to accept a client, by its address and the address that it reached; None: all are accepted."""
        self.refused = 0
        """Clients that were refused."""
        self._server: asyncio.Server | None = None
        self._connections: dict[bytes, Connection] = {}
        self._dialling: dict[bytes, asyncio.Task[None]] = {}
        self._count = self._turn_messages = self._turn_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether the next turn takes one more message; the others wait, and their connections are not read."""
        return self._turn_messages < TURN_MESSAGES_ALL and self._turn_bytes < TURN_BYTES_ALL

    def post(self, source: Source, message: bytes) -> None:
        """Post a message for the next turn, which is the next callback of the loop."""
        if not self._turn_messages:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        self._turn_messages += 1
        self._turn_bytes += len(message)
        self.runner.post(source, [message])

    def _begin_turn(self) -> None:
        self._turn_messages = self._turn_bytes = 0

    @property
    def port(self) -> int:
        """The port at which it listens."""
        assert self._server is not None, "set by `listen`"
        return int(self._server.sockets[0].getsockname()[1])

    async def listen(self, host: str, port: int) -> None:
        """Listen for clients at `host`, and on loopback, too; UserError `port-taken`."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._take, with_loopback(host), port)
        except OSError as error:
            raise UserError(
                "port-taken", f"port {port} of {host} cannot be bound: {error.strerror}", "another [store] port"
            ) from error

    async def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            await stop_listening(self._server)
        for task in self._dialling.values():
            task.cancel()
        for connection in list(self._connections.values()):
            connection.hang_up()
        await asyncio.sleep(0)

    def dial(self, work: Dial) -> None:
        """Connect to a server; the core gets a DialFailed if that fails, and when the connection ends later."""
        task = asyncio.get_running_loop().create_task(self._dial(work))
        self._dialling[work.tag] = task
        task.add_done_callback(lambda _: self._dialling.pop(work.tag, None))

    def hang_up(self, work: HangUp) -> None:
        """Close a connection, accepted or dialled."""
        task = self._dialling.get(work.peer)
        if task is not None:
            task.cancel()
        connection = self._connections.get(work.peer)
        if connection is not None:
            connection.hang_up()

    async def _dial(self, work: Dial) -> None:
        loop = asyncio.get_running_loop()
        try:
            host, port = host_of(work.endpoint), port_of(work.endpoint)
            async with asyncio.timeout(DIAL_S):
                await loop.create_connection(lambda: Connection(self, JOIN, work.tag), host, port)
        except (OSError, ValueError, OverflowError) as error:  # the endpoint comes from others
            self.runner.order(CORE, DialFailed(work.tag, str(error) or "timeout"))

    def _take(self) -> Connection:
        self._count += 1
        return Connection(self, CLIENTS, b"c%d" % self._count)

    def made(self, connection: Connection, host: str, port: int, here: str) -> None:
        """A connection is established. A client whose address equals the one that it reached is on this machine."""
        channel, peer = connection.source.channel, connection.source.peer
        if channel == CLIENTS and self.judge is not None and not self.judge(connection.ends):
            self.refused += 1
            connection.abort()
            return
        self._connections[peer] = connection
        self.runner.inside[channel, peer] = connection.hear
        if channel == CLIENTS:
            self.runner.order(CORE, ClientCame(peer, f"{host}:{port}", host == here or is_loopback(host)))

    def lost(self, connection: Connection, why: str) -> None:
        """A connection has ended."""
        channel, peer = connection.source.channel, connection.source.peer
        if self._connections.pop(peer, None) is None:
            return  # a refused client
        self.runner.inside.pop((channel, peer), None)
        self.runner.order(CORE, ClientGone(peer) if channel == CLIENTS else DialFailed(peer, why))
