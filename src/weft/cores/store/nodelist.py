"""Who has pinged last, newest first: the list by which real MoaT-KV servers take turns (PNG-033)."""

from collections.abc import Sequence


class NodeList:
    """At most `nodes_max` names, none twice; equal on all nodes that heard the same pings."""

    def __init__(self, nodes_max: int) -> None:
        self.nodes_max = nodes_max
        self.names: list[str] = []

    def push(self, name: str) -> None:
        """That node has pinged.

        Who was in the middle and speaks again leaves the list one shorter: so it does not fill with the silent.

        >>> nodes = NodeList(3)
        >>> nodes.names = ["d", "c", "a"]
        >>> nodes.push("c")
        >>> nodes.names
        ['c', 'd']
        """
        old = self.names
        rest = [other for other in old if other != name]
        was_amid = name in old and old[-1] != name
        was_full = name not in old and len(old) >= self.nodes_max
        if rest and (was_amid or was_full):
            rest.pop()
        self.names = [name, *rest][: self.nodes_max]

    def adopt(self, history: Sequence[str]) -> None:
        """Another list goes on in place of this one."""
        self.names = list(dict.fromkeys(history))[: self.nodes_max]

    def position(self, name: str) -> int | None:
        """How far behind the last that pinged; None: not in the list."""
        return self.names.index(name) if name in self.names else None
