"""The count of a set of pairs, and a digest of them that does not depend on their order (FLD-002).

The digest is the sum, modulo 2**128, of one BLAKE2b-128 per pair. Both sides update it as pairs come and go, and two
nodes with the same pairs have the same digest, however they got them. It detects pairs lost or mixed up on the way. It
is no signature: whoever may write the configuration could forge it.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from weft.wire.replication import DIGEST_BYTES, KvSync

MODULUS: Final = 1 << 8 * DIGEST_BYTES


def hash_of(pair: KvSync) -> int:
    """The summand of one pair: a hash of its number, the length of its key, its key, and its value."""
    key = pair.key.encode()
    head = pair.number.to_bytes(8) + len(key).to_bytes(4)
    return int.from_bytes(blake2b(head + key + pair.value, digest_size=DIGEST_BYTES).digest())


class Tally:
    """Count and digest of a set of pairs."""

    __slots__ = ("_sum", "count")

    def __init__(self) -> None:
        self.count = self._sum = 0

    def put(self, pair: KvSync, before: KvSync | None = None) -> None:
        """A pair was added, or replaced another one."""
        if before is not None:
            self.remove(before)
        self.count += 1
        self._sum = (self._sum + hash_of(pair)) % MODULUS

    def remove(self, pair: KvSync) -> None:
        """A pair was removed."""
        self.count -= 1
        self._sum = (self._sum - hash_of(pair)) % MODULUS

    def join(self, count: int, digest: bytes) -> None:
        """Add another set."""
        self.count += count
        self._sum = (self._sum + int.from_bytes(digest)) % MODULUS

    @property
    def digest(self) -> bytes:
        return self._sum.to_bytes(DIGEST_BYTES)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and (self.count, self._sum) == (other.count, other._sum)

    __hash__ = None  # type: ignore[assignment]  # it changes


def tally_of(pairs: Iterable[KvSync]) -> Tally:
    """The tally of these pairs."""
    tally = Tally()
    for pair in pairs:
        tally.put(pair)
    return tally
