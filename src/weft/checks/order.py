"""Records of one origin keep their order all the way up (CHN-032, JRN-006).

The exceptions are records that a full spool announced as lost, and those that a damaged journal has lost: a second copy of
them may arrive late.
"""

from typing import ClassVar

from weft.base.records import Stream
from weft.checks.checker import Checker, Shelf, numbers_of
from weft.checks.history import Fact


class Order(Checker):
    """At the root, the numbers of each stream and origin ascend, and the eras of a node never go back."""

    rule = "order"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "disk"): "note_disk",
        ("info", "harmed"): "note_harmed",
        ("durable", "lost"): "note_lost",
        ("durable", "held"): "note_held",
        ("durable", "taken"): "note_held",
    }

    def __init__(self) -> None:
        self.last: dict[str, dict[tuple[int, str], tuple[int, int]]] = {}
        """Per root, per stream and node: era and number of the last that came."""
        self.lost: Shelf = {}
        """Numbers that some node has lost: a second copy of them may arrive after later numbers."""

    def note_start(self, fact: Fact) -> None:
        if fact.value[0] == "root":
            self.last.setdefault(fact.node, {})

    def note_disk(self, fact: Fact) -> None:
        if fact.node in self.last:
            self.last[fact.node] = {}

    def note_lost(self, fact: Fact) -> None:
        stream, origin, first, last, _ = fact.value
        numbers_of(self.lost, stream, origin).add(first, last)

    def note_harmed(self, fact: Fact) -> None:
        for stream, origin, first, last in fact.value[2]:
            numbers_of(self.lost, stream, origin).add(first, last)

    def note_held(self, fact: Fact) -> None:
        known = self.last.get(fact.node)
        if known is None:
            return
        stream, origin, first, last = fact.value
        if stream == Stream.DOCUMENTS:
            return  # every node of a session sends its operations up, and a root of the session also has its own
        name, _, era = origin.rpartition("/")
        before = known.get((stream, name), (0, 0))
        if (int(era), first) <= before:
            if numbers_of(self.lost, stream, origin).covers(first, last):
                return
            self.broken(f"{fact.node} got number {first} of {origin} after number {before[1]} of era {before[0]}", fact)
        known[stream, name] = (int(era), last)
