"""The same plan gives the same run (CHK-022, SIM-012)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact


class Same(Checker):
    """Equal plans have equal trace hashes."""

    rule = "same"
    HEARS: ClassVar = {("info", "trace"): "note_trace"}

    def __init__(self) -> None:
        self.traces: dict[str, Fact] = {}

    def note_trace(self, fact: Fact) -> None:
        plan, trace = fact.value
        first = self.traces.setdefault(plan, fact)
        if first.value[1] != trace:
            self.broken(f"plan {plan} gave trace {first.value[1]}, then {trace}", first, fact)
