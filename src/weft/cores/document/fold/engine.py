"""The document as a function of the log: genesis with all operations applied in the order of keys, not of arrival.

order     the sorted list of operations, and which of several copies counts
track     a `Fold` at some position of that list, which can go back and forward
engine    which of the tracks readers see

For an operation that is late by d steps, d operations are undone and d + 1 folded (DOC-051). If the undo records do not
reach that far, the nearest earlier checkpoint is copied. More than `AT_ONCE_MAX` steps are folded in slices on a
separate track, and readers see the last complete state meanwhile (DOC-053).
"""

from collections.abc import Iterable
from hashlib import sha256

from weft.base.errors import UserError
from weft.cores.document.fold.changes import Changes, Delta
from weft.cores.document.fold.conflicts import Conflict, Writer
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.history import Past, pasts_of
from weft.cores.document.fold.order import Order, Pair, prefixes
from weft.cores.document.fold.schema import Schema
from weft.cores.document.fold.slots import reference_of
from weft.cores.document.fold.track import Checkpoints, Track
from weft.cores.document.fold.tree import Element
from weft.cores.document.fold.undoing import Backward
from weft.cores.document.limits import AT_ONCE_MAX, SLICE, UNDO_MAX
from weft.wire.document.operations import Operation
from weft.wire.document.xml import canonical


