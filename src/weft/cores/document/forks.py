"""Two bodies with one number: all nodes must choose the same one (GSP-011).

Also: a source that is ours, but used by another node (GSP-015).
"""

from collections import deque
from collections.abc import Iterator
from hashlib import sha256

from weft.cores.document.context import Context
from weft.cores.document.holding import Kept
from weft.cores.document.limits import FORKS_MAX
from weft.cores.document.memory import LoserKept, record_of
from weft.cores.document.messages import LogFork
from weft.wire.document.sums import rank


def wins(body: bytes, other: bytes) -> bool:
    """Whether the first body wins. Signatures, if there were any, would be compared first."""
    return rank(body) < rank(other)


class Forks:
    """The losers, one body per number, so that the journal keeps both bodies."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._losers: dict[tuple[bytes, int], Kept] = {}
        self._unkept: deque[tuple[bytes, int]] = deque()
        """Losers without a record yet, since the journal had no room."""

    def note(self, source: bytes, sequence: int, loser: Kept) -> bool:
        """Remember a loser; False if this number has one already, or there are too many: then it is only counted."""
        key = (source, sequence)
        if key in self._losers or len(self._losers) >= FORKS_MAX:
            return False
        self._losers[key] = loser
        return True

    def owe(self, source: bytes, sequence: int) -> None:
        """Journal a loser: now, or as soon as the journal has room."""
        self._unkept.append((source, sequence))
        if not self._context.is_full:
            self.keep_next()

    @property
    def are_owed(self) -> bool:
        """Whether some losers have no record yet."""
        return bool(self._unkept)

    def keep_next(self) -> int:
        """Journal the loser that has waited longest; returns its bytes."""
        source, sequence = self._unkept.popleft()
        loser = self._losers[source, sequence]
        self._context.keep(record_of(LoserKept(self._context.session, source, sequence, *loser[1:3], loser.body)))
        return len(loser.body)

    def tell(self, number: tuple[bytes, int], winner: bytes, loser: bytes, peer: bytes) -> None:
        """Tell the number, and the peer that sent the unknown body."""
        kept, other = sha256(winner).digest(), sha256(loser).digest()
        self._context.tell(LogFork(self._context.session, *number, peer, kept, other))

    def items(self) -> Iterator[tuple[bytes, int, Kept]]:
        """All losers."""
        for (source, sequence), kept in self._losers.items():
            yield source, sequence, kept


def next_uuid(old: bytes, wall_ns: int) -> bytes:
    """Another identity for a start whose UUID another node uses: version 4 in form, first byte not 0 (PEE-003).

    >>> next_uuid(bytes(16), 1)[6] >> 4
    4
    """
    number = 0
    while True:
        drawn = bytearray(sha256(old + wall_ns.to_bytes(8, "big") + bytes([number])).digest()[:16])
        drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80
        if drawn[0]:
            return bytes(drawn)
        number += 1
