"""Operations beyond a gap wait here for what is missing, and no more of them than there is room for (GSP-014)."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from weft.base.budget import Part
from weft.cores.document.limits import HELD_BYTES_ALL_MAX, HELD_BYTES_MAX, HELD_MAX, OPERATION_COST


class Kept(NamedTuple):
    """The bytes of one operation, and how they came here."""

    body: bytes
    received_ns: int
    """Wall clock."""
    received_from: bytes
    """UUID of the peer; our own: it was entered here."""
    heard_at: int | None = None
    """Monotonic; None: before this start."""


class Shelf:
    """What is held of one source."""

    __slots__ = ("bytes", "kept", "numbers")

    def __init__(self) -> None:
        self.kept: dict[int, Kept] = {}
        self.numbers: list[int] = []
        """Ascending."""
        self.bytes = 0

    def drop(self, sequence: int) -> Kept:
        """Take one out."""
        kept = self.kept.pop(sequence)
        self.numbers.pop(bisect_left(self.numbers, sequence))
        self.bytes -= len(kept.body)
        return kept


class Holding:
    """All that is held; which number of a source comes next is for the log to know."""

    def __init__(self) -> None:
        self._shelves: dict[bytes, Shelf] = {}
        self.bytes = 0
        self.count = 0
        self.room = Part("held", lambda: self.cost)
        """Of the core's budget; here, all there is."""

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return self.bytes + OPERATION_COST * self.count

    def __contains__(self, source: bytes) -> bool:
        """Whether there is a gap in what we have of it."""
        return source in self._shelves

    def get(self, source: bytes, sequence: int) -> Kept | None:
        """What is held under a number."""
        shelf = self._shelves.get(source)
        return shelf.kept.get(sequence) if shelf else None

    def highest(self, source: bytes) -> int:
        """The greatest number that is held; 0 if none is."""
        shelf = self._shelves.get(source)
        return shelf.numbers[-1] if shelf else 0

    def lowest(self, source: bytes) -> int:
        """The least one; 0 if none is held."""
        shelf = self._shelves.get(source)
        return shelf.numbers[0] if shelf else 0

    def items(self) -> Iterator[tuple[bytes, int, Kept]]:
        """All, by source and number."""
        for source in sorted(self._shelves):
            shelf = self._shelves[source]
            for sequence in shelf.numbers:
                yield source, sequence, shelf.kept[sequence]

    def put(self, source: bytes, sequence: int, kept: Kept) -> None:
        """Hold one, or another one in its place."""
        shelf = self._shelves.setdefault(source, Shelf())
        if sequence in shelf.kept:
            self.take(source, sequence)
            shelf = self._shelves.setdefault(source, shelf)
        shelf.kept[sequence] = kept
        if shelf.numbers and sequence < shelf.numbers[-1]:
            insort(shelf.numbers, sequence)
        else:
            shelf.numbers.append(sequence)
        shelf.bytes += len(kept.body)
        self.bytes += len(kept.body)
        self.count += 1

    def take(self, source: bytes, sequence: int) -> Kept | None:
        """Take out what is held under a number."""
        shelf = self._shelves.get(source)
        if shelf is None or sequence not in shelf.kept:
            return None
        kept = shelf.drop(sequence)
        self.bytes -= len(kept.body)
        self.count -= 1
        if not shelf.kept:
            del self._shelves[source]
        return kept

    def shed(self, source: bytes) -> list[tuple[bytes, int]]:
        """Let go of what is farthest ahead until the limits hold, after something of a source was put: they will be sent again."""
        gone = []
        while (victim := self._victim(source)) is not None:
            number = self.highest(victim)
            self.take(victim, number)
            gone.append((victim, number))
        return gone

    def _victim(self, source: bytes) -> bytes | None:
        shelf = self._shelves.get(source)
        if shelf is not None and (len(shelf.numbers) > HELD_MAX or shelf.bytes > HELD_BYTES_MAX):
            return source
        if not self._shelves or (self.bytes <= HELD_BYTES_ALL_MAX and not self.room.is_over):
            return None
        return max(
            self._shelves, key=lambda each: (self._shelves[each].numbers[-1] - self._shelves[each].numbers[0], each)
        )
