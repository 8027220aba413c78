"""Compares the answers to clients of a real fabric with the final state of its nodes and its lake (FLD-040).

The internals of nodes are unknown here: only requests, answers, and the state of all nodes when the fabric has come to
rest. Each key has one writer, which writes one value after the other. At the end the key must have the value that was
acknowledged last, or one that was requested since and never answered.
"""

from bisect import bisect_left
from collections import Counter
from typing import Any, ClassVar, Final

from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation

SHOWN_MAX: Final = 5  # keys in a sentence


class Writes:
    """Requests and acknowledgements, by protocol and key.

    A node whose disk is lost, or went back, takes with it what it alone has acknowledged. Of the protocols in `ALONE` that may
    be whatever it acknowledged just before; then an earlier value counts, and what had no answer yet may be there twice.
    """

    def __init__(self) -> None:
        self.possible: dict[str, dict[str, list[Any]]] = {}
        """By protocol and key: the value acknowledged last, and those requested since."""
        self.repeated: set[tuple[str, str]] = set()
        """What a client may have sent twice, since nobody knew any more that it was there."""
        self._asked: dict[tuple[str, str], list[Any]] = {}
        self._acknowledged: dict[tuple[str, str], list[tuple[Fact, int]]] = {}
        """Acknowledgements, and the place of each value among those requested."""
        self._open: dict[tuple[str, str], str] = {}
        """Requests without an answer, each with the node that was asked."""

    def take(self, fact: Fact) -> bool:
        """The next fact; False: an acknowledgement of what nobody had asked for."""
        if fact.what == "rewound":
            self._rewind(fact.node, fact.at - fact.value[1])
            return True
        protocol, key, value = fact.value
        asked = self._asked.setdefault((protocol, key), [None])
        if fact.kind == "invoke":
            asked.append(value)
            self._open[protocol, key] = fact.node
            self.possible.setdefault(protocol, {}).setdefault(key, [None]).append(value)
            return True
        acknowledged = self._acknowledged.setdefault((protocol, key), [])
        begin = acknowledged[-1][1] if acknowledged else 0
        if value not in asked[begin:]:
            return False
        acknowledged.append((fact, asked.index(value, begin)))
        self._open.pop((protocol, key), None)
        self.possible[protocol][key] = asked[acknowledged[-1][1] :]
        return True

    def _rewind(self, node: str, since: int) -> None:
        for (protocol, key), acknowledged in self._acknowledged.items():
            if (
                protocol in ALONE
                and acknowledged
                and acknowledged[-1][0].node == node
                and acknowledged[-1][0].at >= since
            ):
                kept = [place for fact, place in acknowledged if fact.at < since]
                self.possible[protocol][key] = self._asked[protocol, key][kept[-1] if kept else 0 :]
        self.repeated |= {where for where, asked_at in self._open.items() if asked_at == node}


