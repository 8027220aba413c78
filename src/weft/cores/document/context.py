"""State that all parts of a session share: identity, session time, and the outbox.

Own operations are durable before any peer gets them: the records of such a turn stand in one Persist ahead of all
effects of the turn (GSP-005). Operations of others become durable within 100 ms, and no effect waits for them
(GSP-030).
"""

import hashlib
from collections import Counter
from typing import Final

import msgspec

from weft.base.effects import Effect, Send
from weft.base.now import Now
from weft.base.records import Record
from weft.cores.document.limits import DURABLE_NS
from weft.cores.document.messages import SessionSettings
from weft.cores.kit.outbox import Outbox
from weft.wire.document.frames import word_of
from weft.wire.document.messages import Message

PEERS, CLIENTS = "document", "doc-clients"
"""Channels. On PEERS, `peer` of a sent message is the endpoint, and of a received one the sender's UUID; the core of
the node puts the session's name in front, which the shell sees (`core.Documents`).
"""
MICROSECONDS: Final = 1_000_000.0
"""Microseconds per second; in this century a double of seconds resolves 0.24 us, so timestamps are kept to 1 us."""


class Context(Outbox):
    """Shared by reference; only parts of a session change it."""

    def __init__(self, settings: SessionSettings) -> None:
        super().__init__()
        self.settings, self.timing, self.session = settings, settings.timing, settings.name
        self.uuid = settings.uuid
        """Our UUID; it changes if another node turns out to have used it (GSP-015)."""
        self.endpoint = ""
        """The endpoint in our HELO; empty: nothing listens yet."""
        self.is_full = False
        """The journal has no room (GSP-031)."""
        self.now = Now(0, 0)
        self.offset_ns: int | None = None
        """Session time minus monotonic time (PEE-040); None until the first verb."""
        self._aheads: list[Effect] = []
        self.is_walled = False
        """Whether the records of this turn must be durable before any effect."""
        self.counters: Counter[str] = Counter()
        """Counts by the names of the metrics: `mesh.rx.bad_body`, `log.duplicate`."""
        self.said_at: dict[str, int] = {}
        """When each endpoint last got a message, monotonic ns: a BEAT is due after a while."""
        self.sums: set[str] = set()
        """Endpoints of peers that read a checksum after a message (FLD-030)."""
        self._jitters = 0

    def begin(self, now: Now) -> None:
        """Every verb starts here. Session time starts as the wall clock, and does not follow its jumps."""
        self.now = now
        if self.offset_ns is None:
            self.offset_ns = now.wall - now.mono

    @property
    def time_ns(self) -> int:
        """Session time, nanoseconds (PEE-040)."""
        return self.now.mono + (self.offset_ns or 0)

    @property
    def time(self) -> float:
        """Session time in seconds, as the wire has it."""
        return seconds_of(self.time_ns)

    def jitter(self, value: int, percent: int) -> int:
        """`value` changed by at most `percent`, by a hash of our UUID and a counter, not by a random draw (PEE-003)."""
        self._jitters += 1
        drawn = int.from_bytes(hashlib.sha256(self.uuid + self._jitters.to_bytes(8, "big")).digest()[:4], "big")
        return value + value * percent * (2 * drawn - (1 << 32)) // (100 << 32)

    def say(self, endpoint: str, message: Message) -> None:
        """Send a message to the peer at an endpoint."""
        self.effects.append(self._send_of(endpoint, message))
        self.said_at[endpoint] = self.now.mono
        self.counters[f"mesh.tx.{word_of(message)}"] += 1

    def ahead(self, endpoint: str, message: Message) -> None:
        """The same, ahead of the records of the turn: for a question that need not wait for the disk (GSP-010)."""
        self._aheads.append(self._send_of(endpoint, message))
        self.said_at[endpoint] = self.now.mono
        self.counters[f"mesh.tx.{word_of(message)}"] += 1

    def _send_of(self, endpoint: str, message: Message) -> Send:
        if endpoint in self.sums:
            message = msgspec.structs.replace(message, has_sum=True)
        return Send(PEERS, endpoint.encode(), message)

    def keep_own(self, record: Record) -> None:
        """Make a record durable ahead of all effects of this turn, together with its other records."""
        super().keep(record)
        self.is_walled = True

    def count(self, what: str, by: int = 1) -> None:
        self.counters[what] += by

    def take(self) -> list[Effect]:
        """All effects; empties the outbox. If no record is our own, no effect waits for the records."""
        if not self.is_walled and self.records:
            self.persist(self.records, DURABLE_NS)
            self.records = []
        self.is_walled = False
        aheads, self._aheads = self._aheads, []
        return aheads + super().take()


def seconds_of(nanoseconds: int) -> float:
    """Seconds of whole microseconds, as timestamps are written (GSP-002)."""
    return nanoseconds // 1_000 / MICROSECONDS


def nanoseconds_of(timestamp: float) -> int:
    """A timestamp in seconds, as nanoseconds rounded to whole microseconds."""
    return round(timestamp * MICROSECONDS) * 1_000
