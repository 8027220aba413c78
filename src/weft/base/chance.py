"""The one door through which randomness enters: a generator that is handed in, seeded by its purpose (SIM-005)."""

from random import Random


class Chance(Random):
    """A seeded generator for one purpose. A new draw in one place moves no other.

    >>> Chance("7/link/a>b/stream").getrandbits(64) == 0x93B343F49AA91AE9
    True
    """

    rare: frozenset[str] = frozenset()
    """Names of rare branches that this run takes; only the simulator sets it."""

    def rarely(self, name: str) -> bool:
        """Whether to take the branch `name`, which runs of a real node never take (SIM-009).

        A core asks once, where it is made, and then does in small steps what it else does in large ones.
        """
        return name in self.rare

    def about(self, value: int, share: float) -> int:
        """`value` plus or minus at most `share` of it, whole."""
        return round(value * (1 + share * (2 * self.random() - 1)))
