"""Operations beyond a gap wait here for the missing ones, within a bound (GSP-014)."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from weft.base.budget import Part
from weft.cores.document.limits import HELD_BYTES_ALL_MAX, HELD_BYTES_MAX, HELD_MAX, OPERATION_COST


class Kept(NamedTuple):
    """The bytes of one operation, and its way here."""

    body: bytes
    received_ns: int
    """Wall clock."""
    received_from: bytes
    """UUID of the peer; our own: it was entered here."""
    heard_at: int | None = None
    """Monotonic ns; None: before this start."""


class Shelf:
    """The held operations of one source."""

    __slots__ = ("bytes", "kept", "numbers")

    def __init__(self) -> None:
        self.kept: dict[int, Kept] = {}
        self.numbers: list[int] = []
        """Ascending."""
        self.bytes = 0

    def drop(self, sequence: int) -> Kept:
        """Remove one."""
        kept = self.kept.pop(sequence)
        self.numbers.pop(bisect_left(self.numbers, sequence))
        self.bytes -= len(kept.body)
        return kept


class Holding:
    """All held operations; the log knows which number of a source comes next."""

    def __init__(self) -> None:
        self._shelves: dict[bytes, Shelf] = {}
        self.bytes = 0
        self.count = 0
        self.room = Part("held", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return self.bytes + OPERATION_COST * self.count

    def __contains__(self, source: bytes) -> bool:
        """Whether operations of this source are held beyond a gap."""
        return source in self._shelves

    def get(self, source: bytes, sequence: int) -> Kept | None:
        """What is held under a number."""
        shelf = self._shelves.get(source)
        return shelf.kept.get(sequence) if shelf else None

    def highest(self, source: bytes) -> int:
        """The greatest held number; 0: none."""
        shelf = self._shelves.get(source)
        return shelf.numbers[-1] if shelf else 0

    def lowest(self, source: bytes) -> int:
        """The least held number; 0: none."""
        shelf = self._shelves.get(source)
        return shelf.numbers[0] if shelf else 0

    def items(self) -> Iterator[tuple[bytes, int, Kept]]:
        """All, by source and number."""
        for source in sorted(self._shelves):
            shelf = self._shelves[source]
            for sequence in shelf.numbers:
                yield source, sequence, shelf.kept[sequence]

    def put(self, source: bytes, sequence: int, kept: Kept) -> None:
        """Hold an operation; it replaces one with the same number."""
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
        """Remove and return the operation with this number."""
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
        """Drop the operations farthest ahead until the limits are met; they will be sent again."""
        dropped = []
        while (victim := self._victim(source)) is not None:
            number = self.highest(victim)
            self.take(victim, number)
            dropped.append((victim, number))
        return dropped

    def _victim(self, source: bytes) -> bytes | None:
        shelf = self._shelves.get(source)
        if shelf is not None and (len(shelf.numbers) > HELD_MAX or shelf.bytes > HELD_BYTES_MAX):
            return source
        if not self._shelves or (self.bytes <= HELD_BYTES_ALL_MAX and not self.room.is_over):
            return None
        return max(
            self._shelves, key=lambda each: (self._shelves[each].numbers[-1] - self._shelves[each].numbers[0], each)
        )
