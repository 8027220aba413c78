"""Every ZeroMQ socket of a node is made and limited here (SEC-010), and here it gets its keys.

A node with keys serves CURVE at every TCP port that it binds, except ports of foreign protocols on loopback. Its
connections use its own key pair, and pin the key of the expected node (SEC-013). A socket takes over options when it
binds or connects, so one socket may serve programs of this machine at a file and peers with keys at a port: the file is
bound first.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import zmq

from weft.base.keys import KeyTable
from weft.node.handshake import DOMAIN
from weft.shell.keys import Keys
from weft.shell.shutdoors import ShutDoors
from weft.shell.zap import Gatekeeper

FRAME_BYTES_MAX: Final = (1 << 20) + (1 << 16)  # CLI-002
WAITING_BYTES_MAX: Final = 64 << 20  # received from one peer, if all its messages were as large as a frame may be
BACKLOG: Final = 512
HANDSHAKE_MS: Final = 5_000
DEAD_MS: Final = 30_000  # until a connection to an unreachable machine is closed; cores notice silence earlier
IDLE_S, PROBE_S, PROBES_MAX = (
    10,
    5,
    4,
)  # idle time before the kernel probes the other end, time between probes, and their number
PLACES_TRIED_MAX: Final = 4_096  # for which attempts are counted
ENFORCED: Final = getattr(zmq, "ZAP_ENFORCE_DOMAIN", None)
"""None: this libzmq lacks the option; every start tests what the bound ports really do (SEC-051)."""

Context = zmq.Context[zmq.Socket[bytes]]
Socket = zmq.Socket[bytes]

OPTIONS: Final[dict[int, int]] = {
    zmq.LINGER: 0,
    zmq.MAXMSGSIZE: FRAME_BYTES_MAX,
    zmq.HANDSHAKE_IVL: HANDSHAKE_MS,
    zmq.TCP_MAXRT: DEAD_MS,
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: IDLE_S,
    zmq.TCP_KEEPALIVE_INTVL: PROBE_S,
    zmq.TCP_KEEPALIVE_CNT: PROBES_MAX,
}
"""The kernel's keepalive, and not the heartbeats of ZeroMQ.

