"""A document is the fold of its log, at every node; and nobody passes on what it could not have folded (CHK-015).

The history lines are these. `durable operation`: an operation of a source is in this node's journal. `sent operation`: this
node passes it on, or says again. `info document`: how this node stands: digests of its log (the gapless part of each
source), of the document that it shows, and of that log folded anew by somebody else. `info log`: the numbers that a node
shows of each source. `info disk`: its disk is lost, or an old one. An element that was deleted comes back by a fold of the
same log only if an operation of that log brings it back: so this rule is also that of CHK-011 for documents.
"""

from typing import ClassVar

from weft.base.ranges import RangeSet
from weft.checks.checker import Checker
from weft.checks.history import Fact


class PrefixFold(Checker):
    """Equal logs give equal documents, a log folded anew gives the document that is shown, and gaps stop what follows."""

    rule = "prefix_fold"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "operation"): "note_operation",
        ("sent", "operation"): "note_sent",
        ("info", "document"): "note_document",
        ("info", "log"): "note_log",
    }

    def __init__(self) -> None:
        self.held: dict[tuple[str, str, str], RangeSet] = {}
        """Per node, session and source: the operations in its journal."""
        self.folded: dict[tuple[str, str], Fact] = {}
        """Per session and digest of a log: the first node that showed what it folds to."""

    def note_disk(self, fact: Fact) -> None:
        """What an old disk still holds nobody says: nothing is held against that node until it holds it anew."""
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
        session, log, document, anew = fact.value
        if document != anew:
            self.broken(f"{fact.node} shows {document} of {session}, and its log folds to {anew}", fact)
        first = self.folded.setdefault((session, log), fact)
        if first.value[2] != document:
            self.broken(f"{first.node} and {fact.node} have one log of {session}, and two documents", first, fact)

    def note_log(self, fact: Fact) -> None:
        session, sources = fact.value
        for source, ranges in sources:
            numbers = RangeSet([(first, last) for first, last in ranges])
            if not numbers.covers(1, numbers.highest):
                self.broken(f"{fact.node} shows operations of {source} in {session} behind a hole", fact)
