"""Every ZeroMQ socket of a node is made and limited here (SEC-010), and here it gets its keys.

A node with keys serves CURVE at every TCP port that it binds, but for doors of foreign protocols on loopback; its
connections use its own pair and pin the key of who stands at the other end (SEC-013). A socket takes options over when
it binds or connects, so one socket may serve programs of this machine at a file and keyed peers at a port: the file is
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
WAITING_BYTES_MAX: Final = 64 << 20  # of one peer that is heard, if all its messages were as large as a frame may be
BACKLOG: Final = 512
HANDSHAKE_MS: Final = 5_000
DEAD_MS: Final = 30_000  # of a connection whose other machine is gone; cores notice silence much earlier
IDLE_S, PROBE_S, PROBES_MAX = (
    10,
    5,
    4,
)  # how long a connection is still until the kernel asks whether the other end is there
PLACES_TRIED_MAX: Final = 4_096  # whose tries are counted
ENFORCED: Final = getattr(zmq, "ZAP_ENFORCE_DOMAIN", None)
"""None: this libzmq has no such option; what the doors do is tried at every start (SEC-051)."""

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
"""Not the heartbeats of ZeroMQ: libzmq 4.3.5 aborts the process (`!_io_error`) where one is due at a connection that is
gone while its queue was full, so whoever sends much and goes would end the node. The kernel asks instead."""


class Shape(NamedTuple):
    """What a socket is for, as far as its options depend on it."""

    kind: str
    """`ROUTER`, `DEALER`, `PUB` …"""
    is_bound: bool
    sends: int
    """Messages that wait for one peer at most."""
    hears: int
    """Messages of one peer that wait for this node."""
    routing_id: bytes = b""
    """Of a DEALER; empty: one that nobody had before (SIM-021)."""
    frame_bytes: int = FRAME_BYTES_MAX
    is_handed_over: bool = False
    """Whether a peer that comes again takes its routing id with it, instead of being refused."""


def make_socket(context: Context, shape: Shape) -> Socket:
    """A socket with its limits, without keys: `Credentials` gives it those before it binds or connects."""
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
        made.setsockopt(zmq.XPUB_VERBOSE, 1)  # who comes later is heard, too (CAT-042)
    return made


class NoKey(Exception):
    """It is not known whose key belongs to a place: nothing connects there."""


class Credentials:
    """The keys of a node and of those whom it knows; without keys it does nothing, and everybody may come."""

    def __init__(
        self,
        keys: Keys | None = None,
        table: KeyTable | None = None,
        nodes_at: Callable[[str], Sequence[bytes]] = lambda _: (),
    ) -> None:
        """`nodes_at`: the UUIDs of those who may stand at an endpoint; for a host alone, of all on that machine."""
        self.keys = keys
        self.table = table or KeyTable()
        """Whom the node knows now; swapped as a whole."""
        self.gatekeeper: Gatekeeper | None = None
        """Who counts strangers at bound sockets."""
        self.shut = ShutDoors()
        """Who refuses our key."""
        self._nodes_at = nodes_at
        self._tries: dict[str, int] = {}

    def watch(self, made: Socket) -> None:
        """A socket is bound: whom libzmq refuses there is counted."""
        if self.gatekeeper is not None:
            self.gatekeeper.watch(made)

    def ignore(self, made: Socket) -> None:
        """A socket is about to be closed."""
        if self.gatekeeper is not None:
            self.gatekeeper.ignore(made)

    @property
    def is_closed(self) -> bool:
        """Whether there are keys."""
        return self.keys is not None

    def serve(self, made: Socket, domain: bytes = DOMAIN) -> None:
        """From now on the socket binds for those only whose key is known (SEC-010), and whom that domain admits."""
        if self.keys is None:
            return
        made.setsockopt(zmq.ZAP_DOMAIN, domain)
        if ENFORCED is not None:
            made.setsockopt(ENFORCED, 1)
        made.setsockopt(zmq.CURVE_SERVER, 1)
        made.setsockopt(zmq.CURVE_SECRETKEY, self.keys.secret.encode())

    def pairs(self, place: str) -> list[tuple[bytes, str]]:
        """Whose key may be met at a place: UUIDs and keys, the newest of each first."""
        holders = [holder for uuid in self._nodes_at(place) if (holder := self.table.node(uuid)) is not None]
        return [(holder.uuid, key) for holder in holders for key in reversed(holder.keys)]

    def pin(self, made: Socket, place: str) -> tuple[bytes, str] | None:
        """Let the socket connect with our keys, to the node of that place and to nobody else (SEC-013); its UUID and key.

        None without keys. NoKey if nobody is known there. Where several keys are possible, because a node changes its
        own or a machine has several nodes, each call takes the next one.
        """
        if self.keys is None:
            return None
        pairs = self.pairs(place)
        if not pairs:
            raise NoKey(place)
        number = self._tries.get(place, 0)
        if len(pairs) > 1 and (place in self._tries or len(self._tries) < PLACES_TRIED_MAX):
            self._tries[place] = number + 1
        uuid, key = pairs[number % len(pairs)]
        connect_with(made, self.keys, key)
        return uuid, key

    def owner(self, user: str) -> bytes | None:
        """The UUID whose key libzmq reports, as it is now; None: it is nobody's any more."""
        holder = self.table.find(user)
        return None if holder is None else holder.uuid


def connect_with(made: "zmq.Socket[Any]", keys: Keys, server: str) -> None:
    """Let a socket connect with a pair, and to no other key than that one."""
    made.setsockopt(zmq.CURVE_SERVERKEY, server.encode())
    made.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
    made.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())
