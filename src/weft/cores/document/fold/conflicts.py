"""Conflicting edits are reported to people, as part of the document's state (DOC-040).

set-set        two authors wrote different values to one slot within 60 s: the later one in order counts
lost-edit      an author edited what another author had removed
duplicate-key  two siblings have the same key
single         there is a second child where there should be one
"""

from hashlib import sha256
from typing import Final, NamedTuple

from weft.cores.document.fold.tree import Element, Pair
from weft.wire.document.operations import uuid_text

SET_SET, LOST_EDIT, DUPLICATE_KEY, SINGLE = "set-set", "lost-edit", "duplicate-key", "single"
APPENDED: Final = "#append"
"""Stands for an attribute in `Element.writers`: who appended text (DOC-054); not a write in the sense of conflicts."""


class Writer:
    """The author of a value's last write: by `set`, or by a payload element that was merged."""

    __slots__ = ("before", "eff", "previous", "sequence", "source", "value")

    def __init__(self, pair: Pair, eff: float, value: str, before: str | None, previous: "Writer | None") -> None:
        self.source, self.sequence = pair
        """The original's author, if an adopted copy wrote it (DOC-013)."""
        self.eff = eff  # tidy: seconds of the log are doubles (DOC-010)
        self.value, self.before = value, before
        """`before`: the write that it replaced; None: there was none."""
        self.previous = previous


class Party(NamedTuple):
    """One of the two sides."""

    source: bytes
    sequence: int
    value: str


class Conflict(NamedTuple):
    """Two conflicting actions on one slot; both stay in the log, whatever becomes of them."""

    id: str
    """The same on every node."""
    kind: str
    slot: str
    """`eid:…`, else a path such as `/period[1]/jam[3]`, as at that time."""
    attr: str
    """`#text` for text; the verb for lost-edit, the tag for single."""
    first: Party
    second: Party
    is_open: bool
    place: Element | None
    """The place of the slot; None: it was removed."""

    def as_data(self) -> dict[str, object]:
        """For display and export."""
        first, second = ([uuid_text(each.source), each.sequence, each.value] for each in (self.first, self.second))
        parts = {"id": self.id, "kind": self.kind, "slot": self.slot, "attr": self.attr}
        return {**parts, "first": first, "second": second, "open": self.is_open}


def conflict_id(kind: str, first: Party, second: Party, attr: str) -> str:
    """16 hexadecimal digits; a write that resolves the conflict names them."""
    parties = " ".join(f"{uuid_text(each.source)}/{each.sequence}" for each in (first, second))
    return sha256(f"{kind} {parties} {attr}".encode()).hexdigest()[:16]
