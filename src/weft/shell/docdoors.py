"""The sockets of a node's documents: per session a ROUTER that hears, and a DEALER per peer that speaks (PEE-001, PEE-002).

Programs of this machine come through a door in the state directory; a board in the browser is a process of its own.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from weft.base.effects import Source
from weft.base.endpoints import endpoint_of, host_of, is_address, port_of
from weft.base.errors import UNREADABLE, UserError
from weft.cores.document.messages import Begin, LinkFull, Opened, OpenSession
from weft.node.doctable import DocSessionTable
from weft.node.settings import NodeSettings
from weft.shell.boards import Board
from weft.shell.door import Door
from weft.shell.links import Links
from weft.shell.mdns import Eyes
from weft.shell.runner import Runner
from weft.wire.document.messages import FRAME_BYTES_MAX

CHANNEL: Final = "document"
PORTS: Final = (49_152, 65_535)
TRIES: Final = 64  # PEE-001
QUEUE: Final = 3_000  # PEE-002
LINGER_MS: Final = 200  # how long a last word, as GBYE, may take to leave (PEE-013)
BEAT_MS, DEAD_MS = 2_000, 6_000
FRAMES_MAX: Final = 5
BUDGET: Final = 128  # messages in one turn of a session
BUDGET_BYTES: Final = 1 << 20
BETWEEN: Final = b"\0"
NOTE: Final = "doc-ports.json"
"""In the state directory: where sessions listened last."""

Socket = zmq.Socket[bytes]


class SessionLinks:
    """All sockets of one session."""

    def __init__(self, context: "zmq.Context[Socket]", name: str, hear: Callable[[Source, list[bytes]], None]) -> None:
        self.name, self._context, self._hear = name, context, hear
        self.uuid = b""
        self._router: Socket | None = None
        self._bound = ""
        """Where that listens."""
        self._dealers: dict[bytes, Socket] = {}

    def listen(self, listen: str, port: int = 0) -> bool:
        """Bind, unless that is done; whether a port was free.

        `port`: tried first where none is asked for: others know it from the start before.
        """
        if not self._bound:
            self._bound = self._bind(listen, port)
        return bool(self._bound)

    def open(self, work: OpenSession, port: int = 0) -> str:
        """Listen, or go on as somebody else at the same place; the endpoint for HELO, empty if no port was free."""
        for endpoint in list(self._dealers):
            self.hang_up(endpoint)
        self.uuid = work.uuid
        return _advertised(self._bound, work.advertise) if self.listen(work.listen, port) else ""

    def send(self, endpoint: bytes, frames: list[bytes]) -> bool:
        """Say it to that endpoint; False if its queue is full or it is no endpoint (PEE-002)."""
        made = self._dealers.get(endpoint) or self._dial(endpoint)
        if made is None:
            return False
        try:
            made.send_multipart(frames, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def hang_up(self, endpoint: bytes) -> None:
        """Close the socket to an endpoint; last words may still leave."""
        if (made := self._dealers.pop(endpoint, None)) is not None:
            made.close(LINGER_MS)

    @property
    def port(self) -> int:
        """Where its ROUTER listens; 0: nowhere."""
        return port_of(self._bound) if self._bound else 0

    def close(self) -> None:
        """Let go of everybody; last words may still leave."""
        for endpoint in list(self._dealers):
            self.hang_up(endpoint)
        if self._router is not None:
            asyncio.get_running_loop().remove_reader(self._router.FD)
            self._router.close(0)
            self._router = None

    def _bind(self, listen: str, last: int) -> str:
        router = self._context.socket(zmq.ROUTER)
        for option, value in {zmq.ROUTER_HANDOVER: 1, zmq.LINGER: 0, zmq.MAXMSGSIZE: FRAME_BYTES_MAX}.items():
            router.setsockopt(option, value)
        host = host_of(listen) if is_address(listen) else listen
        router.setsockopt(zmq.IPV6, int(":" in host))
        for port in _ports(listen, last):
            try:
                router.bind(f"tcp://{endpoint_of(host, port)}")
            except zmq.ZMQError:
                continue
            self._router = router
            loop = asyncio.get_running_loop()
            loop.add_reader(router.FD, self.read)
            loop.call_soon(self.read)  # the descriptor tells of edges, and one may have been before
            return endpoint_of(host, port)
        router.close(0)
        return ""

    def _dial(self, endpoint: bytes) -> Socket | None:
        """Its identity stands before it connects: libzmq ignores one that comes later (PEE-002)."""
        text = endpoint.decode("ascii", "replace")
        if not self.uuid or not is_address(text):
            return None
        made = self._context.socket(zmq.DEALER)
        options = {
            zmq.LINGER: 0,
            zmq.SNDTIMEO: 0,
            zmq.SNDHWM: QUEUE,
            zmq.HEARTBEAT_IVL: BEAT_MS,
            zmq.HEARTBEAT_TIMEOUT: DEAD_MS,
            zmq.IPV6: int("[" in text),
        }
        for option, value in options.items():
            made.setsockopt(option, value)
        made.setsockopt(zmq.ROUTING_ID, self.uuid)
        try:
            made.connect(f"tcp://{text}")
        except zmq.ZMQError:
            made.close(0)
            return None
        self._dealers[endpoint] = made
        return made

    def read(self) -> None:
        """Hear what is there, up to a turn's share; the rest when other callbacks had theirs."""
        size = 0
        for _ in range(BUDGET):
            if self._router is None or size > BUDGET_BYTES:
                break
            try:
                frames = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            size += sum(map(len, frames))
            said = [frame.bytes for frame in frames[:FRAMES_MAX]]
            peer = self.name.encode() + BETWEEN + said[0]
            self._hear(Source(CHANNEL, peer, None, _address_of(frames[-1])), said)
        asyncio.get_running_loop().call_soon(self.read)


