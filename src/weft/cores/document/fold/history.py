"""Who set what of an element, when, and what it was before (DOC-054).

Each value of an element knows who wrote it and who wrote before (`conflicts.Writer`), and that is taken back and folded
anew with everything else: so this is what counts now, not what once seemed to.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from weft.cores.document.fold.conflicts import APPENDED, Writer
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.tree import Pair
from weft.wire.document.operations import TEXT, eid_of

ELEMENT: Final = "#element"
"""Stands for an element itself, where the name of an attribute could stand: it was made, or removed."""


class Past(NamedTuple):
    """One thing that was done to an element, by an operation or, if that is an adopted copy, by the original."""

    eff: float
    """Seconds, in the order of which operations count (DOC-010)."""
    source: bytes
    sequence: int
    attribute: str
    """`#text` for text, `#element` for the element itself."""
    value: str
    """Of `#element`: the tag; empty: it was removed."""
    before: str | None
    """None: nothing was there, or text was put behind what was."""
    outcome: str
    """`applied`; `added` for text that was put behind what was there; `merged`, `made`, `removed`."""


def pasts_of(fold: Fold, where: str, eff_of: Callable[[Pair], float]) -> list[Past]:
    """All that was done to what an eid, or a slot of DOC-040, names now, in the order of keys.

    Of what is removed, only by whom; empty where nothing of that name ever was.
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
    """What was written under a name, the first first."""
    attribute, outcome = (TEXT, "added") if name == APPENDED else (name, "applied")
    found: list[Past] = []
    while last is not None:
        found.append(Past(last.eff, last.source, last.sequence, attribute, last.value, last.before, outcome))
        last = last.previous
    return found[::-1]