class Engine:
    """A document that grows by operations of the gapless prefixes of all sources.

    `undo` is how many operations can be undone, and the distance of checkpoints; `at_once` how many steps may be folded
    while readers wait.
    """

    def __init__(self, schema: Schema, *, undo: int = UNDO_MAX, at_once: int = AT_ONCE_MAX) -> None:
        self.schema = schema
        self.replayed = 0
        """Operations folded again, since an earlier one came late."""
        self._undo, self._at_once = undo, at_once
        self._order = Order()
        self.has_copy = self._order.has_copy
        """Whether an adopted copy of an operation is known (DOC-013)."""
        self.order = self._order.keys
        """The keys of all operations, ascending; or of a part of them."""
        self.place_of, self.place_at = self._order.place_of, self._order.place_at
        """The number of operations up to one and with it, and up to an effective time; folded or not yet."""
        self._checkpoints = Checkpoints(schema, undo)
        self._shown = Track(Fold(schema), 0, self._checkpoints, undo)
        """The complete state that readers see."""
        self.backward = Backward(self._order, self._checkpoints, undo, lambda: self._shown.fold)
        """Finds the operations that undo an operation (DOC-055)."""
        self._working: Track | None = None
        """On the way to the present state, while that takes several slices."""
        self._same = 0
        """While behind: the number of operations at the front that did not change since the working track last looked.
        """
        self.is_behind = False
        """Whether readers see an older state: `catching_up` (DOC-053)."""
        self._winners: dict[Pair, Operation] = {}
        """Winners of forks that arrived before the operations they replace."""
        self._changes = Changes()
        self._digest = ""

    # What is new

    def insert(self, batch: Iterable[Operation]) -> None:
        """Add operations, each source's in sequence, with one rewind for all of them (DOC-052)."""
        if self._winners:
            batch = [self._winners.pop((each.source, each.sequence), each) for each in batch]
        order, shown = self._order, self._shown
        same = order.take(batch)
        if same == shown.place and not self.is_behind and len(order.entries) - same <= self._at_once:
            shown.forward(order, len(order.entries))
            self._digest = ""
        else:
            self._settle(same)

    def replace(self, *winners: Operation) -> None:
        """Replace the operations under these numbers (GSP-011), with one rewind for all of them (DOC-052)."""
        known: dict[bytes, list[Operation]] = {}
        for operation in winners:
            if operation.sequence > self._order.latest(operation.source):
                self._winners[operation.source, operation.sequence] = operation
            else:
                known.setdefault(operation.source, []).append(operation)
        if known:
            self._settle(min([self._order.replace(found) for found in known.values()]))

    def _settle(self, same: int) -> None:
        """Fold all but the first `same` operations, again or for the first time."""
        self._checkpoints.forget_after(same)
        if self.is_behind:
            self._same = min(self._same, same)
            return
        shown, end = self._shown, len(self._order)
        if not shown.reaches(same) or end - same > self._at_once:
            self.is_behind, self._same = True, same
            return
        self.replayed += shown.place - same
        self._changes.note_rewind(shown, same)
        shown.back(same)
        shown.forward(self._order, end)
        self._digest = ""

    def work(self, budget: int = SLICE) -> None:
        """Fold one slice; called repeatedly while `is_behind`."""
        if not self.is_behind:
            return
        end, same = len(self._order), self._same
        self._same = end
        working = self._working
        if working is None or not working.reaches(same):
            place, fold = self._checkpoints.before(same)
            working = self._working = Track(fold, place, self._checkpoints, self._undo)
        elif same < working.place:
            working.back(same)
        stop = min(end, working.place + budget)
        self.replayed += max(0, min(stop, self._shown.place) - working.place)
        working.forward(self._order, stop)
        if working.place == end:
            self._show(working)

    def _show(self, complete: Track) -> None:
        """Readers see another track from now on."""
        self._shown, self._working, self.is_behind = complete, None, False
        self._digest = ""

    def finish(self) -> None:
        """Fold everything that is behind, however long it takes."""
        while self.is_behind:
            self.work()

    # For readers

    @property
    def root(self) -> Element:
        """The document. Only the fold may change it; later operations will."""
        return self._shown.fold.root

    @property
    def operations(self) -> int:
        """Number of operations in the document that readers see."""
        return self._shown.place

    def digest(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal digits (DOC-050)."""
        if not self._digest:
            self._digest = sha256(canonical(self.root)).hexdigest()
        return self._digest

    def outcomes(self, source: bytes, sequence: int) -> list[str]:
        """The outcome of each step of an operation at its own place in the order (DOC-035).

        Empty: it is not in the document that readers see.
        """
        return self._shown.fold.outcomes.get((source, sequence), [])

    def outcome(self, source: bytes, sequence: int) -> str:
        """The present outcome of an operation, including steps that waited and were released.

        Steps separated by commas.
        """
        return ",".join(self.present(source, sequence))

    def present(self, source: bytes, sequence: int) -> list[str]:
        """The same, step by step."""
        return self._shown.fold.present((source, sequence))

    def trial(self, operation: Operation, eff: float) -> list[str]:
        """The outcome that an operation would have as the last one, step by step; nothing is changed."""
        return self._shown.fold.trial(operation, eff)

    def parked(self) -> list[Pair]:
        """Operations with steps that wait for the element they refer to."""
        return self._shown.fold.parked()

    def conflicts(self) -> list[Conflict]:
        """All conflicts, closed ones included (DOC-040)."""
        return self._shown.fold.conflicts()

    def eff_of(self, source: bytes, sequence: int) -> float:
        """The effective time of an operation that is known (DOC-010)."""
        return self._order.eff(source, sequence)

    def find(self, reference: dict[str, str]) -> Element | None:
        """The element of a reference (DOC-020); None: there is none, or none yet. Nothing is created."""
        return self._shown.fold.element_of(reference)

    def at(self, slot: str) -> Element | None:
        """The element of a slot of DOC-040, or of an eid."""
        return self._shown.fold.element_at(slot)

    def slot_of(self, element: Element) -> str:
        """The name of an element for people (DOC-040)."""
        return self._shown.fold.slot_of(element)

    def reference_of(self, slot: str) -> dict[str, str]:
        """The reference that an operation uses for a slot."""
        return reference_of(self.schema, slot)

    def writer_of(self, reference: dict[str, str], attribute: str) -> Writer | None:
        """The last writer, in order, of an attribute (`#text`: the text) of a reference's element (GSP-003)."""
        return self._shown.fold.writer_of(reference, attribute)

    def history(self, slot: str) -> list[Past]:
        """The writes to an element: author, time, value, value before (DOC-054); `slot` as in DOC-040, or an eid."""
        return pasts_of(self._shown.fold, slot, self._order.eff_of)

    def changes(self) -> Delta:
        """Differences since the last call (DOC-054); the first time everything is new."""
        return self._changes.since(self._shown)


def fold(schema: Schema, operations: Iterable[Operation]) -> Engine:
    """The document of any operations; operations beyond gaps, and repeated ones, are ignored."""
    engine = Engine(schema)
    engine.insert(prefixes(operations))
    engine.finish()
    return engine


def fold_until(
    schema: Schema, operations: Iterable[Operation], *, at: float | None = None, until: Pair | None = None
) -> Engine:
    """The document as of an effective time, or up to an operation (GSP-032).

    UserError `unknown-operation` if `until` is not among the operations.
    """
    order = Order()
    order.take(prefixes(operations))
    if until is not None and not 1 <= until[1] <= order.latest(until[0]):
        raise UserError("unknown-operation", "the log has no such operation", "see `weft doc log`")
    last = (order.eff(*until), *until) if until is not None else None
    chosen = [
        entry[3] for entry in order.entries if (at is None or entry[0] <= at) and (last is None or entry[:3] <= last)
    ]
    return fold(schema, chosen)
