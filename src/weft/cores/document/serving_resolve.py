"""Turns a person's decision about a conflict into an entry (DOC-040, DOC-041).

| kind | first, second | a value | seen |
|---|---|---|---|
| set-set | that value is written again | it is written | the present one is written again |
| duplicate-key | the element of the other party is removed | the second one gets it as its key | nothing is changed |
| single | the other one is removed | - | nothing is changed |
| lost-edit | first: it stays removed | - | it stays removed |

Each entry has `resolves`, so the conflict is closed on all nodes. A decision never brings a removed element back.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.cores.document.fold.conflicts import DUPLICATE_KEY, LOST_EDIT, SET_SET, SINGLE, Conflict, Party
from weft.cores.document.fold.tree import Element
from weft.cores.kit.refusals import Refusal
from weft.wire.document.operations import ADD, REMOVE, SET, TEXT
from weft.wire.document.xml import Payload

if TYPE_CHECKING:
    from weft.cores.document.fold.engine import Engine

FIRST, SECOND, SEEN = "first", "second", "seen"
CHOICES: Final = (FIRST, SECOND, SEEN)


class Decision(NamedTuple):
    """The entry for a decision."""

    verb: str
    reference: dict[str, str]
    payload: Payload


def decision_of(engine: "Engine", conflict: Conflict, choice: str, value: str | None) -> Decision:
    """The entry; Refusal `bad-choice` if the conflict does not have this choice, `not-found` if it no longer exists."""
    if (value is None) == (choice not in CHOICES) or (value is not None and choice):
        raise _bad(conflict, "which one is right?")
    return DECIDE[conflict.kind](engine, conflict, choice, value)


def _bad(conflict: Conflict, why: str, mend: str = "") -> Refusal:
    begin = f"weft doc resolve {conflict.id}"
    text = f"{conflict.kind} on {conflict.attr} of {conflict.slot}: {why}"
    return Refusal("bad-choice", text, mend or f"{begin} --first, --second, --seen, or --value V")


def _place(engine: "Engine", conflict: Conflict) -> Element:
    if conflict.place is None or engine.at(engine.slot_of(conflict.place)) is not conflict.place:
        text = f"{conflict.slot} has been removed meanwhile"
        raise Refusal("not-found", text, "weft doc log: by whom; a removed element has nothing to decide")
    return conflict.place


def _set_set(engine: "Engine", conflict: Conflict, choice: str, value: str | None) -> Decision:
    place, attr = _place(engine, conflict), conflict.attr
    if value is None:
        present = place.text if attr == TEXT else place.attributes.get(attr, "")
        value = {FIRST: conflict.first.value, SECOND: conflict.second.value, SEEN: present}[choice]
    payload = Payload(value) if attr == TEXT else Payload("", [], {attr: value})
    return Decision(SET, _reference(engine, place), payload)


def _duplicate_key(engine: "Engine", conflict: Conflict, choice: str, value: str | None) -> Decision:
    place, attr = _place(engine, conflict), conflict.attr
    if choice == SEEN:
        return Decision(ADD, _reference(engine, place), Payload())
    loser = conflict.first if choice == SECOND else conflict.second
    found = [
        child for child in place.children if child.attributes.get(attr) == loser.value and _is_of(child, attr, loser)
    ]
    if not found:
        raise _bad(conflict, "one of the two is gone already", f"weft doc resolve {conflict.id} --seen")
    reference = _reference(engine, found[-1])
    if value is not None:
        return Decision(SET, reference, Payload("", [], {attr: value}))
    return Decision(REMOVE, reference, Payload())


def _is_of(child: Element, attr: str, party: Party) -> bool:
    """Whether a party made an element, or gave it its key."""
    writer = (child.writers or {}).get(attr)
    return party[:2] in (child.origin, writer and (writer.source, writer.sequence))


def _single(engine: "Engine", conflict: Conflict, choice: str, value: str | None) -> Decision:
    place = _place(engine, conflict)
    if value is not None:
        raise _bad(
            conflict, "there is no value to choose", f"weft doc resolve {conflict.id} --first, --second, or --seen"
        )
    if choice == SEEN:
        return Decision(ADD, _reference(engine, place), Payload())
    loser = engine.at(conflict.first.value if choice == SECOND else conflict.second.value)
    if loser is None:
        raise _bad(conflict, "one of the two is gone already", f"weft doc resolve {conflict.id} --seen")
    return Decision(REMOVE, _reference(engine, loser), Payload())


def _lost_edit(_: "Engine", conflict: Conflict, choice: str, value: str | None) -> Decision:
    if choice == SECOND or value is not None:
        mend = f"weft doc add …: enter it anew; then weft doc resolve {conflict.id} --first"
        raise _bad(conflict, "what was removed is not brought back by a decision", mend)
    reference = {"eid": conflict.slot.removeprefix("eid:")}
    return Decision(ADD, reference, Payload())


def _reference(engine: "Engine", element: Element) -> dict[str, str]:
    return engine.reference_of(engine.slot_of(element))


DECIDE: Final[dict[str, Callable[["Engine", Conflict, str, str | None], Decision]]] = {
    SET_SET: _set_set,
    DUPLICATE_KEY: _duplicate_key,
    SINGLE: _single,
    LOST_EDIT: _lost_edit,
}
