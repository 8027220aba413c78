"""The latest changes, for watchers that missed some (CAT-044)."""

from typing import NamedTuple

from weft.base.budget import Part
from weft.cores.catalog import limits


class Stretch(NamedTuple):
    """Consecutive changes."""

    texts: list[bytes]
    """Each a JSON object."""
    upto: int
    """Index of the last one; if there is none, the index that was asked for."""


class Ring:
    """Bounded by count and by bytes; the oldest change is dropped first.

    Indices are consecutive, so each is found in O(1).
    """

    def __init__(self, count_max: int, bytes_max: int = limits.RING_BYTES_MAX) -> None:
        self._count_max, self._bytes_max = count_max, bytes_max
        self._kept: dict[int, tuple[str, bytes]] = {}
        self._bytes = 0
        self.room = Part("changes", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""
        self.first = 1
        """Index of the oldest change, or of the next one if there is none."""

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def cost(self) -> int:
        """Of memory."""
        return self._bytes + limits.CHANGE_COST * len(self._kept)

    @property
    def last(self) -> int:
        """Index of the newest."""
        return self.first + len(self._kept) - 1

    def add(self, index: int, name: str, text: bytes) -> list[tuple[int, str]]:
        """Add the next change; returns index and name of those dropped to make room."""
        assert index == self.last + 1, (index, self.last)
        self._kept[index] = (name, text)
        self._bytes += len(text)
        dropped = []
        while len(self._kept) > self._count_max or self._bytes > self._bytes_max or (self._kept and self.room.is_over):
            name, text = self._kept.pop(self.first)
            self._bytes -= len(text)
            dropped.append((self.first, name))
            self.first += 1
        return dropped

    def has(self, index: int) -> bool:
        """Whether every change after this index is kept."""
        return self.first - 1 <= index <= self.last

    def behind(self, index: int) -> Stretch:
        """The changes after an index: as much as fits into one answer, at least one. O(answer)."""
        assert self.has(index), (index, self.first, self.last)
        texts: list[bytes] = []
        room = limits.CHANGES_BYTES_MAX
        upto = index
        while upto < self.last and len(texts) < limits.CHANGES_LIST_MAX:
            text = self._kept[upto + 1][1]
            room -= len(text)
            if texts and room < 0:
                break
            texts.append(text)
            upto += 1
        return Stretch(texts, upto)
