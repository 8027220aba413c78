"""In which order operations count, whenever and from whomever they came (DOC-010, DOC-012, DOC-013).

The key of an operation is (effective time, source, sequence). Effective time never goes back within a source, so what a
source has below any key is a prefix of it. Of an operation and its adopted copies one counts; that is decided here, since
it hangs on the set of operations alone, and the fold never hears of the others.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from weft.base.errors import OurFault
from weft.wire.document.operations import Operation

Pair = tuple[bytes, int]
"""Source and sequence."""
Entry = tuple[float, bytes, int, Operation]
"""A key and its operation. Keys are unique, so entries sort by key, and no operation is ever compared."""


class Key(NamedTuple):
    """Where an operation stands."""

    eff: float
    source: bytes
    sequence: int


class Order:
    """All operations that count for the document, sorted; O(size of what is new) where nothing is late."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.superseded: set[Pair] = set()
        """Who does not count, since the original, or an earlier copy of the same, does."""
        self._effs: dict[bytes, list[float]] = {}
        """Of a source: the effective time of 1, 2, …"""
        self._copies: dict[Pair, list[Key]] = {}
        """Of an original, known or not: the keys of its copies, sorted."""

    def __len__(self) -> int:
        return len(self.entries)

    def keys(self) -> Iterator[Key]:
        """In order."""
        return (Key(eff, source, sequence) for eff, source, sequence, _ in self.entries)

    def latest(self, source: bytes) -> int:
        """How many of a source are known; 0: none."""
        return len(self._effs.get(source, ()))

    def eff(self, source: bytes, sequence: int) -> float:
        """The effective time (DOC-010) of an operation that is known."""
        return self._effs[source][sequence - 1]

    def has_copy(self, pair: Pair) -> bool:
        """Whether a copy of that original is known."""
        return pair in self._copies

    def eff_of(self, pair: Pair) -> float:
        """The same of an operation, or of the copy that counts in its place."""
        copies = self._copies.get(pair)
        return copies[0].eff if copies and pair[1] > self.latest(pair[0]) else self.eff(*pair)

    def place(self, source: bytes, sequence: int) -> int:
        """How many operations stand before a known one."""
        return self._place(Key(self.eff(source, sequence), source, sequence))

    def _place(self, key: Key) -> int:
        return bisect_left(self.entries, key)

    # What is new

    def take(self, batch: Iterable[Operation]) -> int:
        """Sort operations in; how many entries in front stay as they were.

        Each source's come in sequence; what is known already is passed over (DOC-012).
        """
        fresh: list[Entry] = []
        judged: list[Pair] = []
        table, copies = self._effs, self._copies
        for operation in batch:
            source, sequence, eff = operation.source, operation.sequence, operation.timestamp
            effs = table.get(source)
            if effs is None:
                effs = table[source] = []
            if sequence != len(effs) + 1:
                if sequence <= len(effs):
                    continue
                raise OurFault(f"operation {sequence} of a source that has {len(effs)}")
            if effs and effs[-1] > eff:
                eff = effs[-1]
            effs.append(eff)
            fresh.append((eff, source, sequence, operation))
            if copies or operation.origin is not None:
                judged += self._note(operation, Key(eff, source, sequence))
        same = self._merge(fresh)
        return min([same, *map(self._judge, judged)]) if judged else same

    def _note(self, operation: Operation, key: Key) -> Iterator[Pair]:
        """Of which originals one more copy, or the original itself, is here."""
        original = _original(operation)
        if original is not None:
            insort(self._copies.setdefault(original, []), key)
            yield original
        if (key.source, key.sequence) in self._copies:
            yield key.source, key.sequence

    def _merge(self, fresh: list[Entry]) -> int:
        """Sort entries in; how many in front stay as they were."""
        entries = self.entries
        if len(fresh) > 1:
            fresh.sort()
        if not fresh or not entries or entries[-1] < fresh[0]:
            same = len(entries)
            entries.extend(fresh)
            return same
        same = bisect_left(entries, fresh[0])
        if len(fresh) == 1:
            entries.insert(same, fresh[0])
        else:
            fresh += entries[same:]
            fresh.sort()
            entries[same:] = fresh
        return same

    def _judge(self, original: Pair) -> int:
        """Decide anew who counts of an original and its copies; how many entries in front stay as they were."""
        copies = self._copies.get(original, ())
        is_here = original[1] <= self.latest(original[0])
        same = len(self.entries)
        for index, key in enumerate(copies):
            pair, is_superseded = (key.source, key.sequence), is_here or index > 0
            if is_superseded == (pair in self.superseded):
                continue
            same = min(same, self._place(key))
            if is_superseded:
                self.superseded.add(pair)
            else:
                self.superseded.discard(pair)
        return same

    # What was another

    def replace(self, winners: Sequence[Operation]) -> int:
        """Numbers of one source have other bodies (GSP-011); how many entries in front stay as they were.

        All later ones of the source may get another effective time by it.
        """
        source, chosen = winners[0].source, {operation.sequence: operation for operation in winners}
        first = min(chosen)
        same = self.place(source, first)
        tail = self.entries[same:]
        moved = [entry for entry in tail if entry[1] == source]
        assert moved[0][2] == first, "the first of a source at or behind a key is the one of that key"
        self.entries[same:] = [entry for entry in tail if entry[1] != source]
        del self._effs[source][first - 1 :]
        left = [original for entry in moved if (original := self._forget_copy(entry)) is not None]
        same = min(same, self.take([chosen.get(entry[2], entry[3]) for entry in moved]))
        return min([same, *map(self._judge, left)])

    def _forget_copy(self, entry: Entry) -> Pair | None:
        """An entry that is taken out stands for no original any more; which one it stood for."""
        eff, source, sequence, operation = entry
        self.superseded.discard((source, sequence))
        original = _original(operation)
        if original is None:
            return None
        copies = self._copies[original]
        copies.remove(Key(eff, source, sequence))
        if not copies:
            del self._copies[original]
        return original


def _original(operation: Operation) -> Pair | None:
    """Which operation this is an adopted copy of; None: of none, or it says nothing that could be applied."""
    origin = operation.origin
    if origin is None or operation.inert or origin == (operation.source, operation.sequence):
        return None
    return origin


def prefixes(operations: Iterable[Operation]) -> list[Operation]:
    """Of any operations, in any order, some of them twice: what has no gap before it, each once (GSP-010).

    The first body counts where one number has several.
    """
    known: dict[Pair, Operation] = {}
    for operation in operations:
        known.setdefault((operation.source, operation.sequence), operation)
    gapless: list[Operation] = []
    previous: Pair = (b"", 0)
    for pair in sorted(known):
        is_next = pair[1] == 1 or (previous[0] == pair[0] and previous[1] == pair[1] - 1)
        if is_next:
            gapless.append(known[pair])
            previous = pair
    return gapless
