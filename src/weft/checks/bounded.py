"""Every queue, map, file has a limit and keeps it (CHK-020, SEC-041)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact


class Bounded(Checker):
    """No gauge exceeds its limit."""

    rule = "bounded"
    HEARS: ClassVar = {("info", "gauge"): "note_gauge"}

    def note_gauge(self, fact: Fact) -> None:
        name, value, limit = fact.value
        if value > limit:
            self.broken(f"{name} of {fact.node} is {value}, its limit {limit}", fact)
