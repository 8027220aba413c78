"""A refused message changes nothing, and is counted once (CHK-019, FUZ-001)."""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation


class Inert(Checker):
    """After invalid bytes: the same state, no message, no record except that of the refusal, one count."""

    rule = "inert"
    HEARS: ClassVar = {("info", "injected"): "note_injected", ("info", "absorbed"): "note_absorbed"}

    def __init__(self) -> None:
        self.open: dict[str, Fact] = {}

    def note_injected(self, fact: Fact) -> None:
        self.open[fact.node] = fact

    def note_absorbed(self, fact: Fact) -> None:
        injected = self.open.pop(fact.node, None)
        if injected is None:
            self.broken(f"{fact.node} absorbed what nobody sent", fact)
        channel, digest, refusals, messages, records = fact.value
        if digest != injected.value[1]:
            self.broken(f"bytes on `{channel}` that were refused changed {fact.node}", injected, fact)
        if refusals != 1:
            self.broken(f"{fact.node} counted {refusals} refusals on `{channel}` for one", injected, fact)
        if messages or records:
            self.broken(
                f"{fact.node} answered {messages} messages and kept {records} records for refused bytes", injected, fact
            )

    def end(self) -> Violation | Unknown | None:
        if not self.open:
            return None
        return Unknown(self.rule, f"what {', '.join(sorted(self.open))} did with bad bytes is not in the history")
