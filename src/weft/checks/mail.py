"""The promises about messages between programs (docs/chains.md), judged by what was sent, received, and made durable.

A message has an identity and a text: programs send no text twice, and a program that changes a text only appends a `+` and
something after it. Only messages on a disk that was lost or restored from an old copy may be missing.
"""

from typing import Any, ClassVar, Final

from weft.base.ranges import RangeSet
from weft.checks.chain_order import ChainOrder
from weft.checks.checker import Checker
from weft.checks.history import Fact

Mid = tuple[str, int]
PROMISED: Final = ("spooled", "local")
JOURNAL: Final = "journal"
FORGED: Final = "!"


def stem(text: str) -> str:
    """The text as it was first sent, from a received text."""
    return text.partition("+")[0].rstrip(FORGED)


def node_of(origin: str) -> str:
    """The node of `node/era`."""
    return origin.rpartition("/")[0]


class MailWall(Checker):
    """No message is acknowledged, and no send is called spooled, before it is durable (CHN-033)."""

    rule = "mail_wall"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "mail"): "note_mail",
        ("durable", "met"): "note_met",
        ("sent", "hello"): "note_hello",
        ("sent", "mail"): "note_sent",
        ("sent", "hack"): "note_hack",
        ("ok", "status"): "note_status",
    }

    def __init__(self) -> None:
        self.met: dict[str, set[Mid]] = {}
        self.kept: dict[str, set[tuple[str, int]]] = {}
        """By node: client and tag of each message in its journal."""
        self.sent: dict[tuple[str, int], dict[int, Mid]] = {}

    def note_disk(self, fact: Fact) -> None:
        """An old disk was restored: what it contains is unknown."""
        if fact.value[0] == "lost":
            self.met.pop(fact.node, None)
            self.kept.pop(fact.node, None)

    def note_mail(self, fact: Fact) -> None:
        by = fact.value[5]
        if by is not None:
            self.kept.setdefault(fact.node, set()).add((by[0], by[1]))

    def note_met(self, fact: Fact) -> None:
        origin, numbers = fact.value
        self.met.setdefault(fact.node, set()).update([(origin, number) for number in numbers])

    def note_hello(self, fact: Fact) -> None:
        """A child reports which messages it no longer needs: its parent need not have these."""
        _, era, first = fact.value
        under_way = self.sent.get((fact.node, era), {})
        for number in [number for number in under_way if number < first]:
            del under_way[number]

    def note_sent(self, fact: Fact) -> None:
        era, number, origin, sequence = fact.value
        self.sent.setdefault((fact.node, era), {})[number] = (origin, sequence)

    def note_hack(self, fact: Fact) -> None:
        child, era, upto, _ = fact.value
        under_way = self.sent.get((child, era), {})
        met = self.met.get(fact.node, set())
        for number in [number for number in under_way if number <= upto]:
            mid = under_way.pop(number)
            if mid not in met:
                self.broken(f"{fact.node} acknowledges message {mid[1]} of {mid[0]}, which is not durable there", fact)

    def note_status(self, fact: Fact) -> None:
        _, session, tag, is_ok, why, _ = fact.value
        if is_ok and why == "spooled" and (session.partition(" ")[0], tag) not in self.kept.get(fact.node, set()):
            self.broken(f"{fact.node} says that a message is spooled which is not in its journal", fact)


