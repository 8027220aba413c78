"""What a core asks of the world in one turn: effects in order, and behind which wall they stand (JRN-001).

A record is made durable in one of two ways. `keep` puts it in front of all effects of the turn, in one Persist with the
other records of the turn: nothing that the turn says leaves before it is on disk. `persist` puts a wall at this very
place: what the turn said before leaves at once. A core uses the first, unless some of its words must not wait.
"""

from collections.abc import Iterable
from typing import Any

from weft.base.effects import Confirm, Connect, Disconnect, Effect, Perform, Persist, Reply, Send, Tell
from weft.base.records import Record
from weft.cores.kit import limits


class Outbox:
    """Collects what a core wants done. The parts of one core share one outbox by reference.

    A core of several parts has a `Context` of its own (`context.py`): an outbox that also knows what these parts share.
    """

    __slots__ = ("_soon", "_soon_ns", "_told", "effects", "records")

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        """What is wanted so far, in order; without what is kept."""
        self.records: list[Record] = []
        """What this turn has to make durable before it says anything."""
        self._soon: list[Record] = []
        self._soon_ns = 0
        self._told: dict[Any, int] = {}

    # To peers, programs and the shell

    def send(self, channel: str, peer: bytes, message: Any) -> None:
        """Say a message to a peer on a channel; `peer` is empty where the channel has only one other end."""
        self.effects.append(Send(channel, peer, message))

    def confirm(self, channel: str, peer: bytes, count: int, token: int) -> None:
        """Ask what became of the last `count` messages for that peer; the token returns with the answer."""
        self.effects.append(Confirm(channel, peer, count, token))

    def connect(self, channel: str, endpoint: str, tag: bytes = b"", topics: tuple[bytes, ...] = ()) -> None:
        """Open the outgoing side of a channel, on a new socket."""
        self.effects.append(Connect(channel, endpoint, tag, topics))

    def disconnect(self, channel: str, peer: bytes = b"") -> None:
        """Close the outgoing side of a channel; `peer`: the endpoint whose socket is meant, where each has its own."""
        self.effects.append(Disconnect(channel, peer))

    def perform(self, work: Any) -> None:
        """Have the shell do work whose outcome returns as an order."""
        self.effects.append(Perform(work))

    def reply(self, ticket: int, answer: Any) -> None:
        """Answer the order with this ticket."""
        self.effects.append(Reply(ticket, answer))

    # To other cores

    def tell(self, event: Any) -> None:
        """Tell an event."""
        self.effects.append(Tell(event))

    def tell_seldom(self, about: Any, event: Any, mono: int, every_ns: int = limits.QUIET_NS) -> bool:
        """Tell an event that a peer can provoke at will: once in a span for each `about`; whether it was told."""
        told_at = self._told.get(about)
        if told_at is not None and mono < told_at + every_ns:
            return False
        self._told.pop(about, None)
        if len(self._told) >= limits.QUIET_MAX:
            del self._told[next(iter(self._told))]
        self._told[about] = mono
        self.tell(event)
        return True

    # To the journal

    def keep(self, *records: Record) -> None:
        """Make records durable before anything that this turn says, also what it has said already."""
        self.records += records

    def keep_soon(self, record: Record, within_ns: int) -> None:
        """Make a record durable within a span, and behind what this turn keeps; nothing waits for it.

        So the mark "done with this" never survives a torn write without what it led to.
        """
        self._soon_ns = min(self._soon_ns, within_ns) if self._soon else within_ns
        self._soon.append(record)

    def persist(self, records: Iterable[Record], within_ns: int = 0) -> None:
        """Make records durable at this place: a wall for what is said after it, unless `within_ns` > 0."""
        self.effects.append(Persist(tuple(records), within_ns))

    # To the node

    def take(self) -> list[Effect]:
        """All that is wanted, in order, the records that were kept first; asking empties the outbox."""
        done, self.effects = self.effects, []
        if self.records or self._soon:
            done.insert(0, Persist((*self.records, *self._soon), 0 if self.records else self._soon_ns))
            self.records, self._soon = [], []
        return done
