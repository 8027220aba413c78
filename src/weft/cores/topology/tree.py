"""The tree as the root plans it: the records of the store, with changes that are being written.

Every change is made here first and undone if its write is refused. Counts are maintained, so that a join does not have
to walk over all nodes (CFG-095).
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from weft.cores.topology.atlas import Located


class Tree:
    """Nodes by UUID, by group, and by parent."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, Located] = {}
        self.groups: dict[str, dict[bytes, Located]] = {}
        self.load: Counter[str] = Counter()
        """Children of each parent, by the parent's endpoint."""
        self.endpoints: dict[str, bytes] = {}
        self.branches: dict[str, dict[bytes, Located]] = {}

    def fill(self, nodes: Iterable[Located]) -> None:
        """Replace everything by these nodes."""
        self.__init__()  # type: ignore[misc]  # all fields, as new
        for located in nodes:
            self.put(located)

    def put(self, located: Located) -> None:
        """Put a node at this place, and nowhere else."""
        self.drop(located.node)
        self.nodes[located.node] = located
        self.groups.setdefault(located.group, {})[located.node] = located
        if located.record.level == "branch":
            self.branches.setdefault(located.group, {})[located.node] = located
        self.load[located.record.parent] += 1
        self.endpoints[located.record.endpoint] = located.node

    def drop(self, node: bytes) -> None:
        """Remove a node, if present."""
        located = self.nodes.pop(node, None)
        if located is None:
            return
        del self.groups[located.group][node]
        self.branches.get(located.group, {}).pop(node, None)
        self.load[located.record.parent] -= 1
        if self.endpoints.get(located.record.endpoint) == node:
            del self.endpoints[located.record.endpoint]

    def at(self, endpoint: str) -> Located | None:
        """The node with that endpoint."""
        return self.nodes.get(self.endpoints.get(endpoint, b""))

    def collectors(self, group: str) -> list[Located]:
        """The collectors of a group, by UUID."""
        return [located for _, located in sorted(self.branches.get(group, {}).items())]

    def leaves(self, group: str) -> Iterator[Located]:
        """The others of a group."""
        return (located for located in self.groups.get(group, {}).values() if located.record.level == "leaf")

    def children(self, parent: str) -> list[Located]:
        """All nodes whose parent has that endpoint, by UUID."""
        found = (located for located in self.nodes.values() if located.record.parent == parent)
        return sorted(found, key=lambda located: located.node)

    def least(self, parents: Iterable[str]) -> str:
        """The parent with the fewest children, the first of several; empty: there is none."""
        return min(parents, key=lambda endpoint: self.load[endpoint], default="")
