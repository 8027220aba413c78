"""The writes to an element: author, time, value, and the value before (DOC-054).

Each value of an element keeps its author and the write before (`conflicts.Writer`), and these are undone and folded
again like everything else. So the history shows what counts now, not what seemed to count earlier.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from weft.cores.document.fold.conflicts import APPENDED, Writer
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.tree import Pair
from weft.wire.document.operations import TEXT, eid_of

ELEMENT: Final = "#element"
"""Stands for the element itself, in place of the name of an attribute: it was made, or removed."""


class Past(NamedTuple):
    """One action on an element, by an operation or, if that is an adopted copy, by the original."""

    eff: float
    """Effective time in seconds, which orders operations (DOC-010)."""
    source: bytes
    sequence: int
    attribute: str
    """`#text` for text, `#element` for the element itself."""
    value: str
    """The value; for `#element`, the tag; empty: it was removed."""
    before: str | None
    """None: there was no value, or text was appended."""
    outcome: str
    """`applied`; `added` for appended text; `merged`, `made`, `removed`."""


def pasts_of(fold: Fold, where: str, eff_of: Callable[[Pair], float]) -> list[Past]:
    """All actions on the present element of an eid or a slot of DOC-040, in the order of keys.

    For a removed element only the removal; empty if no such element ever existed.
    """
    element = fold.element_at(where if where.startswith("/") else eid_of(where.removeprefix("eid:")))
    if element is None:
        remover = fold.gone.get(eid_of(where.removeprefix("eid:")))
        return [Past(eff_of(remover), *remover, ELEMENT, "", None, "removed")] if remover else []
    made = element.origin
    pasts = [Past(eff_of(made), *made, ELEMENT, element.tag, None, "made")] if made is not None else []
    for name, writer in (element.writers or {}).items():
        pasts += _written(name, writer)
    return sorted(pasts, key=lambda past: past[:3])


def _written(name: str, last: Writer | None) -> list[Past]:
    """The writes under a name, the first one first."""
    attribute, outcome = (TEXT, "added") if name == APPENDED else (name, "applied")
    found: list[Past] = []
    while last is not None:
        found.append(Past(last.eff, last.source, last.sequence, attribute, last.value, last.before, outcome))
        last = last.previous
    return found[::-1]
