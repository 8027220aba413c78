"""The sockets of a node's documents: per session a ROUTER to receive, and a DEALER per peer to send (PEE-001, PEE-002).

Local programs connect to a socket in the state directory; a board in the browser is a separate process.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import zmq

from weft.base.effects import Source
from weft.base.endpoints import endpoint_of, host_of, is_address, port_of
from weft.base.errors import UNREADABLE, UserError
from weft.base.keys import Holder, Keys, KeyTable
from weft.cores.document.messages import Begin, LinkFull, Opened, OpenSession
from weft.node.doctable import DocSessionTable
from weft.node.settings import NodeSettings
from weft.shell.door import Door
from weft.shell.ends import REBIND_S, REBIND_TRIES, said_of
from weft.shell.keys import session_key
from weft.shell.links import Links
from weft.shell.opendoors import OpenDoor, reached_by
from weft.shell.runner import Runner
from weft.shell.shutdoors import Awaited, Place
from weft.shell.sockets import Context, Credentials, NoKey, Shape, Socket, connect_with, make_socket
from weft.shell.trying import Entrance
from weft.shell.zap import Gatekeeper
from weft.wire.document.messages import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from weft.shell.boards import Board
    from weft.shell.mdns import Eyes

CHANNEL: Final = "document"
PORTS: Final = (49_152, 65_535)
TRIES: Final = 64  # random ports that are tried (PEE-001)
QUEUE: Final = 3_000  # messages (PEE-002)
HEARS: Final = Shape("ROUTER", is_bound=True, sends=1, hears=QUEUE, frame_bytes=FRAME_BYTES_MAX, is_handed_over=True)
SPEAKS: Final = Shape("DEALER", is_bound=False, sends=QUEUE, hears=1, frame_bytes=FRAME_BYTES_MAX)
LINGER_MS: Final = 200  # time for a last message such as GBYE to leave (PEE-013)
# a peer that accepts nothing for so long is disconnected; beats are sent every few seconds
DEAD_MS: Final = 6_000
FRAMES_MAX: Final = 5
BUDGET: Final = 128  # messages in one turn of a session
BUDGET_BYTES: Final = 1 << 20
BETWEEN: Final = b"\0"
"""Separates the name of a session from the id of its peer; no name contains it."""
NOTE: Final = "doc-ports.json"
"""File in the state directory with the last ports of sessions."""


class SessionLinks:
    """All sockets of one session."""

    def __init__(
        self,
        context: Context,
        name: str,
        hear: Callable[[Source, list[bytes]], None],
        credentials: Credentials = Credentials(),  # noqa: B008  # without keys it holds nothing that changes
        gatekeeper: Gatekeeper | None = None,
    ) -> None:
        """`gatekeeper`: answers the handshakes of `context`, if there are keys."""
        self.name, self._context, self._hear = name, context, hear
        self._credentials, self._gatekeeper = credentials, gatekeeper
        self.uuid = b""
        self.router: Socket | None = None
        self._bound = ""
        """The address at which `router` listens."""
        self._dealers: dict[bytes, Socket] = {}
        self._pinned: dict[bytes, bytes] = {}
        """The UUID of the node whose key the socket accepts, by endpoint."""
        self.awaited = Awaited(credentials.shut)
        """The peers that are dialled with keys, and of which something should be heard."""
        self._listening_again: asyncio.TimerHandle | None = None
        self.refused = 0
        """How many messages were refused because their key is no longer anybody's."""

    def listen(self, listen: str, port: int = 0) -> bool:
        """Bind, unless already bound; returns whether a port was free.

        If the settings name no port, `port` is tried first: peers know it from the previous start.
        """
        if not self._bound:
            self._bound = self._bind(listen, port)
        return bool(self._bound)

    def open(self, work: OpenSession, port: int = 0) -> str:
        """Listen, or go on with a new UUID at the same port; returns the endpoint for HELO, empty if no port was free."""
        for endpoint in list(self._dealers):
            self.hang_up(endpoint)
        self.uuid = work.uuid
        return _advertised(self._bound, work.advertise) if self.listen(work.listen, port) else ""

    def send(self, endpoint: bytes, frames: list[bytes]) -> bool:
        """Send to an endpoint; False if its queue is full or the endpoint is invalid (PEE-002).

        If no node is known at the endpoint, or it refuses our key, the message is lost, as on a link that is cut (SEC-052).
        """
        made = self._dealers.get(endpoint) or self._dial(endpoint)
        if made is None:
            return self._is_barred(endpoint.decode("ascii", "replace"))
        try:
            made.send_multipart(frames, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def hang_up(self, endpoint: bytes) -> None:
        """Close the socket to an endpoint; queued messages have `LINGER_MS` to leave."""
        self.awaited.drop(endpoint)
        self._leave(endpoint)

    def silent(self, now: float) -> Iterator[Place]:
        """The peers that have been silent for a while, or are not dialled because they refuse this node."""
        for endpoint in self.awaited.silent(now):
            yield Place(endpoint, SPEAKS.kind, tuple(key for _, key in self._credentials.pairs(host_of(endpoint))))

    def pause(self, endpoint: str) -> None:
        """The peer refuses this node's key: dial it no more, and queue nothing for it."""
        self._leave(endpoint.encode())

    def resume(self, endpoint: str) -> None:
        """The peer accepts this node: the next message dials it."""
        self._leave(endpoint.encode())

    def _leave(self, endpoint: bytes) -> None:
        self._pinned.pop(endpoint, None)
        if (made := self._dealers.pop(endpoint, None)) is not None:
            made.close(LINGER_MS)

    def forget(self, gone: Container[bytes]) -> None:
        """The keys of these nodes are no longer valid: close connections to them, and bind again (SEC-052)."""
        for endpoint in [endpoint for endpoint, uuid in self._pinned.items() if uuid in gone]:
            self.hang_up(endpoint)
        if self.router is not None:
            self._close_router()
            self._listen_again(REBIND_TRIES)

    def _listen_again(self, tries: int) -> None:
        self._listening_again = None
        if self._bind(self._bound, 0):
            return
        if not tries:
            raise UserError("port-in-use", f"{self._bound} of session {self.name!r} cannot be bound again", "a restart")
        self._listening_again = asyncio.get_running_loop().call_later(REBIND_S, self._listen_again, tries - 1)

    @property
    def reachable(self) -> str:
        """The address at which programs of this machine reach the ROUTER."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing is bound
        return endpoint_of(host.get(host_of(self._bound), host_of(self._bound)), self.port)

    @property
    def port(self) -> int:
        """The port of the ROUTER; 0: it is not bound."""
        return port_of(self._bound) if self._bound else 0

    def close(self) -> None:
        """Close all sockets, and open none any more; queued messages have `LINGER_MS` to leave."""
        self.uuid = b""
        for endpoint in list(self._dealers):
            self.hang_up(endpoint)
        if self._listening_again is not None:
            self._listening_again.cancel()
        self._close_router()

    def _close_router(self) -> None:
        if self.router is not None:
            if self._gatekeeper is not None:
                self._gatekeeper.ignore(self.router)
            asyncio.get_running_loop().remove_reader(self.router.FD)
            self.router.close(0)
            self.router = None

    def _bind(self, listen: str, last: int) -> str:
        router = make_socket(self._context, HEARS)
        host = host_of(listen) if is_address(listen) else listen
        router.setsockopt(zmq.IPV6, int(":" in host))
        self._credentials.serve(router)
        for port in _ports(listen, last):
            try:
                router.bind(f"tcp://{endpoint_of(host, port)}")
            except zmq.ZMQError:
                continue
            self.router = router
            if self._gatekeeper is not None:
                self._gatekeeper.watch(router)
            loop = asyncio.get_running_loop()
            loop.add_reader(router.FD, self.read)
            loop.call_soon(self.read)  # the descriptor is edge-triggered, and may have signalled before
            return endpoint_of(host, port)
        router.close(0)
        return ""

    def _dial(self, endpoint: bytes) -> Socket | None:
        """A connected socket; None if it cannot be. Its routing id is set first: libzmq ignores a later one (PEE-002)."""
        text = endpoint.decode("ascii", "replace")
        if not self.uuid or not is_address(text) or self._is_shut(endpoint, text):
            return None
        made = make_socket(self._context, SPEAKS._replace(routing_id=self.uuid))
        own = {zmq.SNDTIMEO: 0, zmq.TCP_MAXRT: DEAD_MS, zmq.IPV6: int("[" in text)}
        for option, value in own.items():
            made.setsockopt(option, value)
        try:
            if (pair := self._credentials.pin(made, host_of(text))) is not None:
                self._pinned[endpoint] = pair[0]
            made.connect(f"tcp://{text}")
        except (zmq.ZMQError, NoKey):
            made.close(0)
            return None
        self._dealers[endpoint] = made
        return made

    def _is_shut(self, endpoint: bytes, text: str) -> bool:
        """Whether the peer refuses our key. Notes that it should be dialled: so it is probed from time to time."""
        if not self._credentials.is_closed:
            return False
        return self.awaited.note(endpoint, text, asyncio.get_running_loop().time())

    def _is_barred(self, text: str) -> bool:
        """Whether no node is known at an address, or our key is refused there."""
        if not self.uuid or not is_address(text):
            return False
        return self._credentials.shut.is_shut(text) or not self._credentials.knows(host_of(text))

    def _note_heard(self, uuid: bytes) -> None:
        """Note that a node was heard, at all endpoints where it is dialled."""
        for endpoint in [endpoint for endpoint, pinned in self._pinned.items() if pinned == uuid]:
            self.awaited.note_heard(endpoint)

    def read(self) -> None:
        """Read what is available, up to the budget of a turn; the rest after other callbacks."""
        size = 0
        for _ in range(BUDGET):
            if self.router is None or size > BUDGET_BYTES:
                break
            try:
                frames = self.router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            size += sum(map(len, frames))
            proved = self._credentials.owner(said_of(frames[-1], "User-Id")) if self._credentials.is_closed else None
            if self._credentials.is_closed and proved is None:
                self.refused += 1
                continue
            if proved and self.awaited.unheard:
                self._note_heard(proved)
            proved = proved or None  # all members share the session's key: it proves permission, not identity
            message = [frame.bytes for frame in frames[:FRAMES_MAX]]
            peer = self.name.encode() + BETWEEN + message[0]
            self._hear(Source(CHANNEL, peer, proved, said_of(frames[-1], "Peer-Address")), message)
        asyncio.get_running_loop().call_soon(self.read)


class SessionKey(Credentials):
    """The key pair of a session that has its own: everybody who has it may take part, and nobody else (GSP-050)."""

    def __init__(self, pair: Keys) -> None:
        everybody = Holder(b"", "session", frozenset(), (), 0, (pair.public,))
        super().__init__(pair, KeyTable([everybody]))
        self._pair = pair

    def pin(self, made: Socket, place: str) -> tuple[bytes, str] | None:
        """Let the socket connect only to peers with the same pair; it does not identify them."""
        del place  # the peer's identity does not matter
        connect_with(made, self._pair, self._pair.public)
        return None

    def knows(self, place: str) -> bool:
        """True: a peer with the pair may have any address."""
        del place  # the peer's identity does not matter
        return True


class DocDoors:
    """Opened when the node can handle messages; unused in a node without documents."""

    def __init__(self, settings: NodeSettings, runner: Runner, links: Links, state: Path) -> None:
        self._tables = settings.doc.session if settings.doc is not None else None
        self._label = settings.node.name
        self._reached_at = ", ".join(settings.open_hosts)
        self._runner, self._links = runner, links
        self._door = Door(state, "doc")
        self._note = state / NOTE
        self._ports = _noted(self._note)
        self._context: Context | None = None
        """Its own, so that messages that wait in it at the end delay no other sockets."""
        self.gatekeeper: Gatekeeper | None = None
        """Answers the handshakes of that context."""
        self.sessions: dict[str, SessionLinks] = {}
        self._keyed: dict[str, tuple[Gatekeeper, Context]] = {}
        """For sessions with their own key, by name."""
        self._boards: list[Board] = []
        self._eyes: Eyes | None = None

    @property
    def performers(self) -> dict[type, Callable[[Any], None]]:
        """The functions that open sessions."""
        return {OpenSession: self._open}

    async def open(self) -> None:
        """Accept local programs, and start all sessions.

        UserError `socket-refused`, or `port-in-use` if a port that the settings name is taken.
        """
        if self._tables is None:
            return
        from weft.shell.mdns import Eyes  # imported only by a node with documents

        self._eyes = Eyes(self._label, lambda order: self._runner.order("document", order))
        self._context = zmq.Context()
        if self._links.credentials.is_closed:
            self.gatekeeper = Gatekeeper(self._context, self._links.credentials.table)
            self.gatekeeper.open()
        for name, table in self._tables.items():
            made = self.sessions[name] = self._links_of(name, table)
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

    def _links_of(self, name: str, table: DocSessionTable) -> SessionLinks:
        """The sockets of a session. One with its own key needs its own context: a context has one handler of handshakes.

        UserError `no-keys`, `open-keys`, `bad-keys`.
        """
        assert self._context is not None, "made in `open`"
        if not table.key:
            return SessionLinks(self._context, name, self._runner.post, self._links.credentials, self.gatekeeper)
        context, credentials = zmq.Context(), SessionKey(session_key(Path(table.key)))
        keeper = Gatekeeper(context, credentials.table)
        keeper.open()
        self._keyed[name] = keeper, context
        return SessionLinks(context, name, self._runner.post, credentials, keeper)

    async def close(self) -> None:
        """Close all sockets, after their last messages have left."""
        for board in self._boards:
            await board.close()
        if self._eyes is not None:
            await self._eyes.close()
        for links in self.sessions.values():
            links.close()
        self._door.close()
        if self.gatekeeper is not None:
            self.gatekeeper.close()
        for keeper, context in self._keyed.values():
            keeper.close()
            await asyncio.to_thread(context.term)
        if self._context is not None:
            await asyncio.to_thread(self._context.term)

    def diallers(self) -> list[SessionLinks]:
        """The sessions that dial with the node's keys, not with their own."""
        return [links for name, links in self.sessions.items() if name not in self._keyed]

    def routers(self) -> list[Socket]:
        """The bound sockets of all sessions."""
        return [links.router for links in self.sessions.values() if links.router is not None]

    def entrances(self) -> Iterator[Entrance]:
        """All places where sessions listen."""
        for links in self.sessions.values():
            if links.port:
                yield Entrance(f"document {links.name}", f"tcp://{links.reachable}", "ROUTER")

    def open_doors(self) -> Iterator[OpenDoor]:
        """Where sessions listen without keys."""
        if not self._links.credentials.is_closed:
            keyed = {f"document {name}" for name in self._keyed}
            for each in (one for one in self.entrances() if one.name not in keyed):
                host, _, port = each.endpoint.removeprefix("tcp://").rpartition(":")
                yield OpenDoor(each.name, f"{host}:{port}", reached_by(host))

    def admit(self, table: KeyTable, gone: frozenset[bytes]) -> None:
        """Accept the peers of `table` from now on; the keys of the nodes `gone` are no longer valid."""
        if self.gatekeeper is not None:
            self.gatekeeper.table = table
        if gone:
            for links in self.sessions.values():
                links.forget(gone)

    def _open(self, work: OpenSession) -> None:
        assert self._eyes is not None, "made in `open`, before the core is told to begin"
        endpoint = self.sessions[work.session].open(work)
        self._note_port(work.session, endpoint)
        self._eyes.open(work, endpoint)
        self._runner.soon(lambda: self._runner.order("document", Opened(work.session, endpoint)))

    def _note_port(self, session: str, endpoint: str) -> None:
        """Store the port, so that peers find this session after a restart too."""
        if endpoint:
            self._ports[session] = self.sessions[session].port
            with contextlib.suppress(OSError):  # the next start draws another port
                self._note.write_bytes(msgspec.json.encode(self._ports))

    def _say(self, peer: bytes, frames: list[bytes]) -> None:
        name, _, endpoint = peer.partition(BETWEEN)
        session = name.decode()
        if not self.sessions[session].send(endpoint, frames):
            order = LinkFull(session, endpoint.decode("ascii", "replace"))
            self._runner.soon(lambda: self._runner.order("document", order))

    def _hang_up(self, peer: bytes) -> None:
        name, _, endpoint = peer.partition(BETWEEN)
        self.sessions[name.decode()].hang_up(endpoint)

    def _board_of(self, name: str, table: DocSessionTable) -> "Board":
        from weft.shell.boards import Board

        settings = {
            "node": self._door.endpoint,
            "session": name,
            "host": table.serve_host,
            "port": table.serve,
            "token": table.token,
            "parent": os.getpid(),
            "open": self._reached_at,
        }
        return Board(msgspec.json.encode(settings))


def _noted(note: Path) -> dict[str, int]:
    """Ports of the previous start, by session."""
    try:
        return msgspec.json.decode(note.read_bytes(), type=dict[str, int])
    except (OSError, *UNREADABLE):
        return {}


def _ports(listen: str, last: int) -> Iterator[int]:
    """The configured port; else the last one, then some of the seed's range, drawn at random (PEE-001)."""
    if is_address(listen):
        yield port_of(listen)
        return
    if PORTS[0] <= last <= PORTS[1]:
        yield last
    for _ in range(TRIES):
        yield random.SystemRandom().randint(*PORTS)


def _advertised(bound: str, advertise: str) -> str:
    """The address for HELO: the configured one, else the bound one; peers replace a wildcard (PEE-012)."""
    if is_address(advertise):
        return advertise
    return endpoint_of(advertise or host_of(bound), port_of(bound))
