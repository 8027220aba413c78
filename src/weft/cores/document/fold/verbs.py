"""The effects of the three verbs (DOC-030, DOC-032, DOC-033); each returns the outcome of the step.

A payload element with a key in the schema is merged with the existing element of that key: two nodes that make jam 1 at
the same time make one jam.
"""

from collections.abc import Callable
from typing import Final

from weft.cores.document.fold.references import Place, Plan, realise
from weft.cores.document.fold.schema import Chain
from weft.cores.document.fold.state import State
from weft.cores.document.fold.tree import Element
from weft.wire.document.operations import ADD, REMOVE, SET, Step
from weft.wire.document.xml import EID, WHITE, Node


def graft(state: State, parent: Element, node: Node) -> bool:
    """Append a payload element to the children; returns whether anything is new."""
    attributes = node.attributes
    if attributes[EID] in state.live:
        return False
    steps = state.schema.below.get(parent.tag)
    if steps is not None:
        chain = steps.get(node.tag)
        if chain is not None and chain.is_keyed:
            return _merge(state, parent, node, chain)
    if not state.has_room(parent):
        return False
    element = Element(node.tag, attributes, node.text, parent, state.pair)
    element.is_shared = True
    state.insert(element)
    for child in node.children:
        graft(state, element, child)
    return True


def _merge(state: State, parent: Element, node: Node, chain: Chain) -> bool:
    """Merge with the element of the same key; elements without a valid key are ignored."""
    key = node.attributes.get(chain.keys[0], "").strip(WHITE)
    if chain.create and chain.number(key) is None:
        return False
    element = parent.kin_of(chain.tag, chain.keys).find(key)
    if element is None:
        if not chain.create or not state.has_room(parent):
            return False
        element = state.make(parent, chain, key)
    for name, value in node.attributes.items():
        if name != EID and name not in chain.keys:
            state.write(element, name, value)
    if node.text:
        state.append(element, node.text)
    state.alias(element, node.attributes[EID])
    for child in node.children:
        graft(state, element, child)
    return True


APPLIED: Final = "applied"
NOTHING_NEW: Final = "inert:nothing-new"
TOO_BIG: Final = "inert:too-big"
FIXED: Final = "inert:fixed"
BAD_ATTRIBUTE: Final = "inert:bad-attribute"


def add(state: State, step: Step, place: Place) -> str:
    """Append text, then the payload to the children."""
    state.is_too_big = False
    is_new = isinstance(place, Plan)
    target = realise(state, place) if isinstance(place, Plan) else place
    if target is None:
        return TOO_BIG
    if step.text:
        state.append(target, step.text)
        is_new = True
    for node in step.payload:
        if graft(state, target, node):
            is_new = True
    if is_new:
        return APPLIED
    return TOO_BIG if state.is_too_big else NOTHING_NEW


def set_values(state: State, step: Step, place: Place) -> str:
    """Set attributes, or the text; all that the step names, or none."""
    protected = state.schema.protected.get(place.tag)
    if not step.is_sound or (protected and any(name in protected for name, _ in step.writes)):
        return BAD_ATTRIBUTE
    target = realise(state, place) if isinstance(place, Plan) else place
    if target is None:
        return TOO_BIG
    for name, value in step.writes:
        state.write(target, name, value)
    return APPLIED


def remove(state: State, _: Step, place: Place) -> str:
    """Remove an element and everything below it."""
    assert isinstance(place, Element), "nothing is made in order to remove it"
    if place.is_fixed:
        return FIXED
    state.remove(place)
    return APPLIED


VERBS: Final[dict[str, Callable[[State, Step, Place], str]]] = {ADD: add, SET: set_values, REMOVE: remove}
