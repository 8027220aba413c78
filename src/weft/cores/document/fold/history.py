"""Who set what of an element, when, and what it was before (DOC-054)."""

from typing import NamedTuple

from weft.cores.document.fold.folding import Fold


class Past(NamedTuple):
    """One write that had an effect, in the order of keys."""

    source: bytes
    sequence: int
    eff: float
    attribute: str
    """`#text`: the text."""
    value: str
    before: str | None
    """None: there was nothing before."""
    outcome: str


def pasts_of(fold: Fold, slot: str) -> list[Past]:
    """All writes to what a slot, or an eid, names now; empty where there is no such element."""
    raise NotImplementedError
