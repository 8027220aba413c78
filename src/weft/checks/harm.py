"""A start reports correctly whether its journal is damaged (JRN-022, FLD-031)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact

CLEAN = "clean"


class HarmReported(Checker):
    """A start on a damaged journal reports it, and no other start does."""

    rule = "told"
    HEARS: ClassVar = {
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("event", "verdict"): "note_verdict",
    }

    def __init__(self) -> None:
        self.harmed: dict[str, Fact] = {}

    def note_harmed(self, fact: Fact) -> None:
        self.harmed[fact.node] = fact

    def note_disk(self, fact: Fact) -> None:
        if fact.value[0] in ("lost", "old"):
            self.harmed.pop(fact.node, None)

    def note_verdict(self, fact: Fact) -> None:
        harmed, verdict = self.harmed.pop(fact.node, None), fact.value[0]
        if harmed is not None and verdict == CLEAN:
            self.broken(f"{fact.node} starts on a journal {harmed.value[0]}, and calls it clean", harmed, fact)
        if harmed is None and verdict != CLEAN:
            self.broken(f"{fact.node} calls its journal {verdict}, and nobody has harmed it", fact)
