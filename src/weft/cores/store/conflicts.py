"""Changes made without knowledge of each other: which one won, which one lost, each reported once (STO-013).

A loser is reported with the first winner it meets. If the loser arrives again when a later change of the entry stands
there, the pair is different but the loss is the same, so it is not reported again.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from weft.base.budget import Part
from weft.base.changes import Event, Link
from weft.cores.store import limits
from weft.cores.store.memory import ConflictKept, LosersKept, MemoryKind, event_of_kept, kept_of
from weft.cores.store.messages import ConflictResolved
from weft.wire.store.path import text_of

LOSERS_PER_RECORD: Final = 1_000


class Conflict(NamedTuple):
    """Two changes of one entry, neither of which knew the other."""

    number: int
    reason: str
    """`concurrent`, `id-clash` or `tock-regression`."""
    kept: Event
    lost: Event

    def as_event(self) -> ConflictResolved:
        """The event for it."""
        path = text_of(self.kept.path)
        return ConflictResolved(self.number, path, self.reason, _described(self.kept), _described(self.lost))


class Conflicts:
    """The last conflicts; and, for longer, which losses were reported."""

    def __init__(self) -> None:
        self.last_number = 0
        self._kept: dict[int, Conflict] = {}
        self._bytes = 0
        self.room = Part("conflicts", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""
        self._losers: dict[Link, None] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def cost(self) -> int:
        """Of memory."""
        return self._bytes + limits.CONFLICT_COST * len(self._kept)

    def __iter__(self) -> Iterator[Conflict]:
        """The remembered conflicts, oldest first."""
        return iter(self._kept.values())

    def get(self, number: int) -> Conflict | None:
        """One of them."""
        return self._kept.get(number)

    def note(self, kept: Event, lost: Event, reason: str) -> Conflict | None:
        """Add a conflict; None if this loss was reported before."""
        if lost.chain.links[0] in self._losers:
            return None
        self._remember(lost.chain.links[0])
        self.last_number += 1
        conflict = Conflict(self.last_number, reason, kept, lost)
        self._add(conflict)
        return conflict

    def forget(self, number: int) -> bool:
        """Forget a conflict that was dealt with; returns whether it was there."""
        conflict = self._kept.pop(number, None)
        self._bytes -= _size(conflict) if conflict else 0
        return conflict is not None

    def condense(self) -> Iterator[MemoryKind]:
        """Records of everything, for a snapshot."""
        losers = list(self._losers)
        for start in range(0, len(losers), LOSERS_PER_RECORD):
            yield LosersKept(losers[start : start + LOSERS_PER_RECORD])
        for number, reason, kept, lost in self:
            yield ConflictKept(number, reason, kept_of(kept), kept_of(lost))

    def restore_losers(self, memory: LosersKept) -> None:
        for link in memory.links:
            self._remember(link)

    def restore_one(self, memory: ConflictKept) -> None:
        self._add(Conflict(memory.number, memory.reason, event_of_kept(memory.kept), event_of_kept(memory.lost)))

    def _add(self, conflict: Conflict) -> None:
        self._kept[conflict.number] = conflict
        self._bytes += _size(conflict)
        while len(self._kept) > limits.CONFLICTS_MAX or (
            len(self._kept) > 1 and (self._bytes > limits.CONFLICT_BYTES_MAX or self.room.is_over)
        ):
            self.forget(next(iter(self._kept)))

    def _remember(self, link: Link) -> None:
        self._losers[link] = None
        if len(self._losers) > limits.LOSSES_MAX:
            del self._losers[next(iter(self._losers))]


def _size(conflict: Conflict) -> int:
    return len(conflict.kept.value or b"") + len(conflict.lost.value or b"")


def _described(event: Event) -> dict[str, Any]:
    """A change in plain words; its value is MessagePack in hex, so that it can be restored exactly."""
    change: dict[str, Any] = {"node": event.node, "tick": event.tick, "tock": event.tock}
    change |= {"deleted": True} if event.value is None else {"value": event.value.hex()}
    return change | {"at": event.at, "by": event.by}
