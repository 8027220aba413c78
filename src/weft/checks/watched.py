"""Watchers of a broker are told its changes once, in order, without a hole, and in the end all of them (CHK-017)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation


class Watched(Checker):
    """A watcher stands at an index of one start of a broker; what it is told next is the change behind that index."""

    rule = "watched"
    HEARS: ClassVar = {
        ("durable", "announced"): "note_announced",
        ("ok", "mirrored"): "note_mirrored",
        ("ok", "told"): "note_told",
        ("ok", "unwatched"): "note_unwatched",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.changes: dict[tuple[str, int], list[str]] = {}
        """Per start of a broker and index: operation and name."""
        self.last: dict[str, int] = {}
        self.newest = ""
        """The start of the broker that announced last."""
        self.watchers: dict[str, Fact] = {}
        """Where each stands: the fact that brought it there."""
        self.is_quiet = False

    def note_announced(self, fact: Fact) -> None:
        epoch, index, operation, name = fact.value
        expected = self.last.get(epoch, 0) + 1
        if index != expected:
            self.broken(f"{fact.node} announces change {index} of {epoch} where {expected} is due", fact)
        self.last[epoch], self.newest = index, epoch
        self.changes[epoch, index] = [operation, name]

    def note_mirrored(self, fact: Fact) -> None:
        """The watcher took a whole list, as of that index."""
        watcher, epoch, index = fact.value
        if index > self.last.get(epoch, 0):
            self.broken(f"{watcher} is given a list as of {index} of {epoch}, which is not durable", fact)
        self.watchers[watcher] = fact

    def note_told(self, fact: Fact) -> None:
        watcher, epoch, index, operation, name = fact.value
        if self.changes.get((epoch, index)) != [operation, name]:
            self.broken(f"{watcher} is told {operation} {name} as {index} of {epoch}, which is not durable", fact)
        stands = self.watchers.get(watcher)
        if stands is None or stands.value[1:3] != [epoch, index - 1]:
            where = "nowhere" if stands is None else f"at {stands.value[2]} of {stands.value[1]}"
            self.broken(f"{watcher} stands {where}, and is told change {index} of {epoch}", fact)
        self.watchers[watcher] = fact

    def note_unwatched(self, fact: Fact) -> None:
        self.watchers.pop(fact.value[0], None)

    def note_quiet(self, fact: Fact) -> None:
        self.is_quiet = True
        for watcher, stands in self.watchers.items():
            if stands.value[1:3] != [self.newest, self.last.get(self.newest, 0)]:
                self.broken(
                    f"after quiet {watcher} still stands at {stands.value[2]} of {stands.value[1]}", stands, fact
                )

    def end(self) -> Violation | Unknown | None:
        if self.watchers and not self.is_quiet:
            return Unknown(self.rule, "the history ends before quiet, so nobody knows what watchers would have heard")
        return None
