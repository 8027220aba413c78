"""Payload elements become part of the document: most are new, those of a schema's keys merge with what is there (DOC-030).

Two nodes that make jam 1 at the same time make one jam.
"""

from weft.cores.document.fold.schema import Chain
from weft.cores.document.fold.state import State
from weft.cores.document.fold.tree import Element
from weft.wire.document.xml import EID, WHITE, Node


def graft(state: State, parent: Element, node: Node) -> bool:
    """Put a payload element at the end of the children; whether anything is new by it."""
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
    """Be one with the element of the same key; what has no good key is passed over."""
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