class DocDoors:
    """Opened when the node can hear; a node without documents has none."""

    def __init__(self, settings: NodeSettings, runner: Runner, links: Links, state: Path) -> None:
        self._tables = settings.doc.session if settings.doc is not None else None
        self._label = settings.node.name
        self._runner, self._links = runner, links
        self._door = Door(state, "doc")
        self._note = state / NOTE
        self._ports = _noted(self._note)
        self._context: zmq.Context[Socket] | None = None
        """Of its own: what waits to leave in it holds up nobody else at the end."""
        self._sessions: dict[str, SessionLinks] = {}
        self._boards: list[Board] = []
        self._eyes = Eyes(settings.node.name, lambda order: runner.order("document", order))

    @property
    def performers(self) -> dict[type, Callable[[Any], None]]:
        """Who opens sessions."""
        return {OpenSession: self._open}

    async def open(self) -> None:
        """Let programs in, and begin every session; UserError `socket-refused`, or `port-in-use` if one was asked for."""
        if self._tables is None:
            return
        self._context = zmq.Context()
        for name, table in self._tables.items():
            made = self._sessions[name] = SessionLinks(self._context, name, self._runner.post)
            if not made.listen(table.listen, self._ports.get(name, 0)) and is_address(table.listen):
                text = f"{table.listen} of session {name!r} cannot be bound: somebody listens there"
                raise UserError("port-in-use", text, "another port in `listen`, or none: then any that is free")
        self._door.open(self._links, ("doc-clients",))
        self._runner.doors[CHANNEL] = self._say
        self._runner.hang_ups[CHANNEL] = self._hang_up
        self._runner.order("document", Begin())
        for name, table in self._tables.items():
            if table.serve:
                self._boards.append(self._board_of(name, table))

    async def close(self) -> None:
        """Let go of everybody, after the last words."""
        for board in self._boards:
            await board.close()
        await self._eyes.close()
        for links in self._sessions.values():
            links.close()
        self._door.close()
        if self._context is not None:
            await asyncio.to_thread(self._context.term)

    def _open(self, work: OpenSession) -> None:
        endpoint = self._sessions[work.session].open(work)
        self._note_port(work.session, endpoint)
        self._eyes.open(work, endpoint)
        self._runner.soon(lambda: self._runner.order("document", Opened(work.session, endpoint)))

    def _note_port(self, session: str, endpoint: str) -> None:
        """So that who was told an address finds us there after a restart, too."""
        if endpoint:
            self._ports[session] = self._sessions[session].port
            with contextlib.suppress(OSError):  # then the next start draws another
                self._note.write_bytes(msgspec.json.encode(self._ports))

    def _say(self, peer: bytes, frames: list[bytes]) -> None:
        name, _, endpoint = peer.partition(BETWEEN)
        session = name.decode()
        if not self._sessions[session].send(endpoint, frames):
            order = LinkFull(session, endpoint.decode("ascii", "replace"))
            self._runner.soon(lambda: self._runner.order("document", order))

    def _hang_up(self, peer: bytes) -> None:
        name, _, endpoint = peer.partition(BETWEEN)
        self._sessions[name.decode()].hang_up(endpoint)

    def _board_of(self, name: str, table: DocSessionTable) -> Board:
        said = {
            "node": self._door.endpoint,
            "session": name,
            "host": table.serve_host,
            "port": table.serve,
            "token": table.token,
            "parent": os.getpid(),
        }
        return Board(msgspec.json.encode(said))


def _noted(note: Path) -> dict[str, int]:
    """Ports of the start before, by session."""
    try:
        return msgspec.json.decode(note.read_bytes(), type=dict[str, int])
    except (OSError, *UNREADABLE):
        return {}


def _ports(listen: str, last: int) -> Iterator[int]:
    """The one that is asked for; or that of last time, then some of the seed's range, drawn evenly (PEE-001)."""
    if is_address(listen):
        yield port_of(listen)
        return
    if PORTS[0] <= last <= PORTS[1]:
        yield last
    for _ in range(TRIES):
        yield random.SystemRandom().randint(*PORTS)


def _advertised(bound: str, advertise: str) -> str:
    """What HELO says: as asked for; else where it listens, which others replace where that is everywhere (PEE-012)."""
    if is_address(advertise):
        return advertise
    return endpoint_of(advertise or host_of(bound), port_of(bound))


def _address_of(frame: zmq.Frame) -> str:
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:  # it is gone already
        return ""
