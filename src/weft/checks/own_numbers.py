"""A node sends its own numbers only once they are durable (JRN-006): ticks of the store, numbers and epochs of a root.

Sequences are judged by `wall` and `mail_wall`, promises by `one_root`, changes of a catalog by `watched`, operations of
documents by `prefix_fold`. A node can only have received another node's tick. So a tick that is durable elsewhere, but
never was at its own node, was sent too early.
"""

from typing import ClassVar, Final

from weft.checks.checker import Checker
from weft.checks.history import Fact

CONFIGURATION: Final = 6
"""The stream of the journal that holds writes of a root."""
EPOCH_BITS: Final = 40
"""A number is its epoch, then so many bits of a counter (CFG-003)."""


class OwnNumbers(Checker):
    """A tick is durable at its own node before any other has it; a root's number is durable before it is published."""

    rule = "own_numbers"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "change"): "note_change",
        ("durable", "taken"): "note_record",
        ("durable", "held"): "note_record",
        ("sent", "write"): "note_write",
    }

    def __init__(self) -> None:
        self.ticks: set[tuple[str, int]] = set()
        """Node and tick, if that node itself ever had it in its journal."""
        self.numbers: dict[str, set[tuple[int, int]]] = {}
        """Per node: epoch and counter of writes that are durable there."""

    def note_disk(self, fact: Fact) -> None:
        """Numbers that were sent before the disk was lost were durable then; from now on they must be durable again."""
        if fact.value[0] == "lost":
            self.numbers.pop(fact.node, None)

    def note_change(self, fact: Fact) -> None:
        node, tick = fact.value[4][0]
        if node.partition("~")[0] == fact.node:
            self.ticks.add((node, tick))
        elif (node, tick) not in self.ticks:
            self.broken(f"{fact.node} has tick {tick} of {node}, which was never durable at {node}", fact)

    def note_record(self, fact: Fact) -> None:
        stream, origin, first, last = fact.value
        if stream == CONFIGURATION:
            epoch = int(origin.rpartition("/")[2])
            known = self.numbers.setdefault(fact.node, set())
            known.update((epoch, counter) for counter in range(first, last + 1))

    def note_write(self, fact: Fact) -> None:
        number = fact.value[1]
        epoch, counter = number >> EPOCH_BITS, number & ((1 << EPOCH_BITS) - 1)
        if (epoch, counter) not in self.numbers.get(fact.node, ()):
            self.broken(f"{fact.node} publishes number {counter} of epoch {epoch}, which is not durable there", fact)
