"""The last writes of a root: who, when, from what to what (CFG-027)."""

from collections import deque
from collections.abc import Iterable, Iterator

from weft.base.budget import Part
from weft.base.paths import is_under
from weft.cores.configuration import limits
from weft.cores.configuration.memory import Old

OldWrite = tuple[int, str, int, str, bytes, bytes]
"""Number, author, wall ns, key, old, new; old or new is empty where the key was absent."""


class History:
    """Bounded by count and by bytes; the oldest write is dropped first."""

    def __init__(self) -> None:
        self.writes: deque[OldWrite] = deque()
        self.reaches = 0
        """Every write after this number is here."""
        self._bytes = 0
        self.is_cut = False
        """Whether lost writes end the history, so that it begins again with the next one."""
        self.room = Part("history", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""

    @property
    def cost(self) -> int:
        """Of memory."""
        return self._bytes + limits.WRITE_COST * len(self.writes)

    def cut(self, number: int) -> None:
        """Some writes after `number` are lost (JRN-023): the history begins again with the next write present."""
        self.writes.clear()
        self._bytes, self.reaches, self.is_cut = 0, number, True

    def begin(self, number: int) -> None:
        """The history begins after `number`, if the root has no writes directly before it."""
        if not self.writes or self.writes[-1][0] < number:
            self.writes.clear()
            self._bytes, self.reaches = 0, number

    def add(self, write: OldWrite) -> None:
        """Add a write; numbers that are here already have no effect."""
        if self.writes and write[0] <= self.writes[-1][0]:
            return
        if self.is_cut:
            self.is_cut, self.reaches = False, max(self.reaches, write[0] - 1)
        self.writes.append(write)
        self._bytes += _size(write)
        while self.writes and (
            len(self.writes) > limits.HISTORY_MAX or self._bytes > limits.HISTORY_BYTES_MAX or self.room.is_over
        ):
            oldest = self.writes.popleft()
            self._bytes -= _size(oldest)
            self.reaches = oldest[0]

    def newest(self, subtree: str, count_max: int) -> tuple[OldWrite, ...]:
        """The last writes of a subtree, newest first; as many as fit into one answer."""
        found: list[OldWrite] = []
        size = 0
        for write in reversed(self.writes):
            if is_under(write[3], subtree):
                size += _size(write)
                if found and (len(found) >= count_max or size > limits.LIST_BYTES_MAX):
                    break
                found.append(write)
        return tuple(found)

    def before(self, number: int, subtree: str) -> dict[str, bytes]:
        """The values just after `number` of the keys that were written later; empty: absent."""
        then: dict[str, bytes] = {}
        for write in reversed(self.writes):
            if write[0] <= number:
                break
            if is_under(write[3], subtree):
                then[write[3]] = write[4]
        return then

    def condense(self) -> Iterator[Old]:
        """Everything, in bounded records."""
        piece: list[OldWrite] = []
        size = 0
        for write in self.writes:
            piece.append(write)
            size += _size(write)
            if size >= limits.PART_BYTES:
                yield Old(piece)
                piece, size = [], 0
        if piece:
            yield Old(piece)

    def adopt(self, writes: Iterable[OldWrite], reaches: int | None = None) -> None:
        """Restore a piece of a snapshot."""
        for write in writes:
            self.add(write)
        if reaches is not None:
            self.reaches = reaches


def _size(write: OldWrite) -> int:
    return len(write[1]) + len(write[3]) + len(write[4]) + len(write[5]) + limits.PAIR_BYTES
