"""Pairs with their numbers, and the last write of every chain, deletions included (CFG-016, CFG-018, CFG-040).

Pairs are immutable, so a snapshot is a list of references: it shows the store at one number, however long it takes to
send, while writes continue (CFG-043).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from weft.base.paths import is_under
from weft.cores.configuration import limits
from weft.cores.configuration.memory import Adopted, Begun, Kept, Last, Memory, Part
from weft.cores.configuration.tally import Tally, tally_of
from weft.wire.replication import KvSync, chain_of


def touches(subtree: str, chain: str) -> bool:
    """Whether the subtree may contain writes of the chain.

    >>> touches("/CONFIG/web/metric/", "/CONFIG/web/"), touches("/CONFIG/g1/", "/CONFIG/g10/"), touches("", "/TOPO/root")
    (True, False, True)
    """
    if subtree and not subtree.endswith("/"):
        return chain_of(subtree) == chain
    return chain.startswith(subtree) or (chain.endswith("/") and subtree.startswith(chain))


def is_coarse(topic: str) -> bool:
    """Whether a topic has many chains: everything, or everything below one first segment."""
    return not topic or (topic.endswith("/") and topic.count("/") < 3)


def prefix_end(prefix: str) -> str:
    """The smallest text after all texts with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


value_of: Final = attrgetter("value")
EVERYTHING: Final = ("", "/")
"""Topics of a node that follows everything."""


class Room(NamedTuple):
    """How much a store may contain."""

    keys: int
    bytes: int
    """Of keys and values."""


class Sums(NamedTuple):
    """What is known of the pairs of a snapshot together."""

    tally: Tally
    bytes: int
    """Of keys and values."""


