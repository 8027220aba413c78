"""The only source of randomness: a generator that is handed in, seeded by its purpose (SIM-005)."""

from random import Random


class Chance(Random):
    """A seeded generator for one purpose. A further draw in one place changes no other."""

    rare: frozenset[str] = frozenset()
    """Names of rare branches that this run takes; only the simulator sets it."""

    def rarely(self, name: str) -> bool:
        """Whether to take the branch `name`, which a real node never takes (SIM-009).

        A core asks once, when it is made; in that branch it does in small steps what it otherwise does in large ones.
        """
        return name in self.rare

    def about(self, value: int, share: float) -> int:
        """`value` plus or minus at most `share` of it, whole."""
        return round(value * (1 + share * (2 * self.random() - 1)))
