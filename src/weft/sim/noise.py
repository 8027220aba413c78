"""Random numbers for one message, which depend only on the run, the link and the message.

So a fault that is removed elsewhere does not change it, and shrinking a plan keeps what is left as it was (SIM-005).
"""

from hashlib import blake2b
from typing import Final, NamedTuple

NOISE_BYTES: Final = 16
SHARE: Final = 1 << 16
"""Shares of a link are counted in 65,536ths, so that plans hold integers only."""


class Noise(NamedTuple):
    """Five independent draws for one message, each 0..65,535; the delay is finer, of 32 bits."""

    loss: int
    duplication: int
    reordering: int
    damage: int
    delay: int
    second: int
    """The delay of a duplicate, or how late a reordered message comes."""


class NoiseSource:
    """The noise of one link, in the order of its messages."""

    __slots__ = ("_base", "count")

    def __init__(self, seed: str, link: str) -> None:
        self._base = blake2b(f"{seed}/{link}/".encode(), digest_size=NOISE_BYTES)
        self.count = 0

    def digest(self) -> bytes:
        """BLAKE2b-128 of `<seed>/<link>/<n>` for the next n.

        >>> NoiseSource("7", "a>b/stream").digest().hex()
        'aeb56931ff694355db0f388a4487f990'
        """
        mixed = self._base.copy()
        mixed.update(str(self.count).encode())
        self.count += 1
        return mixed.digest()

    def draw(self) -> Noise:
        """The noise of the next message."""
        value = int.from_bytes(self.digest(), "big")
        return Noise(
            value & 0xFFFF,
            value >> 16 & 0xFFFF,
            value >> 32 & 0xFFFF,
            value >> 48 & 0xFFFF,
            value >> 64 & 0xFFFFFFFF,
            value >> 96,
        )

    def delay(self, least_ns: int, spread_ns: int) -> int:
        """How long the next message takes: `least_ns` and a share of `spread_ns`."""
        return least_ns + (spread_ns * (int.from_bytes(self.digest()[:4], "big")) >> 32)
