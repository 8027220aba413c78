"""A document while operations are folded into it, with a way to undo every change (DOC-051).

Each kind of change is one function here, and writes one undo record: the function that undoes it, the element, and its
arguments. Records are undone in reverse order, so each one finds the state that it left.
"""

from typing import Any, Final

from weft.cores.document.fold.conflicts import (
    APPENDED,
    DUPLICATE_KEY,
    SET_SET,
    SINGLE,
    Conflict,
    Party,
    Writer,
    conflict_id,
)
from weft.cores.document.fold.schema import Chain, Schema
from weft.cores.document.fold.tree import Element, Kin, Pair
from weft.cores.document.limits import DOCUMENT_DEPTH_MAX, DOCUMENT_ELEMENTS_MAX, TWINS_MAX, WINDOW_S
from weft.wire.document.operations import TEXT, Operation, Step
from weft.wire.document.xml import EID

Key = tuple[float, bytes, int, int]
"""The place of a step: effective time, source and sequence of its operation, and its index."""
Trigger = tuple[str, ...]
"""What a parked step waits for (DOC-021): ("eid", eid), ("tag", tag) or ("child", place of the parent)."""
Undo = tuple[Any, ...]
RANKS: Final = 1 << 60
"""Above every number of a creatable step."""


class Parked:
    """A step that waits for the element it refers to."""

    __slots__ = ("key", "operation", "step", "trigger")

    def __init__(self, key: Key, operation: Operation, step: Step, trigger: Trigger) -> None:
        self.key, self.operation, self.step, self.trigger = key, operation, step, trigger