class MailOnce(Checker):
    """The root's journal has a message at most once, and none that was not sent (CHN-036, CHN-042, CHN-017)."""

    rule = "mail_once"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("invoke", "send"): "note_send",
        ("durable", "mail"): "note_mail",
    }

    def __init__(self) -> None:
        self.sent: dict[str, str] = {}
        """The type of each text."""
        self.journals: dict[str, dict[Mid, Fact]] = {}
        self.texts: dict[str, Fact] = {}
        """Where each text was in a journal first."""
        self.given: dict[Mid, str] = {}
        self.rewound: set[str] = set()

    def note_disk(self, fact: Fact) -> None:
        self.rewound.add(fact.node)
        self.journals.pop(fact.node, None)
        self.texts = {text: first for text, first in self.texts.items() if first.node != fact.node}

    def note_send(self, fact: Fact) -> None:
        self.sent[fact.value[4]] = fact.value[3]

    def note_mail(self, fact: Fact) -> None:
        box, origin, sequence, kind, text, _ = fact.value
        first = self.given.setdefault((origin, sequence), stem(text))
        if first != stem(text):
            self.broken(f"{origin} gave number {sequence} to {first} and to {stem(text)}", fact)
        if self.sent.get(stem(text)) != kind or FORGED in text:
            self.broken(f"{text} was never sent by anybody, nor made of it by who held it", fact)
        if box == JOURNAL:
            self._note_journal(fact, (origin, sequence), stem(text))

    def _note_journal(self, fact: Fact, mid: Mid, text: str) -> None:
        before = self.journals.setdefault(fact.node, {}).setdefault(mid, fact)
        if before is not fact:
            self.broken(f"{fact.node} has message {mid[1]} of {mid[0]} twice", before, fact)
        before = self.texts.setdefault(text, fact)
        is_other = (before.value[1], before.value[2]) != mid  # two roots may hold one message
        if is_other and node_of(mid[0]) not in self.rewound:
            self.broken(f"{fact.node} has {text} twice, as two messages", before, fact)


class MailOrder(Checker):
    """At the root, messages of one node and type come in the order in which they were sent (CHN-015, CHN-032)."""

    rule = "mail_order"
    HEARS: ClassVar = {
        ("info", "mail-types"): "note_types",
        ("info", "disk"): "note_disk",
        ("durable", "mail"): "note_mail",
    }

    def __init__(self) -> None:
        self.ordered: set[str] = set()
        self.rewound: set[str] = set()
        self.last: dict[tuple[str, str, str], tuple[int, int]] = {}

    def note_types(self, fact: Fact) -> None:
        self.ordered = {name for name, _, is_ordered in fact.value if is_ordered}

    def note_disk(self, fact: Fact) -> None:
        self.rewound.add(fact.node)

    def note_mail(self, fact: Fact) -> None:
        box, origin, sequence, kind, _, _ = fact.value
        if box != JOURNAL or kind not in self.ordered:
            return
        node, _, era = origin.rpartition("/")
        key = fact.node, node, kind
        before, here = self.last.get(key, (0, 0)), (int(era), sequence)
        if here <= before and not self.rewound:
            self.broken(f"{fact.node} got {kind} number {sequence} of {origin} after {before[1]} of {before[0]}", fact)
        self.last[key] = max(before, here)


class OneStatus(Checker):
    """Each send has exactly one final status in a session, and in the end each has one (CHN-030)."""

    rule = "one_status"
    HEARS: ClassVar = {("ok", "status"): "note_status", ("info", "program"): "note_program"}

    def __init__(self) -> None:
        self.statuses: dict[tuple[str, int], Fact] = {}

    def note_status(self, fact: Fact) -> None:
        program, session, tag, _, _, text = fact.value
        before = self.statuses.setdefault((session, tag), fact)
        if before is not fact:
            self.broken(f"{program} hears of its send {tag} twice", before, fact)
        if not text:
            self.broken(f"{program} hears of a send {tag} that it did not wait for", fact)

    def note_program(self, fact: Fact) -> None:
        program, tags = fact.value
        if tags:
            self.broken(f"{program} never heard what became of {len(tags)} sends", fact)


