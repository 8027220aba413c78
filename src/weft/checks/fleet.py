"""What a fleet that places itself promises about its root and its configuration.

At most one root per epoch; numbers only increase; nothing that a majority had is lost; no replica goes back without
reporting it; at rest one root, and all nodes placed; dead nodes are replaced in time, and live ones are not called dead.
"""

from typing import Any, ClassVar, Final

from weft.base.now import SECOND
from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation

EPOCH_BITS: Final = 40
"""A number is its epoch, then so many bits of a counter (CFG-003)."""


SETTLED_AFTER: Final = 10
"""Silences after the last fault; then its consequences are over, too."""


class OneRoot(Checker):
    """No two nodes are the root of one epoch, except after a lost disk (CHK-013, REC-011).

    No node votes before its vote is durable, and none writes with an epoch below one it has promised.
    """

    rule = "one_root"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("event", "root-taken"): "note_taken",
        ("durable", "promise"): "note_promise",
        ("sent", "vote"): "note_vote",
        ("sent", "write"): "note_write",
    }

    def __init__(self) -> None:
        self.promises: dict[str, int] = {}
        self.roots: dict[tuple[str, int], Fact] = {}
        self.forgetful: set[str] = set()

    def note_disk(self, fact: Fact) -> None:
        self.forgetful.add(fact.node)
        self.promises.pop(fact.node, None)

    def note_promise(self, fact: Fact) -> None:
        self.promises[fact.node] = fact.value[0]

    def note_vote(self, fact: Fact) -> None:
        epoch = fact.value[1]
        if epoch > self.promises.get(fact.node, -1):
            self.broken(f"{fact.node} votes in epoch {epoch} before its promise is durable", fact)

    def note_write(self, fact: Fact) -> None:
        epoch, promised = fact.value[1] >> EPOCH_BITS, self.promises.get(fact.node, -1)
        if epoch < promised:
            self.broken(f"{fact.node} writes in epoch {epoch}, and has promised epoch {promised}", fact)

    def note_taken(self, fact: Fact) -> None:
        fleet, epoch, is_acting = fact.value
        if is_acting:
            return
        first = self.roots.setdefault((fleet, epoch), fact)
        if first.node != fact.node and not self.forgetful:
            self.broken(f"{first.node} and {fact.node} are both the root of epoch {epoch} of {fleet}", first, fact)


class Claimed(Checker):
    """One number stands for one set of pairs: a node that adopts a snapshot has the same pairs as all others (FLD-002)."""

    rule = "claimed"
    HEARS: ClassVar = {("info", "disk"): "note_disk", ("event", "adopted"): "note_adopted"}

    def __init__(self) -> None:
        self.pairs: dict[tuple[str, str, int], Fact] = {}
        self.forgetful: set[str] = set()
        """Nodes whose disk was lost or went back: the same numbers may belong to two histories."""

    def note_disk(self, fact: Fact) -> None:
        self.forgetful.add(fact.node)

    def note_adopted(self, fact: Fact) -> None:
        fleet, topic, number, count, digest = fact.value
        first = self.pairs.setdefault((fleet, topic, number), fact)
        if first.value[3:] != [count, digest] and not self.forgetful:
            text = f"{first.node} has {first.value[3]} pairs of {topic} at {number}, {fact.node} has {count}"
            self.broken(f"{text}; or the same number of others", first, fact)


