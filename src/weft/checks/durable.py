"""Every start finds all acknowledged records again, if the disk was kept (CHK-006)."""

from typing import Any, ClassVar

from weft.base.ranges import RangeSet
from weft.checks.checker import Checker, Shelf, numbers_of, shown, without
from weft.checks.history import Fact
from weft.checks.wall import RECORD, Sent


class Durable(Checker):
    """A start finds what its node made durable or acknowledged, except what its journal dropped on purpose."""

    rule = "durable"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("info", "forgot"): "note_forgot",
        ("info", "restored"): "note_restored",
        ("durable", "taken"): "note_record",
        ("durable", "held"): "note_record",
        ("durable", "lost"): "note_loss",
        ("durable", "segment"): "note_segment",
        ("sent", "hello"): "note_hello",
        ("sent", "hop"): "note_hop",
        ("sent", "hack"): "note_hack",
    }

    def __init__(self) -> None:
        self.owed: dict[str, Shelf] = {}
        """The records that each node must find again."""
        self.sent: dict[tuple[str, int], Sent] = {}
        self.answered: dict[tuple[str, str, int], int] = {}
        self.given_up: dict[str, Shelf] = {}
        self.drained: dict[str, Shelf] = {}
        """Per root: what is in its lake."""
        self.announced: Shelf = {}
        """Losses that some node has durably announced: they may answer for a record as well."""
        self.harmed: set[str] = set()
        self.roots: set[str] = set()

    def note_start(self, fact: Fact) -> None:
        if fact.value[0] == "root":
            self.roots.add(fact.node)

    def note_segment(self, fact: Fact) -> None:
        stream, _, claims, _, _ = fact.value
        for origin, first, last in claims:
            numbers_of(self.drained.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_harmed(self, fact: Fact) -> None:
        """A damaged journal need not have what the lake has, when it is offered again."""
        self.harmed.add(fact.node)

    def note_disk(self, fact: Fact) -> None:
        self.owed.pop(fact.node, None)
        self.given_up.pop(fact.node, None)
        for stream, origin, first, last in fact.value[1]:
            numbers_of(self.owed.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_record(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        numbers_of(self.owed.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_loss(self, fact: Fact) -> None:
        stream, origin, first, last, _ = fact.value
        numbers_of(self.announced, stream, origin).add(first, last)

    def note_hello(self, fact: Fact) -> None:
        _, era, first = fact.value
        self.sent.setdefault((fact.node, era), Sent()).trim(first - 1)

    def note_hop(self, fact: Fact) -> None:
        _, era, first, claims = fact.value
        self.sent.setdefault((fact.node, era), Sent()).note(first, claims)

    def note_hack(self, fact: Fact) -> None:
        child, era, upto, safe = fact.value
        sent = self.sent.get((child, era))
        key = (fact.node, child, era)
        since = self.answered.get(key, 0)
        if sent is None or upto <= since:
            return
        self.answered[key] = upto
        for stream, origin, first, last, kind in sent.upto(since, upto) or ():
            if kind == RECORD and not self._is_at_a_root(stream, origin, first, last):
                numbers_of(self.owed.setdefault(fact.node, {}), stream, origin).add(first, last)
        sent.trim(safe)

    def _is_at_a_root(self, stream: int, origin: str, first: int, last: int) -> bool:
        covers = [self.owed.get(root, {}).get((stream, origin)) for root in sorted(self.roots)]
        return any(numbers.covers(first, last) for numbers in covers if numbers is not None)

    def note_forgot(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        numbers_of(self.given_up.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_restored(self, fact: Fact) -> None:
        """Everything owed is on the disk, or was dropped on purpose."""
        found: dict[tuple[int, str], RangeSet] = {}
        for claim in fact.value[0]:
            numbers_of(found, claim[0], claim[1]).add(claim[2], claim[3])
        given_up = self.given_up.get(fact.node, {})
        drained = self.drained.get(fact.node, {}) if fact.node in self.harmed else {}
        for key, owed in self.owed.get(fact.node, {}).items():
            there: list[Any] = [shelf[key] for shelf in (found, given_up, drained, self.announced) if key in shelf]
            missing = without(list(owed), there)
            if missing:
                self.broken(f"{fact.node} answered for {shown(missing)} of {key[1]} and did not find them again", fact)
