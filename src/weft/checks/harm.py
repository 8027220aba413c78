"""A start reports correctly whether its journal is damaged, and one on a journal that is not whole is refused (JRN-022, JRN-024)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact

HARMED = "harmed"
"""What the fact `disk` says of a damaged journal."""
CLEAN, REFUSED = "clean", "refused"


class HarmReported(Checker):
    """A start on a damaged journal reports it, and no other start does.

    If the journal is not whole, each start is refused until somebody has repaired it.
    """

    rule = "told"
    HEARS: ClassVar = {
        ("info", "harmed"): "note_harmed",
        ("info", "disk"): "note_disk",
        ("info", "repaired"): "note_repaired",
        ("event", "verdict"): "note_verdict",
    }

    def __init__(self) -> None:
        self.harmed: dict[str, Fact] = {}
        self.unrepaired: dict[str, Fact] = {}
        """Nodes whose journals are not whole."""

    def note_harmed(self, fact: Fact) -> None:
        self.harmed[fact.node] = fact
        if fact.value[1]:
            self.unrepaired[fact.node] = fact

    def note_repaired(self, fact: Fact) -> None:
        self.unrepaired.pop(fact.node, None)

    def note_disk(self, fact: Fact) -> None:
        if fact.value[0] in ("lost", "old"):
            self.harmed.pop(fact.node, None)
            self.unrepaired.pop(fact.node, None)

    def note_verdict(self, fact: Fact) -> None:
        verdict, unrepaired = fact.value[0], self.unrepaired.get(fact.node)
        if (verdict == REFUSED) != (unrepaired is not None):
            refused = (
                "does not start on a journal that is whole" if unrepaired is None else "starts on a journal that is not"
            )
            self.broken(f"{fact.node} {refused}", *filter(None, (unrepaired, fact)))
        if verdict == REFUSED:
            return
        harmed = self.harmed.pop(fact.node, None)
        if harmed is not None and verdict == CLEAN:
            self.broken(f"{fact.node} starts on a journal {harmed.value[0]}, and calls it clean", harmed, fact)
        if harmed is None and verdict != CLEAN:
            self.broken(f"{fact.node} calls its journal {verdict}, and nobody has harmed it", fact)