class Numbers(Checker):
    """Only a root writes; its numbers ascend, and each belongs to one write only (CFG-022, REC-012, REC-014)."""

    rule = "numbers"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "disk"): "note_disk",
        ("event", "root-taken"): "note_taken",
        ("event", "root-left"): "note_left",
        ("sent", "write"): "note_write",
    }

    def __init__(self) -> None:
        self.roots: set[str] = set()
        self.writes: dict[tuple[str, int], Fact] = {}
        self.last: dict[tuple[str, int], int] = {}
        """Per start of a node: its highest number."""
        self.terms: dict[str, dict[int, list[int]]] = {}
        """Per fleet, per epoch of a root: its lowest and its highest number."""
        self.epochs: dict[str, int] = {}
        self.has_lost = False
        """Whether a disk was lost with earlier writes: then a number may be used again."""

    def note_start(self, fact: Fact) -> None:
        self.roots.discard(fact.node)

    def note_disk(self, _: Fact) -> None:
        self.has_lost = True

    def note_taken(self, fact: Fact) -> None:
        _, epoch, is_acting = fact.value
        (self.roots.discard if is_acting else self.roots.add)(fact.node)
        self.epochs[fact.node] = epoch

    def note_left(self, fact: Fact) -> None:
        self.roots.discard(fact.node)

    def note_write(self, fact: Fact) -> None:
        fleet, number, key, value = fact.value
        if fact.node not in self.roots:
            self.broken(f"{fact.node} writes number {number}, and is no root", fact)
        before = self.last.get((fact.node, fact.process), 0)
        known = self.writes.setdefault((fleet, number), fact)
        if known.value[2:] != [key, value] and not self.has_lost:
            self.broken(f"number {number} of {fleet} is that of two writes", known, fact)
        if number < before or (number == before and known is fact):
            self.broken(f"{fact.node} writes number {number} after number {before}", fact)
        self.last[fact.node, fact.process] = number
        self._compare_terms(fact)

    def _compare_terms(self, fact: Fact) -> None:
        """Every number of a root is above all numbers of earlier roots, whenever they were written."""
        fleet, number = fact.value[:2]
        terms, epoch = self.terms.setdefault(fleet, {}), self.epochs[fact.node]
        least, most = terms.setdefault(epoch, [number, number])
        terms[epoch] = [min(least, number), max(most, number)]
        for other, (lowest, highest) in terms.items():
            is_wrong = number <= highest if other < epoch else other > epoch and number >= lowest
            if is_wrong and not self.has_lost:
                self.broken(f"number {number} of epoch {epoch} does not agree with those of epoch {other}", fact)


class Kept(Checker):
    """A write that a majority has acknowledged exists at the end, or was overwritten (CFG-024, REC-012)."""

    rule = "kept"
    HEARS: ClassVar = {
        ("ok", "wrote"): "note_wrote",
        ("info", "store"): "note_store",
    }

    def __init__(self) -> None:
        self.wrote: dict[str, dict[str, Fact]] = {}
        """The last confirmed write of each key, by fleet."""
        self.judged: set[str] = set()

    def note_wrote(self, fact: Fact) -> None:
        fleet, key, _, number, is_confirmed = fact.value
        known = self.wrote.setdefault(fleet, {})
        if is_confirmed and (key not in known or known[key].value[3] < number):
            known[key] = fact

    def note_store(self, fact: Fact) -> None:
        fleet, pairs = fact.value
        self.judged.add(fleet)
        store = {key: (number, value) for key, number, value in pairs}
        for key, wrote in self.wrote.get(fleet, {}).items():
            value, number = wrote.value[2:4]
            there = store.get(key, (0, ""))
            if there[0] < number or (there[0] == number and there[1] != value):
                self.broken(f"{key} = {value} was confirmed as number {number}, the last root has {there}", wrote, fact)

    def end(self) -> Violation | Unknown | None:
        missing = [fleet for fleet, wrote in self.wrote.items() if wrote and fleet not in self.judged]
        return Unknown(self.rule, f"nobody said what {missing[0]} holds at the end") if missing else None


class NeverBack(Checker):
    """A node's configuration was written by a root, and never becomes older without a report (CHK-012, CFG-034, CFG-044)."""

    rule = "never_back"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("event", "went-back"): "note_reset",
        ("event", "other-topics"): "note_reset",
        ("event", "applied"): "note_applied",
        ("sent", "write"): "note_write",
        ("durable", "write"): "note_write",
        ("ok", "read-pair"): "note_pair",
    }

    def __init__(self) -> None:
        self.last: dict[str, Fact] = {}
        self.writes: dict[tuple[str, int], Fact] = {}
        self.heard: set[str] = set()
        """Fleets whose writes are in the history."""
        self.pairs: dict[str, dict[tuple[int, str], Fact]] = {}
        """Per start of a node and key: the pair read there last."""
        self.has_lost = False
        """Whether a disk was lost with earlier writes: then a number may be used again."""

    def note_disk(self, fact: Fact) -> None:
        self.has_lost = True
        self.note_reset(fact)

    def note_reset(self, fact: Fact) -> None:
        self.last.pop(fact.node, None)
        self.pairs.pop(fact.node, None)

    def note_applied(self, fact: Fact) -> None:
        before = self.last.get(fact.node)
        if before is not None and fact.value[0] < before.value[0]:
            self.broken(f"{fact.node} goes back from number {before.value[0]} to {fact.value[0]}", before, fact)
        self.last[fact.node] = fact

    def note_write(self, fact: Fact) -> None:
        self.heard.add(fact.value[0])
        self.writes[fact.value[0], fact.value[1]] = fact

    def note_pair(self, fact: Fact) -> None:
        """A pair is read at this node; if the writes of roots are known, it must be one of them."""
        fleet, key, number, value = fact.value
        wrote = self.writes.get((fleet, number))
        is_known = wrote is not None and wrote.value[2:] == [key, value]
        if fleet in self.heard and not is_known and not self.has_lost:
            facts = (fact,) if wrote is None else (wrote, fact)
            self.broken(f"{fact.node} has {value} at {key} as number {number}, which no root wrote", *facts)
        known = self.pairs.setdefault(fact.node, {})
        before = known.get((fact.process, key))
        if before is not None and number < before.value[2]:
            self.broken(f"{fact.node} reads {key} of number {number}, and had read {before.value[2]}", before, fact)
        known[fact.process, key] = fact


