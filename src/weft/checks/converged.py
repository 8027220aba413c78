"""At rest all replicas of shared data are equal, and no core waits (CHK-007, SIM-008)."""

from typing import ClassVar

from weft.base.now import SECOND
from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation


class Converged(Checker):
    """When the fabric has come to rest, all states of one subject are equal, and no core waits for anything."""

    rule = "converged"
    HEARS: ClassVar = {
        ("info", "healed"): "note_healed",
        ("info", "state"): "note_state",
        ("info", "waits"): "note_waits",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.healed: Fact | None = None
        self.states: dict[str, dict[str, Fact]] = {}
        self.waiting: dict[str, Fact] = {}
        self.quiet: Fact | None = None

    def note_healed(self, fact: Fact) -> None:
        self.healed = fact
        self.states.clear()
        self.waiting.clear()

    def note_state(self, fact: Fact) -> None:
        self.states.setdefault(fact.value[0], {})[fact.node] = fact

    def note_waits(self, fact: Fact) -> None:
        self.waiting[fact.node] = fact

    def note_quiet(self, fact: Fact) -> None:
        self.quiet = fact
        for waiting in self.waiting.values():
            what, since = waiting.value
            self.broken(f"{waiting.node} still waits for {what}, {since // SECOND} s after the beginning", waiting)
        for subject, states in self.states.items():
            first, *others = states.values()
            for other in others:
                if other.value[1] != first.value[1]:
                    self.broken(f"{first.node} and {other.node} hold different {subject}", first, other)

    def end(self) -> Violation | Unknown | None:
        if self.quiet and self.healed:
            return None
        return Unknown(self.rule, "the history does not say that the fabric healed and came to rest")
