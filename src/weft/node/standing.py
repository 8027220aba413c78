"""Where this node stands in the tree at present, as its cores have been told (RTE-001)."""

from weft.cores.chains.messages import Placed


class Standing:
    """Level, parent and children; one value for whoever has to know."""

    def __init__(self, level: str) -> None:
        self.level, self.parent = level, ""
        self.children: dict[bytes, str] = {}
        """Live links: node id and name."""

    def placed(self) -> Placed:
        """As an order."""
        return Placed(self.level, self.parent, tuple(self.children.items()))
