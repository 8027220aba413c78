"""Which links stand on which chain: one table lookup finds the links of a message (CHN-001, CHN-002).

A link for one type stands on the chain of that type. A link for many types stands on every chain that it covers,
present and future, with the same key. A chain is created when a link registers for its type, or when the first message
of the type passes. Of the latter kind at most `limits.CHAINS_MAX` are kept; beyond that, links are looked up for each
message.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Protocol

from weft.cores.chains import limits
from weft.cores.chains.context import Flow
from weft.cores.chains.links import ChainFull
from weft.cores.chains.order import Key


class Standing(Protocol):
    """The interface of a link, as a roster uses it."""

    key: Key
    name: str
    direction: str

    def covers(self, kind: str) -> bool:
        """Whether it stands on the chain of this type."""


class Chain:
    """The links of one direction and type, in order."""

    __slots__ = ("direction", "flow", "keys", "links", "type")

    def __init__(self, direction: str, kind: str, flow: Flow) -> None:
        self.direction, self.type, self.flow = direction, kind, flow
        self.links: list[Any] = []
        self.keys: list[Key] = []

    def insert(self, link: Standing) -> None:
        """Insert a link at the place of its key; O(links of this chain)."""
        at = bisect_left(self.keys, link.key)
        self.links.insert(at, link)
        self.keys.insert(at, link.key)

    def remove(self, link: Standing) -> None:
        """Remove a link."""
        at = self.links.index(link)
        del self.links[at]
        del self.keys[at]


class Roster:
    """All chains of a node."""

    def __init__(self) -> None:
        self.count = 0
        """Number of links on all chains."""
        self.others = {"in": Flow(), "out": Flow()}
        """Counters of messages on chains that are not kept."""
        self._chains: dict[tuple[str, str], Chain] = {}
        self._wild: dict[str, list[Standing]] = {"in": [], "out": []}
        self._single: dict[tuple[str, str], int] = {}
        """How many links are registered for exactly this type."""

    def __len__(self) -> int:
        return len(self._chains)

    def __iter__(self) -> Iterator[Chain]:
        return iter(self._chains.values())

    def chain(self, direction: str, kind: str) -> Chain:
        """The chain of a message."""
        return self._chains.get((direction, kind)) or self._found(direction, kind)

    def attach(self, link: Standing, kinds: tuple[str, ...]) -> None:
        """Add a link for `kinds`: types or patterns. ChainFull beyond the limits, and then nothing has changed."""
        if self.count >= limits.LINKS_MAX:
            raise ChainFull(f"{limits.LINKS_MAX} links at most")
        for chain in self._reserve(link, kinds):
            chain.insert(link)
        if any(map(is_wild, kinds)):
            self._wild[link.direction].append(link)
        self.count += 1

    def detach(self, link: Standing, kinds: tuple[str, ...]) -> None:
        """Remove a link from all its chains."""
        for chain in self._chains_of(link, kinds):
            chain.remove(link)
        if any(map(is_wild, kinds)):
            self._wild[link.direction].remove(link)
        self._release(link.direction, kinds)
        self.count -= 1

    def place(self, link: Standing, kind: str) -> tuple[int, int]:
        """Its position, from 1, and the length of the chain; zeros for a link on many chains."""
        if is_wild(kind):
            return 0, 0
        chain = self.chain(link.direction, kind)
        return chain.links.index(link) + 1, len(chain.links)

    def _reserve(self, link: Standing, kinds: tuple[str, ...]) -> list[Chain]:
        """The chains for a link; those of single types stay as long as the link does."""
        for number, kind in enumerate(kinds):
            if is_wild(kind):
                continue
            name = link.direction, kind
            if name not in self._chains and not self._makes_room():
                self._release(link.direction, kinds[:number])
                raise ChainFull(f"{limits.CHAINS_MAX} chains at most")
            self.chain(*name)
            self._single[name] = self._single.get(name, 0) + 1
        return self._chains_of(link, kinds)

    def _release(self, direction: str, kinds: tuple[str, ...]) -> None:
        for kind in kinds:
            name = direction, kind
            if name in self._single:
                self._single[name] -= 1
                if not self._single[name]:
                    del self._single[name]

    def _chains_of(self, link: Standing, kinds: tuple[str, ...]) -> list[Chain]:
        if any(map(is_wild, kinds)):
            return [chain for chain in self if chain.direction == link.direction and link.covers(chain.type)]
        return [self._chains[link.direction, kind] for kind in dict.fromkeys(kinds)]

    def _found(self, direction: str, kind: str) -> Chain:
        is_kept = self._makes_room()
        chain = Chain(direction, kind, Flow() if is_kept else self.others[direction])
        self._fill(chain)
        if is_kept:
            self._chains[direction, kind] = chain
        return chain

    def _fill(self, chain: Chain) -> None:
        """Add the links for many types to a new chain; it has no link for its own type yet."""
        chain.links = sorted((link for link in self._wild[chain.direction] if link.covers(chain.type)), key=_key)
        chain.keys = [link.key for link in chain.links]

    def _makes_room(self) -> bool:
        """Whether one more chain can be kept, if necessary in place of an old one that no link has registered for."""
        if len(self._chains) < limits.CHAINS_MAX:
            return True
        for _ in range(min(limits.CHAINS_TRIED_MAX, len(self._chains))):
            name, chain = next(iter(self._chains.items()))
            del self._chains[name]
            if name not in self._single and not chain.flow.in_flight:
                self.others[chain.direction].add(chain.flow)
                return True
            self._chains[name] = chain  # moved to the end: it is examined again after all others
        return False


def is_wild(kind: str) -> bool:
    """Whether a registration covers many types."""
    return kind.endswith("*")


def _key(link: Standing) -> Key:
    return link.key
