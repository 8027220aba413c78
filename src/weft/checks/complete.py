"""Nothing is missing that is not named (CHK-009).

Per stream and origin, what was taken is delivered at the root, announced as lost, or still spooled in a journal
on the way. That holds at every instant: so whenever a journal gives something up, by intent or because its disk
is gone, it must be somewhere else. At rest nothing is spooled: what was taken is in the lake, or named there.

Numbers that only the origin has are lost with its disk, and the announcement of a loss with the disk of the node that gave
them up. These numbers are *unknown*, and the completeness table rightly calls them missing.
"""

from collections.abc import Iterable
from typing import ClassVar

from weft.base.ranges import Range, RangeSet
from weft.base.records import Stream
from weft.checks.checker import Checker, Shelf, numbers_of, shown, without
from weft.checks.history import Fact, Unknown, Violation

Key = tuple[int, str]


class Complete(Checker):
    """taken = delivered + announced lost + spooled, for every stream and origin, at every instant."""

    rule = "complete"
    HEARS: ClassVar = {
        ("durable", "taken"): "note_taken",
        ("durable", "held"): "note_held",
        ("durable", "lost"): "note_lost",
        ("durable", "link"): "note_link",
        ("durable", "segment"): "note_segment",
        ("info", "forgot"): "note_forgot",
        ("info", "start"): "note_start",
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("info", "rewound"): "note_rewound",
        ("info", "gone"): "note_gone",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.taken: Shelf = {}
        self.makers: dict[Key, str] = {}
        """The node that took it first: if an origin is no start of a node, it belongs to the node that makes its records."""
        self.unknown: Shelf = {}
        """Numbers that were taken, and lost with the disk of their origin."""
        self.held: dict[str, Shelf] = {}
        self.losses: dict[str, Shelf] = {}
        """Announcements of loss, by the journal that holds them."""
        self.lake: Shelf = {}
        self.named: Shelf = {}
        """Numbers that are announced as lost in the lake."""
        self.links: dict[Key, int] = {}
        """Per stream and origin: its last number, as the next start of the node has reported."""
        self.rewound: set[str] = set()
        """Nodes whose disk was lost or went back: they cannot know how their eras before ended."""
        self.roots: set[str] = set()
        self.listed: Shelf = {}
        """Numbers that a damaged journal has lost and still lists."""
        self.gone: dict[str, None] = {}
        """Nodes that will never run again."""
        self.quiet: Fact | None = None

    def note_taken(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        self.makers[stream, origin] = fact.node
        numbers_of(self.taken, stream, origin).add(first, last)
        numbers_of(self.held.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_held(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        taken = numbers_of(self.taken, stream, origin)
        if not taken.covers(first, last):
            extra = shown(taken.gaps(last, first))
            self.broken(f"{fact.node} holds {extra} of {origin}, which were never taken", fact)
        numbers_of(self.held.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_lost(self, fact: Fact) -> None:
        stream, origin, first, last, _ = fact.value
        numbers_of(self.losses.setdefault(fact.node, {}), stream, origin).add(first, last)

    def note_link(self, fact: Fact) -> None:
        stream, _, origin_before, last_before = fact.value
        if last_before:
            self._link(stream, origin_before, last_before, fact)

    def _link(self, stream: int, origin: str, last: int, fact: Fact) -> None:
        highest = numbers_of(self.taken, stream, origin).highest
        may_be_lower = origin.rpartition("/")[0] in self.rewound
        if last > highest or (last < highest and not may_be_lower):
            self.broken(f"{origin} is said to have ended at {last}, it ended at {highest}", fact)
        self.links[stream, origin] = last

    def note_segment(self, fact: Fact) -> None:
        stream, _, claims, losses, _ = fact.value
        for origin, first, last in claims:
            taken = numbers_of(self.taken, stream, origin)
            if not taken.covers(first, last):
                self.broken(
                    f"the lake holds {shown(taken.gaps(last, first))} of {origin}, which were never taken", fact
                )
            numbers_of(self.lake, stream, origin).add(first, last)
        for origin, first, last in losses:
            numbers_of(self.named, stream, origin).add(first, last)

    def note_forgot(self, fact: Fact) -> None:
        """A journal drops its copy: another journal, the lake, or an announced loss must have the numbers."""
        stream, origin, first, last = fact.value
        numbers_of(self.held.setdefault(fact.node, {}), stream, origin).remove(first, last)
        missing = self._missing((stream, origin), [(first, last)])
        if missing:
            self.broken(
                f"{fact.node} gave up {shown(missing)} of {origin}, which no other node has and nobody named", fact
            )

    def note_start(self, fact: Fact) -> None:
        if fact.value[0] == "root":
            self.roots.add(fact.node)

    def note_harmed(self, fact: Fact) -> None:
        """What a damaged journal lists of its losses must come from elsewhere, or be announced as lost.

        A root has called safe what only it had: of that, whatever is not listed is unknown.
        """
        _, _, gone, _, listed = fact.value
        for stream, origin, first, last in listed:
            numbers_of(self.listed, stream, origin).add(first, last)
        for stream, origin, first, last in gone if fact.node in self.roots else ():
            key = stream, origin
            covers = [shelf[key] for shelf in (self.listed, self.lake, self.named) if key in shelf]
            self._doubt(key, without([(first, last)], covers))

    def note_disk(self, fact: Fact) -> None:
        """Everything this node had is lost, except what the fact lists."""
        _, claims, losses = fact.value
        self.rewound.add(fact.node)
        gone, unsaid = self.held.pop(fact.node, {}), self.losses.pop(fact.node, {})
        for shelves, kept in ((self.held, claims), (self.losses, losses)):
            for stream, origin, first, last in kept:
                numbers_of(shelves.setdefault(fact.node, {}), stream, origin).add(first, last)
        for key, numbers in gone.items():
            missing = self._missing(key, numbers)
            if missing and key[1].rpartition("/")[0] not in self.rewound and self.makers.get(key) != fact.node:
                self.broken(f"with the disk of {fact.node} went {shown(missing)} of {key[1]}, which only it had", fact)
            self._doubt(key, missing)
        for key, numbers in unsaid.items():
            self._doubt(key, self._missing(key, numbers))

    def note_rewound(self, fact: Fact) -> None:
        """This node begins on another disk. In the store it goes on behind numbers that perhaps only it had."""
        self.rewound.add(fact.node)

    def _doubt(self, key: Key, pieces: Iterable[Range]) -> None:
        """The reason why these are missing is no longer known: the completeness table calls them missing, correctly."""
        for first, last in pieces:
            numbers_of(self.unknown, *key).add(first, last)

    def _missing(self, key: Key, pieces: Iterable[Range]) -> list[Range]:
        """The part of `pieces` that was taken, and is now neither delivered, nor announced lost, nor spooled."""
        taken = self.taken.get(key, RangeSet())
        was_taken = [part for first, last in pieces for part in taken.overlap(first, last)]
        copies = [self.lake, self.named, self.unknown, self.listed, *self.held.values(), *self.losses.values()]
        return without(was_taken, [shelf[key] for shelf in copies if key in shelf])

    def note_gone(self, fact: Fact) -> None:
        """This node will never run again: the contents of its journal stay there."""
        self.gone[fact.node] = None

    def note_quiet(self, fact: Fact) -> None:
        """At rest all is in the lake, announced lost, or kept by a dead node; and the table says exactly that."""
        self.quiet = fact
        for key, taken in self.taken.items():
            stream, origin = key
            buried = [self.held[node] for node in self.gone if node in self.held]
            excused = [shelf[key] for shelf in (self.unknown, *buried) if key in shelf]
            there = [shelf[key] for shelf in (self.lake, self.named) if key in shelf]
            missing = without(list(taken), [*there, *excused])
            if missing:
                self.broken(f"{shown(missing)} of {origin} (stream {stream}) never came, and nobody named them", fact)
            is_excused = excused or self.gone or (stream == Stream.STORE and origin in self.rewound)
            if not is_excused and stream != Stream.CONFIGURATION:
                self._compare_table(key, fact)

    def _compare_table(self, key: Key, fact: Fact) -> None:
        """The completeness table: what the lake alone, without the truth, would call missing.

        Numbers of the configuration go on from one root to the next, so its first is not 1.
        """
        lake = self.lake.get(key, RangeSet())
        upto = self.links.get(key, 0) or max(lake.highest, self.named.get(key, RangeSet()).highest)
        missing = without([(1, upto)] if upto else [], [lake, self.named.get(key, RangeSet())])
        if missing:
            self.broken(f"the completeness table calls {shown(missing)} of {key[1]} missing, which is not so", fact)

    def end(self) -> Violation | Unknown | None:
        return None if self.quiet else Unknown(self.rule, "the history does not say that the fabric came to rest")