class OfferedOnce(Checker):
    """No program gets a message twice, unless it is marked as possibly seen (CHN-034)."""

    rule = "offered_once"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("info", "mail-types"): "note_types",
        ("ok", "offered"): "note_offered",
    }

    def __init__(self) -> None:
        self.kept: set[str] = set()
        """Types of messages that are kept; others have no promise."""
        self.seen: dict[str, dict[tuple[str, int, str, int], Fact]] = {}

    def note_types(self, fact: Fact) -> None:
        self.kept = {name for name, _, _ in fact.value}

    def note_disk(self, fact: Fact) -> None:
        self.seen.pop(fact.node, None)

    def note_offered(self, fact: Fact) -> None:
        program, client, reg, origin, sequence, kind, is_again = fact.value
        if kind not in self.kept:
            return
        key = client, reg, origin, sequence
        before = self.seen.setdefault(fact.node, {}).setdefault(key, fact)
        if before is not fact and not is_again:
            self.broken(f"{program} is handed message {sequence} of {origin} again, and not told so", before, fact)


class Conserved(Checker):
    """Taken = passed on + ended + held, on every stretch of the road (CHN-082, FLD-020). In the end nothing is held."""

    rule = "conserved"
    HEARS: ClassVar = {
        ("info", "idle"): "note_idle",
        ("info", "accounts"): "note_accounts",
        ("info", "chains"): "note_chains",
    }

    def note_idle(self, fact: Fact) -> None:
        if fact.value:
            self.broken(f"at {fact.node} {fact.value} messages wait in line at links that have room", fact)

    def note_accounts(self, fact: Fact) -> None:
        for name, taken, missing in fact.value:
            if missing:
                self.broken(f"{name} of {fact.node}: {taken} taken, {missing} of them nowhere", fact)

    def note_chains(self, fact: Fact) -> None:
        counted, parked, kept = fact.value
        if counted or parked or kept:
            self.broken(f"in the end {fact.node} has {parked} messages at links and {kept} in its inbox", fact)


