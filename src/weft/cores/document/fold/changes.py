"""Differences to the state that was delivered last (DOC-054).

A late operation can undo effects of others, so the new operations alone do not show what has changed. Two states are
compared slot by slot; a slot is the name of an element, as in DOC-040. Only elements named in the undo records are
examined, including records that were taken back, so a small change costs little in a large document. If the document
was replaced (after a refold in slices), or records are gone, everything is compared.
"""

from collections.abc import Iterable
from typing import NamedTuple

from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.track import Track
from weft.cores.document.fold.tree import Element

Seen = tuple[str, dict[str, str]]
"""Text and attributes of an element."""


class Delta(NamedTuple):
    """Slots, sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Slots with other text, or other attributes."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.removed or self.changed)


class Changes:
    """The state delivered last, and the elements that may have changed since."""

    def __init__(self) -> None:
        self._fold: Fold | None = None
        """The fold that the elements belong to; None: compare everything."""
        self._mark = 0
        """Position in its undo records at the last delivery."""
        self._touched: dict[Element, None] = {}
        """Elements whose changes were taken back since."""
        self._slots: dict[Element, str] = {}
        self._seen: dict[str, Seen] = {}
        self._numbered: dict[str, None] = {}
        """Tags whose elements are named by their number among siblings, so that adding or removing one renames others.
        """

    def note_rewind(self, track: Track, place: int) -> None:
        """A track is about to go back, which removes undo records."""
        if self._fold is track.fold and place < track.place:
            mark = track.mark_of(place)
            if mark < self._mark:
                self._touched.update(dict.fromkeys(self._fold.touched(mark)))
                self._mark = mark

    def since(self, track: Track) -> Delta:
        """Compare with the state before, which this one then replaces; the first time everything is added."""
        fold = track.fold
        if self._fold is fold and self._mark >= track.oldest_mark:
            touched = [*self._touched, *fold.touched(self._mark)]
            if not any(element.tag in self._numbered for element in touched):
                delta = self._compare(fold, touched)
                self._remember(track)
                return delta
        delta = self._compare_all(fold)
        self._remember(track)
        return delta

    def _remember(self, track: Track) -> None:
        self._fold, self._mark = track.fold, track.fold.mark()
        self._touched.clear()

    def _compare_all(self, fold: Fold) -> Delta:
        before = self._seen
        self._slots, self._seen, self._numbered = {}, {}, {}
        for element in fold.root.subtree():
            self._take(fold, element)
        return _delta(before, self._seen)

    def _compare(self, fold: Fold, touched: Iterable[Element]) -> Delta:
        """Compare some elements, and everything below those that came or went."""
        before: dict[str, Seen] = {}
        there: list[Element] = []
        for element in dict.fromkeys(touched):
            is_there = _is_attached(element, fold.root)
            for each in (element,) if is_there and element in self._slots else element.subtree():
                slot = self._slots.pop(each, None)
                if slot is not None:
                    before[slot] = self._seen.pop(slot)
            if is_there:
                there.append(element)
        after: dict[str, Seen] = {}
        for element in there:
            for each in element.subtree() if element not in self._slots else (element,):
                if each not in self._slots:
                    slot = self._take(fold, each)
                    after[slot] = self._seen[slot]
        return _delta(before, after)

    def _take(self, fold: Fold, element: Element) -> str:
        """Note the present state of an element."""
        slot = self._slots[element] = fold.slot_of(element)
        self._seen[slot] = (element.text, dict(element.attributes))
        if slot.endswith("]") and "[#" in slot:
            self._numbered[element.tag] = None
        return slot


def _is_attached(element: Element, root: Element) -> bool:
    """Whether it is in the document."""
    while element is not root:
        parent, previous = element.parent, element.previous
        if parent is None or (parent.first if previous is None else previous.next) is not element:
            return False
        element = parent
    return True


def _delta(before: dict[str, Seen], after: dict[str, Seen]) -> Delta:
    return Delta(
        tuple(sorted(slot for slot in after if slot not in before)),
        tuple(sorted(slot for slot in before if slot not in after)),
        tuple(sorted(slot for slot, what in after.items() if slot in before and before[slot] != what)),
    )
