"""What a core asks of the world, in order. `Persist` is a wall (JRN-001).

Whatever a core emits after a `Persist` leaves the node only when those records are durable. So an acknowledgement that
stands before its `Persist` can be seen to be a bug.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import msgspec

from weft.base.budget import Budget
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, Record


class Source(NamedTuple):
    """Where a message came from, as the shell knows it."""

    channel: str
    """The channel on which it came: a key of `node.channels.CHANNELS`."""
    peer: bytes
    """The sender on that channel: a routing id, an address; opaque, only good for answering."""
    proved: bytes | None = None
    """The node UUID whose key libzmq reports on this message; None on an open fabric (SEC-012)."""
    kind: str = ""
    """What the shell knows of the other end, if its channel tells: the type of its socket (`REQ`, `DEALER`; CFG-013),
    or its process as the kernel names it (`localhost:UID:GID:PID`; CHN-080). Empty: unknown."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a typed message on a channel. `peer` is empty if the channel has only one other end."""

    channel: str
    peer: bytes
    message: Any


class Confirm(msgspec.Struct, frozen=True, gc=False):
    """Ask what became of the last `count` messages before this effect that are for that peer (FLD-001).

    The answer is the order `Confirmed`. It comes when the turn that transmits the messages is over, since a turn joins
    the effects of several verbs: neither `effects` nor the next `wake` shows that anything has left.
    """

    channel: str
    peer: bytes
    count: int
    token: int = 0
    """Returns with the answer."""


class Persist(msgspec.Struct, frozen=True, gc=False):
    """Make records durable. A wall, unless `within_ns` > 0: then durable within that span, or with the next wall."""

    records: tuple[Record, ...]
    within_ns: int = 0


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Open the outgoing side of a channel to an endpoint (`host:port`), with a fresh socket and id (SIM-021).

    Whatever was open on that channel before is closed first.
    """

    channel: str
    endpoint: str
    tag: bytes = b""
    """`Source.peer` of everything that is received through this connection, so that late messages of an earlier one are
    known."""
    topics: tuple[bytes, ...] = ()
    """Subscriptions, on a channel of publications."""


class Disconnect(msgspec.Struct, frozen=True, gc=False):
    """Close the outgoing side of a channel."""

    channel: str
    peer: bytes = b""
    """The endpoint whose socket is meant, if each has its own; empty: all. The next message opens a new one."""


class Perform(msgspec.Struct, frozen=True, gc=False):
    """Work of the outside world (measure, write a segment, read the journal); its result returns as an order."""

    work: Any


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Answer to an order that a person or program is waiting for."""

    ticket: int
    answer: Any


class Tell(msgspec.Struct, frozen=True, gc=False):
    """An event, in the past tense: `node.wiring` passes it to other cores and to the journal."""

    event: Any


Effect = Send | Confirm | Persist | Connect | Disconnect | Perform | Reply | Tell


class SendFailed(msgspec.Struct, frozen=True, gc=False):
    """Order of the shell: the last message to that peer was not sent, as its queue is full or it is gone."""

    channel: str
    peer: bytes


class Confirmed(msgspec.Struct, frozen=True, gc=False):
    """Order of the shell, the answer to `Confirm`: of `count` messages only the last `refused` were not sent."""

    channel: str
    peer: bytes
    count: int
    token: int
    refused: int


class Core(Protocol):
    """The verbs that every core has. The same calls in the same order give the same effects."""

    name: str
    budget: Budget
    """How much it may hold; the node sets that (FLD-032)."""

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the state from the journal: own `CoreRecord`s and stream records since the last snapshot, in order.

        Called before anything else, possibly several times with consecutive pieces.
        """

    def condense(self) -> Iterable[CoreRecord]:
        """Records from which `restore` gives a state equal to the present one (JRN-040)."""

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Take a typed message; PeerError for one that is not allowed now, and then nothing has changed."""

    def command(self, order: Any, now: Now) -> None:
        """Carry out an order of the application, of the shell, or of another core's event."""

    def wake(self, now: Now) -> None:
        """Time has passed; called at or after `deadline()`."""

    def deadline(self) -> int | None:
        """Monotonic nanoseconds at which to be woken; None: never."""

    def effects(self) -> list[Effect]:
        """What to do, in order; asking empties the list."""
