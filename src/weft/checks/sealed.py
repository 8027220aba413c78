"""A stranger to the fabric has no effect on it (CHK-021; SEC-015).

The history lines are `members`, the names of all nodes and the fleet of each, and all lines that show who was accepted: who
joined, whose records are durable. A name that is no member's, or that of a member of another fleet, is a stranger's. In an
open fabric, without keys, a stranger may take a member's name: that is judged by its effects, a replay by `exactly_once`,
`mail_once` and `inert`, a hint by `unmoved`. In a closed fabric each try of an intruder is a line `knocked`.
"""

from collections.abc import Iterable
from typing import ClassVar, Final

from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation

KEYLESS: Final = ("plain", "unknown", "former")
"""Intruders without a valid key: they have none, an unknown one, or a revoked one. All others have the key of a role without rights."""
DOCUMENTS: Final = 8
"""The stream of document operations: their origins are starts of sessions, not nodes."""


def node_of(origin: str) -> str:
    """The node of `node/era`; its store goes on as `node~2` after a lost disk (STO-034)."""
    return origin.partition("/")[0].partition("~")[0]


class Sealed(Checker):
    """No stranger joins, and nothing from a stranger is stored."""

    rule = "sealed"
    HEARS: ClassVar = {
        ("info", "members"): "note_members",
        ("event", "parent-joined"): "note_joined",
        ("event", "child-joined"): "note_joined",
        ("info", "knocked"): "note_knocked",
        ("durable", "held"): "note_record",
        ("durable", "lost"): "note_record",
        ("durable", "segment"): "note_segment",
        ("durable", "mail"): "note_mail",
        ("durable", "met"): "note_met",
        ("durable", "change"): "note_change",
    }

    def __init__(self) -> None:
        self.members: dict[str, str] = {}
        """The fleet of each member."""
        self.doubt: Fact | None = None
        """Facts from before the line `members`, judged when it comes."""

    def note_members(self, fact: Fact) -> None:
        self.members = dict(fact.value)

    def note_joined(self, fact: Fact) -> None:
        self._judge([fact.value[0]], "has joined", fact)

    def note_knocked(self, fact: Fact) -> None:
        """An intruder connects: without a known key it is refused, and nothing it sends has an effect."""
        who, channel, is_in, sent, refused, is_changed, answered = fact.value
        door = f"at `{channel}` of {fact.node}"
        if is_in and who in KEYLESS:
            self.broken(f"{who}, whose key nobody knows, came in {door}", fact)
        if is_changed:
            self.broken(f"what {who} said {door} has changed it", fact)
        if refused != sent:
            self.broken(f"of {sent} messages of {who} {door} {refused} were refused and counted", fact)
        if answered:
            self.broken(f"{who} was answered {answered} times {door}", fact)

    def note_record(self, fact: Fact) -> None:
        if fact.value[0] != DOCUMENTS:
            self._judge([node_of(fact.value[1])], "has records", fact)

    def note_segment(self, fact: Fact) -> None:
        stream, _, claims, losses, _ = fact.value
        if stream != DOCUMENTS:
            self._judge([node_of(claim[0]) for claim in (*claims, *losses)], "has rows in the lake", fact)

    def note_mail(self, fact: Fact) -> None:
        self._judge([node_of(fact.value[1])], "has messages", fact)

    def note_met(self, fact: Fact) -> None:
        self._judge([node_of(fact.value[0])], "has messages", fact)

    def note_change(self, fact: Fact) -> None:
        """A node whose disk was lost continues as `NAME~2` (STO-034)."""
        self._judge([node.partition("~")[0] for node, _ in fact.value[4]], "has changed the store", fact)

    def _judge(self, names: Iterable[str], how: str, fact: Fact) -> None:
        if not self.members:
            self.doubt = self.doubt or fact
            return
        fleet = self.members.get(fact.node, "")
        for name in names:
            if name not in self.members:
                self.broken(f"{name or 'nobody'}, who is none of the fabric, {how} at {fact.node}", fact)
            if self.members[name] != fleet:
                self.broken(f"{name}, who is of fleet {self.members[name]}, {how} at {fact.node} of {fleet}", fact)

    def end(self) -> Violation | Unknown | None:
        return Unknown(self.rule, "the history does not say who belongs to the fabric") if self.doubt else None
