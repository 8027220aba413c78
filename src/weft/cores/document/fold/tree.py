"""Elements of a document. Whatever is done to one takes the same time however large the document is (DOC-060).

Siblings are a linked list, so that a child is put anywhere, taken out and put back where it was in constant time. Who
looks for siblings by tag or key gets a `Kin`, which is made the first time and kept true from then on.
"""

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from weft.wire.document.xml import EID

Pair = tuple[bytes, int]
"""Source and sequence."""
_RANK: Final = attrgetter("rank")


class Element:
    """Tag, attributes, text, children; and where it stands. Only the fold changes it."""

    __slots__ = (
        "aliases",
        "attributes",
        "depth",
        "first",
        "is_fixed",
        "is_shared",
        "kin",
        "last",
        "next",
        "origin",
        "parent",
        "previous",
        "rank",
        "tag",
        "text",
        "writers",
    )

    def __init__(
        self, tag: str, attributes: dict[str, str], text: str, parent: "Element | None", origin: Pair | None
    ) -> None:
        self.tag, self.attributes, self.text = tag, attributes, text
        self.parent = parent
        self.origin = origin
        """Which operation made it; None: genesis."""
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.first: Element | None = None
        self.last: Element | None = None
        self.previous: Element | None = None
        self.next: Element | None = None
        self.rank = 0
        """Orders siblings of one tag: the number of a creatable step, else in which order they came."""
        self.is_fixed = False
        """Whether it cannot be removed (DOC-033)."""
        self.is_shared = False
        """Whether somebody else has the same dictionary of attributes, so that it is copied before it is changed."""
        self.aliases: list[str] | None = None
        """Further eids that it is known by (DOC-030)."""
        self.writers: dict[str, Any] | None = None
        """Who wrote what last (`conflicts.Writer`), by attribute."""
        self.kin: dict[str, Kin] | None = None

    @property
    def children(self) -> "list[Element]":
        """In order; a new list each time."""
        found: list[Element] = []
        child = self.first
        while child is not None:
            found.append(child)
            child = child.next
        return found

    @property
    def eid(self) -> str | None:
        """What it is known by; None: by its place alone."""
        return self.attributes.get(EID)

    def subtree(self) -> "Iterator[Element]":
        """It and all below it, in document order."""
        todo = [self]
        while todo:
            element = todo.pop()
            yield element
            child = element.last
            while child is not None:
                todo.append(child)
                child = child.previous

    # Where it stands; nobody calls these but the fold and its undo

    def link(self, before: "Element | None" = None) -> None:
        """Stand below the parent: in front of a sibling, or at the end."""
        parent = self.parent
        assert parent is not None, "the root stands nowhere"
        self.next = before
        self.previous = previous = parent.last if before is None else before.previous
        if previous is None:
            parent.first = self
        else:
            previous.next = self
        if before is None:
            parent.last = self
        else:
            before.previous = self
        if parent.kin is not None and self.tag in parent.kin:
            parent.kin[self.tag].take(self)

    def unlink(self) -> None:
        """Stand nowhere; it still knows where it stood."""
        parent, previous, following = self.parent, self.previous, self.next
        assert parent is not None, "the root stands nowhere"
        if previous is None:
            parent.first = following
        else:
            previous.next = following
        if following is None:
            parent.last = previous
        else:
            following.previous = previous
        if parent.kin is not None and self.tag in parent.kin:
            parent.kin[self.tag].leave(self)

    def relink(self) -> None:
        """Stand where it stood; whatever was done to its siblings since has been taken back."""
        self.link(self.next)

    def owned(self) -> dict[str, str]:
        """Its attributes, for it to change."""
        if self.is_shared:
            self.attributes = dict(self.attributes)
            self.is_shared = False
        return self.attributes

    def kin_of(self, tag: str, keys: tuple[str, ...] = ()) -> "Kin":
        """Its children of a tag, by rank and by keys; `keys` are always the same for the same tag of the parent."""
        if self.kin is None:
            self.kin = {}
        kin = self.kin.get(tag)
        if kin is None:
            kin = self.kin[tag] = Kin(keys)
            child = self.first
            while child is not None:
                if child.tag == tag:
                    kin.take(child)
                child = child.next
        return kin


class Kin:
    """Children of one tag below one parent."""

    __slots__ = ("by", "elements", "keys")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.elements: list[Element] = []
        """In document order, which is that of ranks."""
        self.by: tuple[dict[str, list[Element]], ...] = tuple({} for _ in keys)
        """For each key: who has a value, in document order."""

    def find(self, value: str) -> Element | None:
        """By the first key over all siblings, then by the second (DOC-020)."""
        for table in self.by:
            found = table.get(value)
            if found:
                return found[0]
        return None

    def after(self, rank: int) -> Element | None:
        """The first that stands behind a rank."""
        elements = self.elements
        if not elements or elements[-1].rank <= rank:
            return None
        return elements[bisect_left(elements, rank + 1, key=_RANK)]

    def place(self, element: Element) -> int:
        """How many stand before one of them."""
        return bisect_left(self.elements, element.rank, key=_RANK)

    def take(self, element: Element) -> None:
        """One more."""
        _put(self.elements, element)
        for key, table in zip(self.keys, self.by, strict=True):
            value = element.attributes.get(key)
            if value is not None:
                _put(table.setdefault(value, []), element)

    def leave(self, element: Element) -> None:
        """One less."""
        _drop(self.elements, element)
        for key, table in zip(self.keys, self.by, strict=True):
            value = element.attributes.get(key)
            if value is not None:
                _forget(table, value, element)

    def rename(self, element: Element, key: str, old: str | None) -> None:
        """One of its keys was `old` (None: missing) until now."""
        table = self.by[self.keys.index(key)]
        if old is not None:
            _forget(table, old, element)
        value = element.attributes.get(key)
        if value is not None:
            _put(table.setdefault(value, []), element)


def _put(elements: list[Element], element: Element) -> None:
    if elements and elements[-1].rank > element.rank:
        elements.insert(bisect_left(elements, element.rank, key=_RANK), element)
    else:
        elements.append(element)


def _drop(elements: list[Element], element: Element) -> None:
    place = bisect_left(elements, element.rank, key=_RANK)
    assert elements[place] is element, "two siblings of one rank"
    del elements[place]


def _forget(table: dict[str, list[Element]], value: str, element: Element) -> None:
    _drop(table[value], element)
    if not table[value]:
        del table[value]