class Settled(Checker):
    """At rest a fleet has one root, no node acts for it, and every node has a place and a current replica."""

    rule = "settled"
    HEARS: ClassVar = {("info", "standing"): "note_standing", ("info", "quiet"): "note_quiet"}

    def __init__(self) -> None:
        self.fleets: dict[str, list[Fact]] = {}

    def note_standing(self, fact: Fact) -> None:
        self.fleets.setdefault(fact.value[0], []).append(fact)

    def note_quiet(self, _: Fact) -> None:
        for fleet, standings in self.fleets.items():
            roots = [each for each in standings if each.value[1] == "ROOT"]
            if len(roots) != 1:
                names = ", ".join(each.node for each in roots) or "no root"
                self.broken(f"after quiet {fleet} has {len(roots)} roots: {names}", *standings)
            for each in standings:
                self._judge(each)

    def _judge(self, each: Fact) -> None:
        _, role, standing, replica, parent = each.value
        if role not in ("ROOT", "FOLLOW"):
            self.broken(f"after quiet {each.node} is still {role}", each)
        if role == "FOLLOW" and (standing, replica) != ("JOINED", "RUN"):
            self.broken(
                f"after quiet {each.node} is {standing}, its replica {replica}, below {parent or 'nobody'}", each
            )


class Calm(Checker):
    """Where all nodes run, all cables are whole, and both has been so for long, no parent is called silent (CFG-045, CFG-046)."""

    rule = "calm"
    HEARS: ClassVar = {
        **{("info", what): "note_good" for what in ("start", "resumed")},
        **{("info", what): "note_bad" for what in ("crash", "paused")},
        ("info", "path"): "note_path",
        ("event", "parent-silent"): "note_silent",
    }

    def __init__(self) -> None:
        self.changed_at = 0
        self.wrong: set[tuple[str, ...]] = set()
        """Nodes that do not run, and cables that are not whole."""

    def note_good(self, fact: Fact) -> None:
        self._note((fact.node,), fact, is_good=True)

    def note_bad(self, fact: Fact) -> None:
        self._note((fact.node,), fact, is_good=False)

    def note_path(self, fact: Fact) -> None:
        here, there, state = fact.value
        self._note((here, there), fact, is_good=state == "open")

    def _note(self, what: tuple[str, ...], fact: Fact, *, is_good: bool) -> None:
        (self.wrong.discard if is_good else self.wrong.add)(what)
        self.changed_at = fact.at

    def note_silent(self, fact: Fact) -> None:
        (silence,) = fact.value
        if not self.wrong and fact.at - self.changed_at > SETTLED_AFTER * silence:
            self.broken(
                f"{fact.node} has not heard its parent for {silence / SECOND:.3f} s, and nothing is wrong", fact
            )


class Swift(Checker):
    """If cables are fast and a majority is alive, dead nodes are replaced in time (REC-005, REC-013)."""

    rule = "swift"
    HEARS: ClassVar = {
        ("info", "due"): "note_due",
        ("event", "root-taken"): "note_taken",
        ("event", "parent-joined"): "note_joined",
        ("info", "gauge"): "note_time",
        ("info", "quiet"): "note_time",
    }

    def __init__(self) -> None:
        self.due: dict[tuple[str, str], Fact] = {}
        """What must happen in time: a fleet gets a root, or a node a parent other than the dead one."""

    def note_due(self, fact: Fact) -> None:
        what, whom, _, _ = fact.value
        self.due[what, whom] = fact

    def note_taken(self, fact: Fact) -> None:
        self.note_time(fact)
        if not fact.value[2]:
            self.due.pop(("root", fact.value[0]), None)

    def note_joined(self, fact: Fact) -> None:
        self.note_time(fact)
        due = self.due.get(("parent", fact.node))
        if due is not None and fact.value[0] != due.value[3]:
            del self.due["parent", fact.node]

    def note_time(self, fact: Fact) -> None:
        for (what, whom), due in self.due.items():
            by: Any = due.value[2]
            if by < fact.at:
                late = f"{whom} has no new {what} {(by - due.at) / SECOND:.3f} s after the death of {due.value[3]}"
                self.broken(late, due, fact)
