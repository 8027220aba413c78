"""Nothing leaves a node before what it depends on is durable (CHK-005; JRN-001, JRN-006).

A node sends its own numbers, and passes on those of others, only when they are in its journal. It acknowledges messages only
when their content is in its journal, and calls them safe only when that is durable at the root. Numbers that a full spool
gave up count as present if the announcement of their loss is.
"""

from typing import Any, ClassVar, Final

from weft.base.ranges import Range
from weft.checks.checker import Checker, Shelf, numbers_of, shown, without
from weft.checks.harm import HARMED
from weft.checks.history import Fact

RECORD: Final = "record"
LINK: Final = "link"
Claim = tuple[int, str, int, int, str]


class Memory:
    """Everything that was ever durable at each node since its disk was last lost."""

    def __init__(self) -> None:
        self.records: dict[str, Shelf] = {}
        self.losses: dict[str, Shelf] = {}

    def note(self, node: str, claim: Any, *, is_loss: bool = False) -> None:
        """A claim, or the announcement of its loss, is durable at `node`."""
        stream, origin, first, last = claim[:4]
        numbers_of((self.losses if is_loss else self.records).setdefault(node, {}), stream, origin).add(first, last)

    def reset(self, node: str) -> None:
        """The disk of `node` has lost all."""
        self.records.pop(node, None)
        self.losses.pop(node, None)

    def hold(self, node: str, claims: Any, losses: Any) -> None:
        """The disk of `node` holds these."""
        for claim in claims:
            self.note(node, claim)
        for claim in losses:
            self.note(node, claim, is_loss=True)

    def lose(self, node: str, claims: Any, losses: Any) -> None:
        """The disk of `node` has lost these."""
        for shelves, lost in ((self.records, claims), (self.losses, losses)):
            for stream, origin, first, last in lost:
                numbers_of(shelves.get(node, {}), stream, origin).remove(first, last)

    def missing(self, claim: Claim, nodes: tuple[str, ...]) -> list[Range]:
        """The part of the claim that no node of `nodes` has, or has announced as lost; an era link has no numbers."""
        stream, origin, first, last, kind = claim
        if kind == LINK:
            return []
        shelves = (self.records, self.losses) if kind == RECORD else (self.losses,)
        covers = [
            numbers
            for shelf in shelves
            for node in nodes
            if (numbers := shelf.get(node, {}).get((stream, origin))) is not None
        ]
        return without([(first, last)], covers)


class Sent:
    """The messages that one start of a child has numbered, from `base` + 1 on."""

    def __init__(self) -> None:
        self.base = 0
        self.claims: list[Claim] = []

    def note(self, first: int, claims: list[Any]) -> bool:
        """Note messages from `first` on, new or repeated ones; False if numbers were left out before them.

        A repeated message may have less content: what a full spool has given up leaves its number behind, and is empty.
        """
        at = first - 1 - self.base
        if at > len(self.claims):
            return False
        if at < 0:
            claims, at = claims[-at:], 0
        self.claims[at : at + len(claims)] = [(c[0], c[1], c[2], c[3], c[4]) for c in claims]
        return True

    def upto(self, since: int, number: int) -> list[Claim] | None:
        """Claims of messages `since` + 1 to `number`; None if so many were never sent."""
        if number > self.base + len(self.claims):
            return None
        return self.claims[max(0, since - self.base) : max(0, number - self.base)]

    def trim(self, upto: int) -> None:
        """Forget numbers that are safe."""
        if upto > self.base:
            del self.claims[: upto - self.base]
            self.base = upto


class Wall(Checker):
    """Every hop and hack is sent after what it depends on is durable."""

    rule = "wall"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("durable", "segment"): "note_segment",
        ("durable", "taken"): "note_record",
        ("durable", "held"): "note_record",
        ("durable", "lost"): "note_loss",
        ("sent", "hello"): "note_hello",
        ("sent", "hop"): "note_hop",
        ("sent", "hack"): "note_hack",
    }

    def __init__(self) -> None:
        self.memory = Memory()
        self.drained: dict[str, list[tuple[int, Any]]] = {}
        """Per root: what is in its lake, so that damage of its journal does not lose it."""
        self.roots: tuple[str, ...] = ()
        self.sent: dict[tuple[str, int], Sent] = {}
        self.called_safe: Shelf = {}
        """What a root may have called safe before its journal lost it: others may still pass that on."""
        self.acknowledged: dict[tuple[str, str, int], int] = {}
        self.safe: dict[tuple[str, str, int], int] = {}

    def note_start(self, fact: Fact) -> None:
        if fact.value[0] == "root" and fact.node not in self.roots:
            self.roots += (fact.node,)

    def note_disk(self, fact: Fact) -> None:
        how, claims, losses = fact.value
        if how != HARMED:
            self.memory.reset(fact.node)
        self.memory.hold(fact.node, claims, losses)

    def note_harmed(self, fact: Fact) -> None:
        _, _, claims, losses, _ = fact.value
        self.memory.lose(fact.node, claims, losses)
        if fact.node in self.roots:
            for stream, origin, first, last in claims:
                numbers_of(self.called_safe, stream, origin).add(first, last)
        for stream, claim in self.drained.get(fact.node, ()):
            self.memory.note(fact.node, [stream, *claim])

    def note_segment(self, fact: Fact) -> None:
        stream, _, claims, _, _ = fact.value
        self.drained.setdefault(fact.node, []).extend((stream, claim) for claim in claims)

    def note_record(self, fact: Fact) -> None:
        self.memory.note(fact.node, fact.value)

    def note_loss(self, fact: Fact) -> None:
        self.memory.note(fact.node, fact.value, is_loss=True)

    def note_hello(self, fact: Fact) -> None:
        _, era, first = fact.value
        self.sent.setdefault((fact.node, era), Sent()).trim(first - 1)

    def note_hop(self, fact: Fact) -> None:
        _, era, first, claims = fact.value
        for claim in claims:
            missing = self.memory.missing(claim, (fact.node,))
            if missing:
                self.broken(f"{fact.node} sent {shown(missing)} of {claim[1]} before they were durable there", fact)
        if not self.sent.setdefault((fact.node, era), Sent()).note(first, claims):
            self.broken(f"{fact.node} left out numbers before message {first}", fact)

    def note_hack(self, fact: Fact) -> None:
        child, era, upto, safe = fact.value
        sent = self.sent.get((child, era))
        if sent is None:
            if upto or safe:
                self.broken(f"{fact.node} acknowledges {upto} messages of {child}, which sent none", fact)
            return
        key = (fact.node, child, era)
        self._judge(sent, self.acknowledged.get(key, 0), upto, (fact.node, *self.roots), fact)
        self.acknowledged[key] = max(upto, self.acknowledged.get(key, 0))
        self._judge(sent, self.safe.get(key, 0), safe, self.roots, fact)
        self.safe[key] = max(safe, self.safe.get(key, 0))
        sent.trim(safe)

    def _judge(self, sent: Sent, since: int, upto: int, where: tuple[str, ...], fact: Fact) -> None:
        claims = sent.upto(since, upto)
        if claims is None:
            self.broken(f"{fact.node} acknowledges message {upto} of {fact.value[0]}, which was never sent", fact)
        for claim in claims:
            missing = self.memory.missing(claim, where)
            if missing and fact.node not in self.roots and claim[:2] in self.called_safe:
                missing = without(missing, [self.called_safe[claim[:2]]])
            if missing:
                places = " or ".join(dict.fromkeys(where))
                self.broken(f"{fact.node} answers for {shown(missing)} of {claim[1]}, not durable at {places}", fact)
