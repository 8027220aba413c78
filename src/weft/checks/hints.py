"""Unauthenticated messages are treated as hints only (FLD-010)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact

NAME_TAKEN = "NameTaken"
MOVED = "moved"
EPOCH_STEP_MAX = 100_000  # a fleet's own elections never reach this epoch (FLD-011)


class Unmoved(Checker):
    """A hint ends no node, moves no child away from an answering parent, and leads no node to a far epoch (FLD-010, FLD-011).

    Machines that share no address which only they can reach cannot prove that a name is taken: no node may end for that.
    """

    rule = "unmoved"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "link"): "note_link",
        ("durable", "promise"): "note_promise",
        ("event", "ended"): "note_ended",
        ("event", "root-taken"): "note_taken",
        ("event", "parent-joined"): "note_joined",
        ("event", "parent-lost"): "note_lost",
    }

    def __init__(self) -> None:
        self.joined: set[str] = set()
        """Children that their parent has welcomed."""
        self.links: set[str] = set()
        """Children whose transport to the parent that their file names works."""

        self.epoch = 0
        """The highest that a root has taken."""

    def note_taken(self, fact: Fact) -> None:
        self.epoch = max(self.epoch, fact.value[1])

    def note_promise(self, fact: Fact) -> None:
        if fact.value[0] > self.epoch + EPOCH_STEP_MAX:
            self.broken(
                f"{fact.node} promises its vote in epoch {fact.value[0]}, and no root is above {self.epoch}", fact
            )

    def note_start(self, fact: Fact) -> None:
        self.joined.discard(fact.node)

    def note_link(self, fact: Fact) -> None:
        (self.links.add if fact.value[2] else self.links.discard)(fact.value[0])

    def note_ended(self, fact: Fact) -> None:
        if fact.value[0] == NAME_TAKEN:
            self.broken(f"{fact.node} has ended because a datagram said that its name is taken", fact)

    def note_joined(self, fact: Fact) -> None:
        self.joined.add(fact.node)

    def note_lost(self, fact: Fact) -> None:
        if fact.value[0] == MOVED and fact.node in self.joined and fact.node in self.links:
            self.broken(f"{fact.node} has left a parent that answers for one that only a datagram names", fact)
        self.joined.discard(fact.node)