class Store:
    """A node's copy of the configuration."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.pairs: dict[str, KvSync] = {}
        self.tally = Tally()
        """Of all pairs."""
        self.chains: dict[str, Last] = {}
        self.expiries: dict[str, int] = {}
        """Keys with an end, wall ns; only a root deletes them then."""
        self.floors: dict[str, int] = {}
        """The end number of each topic in the snapshot."""
        self.number = 0
        """The highest number applied or adopted."""
        self.seen = 0
        """The highest number ever seen here; survives a wipe (CFG-044)."""
        self.bytes = 0
        self.wrote_from = 0
        """The first number that this node wrote as root; 0: none that its present parent may lack (REC-015)."""
        self._keys: list[str] = []
        self._altered: dict[str, None] = {}
        """Keys that came or went since `_keys` was sorted."""
        self._is_unsorted = False
        """Whether so many did that all are sorted again."""
        self._views: dict[str, tuple[KvSync, ...]] = {}
        self._tallies: dict[str, Tally] = {}

    @property
    def cost(self) -> int:
        """Estimated bytes of memory of the whole store."""
        return self.bytes + limits.PAIR_COST * (len(self.pairs) + len(self.chains))

    # Questions

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole configuration: it is a root's own, or a snapshot of everything was adopted."""
        return self.has("/")

    def has(self, subtree: str) -> bool:
        """Whether all pairs of a subtree are here, as far as its number shows (FLD-002).

        Otherwise they must not be served.
        """
        if self.wrote_from:
            return True
        return any(topic in EVERYTHING or is_under(subtree or "/", topic) for topic in self.floors)

    def keys(self) -> list[str]:
        """All keys, sorted. Do not change or keep the list. A few that came or went take O(log n) steps each."""
        altered, self._altered = self._altered, {}
        if self._is_unsorted:
            self._keys, self._is_unsorted = sorted(self.pairs), False
        elif len(altered) <= limits.KEYS_PLACED_MAX:
            for key in altered:
                self._place(key)
        else:
            kept = [key for key in self._keys if key not in altered]
            self._keys = sorted(kept + [key for key in altered if key in self.pairs])
        return self._keys

    def _place(self, key: str) -> None:
        """Put a key into the sorted list if it is here, and remove it if not."""
        keys = self._keys
        at = bisect_left(keys, key)
        is_listed, is_here = at < len(keys) and keys[at] == key, key in self.pairs
        if is_here and not is_listed:
            keys.insert(at, key)
        elif is_listed and not is_here:
            del keys[at]

    def _alter(self, key: str) -> None:
        """A key came or went."""
        if not self._is_unsorted:
            self._altered[key] = None
            if len(self._altered) > max(len(self.pairs), limits.KEYS_PLACED_MAX):
                self._sort_later()

    def _sort_later(self) -> None:
        self._altered, self._is_unsorted = {}, True

    def keys_under(self, subtree: str) -> list[str]:
        """The keys of a subtree, in order."""
        if not subtree or subtree == "/":
            return self.keys()
        if not subtree.endswith("/"):
            return [subtree] if subtree in self.pairs else []
        keys = self.keys()
        return keys[bisect_left(keys, subtree) : bisect_left(keys, prefix_end(subtree))]

    def view(self, subtree: str) -> tuple[KvSync, ...]:
        """The pairs of a subtree in key order, as they are now."""
        view = self._views.get(subtree)
        if view is None:
            view = tuple([self.pairs[key] for key in self.keys_under(subtree)])
            if len(self._views) >= limits.REQUESTS_PER_CHILD_MAX:
                self._forget_views()
            self._views[subtree] = view
        return view

    def tally_of(self, subtree: str) -> Tally:
        """Count and digest of the pairs of a subtree, as they are now."""
        if not subtree or subtree == "/":
            return self.tally
        view = self.view(subtree)
        tally = self._tallies.get(subtree)
        if tally is None:
            tally = self._tallies[subtree] = tally_of(view)
        return tally

    def tip(self, subtree: str) -> int:
        """The highest number of any write in the chains that the subtree touches; 0 if none (CFG-018)."""
        floor = self.floors.get(subtree, 0)
        if not subtree or subtree == "/":
            return max(floor, self.number)
        if is_coarse(subtree):
            return max([floor, *(last.number for chain, last in self.chains.items() if chain.startswith(subtree))])
        last = self.chains.get(chain_of(subtree + "." if subtree.endswith("/") else subtree))
        return max(floor, last.number) if last else floor

    def lasts(self, subtree: str) -> list[tuple[str, Last]]:
        """By chain, in order: the last writes with a known key, in the chains that the subtree touches."""
        return sorted((c, last) for c, last in self.chains.items() if last.key and touches(subtree, c))

    def value(self, key: str) -> bytes:
        """The value of a key; empty if absent."""
        pair = self.pairs.get(key)
        return pair.value if pair is not None else b""

    # Changes

    def apply(self, key: str, number: int, value: bytes, prev: int | None) -> None:
        """Apply one write; an empty value deletes."""
        pairs = self.pairs
        before = pairs.get(key)
        if value:
            pairs[key] = pair = KvSync(key, number, value)
            self.tally.put(pair, before)
            if before is None:
                self.bytes += len(key) + len(value)
                self._alter(key)
            else:
                self.bytes += len(value) - len(before.value)
        elif before is not None:
            del pairs[key]
            self.tally.remove(before)
            self.bytes -= len(key) + len(before.value)
            self._alter(key)
        self.chains[chain_of(key)] = Last(key, number, prev, not value)
        self.number = max(self.number, number)  # topics may be answered at different numbers
        self.seen = max(self.seen, number)
        if self.expiries:
            self.expiries.pop(key, None)
        if self._views:
            self._forget_views()

    def note(self, last: Last) -> bool:
        """A write that is applied already; returns whether it contains news about its chain."""
        chain = chain_of(last.key)
        known = self.chains.get(chain)
        if known is not None and (known.number > last.number or (known.number == last.number and known.key)):
            return False
        self.chains[chain] = last
        return True

    def wipe(self) -> None:
        """Delete everything but the highest numbers seen."""
        self.floors = {topic: self.tip(topic) for topic in self.floors}
        self.pairs, self.chains, self.expiries, self.tally = {}, {}, {}, Tally()
        self._forget_views()
        self.number = self.bytes = 0
        self._sort_later()

    def has_room(self, key: str, value: bytes) -> bool:
        """Whether one more write of this size fits the limits."""
        is_new = key not in self.pairs
        has_place = not is_new or not value or len(self.pairs) < self.room.keys
        return has_place and self.bytes + self.grows_by(key, value) <= self.room.bytes

    def grows_by(self, key: str, value: bytes) -> int:
        """By how many bytes of keys and values a write makes the store larger; 0 for one that makes it smaller."""
        before = self.pairs.get(key)
        more = len(key) + len(value) if value else 0
        return max(more - (len(key) + len(before.value) if before else 0), 0)

    def _forget_views(self) -> None:
        self._views, self._tallies = {}, {}

    def replace(self, pairs: dict[str, KvSync], chains: dict[str, Last], adopted: Adopted, sums: Sums) -> None:
        """Replace everything by a complete snapshot."""
        self.expiries = {key: at for key, at in self.expiries.items() if pairs.get(key) == self.pairs[key]}
        self.pairs, self.chains, (self.tally, self.bytes) = pairs, chains, sums
        self._sort_later()
        self._forget_views()
        self.adopt(adopted)

    def take(self, part: Part) -> None:
        """Apply a part of an adopted snapshot."""
        for key in part.gone:
            if (pair := self.pairs.pop(key, None)) is not None:
                self.bytes -= len(key) + len(pair.value)
                self.tally.remove(pair)
                self.expiries.pop(key, None)
        for pair in part.pairs:
            key = pair.key
            before = self.pairs.get(key)
            self.bytes += len(key) + len(pair.value) - (len(key) + len(before.value) if before else 0)
            self.pairs[key] = pair
            self.tally.put(pair, before)
            self.expiries.pop(key, None)
        for chain in part.lasts_gone:
            self.chains.pop(chain, None)
        self.chains.update(part.lasts)
        self.expiries.update(part.expiries)
        self._sort_later()
        self._forget_views()

    def adopt(self, adopted: Adopted | Kept) -> None:
        """All parts are applied: set the numbers."""
        self.number, self.floors = adopted.number, dict(adopted.floors)
        if isinstance(adopted, Kept):
            self.seen, self.wrote_from = adopted.seen, adopted.wrote_from
        else:
            self.seen, self.wrote_from = adopted.number, 0

    # Memory

    def condense(self) -> Iterator[Memory]:
        """Everything, in bounded records, in the same order for equal stores."""
        yield Begun(is_whole=True)
        yield from parts([self.pairs[key] for key in self.keys()], sorted(self.chains.items()))
        if self.expiries:
            yield Part([], expiries=sorted(self.expiries.items()))


