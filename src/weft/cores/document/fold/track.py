"""A fold at some position in the order of operations, which can go back and forward (DOC-051, DOC-060).

The last operations can be undone one by one, at least `UNDO_MAX` of them. Before that there are checkpoints, which are
whole copies of a fold: for each age d (in operations) there is one at most twice as old, which makes one or two per
power of two. Copying costs as much as the document is large, so a large document is copied less often: on average, at
most half an element per operation.
"""

from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.order import Order
from weft.cores.document.fold.schema import Schema

SUPERSEDED = "inert:superseded"


class Checkpoints:
    """Copies of a fold at multiples of `every` operations, and genesis."""

    def __init__(self, schema: Schema, every: int) -> None:
        self.schema, self.every = schema, every
        self._kept: dict[int, Fold] = {}
        """By the number of operations in them, ascending."""

    def places(self) -> list[int]:
        """The number of operations in each, ascending."""
        return list(self._kept)

    def offer(self, place: int, fold: Fold, end: int) -> None:
        """Keep a copy of a fold of `place` operations, if one is needed there with `end` operations in total."""
        if place not in self._kept and self._is_wanted(place, end) and 2 * fold.count <= self._period(place):
            self._kept[place] = fold.copy()
        for old in [old for old in self._kept if not self._is_wanted(old, end)]:
            del self._kept[old]

    def _period(self, place: int) -> int:
        """The greatest power of two times `every` that divides `place`."""
        steps = place // self.every
        return (steps & -steps) * self.every

    def _is_wanted(self, place: int, end: int) -> bool:
        """Whether it is young enough for its period: for every age one at most twice as old is kept."""
        return end - place <= 3 * self._period(place)

    def forget_after(self, place: int) -> None:
        """Operations from `place` on have changed: drop the checkpoints behind it."""
        for old in [old for old in self._kept if old > place]:
            del self._kept[old]

    def before(self, place: int) -> "tuple[int, Fold]":
        """A copy of the latest fold within the first `place` operations, for the caller to continue."""
        nearest = max((kept for kept in self._kept if kept <= place), default=0)
        return nearest, self._kept[nearest].copy() if nearest else Fold(self.schema)


class Track:
    """A fold of the first `place` operations of an order."""

    def __init__(self, fold: Fold, place: int, checkpoints: Checkpoints, undo: int) -> None:
        self.fold, self.place = fold, place
        self._checkpoints, self._undo = checkpoints, undo
        self._marks: list[int] = []
        """Where the undo records of the last operations begin, the latest at the end."""

    def reaches(self, place: int) -> bool:
        """Whether it can go back to `place`."""
        return self.place - place <= len(self._marks)

    @property
    def oldest_mark(self) -> int:
        """The beginning of the oldest undo record."""
        return self._marks[0] if self._marks else self.fold.mark()

    def mark_of(self, place: int) -> int:
        """Where the undo records of all but the first `place` operations begin."""
        return self._marks[place - self.place]

    def back(self, place: int) -> None:
        """Undo all operations but the first `place`."""
        if place < self.place:
            first = len(self._marks) - (self.place - place)
            self.fold.rewind(self._marks[first])
            del self._marks[first:]
            self.place = place

    def forward(self, order: Order, end: int) -> None:
        """Fold operations up to the first `end` of the order."""
        every = self._checkpoints.every
        while self.place < end:
            stop = min(end, self.place - self.place % every + every)
            self._run(order, stop)
            if stop % every == 0:
                self._checkpoints.offer(stop, self.fold, len(order))
        if len(self._marks) > 2 * self._undo:
            del self._marks[: -self._undo]
            self.fold.forget(self._marks[0])

    def _run(self, order: Order, stop: int) -> None:
        fold, superseded, marked = self.fold, order.superseded, self._marks.append
        mark, apply = fold.mark, fold.apply
        for eff, source, sequence, operation in order.entries[self.place : stop]:
            marked(mark())
            if superseded and (source, sequence) in superseded:
                fold.outcomes[source, sequence] = [SUPERSEDED]
            else:
                apply(operation, eff)
        self.place = stop