class Written(Checker):
    """The base of several rules: keeps requests and acknowledgements."""

    HEARS: ClassVar = {
        ("invoke", "put"): "note_put",
        ("ok", "put"): "note_told",
        ("info", "rewound"): "note_put",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.writes = Writes()
        self.acknowledged: dict[str, dict[str, Fact]] = {}
        """By protocol and key: the last acknowledgement."""
        self.judged: Counter[str] = Counter()
        """By protocol: how many nodes, or lakes, have reported what they hold."""
        self.quiet: Fact | None = None

    @property
    def possible(self) -> dict[str, dict[str, list[Any]]]:
        """By protocol and key: what may be there."""
        return self.writes.possible

    def note_put(self, fact: Fact) -> None:
        self.writes.take(fact)

    def note_told(self, fact: Fact) -> None:
        protocol, key, value = fact.value
        if not self.writes.take(fact):
            self.broken(f"{protocol}: {key} was acknowledged as {value!r}, which nobody had asked for", fact)
        self.acknowledged.setdefault(protocol, {})[key] = fact

    def note_quiet(self, fact: Fact) -> None:
        self.quiet = fact

    def end(self) -> Violation | Unknown | None:
        unseen = sorted(self.due() - self.judged.keys())
        if self.quiet is None:
            return Unknown(self.rule, "the history does not say that the fabric came to rest")
        return Unknown(self.rule, f"nobody said what it holds of {', '.join(unseen)}") if unseen else None

    def due(self) -> set[str]:
        """The protocols that the rule judges."""
        return set()

    def lost(self, protocol: str, keys: list[str], where: str, fact: Fact) -> None:
        """Stop if there are such keys."""
        if keys:
            shown = ", ".join(sorted(keys)[:SHOWN_MAX])
            witnesses = [self.acknowledged[protocol][key] for key in sorted(keys)[:SHOWN_MAX]]
            short = Fact(fact.at, fact.node, fact.process, fact.kind, fact.what, [protocol])
            self.broken(f"{protocol}: {len(keys)} acknowledged and lost at {where}: {shown}", *witnesses, short)


class Acknowledged(Written):
    """Every replica holds the value acknowledged last, or one requested later; and nothing else."""

    rule = "acknowledged"
    HEARS: ClassVar = {**Written.HEARS, ("info", "replica"): "note_replica"}

    def due(self) -> set[str]:
        return set(self.acknowledged) - DELIVERED

    def note_replica(self, fact: Fact) -> None:
        protocol, held = fact.value
        self.judged[protocol] += 1
        possible = self.possible.get(protocol, {})
        lost = [key for key in self.acknowledged.get(protocol, {}) if held.get(key) not in possible[key]]
        self.lost(protocol, lost, fact.node, fact)
        for key, value in held.items():
            if value not in possible.get(key, []):
                self.broken(f"{protocol}: {fact.node} holds {value!r} at {key}, which nobody had asked for", fact)


class Delivered(Written):
    """Every acknowledged message has reached its destination: once, or at least once if only that is promised."""

    rule = "delivered"
    HEARS: ClassVar = {**Written.HEARS, ("info", "delivered"): "note_delivered"}

    def due(self) -> set[str]:
        return set(self.acknowledged) & DELIVERED

    def note_delivered(self, fact: Fact) -> None:
        protocol, counts = fact.value
        self.judged[protocol] += 1
        possible = self.possible.get(protocol, {})
        lost = [key for key in self.acknowledged.get(protocol, {}) if not counts.get(key) and None not in possible[key]]
        self.lost(protocol, lost, fact.node, fact)
        again = self.writes.repeated
        doubled = [key for key, count in counts.items() if count > 1 and (protocol, key) not in again]
        if doubled and protocol not in AGAIN:
            shown = ", ".join(f"{key} ({counts[key]} times)" for key in sorted(doubled)[:SHOWN_MAX])
            self.broken(f"{protocol}: {len(doubled)} doubled at {fact.node}: {shown}")
        strange = sorted(counts.keys() - self.possible.get(protocol, {}).keys())
        if strange:
            self.broken(f"{protocol}: {fact.node} holds what nobody sent: {', '.join(strange[:SHOWN_MAX])}")


class Read(Written):
    """What one client reads of a key never goes back: not behind its own write, not behind an earlier read (CHK-008).

    A key has one writer, which never writes a value twice but may delete; so it is known which write a value is of. After
    a key was read as deleted, an older value does not come back (CHK-011), and no value that nobody wrote (CHK-012).
    """

    rule = "causal"
    HEARS: ClassVar = {
        ("invoke", "put"): "note_put",
        ("ok", "put"): "note_told",
        ("ok", "got"): "note_got",
        ("info", "rewound"): "note_rewound",
    }

    def __init__(self) -> None:
        self.asked: dict[tuple[str, str], dict[Any, list[int]]] = {}
        """Per protocol and key: which writes have each value. The first, None, stands for an absent key."""
        self.count: Counter[tuple[str, str]] = Counter()
        self.stands: dict[tuple[str, str, str], tuple[int, Fact]] = {}
        """Per reader, protocol and key: the latest write that it knows, and the fact that shows it."""

    def note_put(self, fact: Fact) -> None:
        protocol, key, value = fact.value
        self.count[protocol, key] += 1
        self._writes(protocol, key).setdefault(value, []).append(self.count[protocol, key])

    def _writes(self, protocol: str, key: str) -> dict[Any, list[int]]:
        return self.asked.setdefault((protocol, key), {None: [0]})

    def note_told(self, fact: Fact) -> None:
        """A client knows a write for which it got an acknowledgement."""
        protocol, key, value = fact.value
        numbers = self._writes(protocol, key).get(value)
        if numbers is None:
            self.broken(f"{protocol}: {key} was acknowledged as {value!r}, which nobody had asked for", fact)
        before, _ = self.stands.get((fact.node, protocol, key), (0, fact))
        self.stands[fact.node, protocol, key] = max(before, numbers[-1]), fact

    def note_got(self, fact: Fact) -> None:
        """`fact.node` reads; the value may be any write from the known one on."""
        protocol, key, value = fact.value
        writes = self._writes(protocol, key)
        at, known = self.stands.get((fact.node, protocol, key), (0, fact))
        numbers = writes.get(value, [])
        later = bisect_left(numbers, at)
        if later == len(numbers):
            how = "an older value" if numbers else "what nobody wrote"
            is_gone = known.value[2] is None and bool(numbers)
            why = "which was deleted" if is_gone else f"and knows {known.value[2]!r}"
            self.broken(f"{protocol}: {fact.node} reads {value!r} at {key}, {how}, {why}", known, fact)
        self.stands[fact.node, protocol, key] = numbers[later], fact

    def note_rewound(self, fact: Fact) -> None:
        """Whoever reads at a node that begins on another disk begins anew."""
        readers = fact.node, f"watcher at {fact.node}"
        self.stands = {where: known for where, known in self.stands.items() if where[0] not in readers}

    def end(self) -> Violation | Unknown | None:
        return None


class Saw(Read):
    """What one watcher sees of a key never goes back; its final view is judged like a replica (CHK-017)."""

    rule = "watched"
    HEARS: ClassVar = {
        ("invoke", "put"): "note_put",
        ("ok", "saw"): "note_got",
        ("info", "rewound"): "note_rewound",
    }


DELIVERED: Final = frozenset({"messages", "readers", "calls"})
"""Protocols whose writes go to one destination instead of to all replicas."""
ALONE: Final = frozenset({"store", "documents", "messages", "readers"})
"""Protocols of which a node acknowledges what it alone has on its disk."""
AGAIN: Final = frozenset({"readers"})
"""Protocols of these that may deliver more than once: a confirming reader gets unconfirmed messages again."""
FIELD_RULES: Final[tuple[type[Checker], ...]] = (Acknowledged, Delivered, Read, Saw)