def batch(pairs: Sequence[KvSync], begin: int, count: int, size: int) -> Sequence[KvSync]:
    """The next pairs: at most `count`, with values of at most `size` bytes together; one pair, however large."""
    found = pairs[begin : begin + count]
    sizes = list(accumulate(map(len, map(value_of, found))))
    return found[: max(bisect_right(sizes, size), 1)]


def parts(pairs: list[KvSync], lasts: list[tuple[str, Last]], gone: list[str] | None = None) -> Iterator[Part]:
    """Parts of about PART_BYTES each at most."""
    packer = Packer()
    begin = 0
    while len(pairs) - begin > limits.PART_PAIRS:
        found = batch(pairs, begin, limits.PART_PAIRS, limits.PART_BYTES)
        begin += len(found)
        yield Part(list(found))
    for pair in pairs[begin:]:
        if part := packer.add_pair(pair):
            yield part
    for chain, last in lasts:
        if part := packer.add_last(chain, last):
            yield part
    for key in gone or ():
        if part := packer.add_gone(key):
            yield part
    if part := packer.rest():
        yield part


class Packer:
    """Fills parts; each `add` returns a part when it is full, else None."""

    def __init__(self) -> None:
        self._part = Part([])
        self._size = 0

    def add_pair(self, pair: KvSync) -> Part | None:
        """A new or changed pair."""
        self._part.pairs.append(pair)
        return self._grown(len(pair.key) + len(pair.value))

    def add_last(self, chain: str, last: Last) -> Part | None:
        """The last write of a chain."""
        self._part.lasts.append((chain, last))
        return self._grown(len(chain) + len(last.key))

    def add_gone(self, key: str) -> Part | None:
        """A key that is gone."""
        self._part.gone.append(key)
        return self._grown(len(key))

    def add_last_gone(self, chain: str) -> Part | None:
        """A chain that is no longer known."""
        self._part.lasts_gone.append(chain)
        return self._grown(len(chain))

    def _grown(self, size: int) -> Part | None:
        self._size += size + limits.PAIR_BYTES
        return self.rest() if self._size >= limits.PART_BYTES else None

    def rest(self) -> Part | None:
        """The last part, if it is not empty."""
        part, size = self._part, self._size
        self._part, self._size = Part([], [], [], [], []), 0
        return part if size else None