class MailComplete(Checker):
    """A spooled message reaches the root, unless a disk was lost, or a full spool announced that it dropped it."""

    rule = "mail_complete"
    HEARS: ClassVar = {
        ("info", "mail-types"): "note_types",
        ("info", "start"): "note_start",
        ("info", "disk"): "note_disk",
        ("invoke", "send"): "note_send",
        ("ok", "status"): "note_status",
        ("durable", "mail"): "note_mail",
        ("durable", "mail-segment"): "note_segment",
        ("event", "mail-dropped"): "note_dropped",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.whole: set[str] = set()
        self.parents: dict[str, str] = {}
        self.rewound: dict[str, int] = {}
        """When a disk was last lost, or restored from an old copy."""
        self.sent: dict[str, str] = {}
        self.promised: dict[str, Fact] = {}
        self.mids: dict[str, Mid] = {}
        self.journaled: dict[str, set[str]] = {}
        """By node: the texts in its journal, as a root."""
        self.lakes: dict[str, RangeSet] = {}
        """By origin: the numbers of messages in any lake."""
        self.dropped: set[Mid] = set()

    def note_types(self, fact: Fact) -> None:
        self.whole = {name for name, is_whole, _ in fact.value if is_whole}

    def note_start(self, fact: Fact) -> None:
        self.parents[fact.node] = fact.value[1]

    def note_disk(self, fact: Fact) -> None:
        self.rewound[fact.node] = fact.at
        self.journaled.pop(fact.node, None)

    def note_segment(self, fact: Fact) -> None:
        for origin, first, last in fact.value:
            self.lakes.setdefault(origin, RangeSet()).add(first, last)

    def note_send(self, fact: Fact) -> None:
        _, _, _, kind, text, is_promised = fact.value
        if is_promised and kind in self.whole:
            self.sent[text] = kind

    def note_status(self, fact: Fact) -> None:
        _, _, _, is_ok, why, text = fact.value
        if is_ok and why in PROMISED and text in self.sent:
            self.promised[text] = fact

    def note_mail(self, fact: Fact) -> None:
        box, origin, sequence, _, text, _ = fact.value
        self.mids[stem(text)] = (origin, sequence)
        if box == JOURNAL:
            self.journaled.setdefault(fact.node, set()).add(stem(text))

    def note_dropped(self, fact: Fact) -> None:
        origin, first, last = fact.value
        self.dropped.update([(origin, number) for number in range(first, last + 1)])

    def note_quiet(self, fact: Fact) -> None:
        journaled = set[str]().union(*self.journaled.values())
        for text, promise in self.promised.items():
            if text not in journaled and not self._is_in_lake(text) and not self._is_excused(text, promise):
                self.broken(f"{text} never came to the root", promise, fact)

    def _is_in_lake(self, text: str) -> bool:
        origin, number = self.mids.get(text, ("", 0))
        return origin in self.lakes and self.lakes[origin].covers(number, number)

    def _is_excused(self, text: str, promise: Fact) -> bool:
        if self.mids.get(text) in self.dropped:
            return True
        node = promise.node
        while node:
            if self.rewound.get(node, -1) >= promise.at:
                return True
            node = self.parents.get(node, "")
        return False


class ReadersServed(Checker):
    """A remembered reader confirms every message, unless it was given up and announced (FLD-020)."""

    rule = "readers_served"
    HEARS: ClassVar = {
        ("info", "mail-types"): "note_types",
        ("info", "disk"): "note_disk",
        ("durable", "mail"): "note_mail",
        ("durable", "met"): "note_met",
        ("ok", "standing"): "note_standing",
        ("ok", "confirmed"): "note_confirmed",
        ("event", "given-up"): "note_given_up",
        ("event", "forgotten"): "note_forgotten",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.whole: set[str] = set()
        self.types: dict[Mid, str] = {}
        self.remembered: dict[str, set[tuple[str, str]]] = {}
        """By node: names of readers, and the types for which they are registered."""
        self.owed: dict[str, dict[tuple[str, Mid], Fact]] = {}
        """By node: the messages that each reader has still to confirm."""

    def note_types(self, fact: Fact) -> None:
        self.whole = {name for name, is_whole, _ in fact.value if is_whole}

    def note_disk(self, fact: Fact) -> None:
        """After that it is unknown which readers the node remembered, and what it kept for them."""
        self.remembered.pop(fact.node, None)
        self.owed.pop(fact.node, None)

    def note_mail(self, fact: Fact) -> None:
        _, origin, sequence, kind, *_ = fact.value
        self.types[origin, sequence] = kind

    def note_standing(self, fact: Fact) -> None:
        reader, pattern = fact.value
        self.remembered.setdefault(fact.node, set()).add((reader, pattern))

    def note_forgotten(self, fact: Fact) -> None:
        reader, pattern = fact.value
        self.remembered.get(fact.node, set()).discard((reader, pattern))

    def note_met(self, fact: Fact) -> None:
        origin, numbers = fact.value
        readers = self.remembered.get(fact.node)
        for number in numbers if readers else ():
            kind = self.types.get((origin, number), "")
            for reader, pattern in readers or ():
                if kind in self.whole and _covers(pattern, kind):
                    self.owed.setdefault(fact.node, {})[reader, (origin, number)] = fact

    def note_confirmed(self, fact: Fact) -> None:
        reader, origin, sequence = fact.value
        self.owed.get(fact.node, {}).pop((reader, (origin, sequence)), None)

    def note_given_up(self, fact: Fact) -> None:
        reader, origin, first, last = fact.value
        owed = self.owed.get(fact.node, {})
        for number in range(first, last + 1):
            owed.pop((reader, (origin, number)), None)

    def note_quiet(self, fact: Fact) -> None:
        for node, owed in self.owed.items():
            for (reader, mid), met in owed.items():
                self.broken(f"{reader} at {node} never confirmed message {mid[1]} of {mid[0]}", met, fact)


def _covers(pattern: str, kind: str) -> bool:
    return kind.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == kind


MAIL_CHECKERS: Final[tuple[type[Any], ...]] = (
    MailWall,
    MailOnce,
    MailOrder,
    OneStatus,
    OfferedOnce,
    ChainOrder,
    Conserved,
    MailComplete,
    ReadersServed,
)
"""All checkers that run beside a simulation in which programs send messages."""
