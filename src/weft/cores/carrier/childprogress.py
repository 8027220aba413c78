"""How much of each child's streams this node holds, and how much of that is safe (CHN-032, MEA-024).

All changes come from records of the journal, so a restart restores exactly the same state. A child's numbers are safe
when this node's own safe cursor has passed the lsn behind their last record: their `mark`.
"""

from collections import deque
from collections.abc import Iterator

from weft.cores.carrier import limits
from weft.cores.carrier.memory import ChildKept, Doubted, EraKept, Received


class Progress:
    """One start of a child. All fields are hop numbers, except the lsn in `marks`."""

    __slots__ = ("marks", "safe", "upto")

    def __init__(self, upto: int = 0, safe: int = 0) -> None:
        self.upto, self.safe = upto, safe
        self.marks: deque[tuple[int, int]] = deque()
        """`(upto, lsn)`: the numbers up to `upto` are safe when everything up to `lsn` is."""

    def mark(self, upto: int, lsn: int) -> None:
        """Numbers up to `upto` end at `lsn`.

        If there are too many marks, every second one is dropped; its numbers become safe later.
        """
        self.upto = upto
        self.marks.append((upto, lsn))
        if len(self.marks) > limits.MARKS_MAX:
            self.marks = deque(mark for index, mark in enumerate(reversed(self.marks)) if not index % 2)
            self.marks.reverse()

    def pass_on(self, frontier: int) -> bool:
        """Everything up to lsn `frontier` is safe; returns whether the child's safe number grew."""
        before = self.safe
        marks = self.marks
        while marks and marks[0][1] <= frontier:
            self.safe = marks.popleft()[0]
        return self.safe != before

    def postpone(self, upto: int, until: int) -> None:
        """The numbers up to `upto` were given up.

        They count as safe once the announcement, which ends at lsn `until`, is safe.
        """
        self.marks = deque((number, until if lsn <= upto else lsn) for number, lsn in self.marks)

    def roll_back(self, lsn: int) -> bool:
        """What stands at or behind this lsn may be lost: only numbers whose records end before it are held.

        Returns whether fewer are held now.
        """
        before = self.upto
        while self.marks and self.marks[-1][1] >= lsn:
            self.marks.pop()
        self.upto = self.marks[-1][0] if self.marks else self.safe
        return self.upto < before

    def state(self) -> EraKept:
        return EraKept(0, self.upto, self.safe, list(self.marks))


class ChildProgress:
    """The children by node id, the one not heard for longest first; for each, its last eras."""

    def __init__(self, *, is_safe_at_once: bool) -> None:
        self._is_safe_at_once = is_safe_at_once
        self._children: dict[bytes, dict[int, Progress]] = {}
        self._as_of: dict[bytes, int] = {}

    def find(self, node: bytes, era: int) -> Progress | None:
        """The progress of one start of a child; None if nothing is known."""
        return self._children.get(node, {}).get(era)

    def latest_era(self, node: bytes) -> int:
        """The highest era of a child of which this node holds anything; 0: none."""
        return max(self._children.get(node, ()), default=0)

    def note(self, memory: Received, lsn: int, last: int) -> None:
        """Note what this node holds, from the record at `lsn`.

        `last` is the lsn of the last carried record before it.
        """
        progress_before = self.find(memory.node, memory.era)
        if lsn <= self._as_of.get(memory.node, 0) or (
            progress_before is not None and memory.upto <= progress_before.upto
        ):
            return  # a snapshot contains it, or it was noted when it was sent
        eras = self._children.pop(memory.node, None)
        if eras is None:
            eras = {}
            if len(self._children) >= limits.CHILDREN_KNOWN_MAX:
                self._forget(next(iter(self._children)))
        self._children[memory.node] = eras
        progress = eras.pop(memory.era, None) or Progress()
        eras[memory.era] = progress
        if len(eras) > limits.ERAS_MAX:
            del eras[next(iter(eras))]
        if self._is_safe_at_once:
            progress.upto = progress.safe = memory.upto
        else:
            progress.mark(memory.upto, last)

    def _forget(self, node: bytes) -> None:
        del self._children[node]
        self._as_of.pop(node, None)

    def pass_on(self, frontier: int) -> list[tuple[bytes, int]]:
        """Everything up to `frontier` is safe; returns the starts of children whose safe number grew."""
        return [
            (node, era)
            for node, eras in self._children.items()
            for era, progress in eras.items()
            if progress.marks and progress.pass_on(frontier)
        ]

    def postpone(self, upto: int, until: int) -> None:
        """Delay: children may forget records that were given up only when all nodes above know of the loss."""
        for eras in self._children.values():
            for progress in eras.values():
                progress.postpone(upto, until)

    def roll_back(self, doubted: Doubted, lsn: int) -> bool:
        """Forget whatever damage may have taken of what is not safe; `lsn`: of the record that says so.

        Returns whether any child has to send something again.
        """
        has_lost = False
        for node, eras in self._children.items():
            if lsn > self._as_of.get(node, 0):
                for progress in eras.values():
                    has_lost |= progress.roll_back(doubted.first_lsn)
        return has_lost

    def condense(self, seen_lsn: int) -> Iterator[ChildKept]:
        """One record per child, as of `seen_lsn`, in the order that `adopt` needs."""
        for node, eras in self._children.items():
            memories = [EraKept(era, p.upto, p.safe, list(p.marks)) for era, p in eras.items()]
            yield ChildKept(node, seen_lsn, memories)

    def adopt(self, memory: ChildKept) -> None:
        """Restore a child from a snapshot."""
        self._children.pop(memory.node, None)
        eras = self._children[memory.node] = {}
        self._as_of[memory.node] = memory.lsn
        for each in memory.eras:
            progress = eras[each.era] = Progress(each.upto, each.safe)
            progress.marks.extend(each.marks)

    def state(self) -> list[tuple[bytes, list[tuple[int, EraKept]]]]:
        """Everything, comparable, in order."""
        return [(node, [(era, p.state()) for era, p in eras.items()]) for node, eras in self._children.items()]
