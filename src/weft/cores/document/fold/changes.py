"""What is different from the state that was delivered last (DOC-054).

Operations that come late take effects of others back, so what changed is not what the new operations did: two states are
compared, slot by slot. A slot is the name of an element as in DOC-040.
"""

from typing import NamedTuple

from weft.cores.document.fold.folding import Fold


class Delta(NamedTuple):
    """Slots, in the order of the document; of what is gone, in the order that it had."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    """Another text, or other attributes."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


Seen = tuple[str, dict[str, str]]
"""Text and attributes of an element."""


class Changes:
    """The state that was delivered last."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def since(self, fold: Fold) -> Delta:
        """Compare with the state before, which this one replaces; the first time everything is added."""
        before, now = self._seen, seen(fold)
        self._seen = now
        return Delta(
            tuple(slot for slot in now if slot not in before),
            tuple(slot for slot in before if slot not in now),
            tuple(slot for slot, what in now.items() if slot in before and before[slot] != what),
        )


def seen(fold: Fold) -> dict[str, Seen]:
    """Every element of a document by its slot, in the order of the document."""
    return {fold.slot_of(element): (element.text, dict(element.attributes)) for element in walk(fold.root)}