libzmq 4.3.5 aborts the process (`!_io_error`) when one is due on a connection that was lost while its queue was full.
So a peer that sends much and disconnects could end the node.
"""


class Shape(NamedTuple):
    """The purpose of a socket, as far as its options depend on it."""

    kind: str
    """`ROUTER`, `DEALER`, `PUB` …"""
    is_bound: bool
    sends: int
    """Send queue per peer, in messages."""
    hears: int
    """Receive queue per peer, in messages."""
    routing_id: bytes = b""
    """Of a DEALER; empty: a new one that nobody had before (SIM-021)."""
    frame_bytes: int = FRAME_BYTES_MAX
    is_handed_over: bool = False
    """Whether a reconnecting peer takes over its routing id, instead of being refused."""


def make_socket(context: Context, shape: Shape) -> Socket:
    """A socket with its limits and without keys: `Credentials` adds those before it binds or connects."""
    made = context.socket(getattr(zmq, shape.kind))
    hears = min(shape.hears, WAITING_BYTES_MAX // shape.frame_bytes) if shape.is_bound else shape.hears
    own: dict[int, int] = {zmq.SNDHWM: shape.sends, zmq.RCVHWM: hears, zmq.MAXMSGSIZE: shape.frame_bytes}
    for option, value in {**OPTIONS, **own}.items():
        made.setsockopt(option, value)
    if shape.is_bound:
        made.setsockopt(zmq.BACKLOG, BACKLOG)
    if shape.kind == "ROUTER":
        made.setsockopt(zmq.ROUTER_HANDOVER if shape.is_handed_over else zmq.ROUTER_MANDATORY, 1)
    if shape.kind == "DEALER":
        made.setsockopt(zmq.ROUTING_ID, shape.routing_id or b"\x01" + os.urandom(15))
    if shape.kind == "XPUB":
        made.setsockopt(zmq.XPUB_VERBOSE, 1)  # each new subscriber is reported, too (CAT-042)
    return made


class NoKey(Exception):
    """The key for a place is not known: nothing connects there."""


class Credentials:
    """The keys of a node and of the nodes that it knows; without keys it does nothing, and any peer may connect."""

    def __init__(
        self,
        keys: Keys | None = None,
        table: KeyTable | None = None,
        nodes_at: Callable[[str], Sequence[bytes]] = lambda _: (),
    ) -> None:
        """`nodes_at`: the UUIDs of nodes that may be at an endpoint; for a host alone, of all nodes on that machine."""
        self.keys = keys
        self.table = table or KeyTable()
        """Whom the node knows now; swapped as a whole."""
        self.gatekeeper: Gatekeeper | None = None
        """Who counts strangers at bound sockets."""
        self.shut = ShutDoors()
        """Who refuses our key."""
        self._nodes_at = nodes_at
        self._tries: dict[str, int] = {}
        self._accepted: dict[str, str] = {}
        """With which of several keys a place was reached last."""

    def watch(self, made: Socket) -> None:
        """A socket is bound: count the peers that libzmq refuses there."""
        if self.gatekeeper is not None:
            self.gatekeeper.watch(made)

    def ignore(self, made: Socket) -> None:
        """The socket is about to be closed."""
        if self.gatekeeper is not None:
            self.gatekeeper.ignore(made)

    @property
    def is_closed(self) -> bool:
        """Whether there are keys."""
        return self.keys is not None

    def serve(self, made: Socket, domain: bytes = DOMAIN) -> None:
        """Let the socket bind for peers with known keys only (SEC-010), and only those that `domain` admits."""
        if self.keys is None:
            return
        made.setsockopt(zmq.ZAP_DOMAIN, domain)
        if ENFORCED is not None:
            made.setsockopt(ENFORCED, 1)
        made.setsockopt(zmq.CURVE_SERVER, 1)
        made.setsockopt(zmq.CURVE_SECRETKEY, self.keys.secret.encode())

    def pairs(self, place: str) -> list[tuple[bytes, str]]:
        """UUIDs and keys of the nodes that may be at a place, the newest key of each node first."""
        holders = [holder for uuid in self._nodes_at(place) if (holder := self.table.node(uuid)) is not None]
        return [(holder.uuid, key) for holder in holders for key in reversed(holder.keys)]

    def knows(self, place: str) -> bool:
        """Whether a socket may be dialled there: without keys anywhere, else where a node is known."""
        return self.keys is None or bool(self.pairs(place))

    def pin(self, made: Socket, place: str) -> tuple[bytes, str] | None:
        """Let the socket connect with our keys to the node at that place, and to no other (SEC-013); its UUID and key.

        None without keys. NoKey if no node is known there. Where several keys are possible, because a node changes its
        key or a machine has several nodes, each call takes the next one, until one is accepted: that one is kept while it
        is. Whoever dials anew for each question would else take the wrong one each time.
        """
        if self.keys is None:
            return None
        pairs = self.pairs(place)
        if not pairs:
            raise NoKey(place)
        accepted = self._accepted.get(place)
        uuid, key = next((pair for pair in pairs if pair[1] == accepted), None) or self._next(place, pairs)
        connect_with(made, self.keys, key)
        return uuid, key

    def _next(self, place: str, pairs: list[tuple[bytes, str]]) -> tuple[bytes, str]:
        number = self._tries.get(place, 0)
        if len(pairs) > 1 and (place in self._tries or len(self._tries) < PLACES_TRIED_MAX):
            self._tries[place] = number + 1
        return pairs[number % len(pairs)]

    def note_accepted(self, place: str, curve: str) -> None:
        """A connection with that key pinned was accepted."""
        if place in self._tries:  # several were possible
            self._accepted[place] = curve

    def note_lost(self, place: str) -> None:
        """A connection to that place was not accepted in time: the key may be another one now."""
        self._accepted.pop(place, None)

    def owner(self, user: str) -> bytes | None:
        """The UUID of the node whose key libzmq reports; None: no node has that key any more."""
        holder = self.table.find(user)
        return None if holder is None else holder.uuid


def connect_with(made: "zmq.Socket[Any]", keys: Keys, server: str) -> None:
    """Let a socket connect with a key pair, and only to the server with that key."""
    made.setsockopt(zmq.CURVE_SERVERKEY, server.encode())
    made.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
    made.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())
