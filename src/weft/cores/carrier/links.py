"""The live links to children, by routing id, node and name; and the peers without a link."""

from collections.abc import Iterable, Iterator
from typing import Any

from weft.base.records import Record
from weft.cores.carrier import limits


class Link:
    """One welcomed child. Times are monotonic nanoseconds, numbers are hop numbers."""

    __slots__ = (
        "back",
        "below",
        "era",
        "floor",
        "garbled",
        "garbled_at",
        "heard_at",
        "is_down_open",
        "is_gap_reported",
        "name",
        "no",
        "node",
        "peer",
        "pending",
        "proved",
        "sent_at",
        "upto",
        "volatile_era",
        "volatile_no",
        "written",
    )  # fmt: skip

    def __init__(self, peer: bytes, node: bytes, name: str, era: int) -> None:
        self.peer, self.node, self.name, self.era = peer, node, name, era
        self.proved: bytes | None = None
        self.floor = self.upto = self.written = 0
        self.heard_at = self.sent_at = 0
        self.pending: list[Record] = []
        self.no: list[tuple[int, str]] = []
        self.back = self.is_gap_reported = False
        self.garbled = self.garbled_at = 0
        self.below: dict[bytes, None] = {}
        """Nodes whose records or mail came over this link."""
        self.is_down_open = True
        """Whether the child has room for mail."""
        self.volatile_era = 0
        self.volatile_no: list[tuple[int, str]] = []


class Links:
    """All live links, and the nodes below each of them."""

    def __init__(self) -> None:
        self._by_peer: dict[bytes, Link] = {}
        self._by_node: dict[bytes, Link] = {}
        self._by_name: dict[str, Link] = {}
        self._below: dict[bytes, Link] = {}

    def of_peer(self, peer: bytes) -> Link | None:
        return self._by_peer.get(peer)

    def of_node(self, node: bytes) -> Link | None:
        return self._by_node.get(node)

    def has_node(self, node: bytes) -> bool:
        return node in self._by_node

    def of_name(self, name: str) -> Link | None:
        return self._by_name.get(name)

    def add(self, link: Link) -> None:
        self._by_peer[link.peer] = self._by_node[link.node] = self._by_name[link.name] = link

    def remove(self, link: Link) -> None:
        """Remove a link that has ended; the route to the nodes below it is unknown now."""
        del self._by_peer[link.peer], self._by_node[link.node], self._by_name[link.name]
        for node in link.below:
            del self._below[node]
        link.below.clear()

    def learn(self, link: Link, nodes: Iterable[Any]) -> None:
        """Note that these nodes are below this link: their records or mail came over it (RTE-001)."""
        for node in nodes:
            before = self._below.get(node)
            if before is link or type(node) is not bytes or node == link.node:
                continue
            if before is None and len(self._below) >= limits.ROUTES_MAX:
                oldest = next(iter(self._below))
                del self._below.pop(oldest).below[oldest]
            elif before is not None:
                del before.below[node]
            self._below[node] = link
            link.below[node] = None

    def toward(self, node: bytes | str) -> Link | None:
        """The child with this id or name, or the child above the node with it."""
        if isinstance(node, str):
            return self._by_name.get(node)
        return self._by_node.get(node) or self._below.get(node)

    def __len__(self) -> int:
        return len(self._by_peer)

    def __iter__(self) -> Iterator[Link]:
        """Iterates over a copy: links may be removed meanwhile."""
        return iter(list(self._by_peer.values()))


class Strangers:
    """Peers without a link: when each may be answered again, and which are ignored for a while."""

    def __init__(self) -> None:
        self._deaf_until: dict[bytes, int] = {}

    def may_answer(self, peer: bytes, mono: int) -> bool:
        """Whether to answer this peer now; at most once a second."""
        if mono < self._deaf_until.get(peer, 0):
            return False
        self.mute(peer, mono + limits.STRANGER_NS)
        return True

    def is_muted(self, peer: bytes, mono: int) -> bool:
        """Whether this peer is ignored, because it was cut off recently."""
        return self._deaf_until.get(peer, 0) > mono + limits.STRANGER_NS

    def mute(self, peer: bytes, until: int) -> None:
        """Ignore this peer until then."""
        if peer not in self._deaf_until and len(self._deaf_until) >= limits.STRANGERS_MAX:
            del self._deaf_until[next(iter(self._deaf_until))]
        self._deaf_until[peer] = until
