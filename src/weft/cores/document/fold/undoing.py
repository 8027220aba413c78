"""Undo: the further operations that take an operation back, in the present document (DOC-055).

| what it did | what takes it back |
|---|---|
| set a value | the value before; if there was none, an empty one: attributes are never deleted (DOC-032) |
| made elements | they are removed, except those of a fixed step |
| appended text | the text without it |
| removed an element | it is added again below the same parent, with its contents and the same eids |

The log itself is not changed: a node that applies the further operations sees the same document. If another author has
written there since, that is reported (`Superseded`); with force it is done nevertheless.

The effects of an operation follow from its place in the order: the document before it is built again, and the operation
is applied to it. Effects of steps that waited for their target are found by the writers of the values.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.cores.document.fold.conflicts import APPENDED, Writer
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.order import Order
from weft.cores.document.fold.slots import reference_of
from weft.cores.document.fold.track import Checkpoints, Track
from weft.cores.document.fold.tree import Element, Pair
from weft.wire.document.operations import ADD, REMOVE, SET, TEXT, Operation
from weft.wire.document.xml import EID, Node, Payload


class Act(NamedTuple):
    """One step of an undo."""

    verb: str
    reference: dict[str, str]
    payload: Payload


class Superseded(Exception):
    """Another author has written there since: `slot`, and `by` whom."""

    def __init__(self, slot: str, by: Pair | None) -> None:
        super().__init__(slot)
        self.slot, self.by = slot, by


class Write(NamedTuple):
    """A value that the operation set, or text that it appended (APPENDED)."""

    slot: str
    name: str
    value: str
    before: str | None


class Removal(NamedTuple):
    """An element that the operation removed."""

    slot: str
    parent: str
    node: Node


class Effects(NamedTuple):
    """The effects of an operation."""

    made: list[str]
    """Slots of elements."""
    writes: list[Write]
    removed: list[Removal]


def effects_of(before: Fold, operation: Operation, eff: float) -> Effects:
    """Apply the operation to the document before it, which is changed by that, and note the effects."""
    removed = []
    for step in operation.steps if not operation.inert else []:
        element = before.element_of(step.attributes) if step.verb == REMOVE else None
        if element is not None and element.parent is not None and not element.is_fixed:
            removed.append(Removal(before.slot_of(element), before.slot_of(element.parent), _node_of(element)))
    mark = before.mark()
    before.apply(operation, eff)
    made, writes = [], []
    for element in dict.fromkeys(before.touched(mark)):
        if element.origin == operation.pair and before.element_at(before.slot_of(element)) is element:
            made.append(before.slot_of(element))
        for name, last in (element.writers or {}).items():
            writer = _written_by(last, operation.pair)
            if writer is not None:
                writes.append(Write(before.slot_of(element), name, writer.value, writer.before))
    return Effects(made, writes, removed)


class Backward:
    """Undo for one document. `shown`: the fold that readers see, with the whole order in it."""

    def __init__(self, order: Order, checkpoints: Checkpoints, undo: int, shown: Callable[[], Fold]) -> None:
        self._order, self._checkpoints, self._undo, self._shown = order, checkpoints, undo, shown

    def operations(self) -> Iterator[Operation]:
        """All of them, the last in order first."""
        return (operation for *_, operation in reversed(self._order.entries))

    def acts(self, operation: Operation, is_other: Callable[[Pair], bool], *, force: bool) -> list[Act]:
        """The steps that undo an operation; Superseded."""
        order = self._order
        end = order.place(operation.source, operation.sequence)
        place, before = self._checkpoints.before(end)
        Track(before, place, self._checkpoints, self._undo).forward(order, end)
        effects = effects_of(before, operation, order.entries[end][0])
        return Undoing(self._shown(), operation.pair, effects, is_other, force=force).acts()


class Undoing:
    """The undo of one operation in the present document. `is_other`: whether an operation is by another author."""

    def __init__(
        self, fold: Fold, pair: Pair, effects: Effects, is_other: Callable[[Pair], bool], *, force: bool
    ) -> None:
        self._fold, self._pair, self._effects = fold, pair, effects
        self._is_other, self._force = is_other, force
        self._gone: dict[Element, None] = {}
        """Elements to be removed, with everything below them."""
        self._found: dict[tuple[Element, str], str] = {}
        """The values to be set."""

    def acts(self) -> list[Act]:
        """The steps in order; empty: nothing of the operation is left. Superseded."""
        for element in [element for slot in self._effects.made if (element := self._fold.element_at(slot))]:
            self._drop(element)
        for write in self._effects.writes:
            self._write_back(write)
        self._look_for_late(self._fold.root)
        return [*self._removals(), *self._sets(), *self._additions()]

    # What it did

    def _drop(self, element: Element) -> None:
        """Remove an element that the operation made.

        One that was only referred to stays if it contains elements of others.
        """
        if element.is_fixed:
            return
        other = next((pair for each in element.subtree() for pair in _pairs_of(each) if self._is_other(pair)), None)
        if other is not None:
            if element.eid is None:
                return
            self._superseded(self._fold.slot_of(element), other)
        self._gone[element] = None

    def _write_back(self, write: Write) -> None:
        """Restore the value before a write."""
        element = self._fold.element_at(write.slot)
        if element is None:
            return
        last = (element.writers or {}).get(write.name)
        writer = _written_by(last, self._pair)
        if writer is not None:
            self._restore(element, write.name, writer)
        elif write.name == APPENDED:
            self._cut(element, write.value)
        else:  # it was removed and is back: only its value shows whose it is
            now = element.text if write.name == TEXT else element.attributes.get(write.name)
            by = (last.source, last.sequence) if last is not None else None
            if now != write.value and (by is None or self._is_other(by)):
                self._superseded(write.slot, by)
            self._found[element, write.name] = write.before or ""

    def _restore(self, element: Element, name: str, writer: Writer) -> None:
        other = next((each for each in _since(element, name, writer) if self._is_other(each)), None)
        if other is not None:
            self._superseded(self._fold.slot_of(element), other)
        if name == APPENDED:
            self._cut(element, writer.value)
        else:
            self._found[element, name] = writer.before or ""

    def _cut(self, element: Element, text: str) -> None:
        begin, is_there, end = element.text.rpartition(text)
        if is_there:
            self._found[element, TEXT] = begin + end

    def _look_for_late(self, top: Element) -> None:
        """Find effects that happened only when the target had come."""
        for element in top.subtree():
            if element.origin == self._pair and element not in self._gone:
                self._drop(element)
            for name, last in (element.writers or {}).items():
                writer = _written_by(last, self._pair)
                if writer is not None and (element, TEXT if name == APPENDED else name) not in self._found:
                    self._restore(element, name, writer)

    # The steps to enter

    def _removals(self) -> Iterator[Act]:
        for element in self._gone:
            if element.parent is None or not self._goes(element.parent):
                yield Act(REMOVE, self._reference(self._fold.slot_of(element)), Payload())

    def _goes(self, element: Element) -> bool:
        here: Element | None = element
        while here is not None and here not in self._gone:
            here = here.parent
        return here is not None

    def _sets(self) -> Iterator[Act]:
        values: dict[Element, dict[str, str]] = {}
        for (element, name), value in self._found.items():
            if not self._goes(element):
                values.setdefault(element, {})[name] = value
        for element, found in values.items():
            reference = self._reference(self._fold.slot_of(element))
            text = found.pop(TEXT, None)
            if found:
                yield Act(SET, reference, Payload("", [], found))
            if text is not None:
                yield Act(SET, reference, Payload(text))

    def _additions(self) -> Iterator[Act]:
        """What it removed, unchanged; Superseded if that element, or its parent, is another one now."""
        for slot, parent, node in self._effects.removed:
            if self._fold.element_at(slot) is not None:
                self._superseded(slot, None)
            if self._fold.element_at(parent) is None:
                raise Superseded(parent, None)
            yield Act(ADD, self._reference(parent), Payload("", [node]))

    def _superseded(self, slot: str, by: Pair | None) -> None:
        if not self._force:
            raise Superseded(slot, by)

    def _reference(self, slot: str) -> dict[str, str]:
        return reference_of(self._fold.schema, slot)


def _pairs_of(element: Element) -> Iterator[Pair]:
    """The maker of an element, and the last writers of its values."""
    if element.origin is not None:
        yield element.origin
    for writer in (element.writers or {}).values():
        yield writer.source, writer.sequence


def _written_by(last: Writer | None, pair: Pair) -> Writer | None:
    while last is not None and (last.source, last.sequence) != pair:
        last = last.previous
    return last


def _since(element: Element, name: str, writer: Writer) -> Iterator[Pair]:
    """The writers after a given one; for text, also those who appended."""
    writers = element.writers or {}
    for each in (name, APPENDED) if name == TEXT else (name,):
        here: Writer | None = writers.get(each)
        while here is not None and here is not writer and here.eff >= writer.eff:
            yield here.source, here.sequence
            here = here.previous


def _node_of(element: Element) -> Node:
    """The element as a payload; recursion is fine, since documents are not deep."""
    attributes = dict(element.attributes)
    if not attributes.get(EID) and element.aliases:
        attributes[EID] = element.aliases[0]
    return Node(element.tag, attributes, element.text, [_node_of(child) for child in element.children])
