"""The count of a set of pairs, and a digest of them that does not depend on their order (FLD-002).

The digest is the sum, modulo 2**128, of one BLAKE2b-128 per pair. Both sides update it as pairs come and go, and two
nodes with the same pairs have the same digest, however they got them. It detects pairs lost or mixed up on the way. It
is no signature: whoever may write the configuration could forge it.
"""

from collections.abc import Collection, Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

from weft.wire.replication import DIGEST_BYTES, KvSync

MODULUS: Final = 1 << 8 * DIGEST_BYTES
_head: Final = Struct(">QI").pack


def hash_of(pair: KvSync) -> int:
    """The summand of one pair: a hash of its number, the length of its key, its key, and its value."""
    key = pair.key.encode()
    head = _head(pair.number, len(key))
    return int.from_bytes(blake2b(head + key + pair.value, digest_size=DIGEST_BYTES).digest())


def sum_of(pairs: Iterable[KvSync]) -> int:
    """The summands of all these pairs together, without a call for each."""
    hashes = [
        blake2b(_head(pair.number, len(key)) + key + pair.value, digest_size=DIGEST_BYTES).digest()
        for pair in pairs
        for key in (pair.key.encode(),)
    ]
    return sum(map(int.from_bytes, hashes))


class Tally:
    """Count and digest of a set of pairs."""

    __slots__ = ("_sum", "count")

    def __init__(self) -> None:
        self.count = self._sum = 0

    def put(self, pair: KvSync, before: KvSync | None = None) -> None:
        """A pair was added, or replaced another one."""
        if before is not None:
            self.remove(before)
        self.add(1, hash_of(pair))

    def add(self, count: int, summands: int) -> None:
        """Pairs were added, none of which was there; `summands`: their `sum_of`."""
        self.count += count
        self._sum = (self._sum + summands) % MODULUS

    def remove(self, pair: KvSync) -> None:
        """A pair was removed."""
        self.count -= 1
        self._sum = (self._sum - hash_of(pair)) % MODULUS

    def join(self, count: int, digest: bytes) -> None:
        """Add another set."""
        self.add(count, int.from_bytes(digest))

    @property
    def digest(self) -> bytes:
        return self._sum.to_bytes(DIGEST_BYTES)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and (self.count, self._sum) == (other.count, other._sum)

    __hash__ = None  # type: ignore[assignment]  # it changes


def tally_of(pairs: Collection[KvSync]) -> Tally:
    """The tally of these pairs."""
    tally = Tally()
    tally.add(len(pairs), sum_of(pairs))
    return tally
