"""The node's current place in the tree (RTE-001) and its load, as its cores reported them last."""

from weft.cores.chains.messages import Placed


class Standing:
    """Level, parent, children and load of the node."""

    def __init__(self, level: str) -> None:
        self.level, self.parent = level, ""
        self.children: dict[bytes, str] = {}
        """The names of nodes with a live link to this one, by node id."""
        self.is_compared = False
        """At a root: whether its file was compared with its configuration."""
        self.is_pressed = False
        """Whether programs are too slow for what arrives, so that nothing more is taken from children (CHN-040)."""

    def placed(self) -> Placed:
        """The place as an order for cores."""
        return Placed(self.level, self.parent, tuple(self.children.items()))
