"""The one door through which randomness enters: a generator that is handed in, seeded by its purpose (SIM-005)."""

from random import Random


class Chance(Random):
    """A seeded generator for one purpose. A new draw in one place moves no other.

    >>> Chance("7/link/a>b/stream").getrandbits(64) == 0x93B343F49AA91AE9
    True
    """

    def about(self, value: int, share: float) -> int:
        """`value` plus or minus at most `share` of it, whole."""
        return round(value * (1 + share * (2 * self.random() - 1)))
