"""Applies operations to genesis, one after the other; each can be undone (DOC-010, DOC-021, DOC-051).

    fold = Fold(Schema.load("derby"))
    mark = fold.mark()
    fold.apply(operation, eff)   # ["applied"]
    fold.rewind(mark)            # as if it had never been

The cost of an operation, and of undoing it, depends on its own size, not on that of the document.
"""

from collections.abc import Iterator
from typing import Final

from weft.cores.document.fold.conflicts import LOST_EDIT, SET_SET, Conflict, Party, Writer
from weft.cores.document.fold.references import PARKED, Absent, Plan, find
from weft.cores.document.fold.schema import Schema
from weft.cores.document.fold.state import Key, Parked, State, Trigger
from weft.cores.document.fold.tree import Element, Pair
from weft.cores.document.fold.verbs import APPLIED, NOTHING_NEW, VERBS
from weft.wire.document.operations import REMOVE, Operation, Step

TARGET_REMOVED: Final = "inert:target-removed"


class Fold(State):
    """A document with everything derived from it: outcomes, waiting steps, conflicts, writers."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)

    # One operation

    def apply(self, operation: Operation, eff: float) -> list[str]:
        """Apply the next operation, whose key must be above all before.

        Returns the outcome of each of its steps (DOC-035).

        `outcomes` keeps these; later outcomes of a parked step are in `present`.
        """
        pair = (operation.source, operation.sequence)
        if operation.inert:
            outcome = [f"inert:{operation.inert}"]
        else:
            self.operation, self.eff, self.pair = operation, eff, operation.origin or pair
            steps = operation.steps
            self.is_noting = bool(self.waiting) or len(steps) > 1
            outcome = [self._do(step) for step in steps]
            while self.events and (released := self.released()):
                self._retry(released)
        self.say(pair, outcome)
        return outcome

    def trial(self, operation: Operation, eff: float) -> list[str]:  # tidy: seconds of the log are doubles (DOC-010)
        """What `apply` would return; nothing is changed."""
        mark = self.mark()
        outcome = self.apply(operation, eff)
        self.rewind(mark)
        return outcome

    def _do(self, step: Step) -> str:
        """Apply one step, now or when it is released."""
        eid = step.eid
        place: Element | Plan | Absent | None
        if eid is not None:
            place = self.live.get(eid)
            if place is None:
                return self._without(step, eid)
        else:
            place = find(self, step)
            if isinstance(place, Absent):
                if place.trigger is not None:
                    self.park(step, place.trigger)
                return place.outcome
        outcome = VERBS[step.verb](self, step, place)
        return self._settle(outcome, place) if self.operation.resolves else outcome

    def _without(self, step: Step, eid: str) -> str:
        """There is no element with this eid: wait for it, unless it existed and was removed."""
        remover = self.gone.get(eid)
        if remover is None:
            self.park(step, ("eid", eid))
            return PARKED
        slot = f"eid:{eid}"
        conflict = self.found.get(self.operation.resolves)
        if conflict is not None and conflict.is_open and (conflict.kind, conflict.slot) == (LOST_EDIT, slot):
            self.close(conflict)
        elif remover[0] != self.pair[0]:
            self.report(LOST_EDIT, slot, step.verb, Party(*remover, ""), "", None)
        return TARGET_REMOVED

    def _settle(self, outcome: str, place: Element | Plan) -> str:
        """Close the conflict that an operation resolves by changing its slot, or an element below it.

        An operation that only says `resolves`, without a change, also closes it and leaves everything as it is.
        """
        conflict = self.found.get(self.operation.resolves)
        if conflict is None or not conflict.is_open or conflict.kind == SET_SET or isinstance(place, Plan):
            return outcome
        if outcome not in (APPLIED, NOTHING_NEW) or conflict.kind == LOST_EDIT:
            return outcome
        if not self.is_at(conflict, place) and not self.is_at(conflict, place.parent):
            return outcome
        self.close(conflict)
        return APPLIED

    def _retry(self, released: dict[Key, Parked]) -> None:
        """Try released steps, in order; steps that these release are tried in the next round (DOC-021)."""
        self.is_noting = True
        for key in sorted(released):
            parked = released[key]
            step, operation = parked.step, parked.operation
            if self._still_waits(step, parked.trigger):
                continue
            self.unpark(parked)
            self.operation, self.eff, self.pair = operation, parked.key[0], operation.pair
            outcome = self._do(step)
            if outcome != PARKED:
                self.say_late(parked, outcome)

    def _still_waits(self, step: Step, trigger: Trigger) -> bool:
        """Whether trying it would change nothing, since it would wait for the same element again."""
        if step.eid is not None:
            return step.eid not in self.live and step.eid not in self.gone
        place = find(self, step)
        return isinstance(place, Absent) and place.trigger == trigger

    # Back

    def mark(self) -> int:
        """The present position; greater than all earlier marks that are still valid."""
        return self.base + len(self.undo)

    def rewind(self, mark: int) -> None:
        """Undo everything after a mark."""
        undo, length = self.undo, mark - self.base
        assert length >= 0, "that mark was forgotten"
        while len(undo) > length:
            record = undo.pop()
            record[0](self, *record[1:])
        for element, kept in self.cuts.items():
            element.text = element.text[:kept]
        self.cuts.clear()

    def forget(self, mark: int) -> None:
        """Nothing before this mark will be undone any more: drop its records."""
        assert self.base <= mark <= self.mark(), "no such mark"
        del self.undo[: mark - self.base]
        self.base = mark

    def touched(self, mark: int) -> Iterator[Element]:
        """Elements changed since a mark, some repeatedly; for elements that came or went, also the parent."""
        for record in self.undo[mark - self.base :]:
            element = record[1]
            if element is not None:
                yield element
                if element.parent is not None:
                    yield element.parent

    def copy(self) -> "Fold":
        """An independent copy without undo records; takes as long as the document is large."""
        twin = Fold.__new__(Fold)
        State.__init__(twin, self.schema)
        twins: dict[Element, Element] = {}
        for element in self.root.subtree():
            twins[element] = _twin_of(element, twins)
        twin.root = twins[self.root]
        twin.live = {eid: twins[element] for eid, element in self.live.items()}
        twin.gone, twin.outcomes, twin.waiting = dict(self.gone), dict(self.outcomes), dict(self.waiting)
        twin.count, twin.ticks = self.count, self.ticks
        twin.late = {pair: dict(outcomes) for pair, outcomes in self.late.items()}
        twin.triggers = {trigger: dict(waiting) for trigger, waiting in self.triggers.items()}
        twin.found = {
            name: conflict._replace(place=twins.get(conflict.place)) if conflict.place is not None else conflict
            for name, conflict in self.found.items()
        }
        return twin

    # What is derived

    def present(self, pair: Pair) -> list[str]:
        """The present outcome of each step: for parked steps, the outcome on release."""
        outcomes, late = self.outcomes.get(pair, []), self.late.get(pair)
        return [late.get(place, word) for place, word in enumerate(outcomes)] if late else outcomes

    def parked(self) -> list[Pair]:
        """Operations with waiting steps, by key."""
        return list(dict.fromkeys((key[1], key[2]) for key in sorted(self.waiting)))

    def parked_steps(self) -> list[Parked]:
        """Each waiting step, by key, with what it waits for."""
        return [self.waiting[key] for key in sorted(self.waiting)]

    def conflicts(self) -> list[Conflict]:
        """All conflicts, closed ones included, in order of application (DOC-040)."""
        return list(self.found.values())

    def element_of(self, reference: dict[str, str]) -> Element | None:
        """The present element of a reference; None: there is none, or none yet."""
        step = Step(0, REMOVE, reference)
        if step.eid is not None:
            return self.live.get(step.eid)
        place = find(self, step)
        return place if isinstance(place, Element) else None

    def writer_of(self, reference: dict[str, str], attribute: str) -> Writer | None:
        """The last writer, in order, of an attribute (`#text`: the text) of a reference's element (GSP-003)."""
        element = self.element_of(reference)
        return element.writers.get(attribute) if element is not None and element.writers else None

    def element_at(self, slot: str) -> Element | None:
        """The element that a slot names now (DOC-040), or an eid."""
        if slot.startswith("eid:"):
            return self.live.get(slot.removeprefix("eid:"))
        if not slot.startswith("/"):
            return self.live.get(slot)
        here: Element | None = self.root
        for part in slot.strip("/").split("/") if slot != "/" else []:
            here = self._child_at(here, part) if here is not None else None
        return here

    def _child_at(self, parent: Element, part: str) -> Element | None:
        tag, _, rest = part.partition("[")
        key = rest.removesuffix("]")
        kin = self.kin(parent, tag)
        if not key.startswith("#"):
            return kin.by[0].get(key, [None])[0] if kin.by else None
        place = int(key[1:]) if key[1:].isdecimal() else 0
        return kin.elements[place - 1] if 1 <= place <= len(kin.elements) else None


def _twin_of(element: Element, twins: dict[Element, Element]) -> Element:
    """The element at the same position in the copy of the parent."""
    parent = twins[element.parent] if element.parent is not None else None
    twin = Element(element.tag, element.attributes, element.text, parent, element.origin)
    twin.is_shared = element.is_shared = True
    twin.rank, twin.is_fixed = element.rank, element.is_fixed
    twin.aliases = list(element.aliases) if element.aliases else None
    twin.writers = dict(element.writers) if element.writers else None
    if parent is not None:
        twin.link()
    return twin
