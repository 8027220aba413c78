"""What the makers of cores get."""

from weft.base.chance import Chance
from weft.node.settings import NodeSettings


class Start:
    """Settings, identity and random numbers of one start of a node."""

    def __init__(self, settings: NodeSettings, node: bytes, era: int, seed: str, secret: bytes) -> None:
        self.settings, self.node, self.era, self.seed, self.secret = settings, node, era, seed, secret
        self.rare: frozenset[str] = frozenset()

    def chance(self, purpose: str) -> Chance:
        """The random numbers for one purpose of this start."""
        chance = Chance(f"{self.seed}/{purpose}")
        chance.rare = self.rare
        return chance
