"""The effects that a core produces in one turn, in order, and the wall that each stands behind (JRN-001).

A record is made durable in one of two ways. `keep` writes it ahead of all effects of the turn, in one Persist with the
other kept records: nothing of the turn is sent before they are on disk. `persist` puts a wall at the current place:
effects added earlier leave at once. Use `keep`, unless some of the effects must not wait for the disk.
"""

from collections.abc import Iterable
from typing import Any

from weft.base.effects import Confirm, Connect, Disconnect, Effect, Perform, Persist, Reply, Send, Tell
from weft.base.records import Record
from weft.cores.kit import limits


class Outbox:
    """Collects the effects of a core. The parts of one core share one outbox.

    A core with several parts has its own `Context` (`context.py`): an outbox that also holds the state that the parts
    share.
    """

    __slots__ = ("_emitted_at", "_soon", "_soon_ns", "effects", "records")

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        """Effects so far, in order, without the records of `keep`."""
        self.records: list[Record] = []
        """Records that must be durable before any effect of this turn is performed."""
        self._soon: list[Record] = []
        self._soon_ns = 0
        self._emitted_at: dict[Any, int] = {}

    # To peers, programs and the shell

    def send(self, channel: str, peer: bytes, message: Any) -> None:
        """Send a message to a peer on a channel; `peer` is empty where the channel has only one other end."""
        self.effects.append(Send(channel, peer, message))

    def confirm(self, channel: str, peer: bytes, count: int, token: int) -> None:
        """Ask what became of the last `count` messages for this peer; the answer carries `token`."""
        self.effects.append(Confirm(channel, peer, count, token))

    def connect(self, channel: str, endpoint: str, tag: bytes = b"", topics: tuple[bytes, ...] = ()) -> None:
        """Open the outgoing side of a channel, on a new socket."""
        self.effects.append(Connect(channel, endpoint, tag, topics))

    def disconnect(self, channel: str, peer: bytes = b"") -> None:
        """Close the outgoing side of a channel.

        `peer` is the endpoint of the socket, where each endpoint has its own.
        """
        self.effects.append(Disconnect(channel, peer))

    def perform(self, work: Any) -> None:
        """Let the shell do a piece of work; its result comes back as an order."""
        self.effects.append(Perform(work))

    def reply(self, ticket: int, answer: Any) -> None:
        """Answer the order with this ticket."""
        self.effects.append(Reply(ticket, answer))

    # To other cores

    def tell(self, event: Any) -> None:
        """Emit an event."""
        self.effects.append(Tell(event))

    def tell_seldom(self, about: Any, event: Any, mono: int, every_ns: int = limits.QUIET_NS) -> bool:
        """Emit an event that a peer can cause at will, at most once in `every_ns` for each `about`.

        Returns whether it was emitted.
        """
        emitted_at = self._emitted_at.get(about)
        if emitted_at is not None and mono < emitted_at + every_ns:
            return False
        self._emitted_at.pop(about, None)
        if len(self._emitted_at) >= limits.QUIET_MAX:
            del self._emitted_at[next(iter(self._emitted_at))]
        self._emitted_at[about] = mono
        self.tell(event)
        return True

    # To the journal

    def keep(self, *records: Record) -> None:
        """Make records durable before any effect of this turn is performed, also effects that were added earlier."""
        self.records += records

    def keep_soon(self, record: Record, within_ns: int) -> None:
        """Make a record durable within `within_ns`, after the records that `keep` got in this turn.

        No effect waits for it.

        A mark "this is done" is thus never on disk without the records of what was done, even after a torn write.
        """
        self._soon_ns = min(self._soon_ns, within_ns) if self._soon else within_ns
        self._soon.append(record)

    def persist(self, records: Iterable[Record], within_ns: int = 0) -> None:
        """Make records durable at this place: effects added later wait for it, unless `within_ns` > 0."""
        self.effects.append(Persist(tuple(records), within_ns))

    # To the node

    def take(self) -> list[Effect]:
        """All effects in order, behind one Persist of the kept records. Empties the outbox."""
        done, self.effects = self.effects, []
        if self.records or self._soon:
            done.insert(0, Persist((*self.records, *self._soon), 0 if self.records else self._soon_ns))
            self.records, self._soon = [], []
        return done
