"""Makes the ZeroMQ sockets of a node, with their limits and keys (SEC-010).

A node with keys asks for keys (CURVE) at every TCP port that it binds, except ports of foreign protocols on loopback. Its
connections use its own key pair, and accept only the key of the expected node (SEC-013). A socket uses the options that it
has when it binds or connects. So one socket may serve local programs at a file without keys, and peers at a port with keys:
the file is bound first.
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
WAITING_BYTES_MAX: Final = (
    64 << 20
)  # received from one peer and not read yet, if all its frames were of the largest size
BACKLOG: Final = 512
HANDSHAKE_MS: Final = 5_000
DEAD_MS: Final = 30_000  # until a connection to an unreachable machine is closed; cores notice silence earlier
IDLE_S: Final = 10  # before the kernel probes the other end of an idle connection
PROBE_S: Final = 5  # between two probes of the kernel
PROBES_MAX: Final = 4  # probes without an answer, after which the kernel closes the connection
PLACES_TRIED_MAX: Final = 4_096  # endpoints for which attempts are counted
ENFORCED: Final = getattr(zmq, "ZAP_ENFORCE_DOMAIN", None)
"""An option of libzmq; None: this build lacks it. Every start tests what the bound ports really do (SEC-051)."""

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
"""Options of all sockets. They use the kernel's keepalive, not the heartbeats of ZeroMQ.

libzmq 4.3.5 aborts the process (`!_io_error`) when a heartbeat is due on a connection that was lost while its queue was
full. So a peer that sends much and disconnects could end the node.
"""


class Shape(NamedTuple):
    """What a socket's options depend on."""

    kind: str
    """`ROUTER`, `DEALER`, `PUB` …"""
    is_bound: bool
    sends: int
    """Send queue per peer, in messages."""
    hears: int
    """Receive queue per peer, in messages."""
    routing_id: bytes = b""
    """The routing id of a DEALER; empty: a new random one (SIM-021)."""
    frame_bytes: int = FRAME_BYTES_MAX
    is_handed_over: bool = False
    """Whether a reconnecting peer takes over its routing id, instead of being refused."""


def make_socket(context: Context, shape: Shape) -> Socket:
    """A socket with its limits, and without keys: `Credentials` adds them before the socket binds or connects."""
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
    """No key is known for a place, so no socket may connect there."""


class Credentials:
    """The keys of this node and of the nodes that it knows. Without keys it does nothing, and any peer may connect."""

    def __init__(
        self,
        keys: Keys | None = None,
        table: KeyTable | None = None,
        nodes_at: Callable[[str], Sequence[bytes]] = lambda _: (),
    ) -> None:
        """`nodes_at`: the UUIDs of nodes that may be at an endpoint; for a host alone, of all nodes on that machine."""
        self.keys = keys
        self.table = table or KeyTable()
        """The keys of known nodes; replaced as a whole."""
        self.gatekeeper: Gatekeeper | None = None
        """Counts and limits strangers at bound sockets."""
        self.shut = ShutDoors()
        """The peers that refuse this node's key."""
        self._nodes_at = nodes_at
        self._tries: dict[str, int] = {}
        """How often a key was chosen at a place with several possible ones."""
        self._accepted: dict[str, str] = {}
        """The key that was accepted last at such a place."""

    def watch(self, made: Socket) -> None:
        """Count the peers that libzmq refuses at a socket; call it before the socket is bound."""
        if self.gatekeeper is not None:
            self.gatekeeper.watch(made)

    def ignore(self, made: Socket) -> None:
        """Stop counting at a socket, before it is closed."""
        if self.gatekeeper is not None:
            self.gatekeeper.ignore(made)

    @property
    def is_closed(self) -> bool:
        """Whether there are keys."""
        return self.keys is not None

    def serve(self, made: Socket, domain: bytes = DOMAIN) -> None:
        """Let only peers with known keys, which `domain` admits, connect where the socket binds next (SEC-010)."""
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
        """Let the socket connect only to the node at that place, with our keys (SEC-013); returns the node's UUID and key.

        None without keys; NoKey if no node is known there. If several keys are possible, because a node changes its key or
        a machine has several nodes, each call takes the next one until one is accepted. Later calls take that one, so that
        callers that dial for each request do not begin with a wrong one each time.
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
        """Note that a peer with that key was reached at a place."""
        if place in self._tries:  # several keys were possible
            self._accepted[place] = curve

    def note_lost(self, place: str) -> None:
        """Note that a connection to a place was not accepted in time: the key there may have changed."""
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
