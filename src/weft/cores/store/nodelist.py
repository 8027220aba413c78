"""The nodes that pinged last, newest first: real MoaT-KV servers take turns by this list (PNG-033, PNG-035)."""

from collections.abc import Mapping, Sequence

from weft.base.chance import Chance

Value = tuple[int, int] | None
"""The value in a ping: tock and tick (topic `del`: oldest and newest tag); None: its sender is not ready."""


class NodeList:
    """At most `nodes_max` names, none twice; equal on all nodes that received the same pings."""

    def __init__(self, nodes_max: int) -> None:
        self.nodes_max = nodes_max
        self.names: list[str] = []

    def push(self, name: str) -> None:
        """That node has pinged.

        If the node was in the middle of the list, the list becomes one shorter; so silent nodes drop out.

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
        self.names = [name, *rest]

    def adopt(self, history: Sequence[str]) -> None:
        """Replace this list by another."""
        self.names = list(dict.fromkeys(history))[: self.nodes_max]

    def shrink(self, nodes_max: int) -> None:
        """Change the maximum number of names."""
        self.nodes_max = nodes_max
        del self.names[nodes_max:]

    def position(self, name: str) -> int | None:
        """How many nodes have pinged after it; None: it is not in the list."""
        return self.names.index(name) if name in self.names else None


def is_late(names: Sequence[str], values: Mapping[str, Value]) -> bool:
    """Whether a node that is not ready should leave the ping to those that are.

    True if the first ready name is in the rear half.
    """
    first = next((index for index, name in enumerate(names) if values.get(name) is not None), None)
    return first is not None and 2 * first >= len(names) > 1


def turn(position: int, length: int) -> float:
    """When the node at that position pings again, in gaps after the cycle.

    >>> [turn(position, 5) for position in range(5)]
    [2.0, 0.984375, 0.96875, 0.9375, 0.875]
    """
    return 2.0 if position == 0 else 1 - 0.5 ** (length + 2 - position)


def turn_off_list(free: int, hosts: int, *, is_forced: bool, chance: Chance) -> float:
    """When a node that is not on the list pings, in gaps after the cycle.

    It pings early sometimes, otherwise if no other node does.
    """
    odds = (free or hosts) * hosts
    if is_forced or chance.random() * odds < 1:
        return chance.random() / 3
    return 1.5 + chance.random() / 2
