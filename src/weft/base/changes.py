"""Changes of the store's entries, as every part of Weft names them.

A change is numbered by its node (`tick`) and dated by the whole fabric (`tock`); its chain says which changes of the
same entry its author had seen.
"""

import msgspec

Element = str | bytes | int | float | bool | None
Path = tuple[Element, ...]
"""The place of an entry: its elements from the root; empty: the root itself (STO-004)."""

Link = tuple[str, int]
"""Node and tick: the name of one change."""


class Chain(msgspec.Struct, frozen=True, gc=False):
    """Who changed an entry last, newest first, each node once (STO-006). In pings names may repeat."""

    links: tuple[Link, ...]
    is_cut: bool = False
    """Whether older links were left out: `prev` is absent at the end, not null."""

    @property
    def head(self) -> Link:
        """The newest change."""
        return self.links[0]

    def covers(self, link: Link) -> bool:
        """Whether it has a link of that node with that tick or a later one (STO-011)."""
        return any(node == link[0] and tick >= link[1] for node, tick in self.links)

    def has(self, node: str) -> bool:
        """Whether the chain has that node."""
        return any(name == node for name, _ in self.links)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one entry (STO-002). Distinct events are never equal in `order`."""

    chain: Chain
    """The head is the change's own link."""
    tock: int
    path: Path
    value: bytes | None
    """MessagePack as it was received; None: the entry is deleted."""
    at: float | None = None
    """The author's wall clock, in seconds; only ever shown, never compared."""
    by: str = ""
    """The user, if there are users."""
    until: float | None = None
    """When the entry ends by itself, in seconds of the wall clock; None: never (ADM-014)."""

    @property
    def node(self) -> str:
        return self.chain.links[0][0]

    @property
    def tick(self) -> int:
        return self.chain.links[0][1]

    @property
    def is_deletion(self) -> bool:
        """Whether the entry has no value from here on."""
        return self.value is None

    def beats(self, other: "Event") -> bool:
        """Whether it is the greater one: tock, then tick, then the lower name (STO-010)."""
        if self.tock != other.tock:
            return self.tock > other.tock
        (node, tick), (other_node, other_tick) = self.chain.links[0], other.chain.links[0]
        return tick > other_tick if tick != other_tick else node.encode() < other_node.encode()
