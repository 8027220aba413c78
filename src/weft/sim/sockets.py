"""The ends of simulated ZeroMQ links: sockets that connect, sockets that are bound, and the messages between them.

`links.Streams` moves messages; this module has what it moves them through.
"""

from collections import deque
from typing import Final, NamedTuple, Protocol

from weft.node.channels import (
    ANSWER_QUEUE,
    CALLS,
    CHANNELS,
    DIALS,
    EVENTS_QUEUE,
    LINK_QUEUE,
    PUBLISH_QUEUE,
    Channel,
)
from weft.sim.noise import NoiseSource

QUEUE_MESSAGES: Final = LINK_QUEUE  # each side's high-water mark of the hop link
KERNEL_BYTES: Final = 800_000  # what both kernels' buffers hold on loopback (Z3: 420 of 20,000 x 2 kB at HWM 10)
DOCUMENT_QUEUE: Final = 3_000  # high-water mark of a DEALER between two sessions (PEE-002)


def _dealer(queue: int, how: str = DIALS) -> Channel:
    return CHANNELS["ask"]._replace(queue=queue, how=how)


_ROWS: Final[dict[str, Channel]] = {
    "document": _dealer(DOCUMENT_QUEUE, CALLS),
    "served": CHANNELS["catalog"],
    "broker": _dealer(ANSWER_QUEUE),
    "monitor": _dealer(ANSWER_QUEUE),
    "callee": _dealer(ANSWER_QUEUE),
    "broker-events": CHANNELS["updates"]._replace(queue=EVENTS_QUEUE),
    "chp-ask": _dealer(ANSWER_QUEUE),
    "chp-updates": CHANNELS["updates"]._replace(queue=PUBLISH_QUEUE),
    "chp-sets": CHANNELS["announce"]._replace(queue=ANSWER_QUEUE),
}
"""Channels that real nodes have otherwise, or not at all: those between document sessions, and those of programs."""


def row_of(channel: str) -> Channel:
    """How a channel behaves, for `links.Streams`."""
    return _ROWS.get(channel) or CHANNELS[channel]


HANDS_OVER: Final = frozenset({"document"})
"""Channels whose ROUTER has ROUTER_HANDOVER: of two peers with one id the later one is heard."""


class Host(Protocol):
    """What a link needs of a machine."""

    name: str
    queue_messages: int
    """How many updates wait for it at most; 0: as many as its sockets take."""

    @property
    def key(self) -> str | None:
        """The public half of its key; None: it has none."""

    @property
    def is_listening(self) -> bool:
        """Whether its process runs and has bound its sockets."""

    def hear(self, channel: str, peer: bytes, frames: list[bytes], flow: "Flow | None") -> None:
        """Take a message; `flow` is called when the node has read it."""


class Path(NamedTuple):
    """The cable in one direction."""

    least_ns: int
    spread_ns: int
    is_open: bool = True
    flips: int = 0
    """In one message of so many a bit flips, or a frame gets the next one's bytes appended; 0: in none."""


class Limits(NamedTuple):
    """How much one direction of a connection holds."""

    at_once: int
    """Messages that its socket takes at one instant."""
    messages: int
    bytes: int = KERNEL_BYTES


class Flow:
    """One direction of a connection: the messages under way, in order."""

    __slots__ = (
        "at_once",
        "at_once_max",
        "bytes",
        "bytes_max",
        "epoch",
        "flight",
        "last_at",
        "messages",
        "messages_max",
        "noise",
        "proved",
        "taken_at",
    )

    def __init__(self, noise: NoiseSource, limits: "Limits", proved: str | None = None) -> None:
        self.noise = noise
        self.proved = proved
        """The key that the sending end has proved."""
        self.at_once_max, self.messages_max, self.bytes_max = limits
        self.taken_at = self.at_once = 0
        """When it last took a message, and how many at that instant."""
        self.flight: deque[tuple[list[bytes], int]] = deque()
        self.epoch = 0
        """Raised when messages under way are lost or delayed: deliveries that were scheduled before are void."""
        self.last_at = 0
        self.messages = self.bytes = 0
        """Sent and not yet read by the node at the other end."""

    def read(self, size: int) -> None:
        """The other end has taken a message out of its socket."""
        self.messages -= 1
        self.bytes -= size

    def has_room(self, at: int) -> bool:
        """Whether it takes one more message, by the limits of both sockets and both kernels."""
        if at == self.taken_at and self.at_once >= self.at_once_max:
            return False
        return self.messages < self.messages_max or self.bytes < self.bytes_max

    def take(self, frames: list[bytes], at: int) -> None:
        """Put one more message under way."""
        size = sum(map(len, frames))
        self.messages += 1
        self.bytes += size
        self.flight.append((frames, size))
        self.at_once = self.at_once + 1 if at == self.taken_at else 1
        self.taken_at = at

    def lose(self) -> int:
        """All messages under way are lost; returns how many."""
        lost = len(self.flight)
        for _, size in self.flight:
            self.read(size)
        self.flight.clear()
        self.epoch += 1
        return lost


class Connection:
    """A TCP connection between a socket that connects and one that is bound."""

    __slots__ = (
        "dealer",
        "flows",
        "is_deaf",
        "is_known_to_dealer",
        "is_known_to_router",
        "is_stalled",
        "key",
        "router",
        "stalled_at",
        "topics",
    )

    def __init__(self, dealer: "Dealer", router: "Router", flows: tuple[Flow, Flow], key: bytes) -> None:
        self.dealer, self.router, self.flows, self.key = dealer, router, flows, key
        self.topics: tuple[bytes, ...] | None = None
        """Subscriptions of this connection's SUB, as far as its PUB knows; None: none have arrived."""
        self.is_stalled = False
        self.stalled_at = 0
        self.is_deaf = False
        self.is_known_to_dealer = self.is_known_to_router = True

    @property
    def works(self) -> bool:
        """Whether messages pass both ways, now."""
        return not self.is_stalled and not self.is_deaf and self.is_known_to_dealer and self.is_known_to_router


class Plug(NamedTuple):
    """How a socket connects: where to, and under which id."""

    endpoint: str
    routing_id: bytes
    channel: str = "up"
    tag: bytes = b""
    """`Source.peer` of everything that is heard through it."""
    topics: tuple[bytes, ...] = ()


class Dealer:
    """A socket that connects, from one Connect to the next: a DEALER, the SUB of a child, or the PUB of announcements."""

    __slots__ = ("channel", "connection", "endpoint", "host", "is_closed", "plug", "routing_id", "row", "waiting")

    def __init__(self, host: Host, plug: Plug) -> None:
        self.host, self.plug, self.row = host, plug, row_of(plug.channel)
        self.routing_id, self.endpoint, self.channel = plug.routing_id, plug.endpoint, plug.channel
        self.connection: Connection | None = None
        self.waiting: deque[list[bytes]] = deque()
        """Accepted while there was nobody to send to (Z4)."""
        self.is_closed = False


class Router:
    """A bound socket of one start of a node: a ROUTER, the PUB of a parent, or the SUB of announcements."""

    __slots__ = ("address", "channel", "host", "is_closed", "is_xpub", "peers", "prefix")

    def __init__(self, host: Host, channel: str, prefix: bytes, address: str) -> None:
        self.host, self.channel, self.prefix, self.address = host, channel, prefix, address
        self.is_xpub = row_of(channel).socket == "XPUB"
        self.peers: dict[bytes, Connection] = {}
        self.is_closed = False
