"""A document is the fold of its log at every node, and no node passes on what it could not have folded (CHK-015).

The history lines are these. `durable operation`: an operation of a source is in this node's journal. `event operation`:
the node has received it. `sent operation`: this node passes it on, or sends it again. `info document`: digests of this
node's log (the gapless part of each source), of the document that it shows, and, if it was folded again, of that. `info log`: the numbers that a node shows of each source. `info disk`: its disk is lost, or an old
one. An element that was deleted comes back by a fold of the same log only if an operation of that log brings it back:
so this rule is also that of CHK-011 for documents.
"""

from typing import ClassVar

from weft.base.ranges import RangeSet
from weft.checks.checker import Checker
from weft.checks.history import Fact


class PrefixFold(Checker):
    """Equal logs give equal documents; folding a log again gives the shown document; gaps hold back what follows."""

    rule = "prefix_fold"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "operation"): "note_operation",
        ("event", "operation"): "note_operation",
        ("sent", "operation"): "note_sent",
        ("info", "document"): "note_document",
        ("info", "log"): "note_log",
    }

    def __init__(self) -> None:
        self.held: dict[tuple[str, str, str], RangeSet] = {}
        """Per node, session and source: the operations in its journal, and those that it has received."""
        self.folded: dict[tuple[str, str], Fact] = {}
        """Per session and digest of a log: the first node that showed its document."""

    def note_disk(self, fact: Fact) -> None:
        """The contents of an old disk are unknown: nothing is required of that node until it has it again."""
        self.held = {key: known for key, known in self.held.items() if key[0] != fact.node}

    def note_operation(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        self.held.setdefault((fact.node, session, source), RangeSet()).add(sequence, sequence)

    def note_sent(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        known = self.held.get((fact.node, session, source))
        if known is None or not known.covers(1, sequence):
            self.broken(f"{fact.node} passes on operation {sequence} of {source}, and lacks one before it", fact)

    def note_document(self, fact: Fact) -> None:
        session, log, document, *anew = fact.value
        if anew and document != anew[0]:
            self.broken(f"{fact.node} shows {document} of {session}, and its log folds to {anew[0]}", fact)
        first = self.folded.setdefault((session, log), fact)
        if first.value[2] != document:
            self.broken(f"{first.node} and {fact.node} have one log of {session}, and two documents", first, fact)

    def note_log(self, fact: Fact) -> None:
        session, sources = fact.value
        for source, ranges in sources:
            numbers = RangeSet([(first, last) for first, last in ranges])
            if not numbers.covers(1, numbers.highest):
                self.broken(f"{fact.node} shows operations of {source} in {session} behind a hole", fact)


class Entered(Checker):
    """What is durable anywhere is in every log in the end, and no entry is acknowledged before it is durable (CHK-006).

    A lost journal owes nothing. A log can contain a source's operations only up to the first gap.
    """

    rule = "durable"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "operation"): "note_operation",
        ("ok", "entered"): "note_entered",
        ("info", "log"): "note_log",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.held: dict[str, dict[tuple[str, str], RangeSet]] = {}
        """Per node, then session and source: what its journal holds."""
        self.logs: dict[tuple[str, str], dict[str, int]] = {}
        """Per node and session: how far its log goes of each source, after quiet."""

    def note_disk(self, fact: Fact) -> None:
        self.held.pop(fact.node, None)

    def note_operation(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        self.held.setdefault(fact.node, {}).setdefault((session, source), RangeSet()).add(sequence, sequence)

    def note_entered(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        if not self.held.get(fact.node, {}).get((session, source), RangeSet()).covers(sequence, sequence):
            self.broken(f"{fact.node} says that entry {sequence} of {source} is taken, which is not durable", fact)

    def note_log(self, fact: Fact) -> None:
        session, sources = fact.value
        self.logs[fact.node, session] = {source: ranges[-1][1] for source, ranges in sources}

    def note_quiet(self, fact: Fact) -> None:
        for holder, known in self.held.items():
            for (session, source), numbers in known.items():
                first, last = next(iter(numbers))
                if first == 1:
                    self._look_for(holder, session, source, last, fact)

    def _look_for(self, holder: str, session: str, source: str, last: int, fact: Fact) -> None:  # tidy: one entry
        """All logs of the session reach at least as far."""
        for (node, name), log in self.logs.items():
            has = log.get(source, 0)
            if name == session and has < last:
                self.broken(f"{holder} has kept {last} of {source}, the log of {node} ends at {has}", fact)


class OwnFirst(Checker):
    """No node sends an operation of its own before it is durable (CHK-005, GSP-005)."""

    rule = "wall"
    HEARS: ClassVar = {
        ("durable", "operation"): "note_operation",
        ("event", "operation"): "note_operation",
        ("sent", "operation"): "note_sent",
    }

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], RangeSet] = {}
        """Per node, session and source: the operations that are durable there, or were received from others."""

    def note_operation(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        self.known.setdefault((fact.node, session, source), RangeSet()).add(sequence, sequence)

    def note_sent(self, fact: Fact) -> None:
        session, source, sequence = fact.value
        known = self.known.get((fact.node, session, source))
        if known is None or not known.covers(sequence, sequence):
            self.broken(f"{fact.node} says operation {sequence} of {source}, which is not durable", fact)


DOCUMENT_RULES: tuple[type[Checker], ...] = (OwnFirst, PrefixFold, Entered)
"""The checkers for documents."""
