"""Elements of a document. Every change takes the same time, however large the document is (DOC-060).

Siblings are a linked list, so a child is inserted, removed and put back in constant time. To find siblings by tag or
key there is a `Kin`, which is built at the first lookup and maintained from then on.
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
    """Tag, attributes, text, children, and its position. Only the fold changes it."""

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
        """The operation that made it; None: genesis."""
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.first: Element | None = None
        self.last: Element | None = None
        self.previous: Element | None = None
        self.next: Element | None = None
        self.rank = 0
        """Orders siblings of one tag: the number of a creatable step, else the order of arrival."""
        self.is_fixed = False
        """Whether it cannot be removed (DOC-033)."""
        self.is_shared = False
        """Whether another element shares the dictionary of attributes, so that it is copied before a change."""
        self.aliases: list[str] | None = None
        """Further eids of this element (DOC-030)."""
        self.writers: dict[str, Any] | None = None
        """The last writer of each attribute (`conflicts.Writer`)."""
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
        """Its eid; None: it is known only by its position."""
        return self.attributes.get(EID)

    def subtree(self) -> "Iterator[Element]":
        """The element and everything below it, in document order."""
        todo = [self]
        while todo:
            element = todo.pop()
            yield element
            child = element.last
            while child is not None:
                todo.append(child)
                child = child.previous

    # Position; only the fold and its undo functions call these

    def link(self, before: "Element | None" = None) -> None:
        """Insert below the parent: before a sibling, or at the end."""
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
        """Remove from the parent; the former position is remembered."""
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
        """Put back at the former position; later changes of the siblings have been undone already."""
        self.link(self.next)

    def owned(self) -> dict[str, str]:
        """Its attributes, ready to be changed."""
        if self.is_shared:
            self.attributes = dict(self.attributes)
            self.is_shared = False
        return self.attributes

    def kin_of(self, tag: str, keys: tuple[str, ...] = ()) -> "Kin":
        """Its children of a tag, by rank and by keys; `keys` must always be the same for one tag below one parent."""
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
        """In document order, which is the order of ranks."""
        self.by: tuple[dict[str, list[Element]], ...] = tuple({} for _ in keys)
        """For each key: the elements by value, in document order."""

    def find(self, value: str) -> Element | None:
        """By the first key among all siblings, else by the second (DOC-020)."""
        for table in self.by:
            found = table.get(value)
            if found:
                return found[0]
        return None

    def after(self, rank: int) -> Element | None:
        """The first element with a greater rank."""
        elements = self.elements
        if not elements or elements[-1].rank <= rank:
            return None
        return elements[bisect_left(elements, rank + 1, key=_RANK)]

    def place(self, element: Element) -> int:
        """The number of elements before this one."""
        return bisect_left(self.elements, element.rank, key=_RANK)

    def take(self, element: Element) -> None:
        """Add an element."""
        _put(self.elements, element)
        for key, table in zip(self.keys, self.by, strict=True):
            value = element.attributes.get(key)
            if value is not None:
                _put(table.setdefault(value, []), element)

    def leave(self, element: Element) -> None:
        """Remove an element."""
        _drop(self.elements, element)
        for key, table in zip(self.keys, self.by, strict=True):
            value = element.attributes.get(key)
            if value is not None:
                _forget(table, value, element)

    def rename(self, element: Element, key: str, old: str | None) -> None:
        """Update a key of an element, which was `old` (None: missing) until now."""
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
