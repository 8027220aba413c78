"""The document as a function of the log: whatever arrives in whatever order, it is genesis folded in the order of keys.

order     the sorted list of operations, and which of several copies counts
track     a `Fold` that stands somewhere in that list, and can go back and forward
engine    which of them readers see

An operation that is late by d steps takes back d operations, and folds d + 1 (DOC-051). Beyond what can be taken back the
nearest earlier checkpoint is copied. Where more than `AT_ONCE_MAX` steps are to be folded, that goes on in slices on a
track of its own, and readers have the last complete state meanwhile (DOC-053).
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from weft.base.errors import UserError
from weft.cores.document.fold.changes import Changes, Delta
from weft.cores.document.fold.conflicts import Conflict, Writer
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.history import Past, pasts_of
from weft.cores.document.fold.order import Key, Order, Pair, prefixes
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

    `undo` is how many operations can be taken back, and the distance of checkpoints; `at_once` how many steps may be
    folded while somebody waits.
    """

    def __init__(self, schema: Schema, *, undo: int = UNDO_MAX, at_once: int = AT_ONCE_MAX) -> None:
        self.schema = schema
        self.replayed = 0
        """Operations that were folded another time, since something came before them."""
        self._undo, self._at_once = undo, at_once
        self._order = Order()
        self.has_copy = self._order.has_copy
        """Whether an adopted copy of an operation is known (DOC-013)."""
        self._checkpoints = Checkpoints(schema, undo)
        self._shown = Track(Fold(schema), 0, self._checkpoints, undo)
        """Complete: what readers see."""
        self.backward = Backward(self._order, self._checkpoints, undo, lambda: self._shown.fold)
        """What operations are taken back by (DOC-055)."""
        self._working: Track | None = None
        """On the way to the present state, while that takes its time."""
        self._same = 0
        """While behind: how many operations in front are as they were when the working track last looked."""
        self.is_behind = False
        """Whether readers see an older state: `catching_up` (DOC-053)."""
        self._winners: dict[Pair, Operation] = {}
        """Winners of forks that are known before the operations they win against."""
        self._changes = Changes()
        self._digest = ""

    # What is new

    def insert(self, batch: Iterable[Operation]) -> None:
        """Take operations in, each source's in sequence, with one rewind for all of them (DOC-052)."""
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
        """These are what counts under their numbers from now on (GSP-011), with one rewind for all of them (DOC-052)."""
        known: dict[bytes, list[Operation]] = {}
        for operation in winners:
            if operation.sequence > self._order.latest(operation.source):
                self._winners[operation.source, operation.sequence] = operation
            else:
                known.setdefault(operation.source, []).append(operation)
        if known:
            self._settle(min([self._order.replace(found) for found in known.values()]))

    def _settle(self, same: int) -> None:
        """All but the first `same` operations are to be folded, again or for the first time."""
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
        """Fold a slice of what is behind; called again and again while `is_behind`."""
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
        """Fold all that is behind, however long it takes."""
        while self.is_behind:
            self.work()

    # What readers see

    @property
    def root(self) -> Element:
        """The document; nobody but the fold may change it, and what comes next does."""
        return self._shown.fold.root

    @property
    def operations(self) -> int:
        """How many operations the document that readers see is made of."""
        return self._shown.place

    def digest(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal digits (DOC-050)."""
        if not self._digest:
            self._digest = sha256(canonical(self.root)).hexdigest()
        return self._digest

    def outcomes(self, source: bytes, sequence: int) -> list[str]:
        """What became of each step of an operation at its own place in the order (DOC-035).

        Empty: it is not in the document that readers see.
        """
        return self._shown.fold.outcomes.get((source, sequence), [])

    def outcome(self, source: bytes, sequence: int) -> str:
        """What has become of an operation by now, what waited and was released included; steps parted by commas."""
        return ",".join(self.present(source, sequence))

    def present(self, source: bytes, sequence: int) -> list[str]:
        """The same, step by step."""
        return self._shown.fold.present((source, sequence))

    def trial(self, operation: Operation, eff: float) -> list[str]:
        """What would become of an operation that comes last, step by step; nothing has changed afterwards."""
        return self._shown.fold.trial(operation, eff)

    def parked(self) -> list[Pair]:
        """Operations with steps that wait for what they refer to."""
        return self._shown.fold.parked()

    def conflicts(self) -> list[Conflict]:
        """All of them, closed ones too (DOC-040)."""
        return self._shown.fold.conflicts()

    def eff_of(self, source: bytes, sequence: int) -> float:
        """The effective time of an operation that is known (DOC-010)."""
        return self._order.eff(source, sequence)

    def order(self) -> Iterator[Key]:
        """The keys of all operations, ascending."""
        return self._order.keys()

    def find(self, reference: dict[str, str]) -> Element | None:
        """What a reference leads to (DOC-020); None: nothing, or nothing yet. Nothing is made by asking."""
        return self._shown.fold.element_of(reference)

    def at(self, slot: str) -> Element | None:
        """What a slot of DOC-040, or an eid, names."""
        return self._shown.fold.element_at(slot)

    def slot_of(self, element: Element) -> str:
        """The name of an element for people (DOC-040)."""
        return self._shown.fold.slot_of(element)

    def reference_of(self, slot: str) -> dict[str, str]:
        """What an operation says to lead to a slot."""
        return reference_of(self.schema, slot)

    def writer_of(self, reference: dict[str, str], attribute: str) -> Writer | None:
        """Who wrote an attribute (`#text`: the text) of what a reference leads to, last in order (GSP-003)."""
        return self._shown.fold.writer_of(reference, attribute)

    def history(self, slot: str) -> list[Past]:
        """Who set what of an element when, and what it was before (DOC-054); `slot` as in DOC-040, or an eid."""
        return pasts_of(self._shown.fold, slot, self._order.eff_of)

    def changes(self) -> Delta:
        """What is different from when this was last asked (DOC-054); the first time everything is new."""
        return self._changes.since(self._shown)


def fold(schema: Schema, operations: Iterable[Operation]) -> Engine:
    """The document of any operations: what stands behind a gap, and what comes twice, is passed over."""
    engine = Engine(schema)
    engine.insert(prefixes(operations))
    engine.finish()
    return engine


def fold_until(
    schema: Schema, operations: Iterable[Operation], *, at: float | None = None, until: Pair | None = None
) -> Engine:
    """The document as it was true at an effective time, or with all up to an operation (GSP-032).

    UserError `unknown-operation` where `until` is none of them.
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