class State:
    """Shared by reference between the modules of the fold; nothing else changes it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.root = schema.genesis()
        self.live: dict[str, Element] = {}
        """Elements by eid, including aliases."""
        self.gone: dict[str, Pair] = {}
        """By eid of an element that does not exist now: the operation that removed it."""
        self.count = sum(1 for _ in self.root.subtree())
        """Number of elements, including the root."""
        self.outcomes: dict[Pair, list[str]] = {}
        """The outcome of each step at its own place (DOC-035)."""
        self.late: dict[Pair, dict[int, str]] = {}
        """The outcome of parked steps on release, by their place in `outcomes`."""
        self.waiting: dict[Key, Parked] = {}
        self.triggers: dict[Trigger, dict[Key, Parked]] = {}
        self.found: dict[str, Conflict] = {}
        """Conflicts by id, in the order in which they appeared."""
        self.events: dict[Trigger, None] = {}
        """Events of this round that a step may wait for; empty between operations."""
        self.is_noting = False
        """Whether events are noted: a step waits, or may start to wait before the round is over."""
        self.undo: list[Undo] = []
        self.cuts: dict[Element, int] = {}
        """The length of text to keep where appended text is undone: it is cut once, when all is undone; empty
        otherwise.
        """
        self.base = 0
        """Number of dropped records."""
        self.ticks = 0
        """Counts new elements, for their ranks."""
        self.operation: Operation
        """The operation being folded."""
        self.pair: Pair = (b"", 0)
        self.eff = 0.0  # tidy: seconds of the log are doubles (DOC-010)
        self.is_too_big = False
        """Whether this step skipped anything because the document would get too deep or too large."""

    # Lookups

    def kin(self, parent: Element, tag: str) -> Kin:
        """The children with this tag."""
        chain = self.schema.below.get(parent.tag, {}).get(tag)
        return parent.kin_of(tag, chain.keys if chain else ())

    def slot_of(self, element: Element) -> str:
        """The name of an element for people (DOC-040)."""
        eid = element.attributes.get(EID)
        if eid is not None:
            return f"eid:{eid}"
        parts: list[str] = []
        here = element
        while here.parent is not None:
            parts.append(self._part(here.parent, here))
            here = here.parent
        return "/" + "/".join(reversed(parts))

    def _part(self, parent: Element, element: Element) -> str:
        chain = self.schema.below.get(parent.tag, {}).get(element.tag)
        key = element.attributes.get(chain.keys[0]) if chain else None
        if key is not None:
            return f"{element.tag}[{key}]"
        return f"{element.tag}[#{self.kin(parent, element.tag).place(element) + 1}]"

    # Changes of elements

    def insert(self, element: Element, before: Element | None = None) -> None:
        """Insert a new element below its parent, and register its eid."""
        if not element.rank:
            self.ticks += 1
            element.rank = RANKS + self.ticks
        element.link(before)
        self.count += 1
        eid = element.attributes.get(EID)
        removed = None
        if eid is not None:
            self.live[eid] = element
            if self.gone:
                removed = self.gone.pop(eid, None)
        self.undo.append((_take_out, element, eid, removed))
        parent = element.parent
        assert parent is not None, "only genesis has a root"
        if self.is_noting:
            self._note(parent, element, eid)
        if parent.tag in self.schema.below or parent.tag in self.schema.singles:
            self._compare(parent, element)

    def has_room(self, parent: Element, chain: int = 1) -> bool:
        """Whether a chain of elements fits below `parent` (DOC-002); noted if not."""
        if parent.depth + chain <= DOCUMENT_DEPTH_MAX and self.count + chain <= DOCUMENT_ELEMENTS_MAX:
            return True
        self.is_too_big = True
        return False

    def make(self, parent: Element, chain: Chain, key: str) -> Element:
        """The element of a creatable step, inserted before the first sibling with a larger number."""
        number = int(key)
        element = Element(chain.tag, {chain.keys[0]: key}, "", parent, self.pair)
        element.rank = number
        element.is_fixed = chain.fixed
        self.insert(element, parent.kin_of(chain.tag, chain.keys).after(number))
        return element

    def remove(self, element: Element) -> None:
        """Remove an element and everything below it, with all their eids (DOC-033)."""
        names: list[tuple[str, Element]] = []
        size = 0
        for each in element.subtree():
            size += 1
            eid = each.attributes.get(EID)
            if eid is not None:
                names.append((eid, each))
            if each.aliases:
                names += [(alias, each) for alias in each.aliases]
        element.unlink()
        self.count -= size
        for name, _ in names:
            del self.live[name]
            self.gone[name] = self.pair
        self.undo.append((_put_back, element, names, size))

    def alias(self, element: Element, eid: str) -> None:
        """Register another eid for an element; if it had none, this is its eid (DOC-030)."""
        is_first = EID not in element.attributes
        if is_first:
            element.owned()[EID] = eid
        elif element.aliases is None:
            element.aliases = [eid]
        else:
            element.aliases.append(eid)
        self.live[eid] = element
        self.undo.append((_unalias, element, eid, self.gone.pop(eid, None), is_first))
        if self.is_noting:
            self.events["eid", eid] = None

    # Values

    def write(self, element: Element, name: str, value: str) -> None:
        """Set an attribute, or the text (DOC-032).

        A different value by another author shortly before makes a conflict.
        """
        writers = element.writers
        if writers is None:
            writers = element.writers = {}
        last: Writer | None = writers.get(name)
        if last is not None and last.source != self.pair[0] and last.value != value:
            self._clash(element, name, last, value)
        elif self.operation.resolves:
            self._closes(element, name)
        if name == TEXT:
            old: str | None = element.text
            element.text = value
        else:
            attributes = element.owned() if element.is_shared else element.attributes
            old = attributes.get(name)
            attributes[name] = value
        writers[name] = Writer(self.pair, self.eff, value, old, last)
        self.undo.append((_unwrite, element, name, old, last))
        if name != TEXT:
            self._noted(element, name, old)

    def _noted(self, element: Element, name: str, old: str | None) -> None:
        """An attribute was set: steps that wait for a child or a key have to be tried."""
        parent = element.parent
        steps = self.schema.below.get(parent.tag) if parent is not None else None
        if parent is None or steps is None:
            return
        if self.is_noting:
            self.events["child", self.place_of(parent)] = None
        chain = steps.get(element.tag)
        if chain is None or name not in chain.keys:
            return
        kin = parent.kin.get(element.tag) if parent.kin else None
        if kin is not None and old != element.attributes[name]:
            kin.rename(element, name, old)
        if name == chain.keys[0]:
            self._compare_key(parent, element, chain)

    def append(self, element: Element, text: str) -> None:
        """Append text (DOC-030)."""
        writers = element.writers
        if writers is None:
            writers = element.writers = {}
        last, old = writers.get(APPENDED), element.text
        length, element.text = len(old), ""
        old += text  # in place, since nothing else refers to it, so that a long text can grow in small steps
        element.text = old
        writers[APPENDED] = Writer(self.pair, self.eff, text, None, last)
        self.undo.append((_unappend, element, length, last))

    # Conflicts

    def _clash(self, element: Element, name: str, last: Writer, value: str) -> None:
        """Two authors wrote different values to one slot, one after the other."""
        if self.operation.resolves and self._closes(element, name):
            return
        if abs(self.eff - last.eff) <= WINDOW_S:
            first = Party(last.source, last.sequence, last.value)
            self.report(SET_SET, self.slot_of(element), name, first, value, element)

    def report(  # tidy: a conflict has two parties, a kind and a slot
        self, kind: str, slot: str, attr: str, first: Party, value: str, place: Element | None
    ) -> None:
        """Report a conflict between `first` and the present operation; the same one is reported once."""
        second = Party(*self.pair, value)
        name = conflict_id(kind, first, second, attr)
        if name not in self.found:
            self.found[name] = Conflict(name, kind, slot, attr, first, second, is_open=True, place=place)
            self.undo.append((_unreport, None, name))

    def _closes(self, element: Element, attr: str) -> bool:
        """Close the set-set conflict of this slot that the operation resolves.

        Returns whether it was about this value.
        """
        conflict = self.found.get(self.operation.resolves)
        if conflict is None or not conflict.is_open or conflict.kind != SET_SET or not self.is_at(conflict, element):
            return False
        self.close(conflict)
        return conflict.attr == attr

    def is_at(self, conflict: Conflict, element: Element | None) -> bool:
        """Whether a conflict is about an element, or about one with the same name."""
        return element is not None and (conflict.place is element or conflict.slot == self.slot_of(element))

    def close(self, conflict: Conflict) -> None:
        """Close a conflict."""
        self.found[conflict.id] = conflict._replace(is_open=False)
        self.undo.append((_reopen, None, conflict))

    def _compare(self, parent: Element, element: Element) -> None:
        """Compare a new child with its siblings, where only one should exist, or none with the same key."""
        tag = element.tag
        singles = self.schema.singles.get(parent.tag)
        first = self._of_another(self.kin(parent, tag).elements) if singles and tag in singles else None
        if first is not None and first.origin is not None:
            party = Party(*first.origin, self.slot_of(first))
            self.report(SINGLE, self.slot_of(parent), tag, party, self.slot_of(element), parent)
        chain = self.schema.below.get(parent.tag, {}).get(tag)
        if chain is not None and not chain.is_keyed and chain.keys[0] in element.attributes:
            self._compare_key(parent, element, chain)

    def _compare_key(self, parent: Element, element: Element, chain: Chain) -> None:
        """A child now has the key of another one.

        The maker of that one is the first party, the writer of the key the second.
        """
        name = chain.keys[0]
        key = element.attributes[name]
        same = parent.kin_of(element.tag, chain.keys).by[0][key]
        twin = self._of_another([each for each in same[:TWINS_MAX] if each is not element]) if len(same) > 1 else None
        if twin is not None and twin.origin is not None:
            self.report(DUPLICATE_KEY, self.slot_of(parent), name, Party(*twin.origin, key), key, parent)

    def _of_another(self, same: list[Element]) -> Element | None:
        """The first sibling made by another source than the present one."""
        source = self.pair[0]
        for each in same[:TWINS_MAX]:
            if each.origin is not None and each.origin[0] != source:
                return each
        return None

    # Who waits

    def park(self, step: Step, trigger: Trigger) -> None:
        """Let a step wait."""
        key = (self.eff, self.operation.source, self.operation.sequence, step.index)
        parked = Parked(key, self.operation, step, trigger)
        self.waiting[key] = parked
        self.triggers.setdefault(trigger, {})[key] = parked
        self.undo.append((_unpark, None, parked))

    def unpark(self, parked: Parked) -> None:
        """A step no longer waits."""
        _unpark(self, None, parked)
        self.undo.append((_park, None, parked))

    def _note(self, parent: Element, element: Element, eid: str | None) -> None:
        """The events of a new element (DOC-021)."""
        if eid is not None:
            self.events["eid", eid] = None
        self.events["tag", element.tag] = None
        if parent.tag in self.schema.below:
            self.events["child", self.place_of(parent)] = None

    def released(self) -> dict[Key, Parked]:
        """The steps that wait for any event of this round."""
        ready: dict[Key, Parked] = {}
        for event in self.events:
            if event in self.triggers:
                ready.update(self.triggers[event])
        self.events = {}
        return ready

    def place_of(self, element: Element) -> str:
        """The place of an element, in words that stay the same if it is removed and made again."""
        parts: list[str] = []
        here = element
        while here.parent is not None:
            chain = self.schema.below.get(here.parent.tag, {}).get(here.tag)
            is_keyed = chain is not None and chain.is_keyed
            parts.append(
                f"/{here.tag}[{here.attributes.get(chain.keys[0])}]" if chain and is_keyed else f"/#{here.rank}"
            )
            here = here.parent
        return "".join(reversed(parts))

    def say(self, pair: Pair, outcome: list[str]) -> None:
        """Set the outcome of an operation at its own place."""
        self.undo.append((_unsay, None, pair, self.outcomes.get(pair)))
        self.outcomes[pair] = outcome

    def say_late(self, parked: Parked, outcome: str) -> None:
        """Set the outcome of a step that had waited."""
        pair = (parked.operation.source, parked.operation.sequence)
        place = parked.operation.steps.index(parked.step)
        self.undo.append((_unsay_late, None, pair, place))
        self.late.setdefault(pair, {})[place] = outcome


# Undo functions: (state, element or None, arguments)


def _take_out(state: State, element: Element, eid: str | None, removed: Pair | None) -> None:
    element.unlink()
    state.count -= 1
    if eid is not None:
        del state.live[eid]
        if removed is not None:
            state.gone[eid] = removed


def _put_back(state: State, element: Element, names: list[tuple[str, Element]], size: int) -> None:
    element.relink()
    state.count += size
    for name, each in names:
        del state.gone[name]
        state.live[name] = each


def _unalias(state: State, element: Element, eid: str, removed: Pair | None, is_first: bool) -> None:  # noqa: FBT001  # a record
    if is_first:
        del element.owned()[EID]
    else:
        assert element.aliases, "an alias was given"
        element.aliases.pop()
    del state.live[eid]
    if removed is not None:
        state.gone[eid] = removed


def _unwrite(state: State, element: Element, name: str, old: str | None, last: Writer | None) -> None:
    writers = element.writers
    assert writers, "it was written"
    if last is None:
        del writers[name]
    else:
        writers[name] = last
    if name == TEXT:
        element.text = old or ""
        state.cuts.pop(element, None)
        return
    attributes = element.owned()
    new = attributes[name]
    if old is None:
        del attributes[name]
    else:
        attributes[name] = old
    parent = element.parent
    kin = parent.kin.get(element.tag) if parent is not None and parent.kin else None
    if kin is not None and name in kin.keys and old != new:
        kin.rename(element, name, new)


def _unappend(state: State, element: Element, length: int, last: Writer | None) -> None:
    assert element.writers, "it was written"
    state.cuts[element] = length
    if last is None:
        del element.writers[APPENDED]
    else:
        element.writers[APPENDED] = last


def _unreport(state: State, _: None, name: str) -> None:
    del state.found[name]


def _reopen(state: State, _: None, conflict: Conflict) -> None:
    state.found[conflict.id] = conflict


def _park(state: State, _: None, parked: Parked) -> None:
    state.waiting[parked.key] = parked
    state.triggers.setdefault(parked.trigger, {})[parked.key] = parked


def _unpark(state: State, _: None, parked: Parked) -> None:
    del state.waiting[parked.key]
    same = state.triggers[parked.trigger]
    del same[parked.key]
    if not same:
        del state.triggers[parked.trigger]


def _unsay(state: State, _: None, pair: Pair, old: list[str] | None) -> None:
    if old is None:
        del state.outcomes[pair]
    else:
        state.outcomes[pair] = old


def _unsay_late(state: State, _: None, pair: Pair, place: int) -> None:
    del state.late[pair][place]
    if not state.late[pair]:
        del state.late[pair]
