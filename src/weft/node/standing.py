"""How this node stands at present, as its cores have been told: in the tree (RTE-001), and under how much load."""

from weft.cores.chains.messages import Placed


class Standing:
    """Level, parent, children, load; one place for whoever has to know."""

    def __init__(self, level: str) -> None:
        self.level, self.parent = level, ""
        self.children: dict[bytes, str] = {}
        """Live links: node id and name."""
        self.is_compared = False
        """A root's file was held against the configuration that it has."""
        self.is_pressed = False
        """More has arrived than programs have dealt with: nothing more is taken (CHN-040)."""

    def placed(self) -> Placed:
        """As an order."""
        return Placed(self.level, self.parent, tuple(self.children.items()))
