"""The order in which operations count, whenever and from whatever peer they came (DOC-010, DOC-012, DOC-013).

The key of an operation is (effective time, source, sequence). Effective time never decreases within a source, so a
source's operations below any key are a prefix of it. Of an operation and its adopted copies one counts. That is decided
here, since it depends only on the set of operations; the fold never sees the others.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from weft.base.errors import OurFault
from weft.wire.document.operations import Operation

Pair = tuple[bytes, int]
"""Source and sequence."""
Entry = tuple[float, bytes, int, Operation]
"""A key with its operation. Keys are unique, so sorting never compares operations."""


class Key(NamedTuple):
    """The place of an operation in the order."""

    eff: float
    source: bytes
    sequence: int


class Order:
    """All operations that count, sorted. The cost is O(size of what is new) if nothing is late."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.superseded: set[Pair] = set()
        """Operations that do not count, because the original, or an earlier copy, does."""
        self._effs: dict[bytes, list[float]] = {}
        """By source: the effective times of its operations 1, 2, …"""
        self._copies: dict[Pair, list[Key]] = {}
        """By original, known or not: the keys of its copies, sorted."""

    def __len__(self) -> int:
        return len(self.entries)

    def keys(self, begin: int = 0, end: int | None = None) -> Iterator[Key]:
        """In order; of a part of it."""
        return (Key(eff, source, sequence) for eff, source, sequence, _ in self.entries[begin:end])

    def latest(self, source: bytes) -> int:
        """Number of known operations of a source."""
        return len(self._effs.get(source, ()))

    def eff(self, source: bytes, sequence: int) -> float:
        """The effective time (DOC-010) of a known operation."""
        return self._effs[source][sequence - 1]

    def has_copy(self, pair: Pair) -> bool:
        """Whether a copy of this original is known."""
        return pair in self._copies

    def eff_of(self, pair: Pair) -> float:
        """The same for an operation, or for the copy that counts in its place."""
        copies = self._copies.get(pair)
        return copies[0].eff if copies and pair[1] > self.latest(pair[0]) else self.eff(*pair)

    def place(self, source: bytes, sequence: int) -> int:
        """The number of operations before a known one."""
        return self._place(Key(self.eff(source, sequence), source, sequence))

    def _place(self, key: Key) -> int:
        return bisect_left(self.entries, key)

    def place_of(self, source: bytes, sequence: int) -> int | None:
        """The number of operations up to this one and with it; None: it is not known, or does not count."""
        if not 1 <= sequence <= self.latest(source) or (source, sequence) in self.superseded:
            return None
        return self.place(source, sequence) + 1

    def place_at(self, eff: float) -> int:
        """The number of operations up to an effective time."""
        return bisect_right(self.entries, eff, key=lambda entry: entry[0])

    # What is new

    def take(self, batch: Iterable[Operation]) -> int:
        """Sort operations in; returns how many entries at the front did not change.

        Those of each source come in sequence; known ones are ignored (DOC-012).
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
        """Note the originals of which a copy, or the original itself, has arrived."""
        original = _original(operation)
        if original is not None:
            insort(self._copies.setdefault(original, []), key)
            yield original
        if (key.source, key.sequence) in self._copies:
            yield key.source, key.sequence

    def _merge(self, fresh: list[Entry]) -> int:
        """Merge entries; returns how many at the front did not change."""
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
        """Decide again which of an original and its copies counts.

        Returns how many entries at the front did not change.
        """
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

    # Replaced bodies

    def replace(self, winners: Sequence[Operation]) -> int:
        """Numbers of one source have other bodies (GSP-011); returns how many entries at the front did not change.

        This may change the effective time of all later operations of the source.
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
        """A removed entry is no longer a copy of any original; returns that original."""
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
    """The operation that this is an adopted copy of; None if it is no copy, or is an empty one."""
    origin = operation.origin
    if origin is None or operation.inert or origin == (operation.source, operation.sequence):
        return None
    return origin


def prefixes(operations: Iterable[Operation]) -> list[Operation]:
    """The gapless prefixes of any operations, in any order and with repetitions; each operation once (GSP-010).

    If a number has several bodies, the first one counts.
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
