"""An identity exists once: in the journal of its origin, in that of the root, in the lake (CHK-010)."""

from typing import ClassVar

from weft.base.ranges import RangeSet
from weft.base.records import Stream
from weft.checks.checker import Checker, Shelf, numbers_of, shown
from weft.checks.harm import HARMED
from weft.checks.history import Fact


class ExactlyOnce(Checker):
    """No number of a stream and origin is given, delivered, or drained a second time."""

    rule = "exactly_once"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("durable", "taken"): "note_taken",
        ("durable", "held"): "note_held",
        ("durable", "segment"): "note_segment",
        ("event", "lake-unknown"): "note_unknown",
    }

    def __init__(self) -> None:
        self.taken: Shelf = {}
        self.delivered: dict[str, Shelf] = {}
        """By root: all numbers that its journal has ever held."""
        self.lakes: dict[str, Shelf] = {}
        """By root: the numbers in its lake. Two lakes may hold the same, because a new root may drain it again."""
        self.again: dict[str, Shelf] = {}
        """By root, and by its lake (`lake of NAME`): operations of documents that are there a second time."""
        self.carried: dict[str, Shelf] = {}
        self.doubled: dict[str, Shelf] = {}
        """Numbers that a node held twice, by two paths, before it was the root: its lake has them twice, the tables once."""
        self.segments: dict[tuple[str, int], int] = {}
        self.unknowing: set[str] = set()
        """Roots that have reported that they do not know what their lakes hold: records that come meanwhile may be there twice."""

    def note_unknown(self, fact: Fact) -> None:
        (is_unknown,) = fact.value
        if is_unknown:
            self.unknowing.add(fact.node)
        else:
            self.unknowing.discard(fact.node)

    def note_start(self, fact: Fact) -> None:
        self.unknowing.discard(fact.node)
        if fact.value[0] == "root":
            self.delivered.setdefault(fact.node, {})
        else:
            self.delivered.pop(fact.node, None)

    def note_disk(self, fact: Fact) -> None:
        """A root whose disk is lost starts again from nothing; the lake keeps its contents."""
        if fact.node in self.delivered and fact.value[0] != HARMED:
            self.delivered[fact.node] = {}
            self.again.pop(fact.node, None)

    def note_harmed(self, fact: Fact) -> None:
        """What a damaged journal has lost may come to it again: of documents also what it had released long before."""
        for stream, origin, first, last in fact.value[2]:
            numbers_of(self.delivered.get(fact.node, {}), stream, origin).remove(first, last)
        for where in (fact.node, _lake_of(fact.node)):
            self.again.pop(where, None)

    def note_taken(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        self._once(numbers_of(self.taken, stream, origin), first, last, f"{origin} gave", fact)
        self.note_held(fact)

    def note_held(self, fact: Fact) -> None:
        shelf = self.delivered.get(fact.node)
        stream, origin, first, last = fact.value
        if shelf is not None:
            seen = self._seen(shelf, fact.node, (stream, origin, first, last))
            self._once(seen, first, last, f"{fact.node} delivered of {origin}", fact)
            if fact.node in self.unknowing:
                numbers_of(self.doubled.setdefault(fact.node, {}), stream, origin).add(first, last)
        elif numbers_of(self.carried.setdefault(fact.node, {}), stream, origin).add(first, last) != last - first + 1:
            numbers_of(self.doubled.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_segment(self, fact: Fact) -> None:
        stream, number, claims, _, _ = fact.value
        before = self.segments.get((fact.node, stream), 0)
        if number != before + 1:
            self.broken(f"{fact.node} wrote segment {number} of stream {stream} after {before}", fact)
        self.segments[fact.node, stream] = number
        lake = self.lakes.setdefault(fact.node, {})
        for origin, first, last in claims:
            if numbers_of(self.doubled.get(fact.node, {}), stream, origin).overlap(first, last):
                continue
            seen = self._seen(lake, _lake_of(fact.node), (stream, origin, first, last))
            self._once(seen, first, last, f"segment {number} holds of {origin}", fact)

    def _seen(self, shelf: Shelf, where: str, claim: tuple[int, str, int, int]) -> RangeSet:
        """The numbers that the claim must not overlap.

        The root of a session has its operations twice: from below, and its own.
        """
        stream, origin, first, last = claim
        seen = numbers_of(shelf, stream, origin)
        if stream == Stream.DOCUMENTS and seen.overlap(first, last):
            return numbers_of(self.again.setdefault(where, {}), stream, origin)
        return seen

    def _once(self, seen: RangeSet, first: int, last: int, who: str, fact: Fact) -> None:
        if seen.add(first, last) != last - first + 1:
            # `add` has already merged them, so name the numbers that came, not the new ones
            self.broken(f"{who} {shown([(first, last)])}, of which some were there before", fact)


def _lake_of(node: str) -> str:
    return f"lake of {node}"
