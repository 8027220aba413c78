"""The node's current place in the tree (RTE-001) and its load, as last reported by its cores."""

from weft.cores.chains.messages import Placed


class Standing:
    """Level, parent, children and load, in one place."""

    def __init__(self, level: str) -> None:
        self.level, self.parent = level, ""
        self.children: dict[bytes, str] = {}
        """Live links: node id and name."""
        self.is_compared = False
        """A root's file was held against the configuration that it has."""
        self.is_pressed = False
        """More has arrived than programs have dealt with: nothing more is taken (CHN-040)."""

    def placed(self) -> Placed:
        """The place as an order for cores."""
        return Placed(self.level, self.parent, tuple(self.children.items()))
