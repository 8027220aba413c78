"""State that both sides of the clone core share: a copy of the configuration, counters, the outbox."""

from typing import Final

import msgspec

from weft.base.budget import Budget
from weft.base.now import MILLISECOND, Now
from weft.cores.clone import limits
from weft.cores.clone.messages import CloneSettings, KvSync, LearnPairs, Wanted, WriteRefused, WritesWanted
from weft.cores.kit.outbox import Outbox
from weft.wire.chp import Pair

SERVE, PUBLISH, TAKE, ASK, FOLLOW = "clone-serve", "clone-publish", "clone-take", "clone-ask", "clone-follow"
"""The channels: three for clients, two to the server that is followed."""
UPDATES: Final = 1
"""Offset from the snapshot port to the port that publishes updates."""


class Counters(msgspec.Struct):
    """Plain counts since the start."""

    served: int = 0
    """Snapshots sent completely."""
    pairs_served: int = 0
    stuck: int = 0
    """Clients dropped because they accepted no messages."""
    published: int = 0
    beats: int = 0
    sets: int = 0
    """Writes that clients asked for."""
    questions: int = 0
    """Snapshots that this node asked for."""
    snapshots: int = 0
    """Snapshots adopted."""
    updates: int = 0
    """Updates of the server that were written."""
    leftovers: int = 0
    """Updates that the snapshot already contained."""
    late: int = 0
    """Messages that came over a connection that was already closed."""
    holes: int = 0
    keys_refused: int = 0
    writes_refused: int = 0


def is_telling(count: int) -> bool:
    """Whether an event is told for this occurrence: the 1st, 2nd, 4th, 8th and so on.

    >>> [count for count in range(1, 20) if is_telling(count)]
    [1, 2, 4, 8, 16]
    """
    return count & (count - 1) == 0


def wanted(key: str, pair: Pair, now: Now) -> Wanted:
    """A pair of the other side as a write under `key`; an expired pair becomes a deletion (CFG-064)."""
    ttl_s = pair.ttl_s
    if pair.expires_ms is not None:
        left_ms = pair.expires_ms - now.wall // MILLISECOND
        if left_ms <= 0:
            return Wanted(key, b"")
        ttl_s = left_ms / 1_000
    is_lasting = ttl_s is None or ttl_s > limits.TTL_MAX_S or not pair.value
    return Wanted(key, pair.value, None if is_lasting else ttl_s)


class Context(Outbox):
    """State and outbox that both sides use."""

    def __init__(self, settings: CloneSettings, node: bytes) -> None:
        super().__init__()
        self.settings, self.node = settings, node
        self.counters = Counters()
        self.budget = Budget()
        self.pairs: dict[str, KvSync] = {}
        """Copy of the configuration, as the configuration core last reported it."""
        self.number = 0
        self._ticket = 0
        self._keys: list[str] | None = None

    def sorted_keys(self) -> list[str]:
        """All keys, sorted. Do not change the list."""
        if self._keys is None:
            self._keys = sorted(self.pairs)
        return self._keys

    def learn(self, pair: KvSync) -> None:
        """Update the copy; an empty value deletes."""
        if not pair.value:
            if self.pairs.pop(pair.key, None) is not None:
                self._keys = None
            return
        if pair.key not in self.pairs:
            self._keys = None
        self.pairs[pair.key] = pair

    def want(self, writes: tuple[Wanted, ...]) -> int:
        """Ask the configuration core for writes; returns the ticket that its answer carries."""
        self._ticket += 1
        self.tell(WritesWanted(self._ticket, writes))
        return self._ticket

    def refuse(self, key: str, code: int) -> None:
        """Count and tell that the configuration refused a write."""
        self.counters.writes_refused += 1
        if is_telling(self.counters.writes_refused):
            self.tell(WriteRefused(key, code, self.counters.writes_refused))


def numbered(order: LearnPairs) -> list[tuple[int, str, bytes]]:
    """The writes that an order reports, in order: number, key, value; an empty value is a deletion."""
    numbers = order.numbers or (order.number,) * len(order.pairs)
    return sorted((number, key, value or b"") for number, (key, value) in zip(numbers, order.pairs, strict=True))
