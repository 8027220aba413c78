"""Histories of a store: small ones, long ones, what is wrong with them; their twins. All of one entry."""

from collections.abc import Iterator
from typing import Any, Final

from tests.checks.standard import QUIET, Case, Line, changed, places, put
from weft.base.chance import Chance
from weft.checks import Fact
from weft.checks.store import NoResurrection, StoreCausal

LSN, TOCK, VALUE, CHAIN, IS_OWN, IS_SHOWN, BEFORE = 0, 2, 3, 4, 5, 6, 7
"""Where they stand in the value of a change."""


def order(value: list[Any]) -> tuple[int, int, int]:
    """Of two changes the greater one stands: by tock, tick, then the lower name (STO-010)."""
    node, tick = value[CHAIN][0]
    return value[TOCK], tick, -ord(node)


def journal(before: list[Fact], node: str) -> list[list[Any]]:
    """The changes that stand in a node's journal."""
    kept: list[list[Any]] = []
    for fact in before:
        if fact.node == node and fact.what == "change":
            kept.append(fact.value)
        elif fact.node == node and fact.what == "journal":
            kept = [value for value in kept if value[LSN] < fact.value[0]]
    return kept


# A change is greater than what its author had seen


def twin_of_store_causal(facts: list[Fact]) -> bool:
    return all(_is_after(facts[:at], fact) for at, fact in enumerate(facts))


def _is_after(before: list[Fact], fact: Fact) -> bool:
    if fact.what == "change" and fact.value[IS_OWN]:
        seen = max((value[TOCK] for value in journal(before, fact.node)), default=0)
        over = fact.value[BEFORE]
        return bool(fact.value[TOCK] > seen and (over is None or _covers(fact.value[CHAIN], over)))
    if fact.what == "stored" and fact.value[3] != "any":
        made = next(other.value for other in reversed(before) if other.what == "change")
        over, wanted = made[BEFORE], fact.value[3]
        if wanted is not None:
            return bool(over == wanted)
        there = [other.value for other in before if other.what == "change" and other.value[CHAIN][0] == over]
        return over is None or not there or there[0][VALUE] is None
    return True


def _covers(chain: list[list[Any]], link: list[Any]) -> bool:
    return any(node == link[0] and tick >= link[1] for node, tick in chain)


class Author:
    """Makes changes of one entry at two nodes, each with what its author has seen, or carelessly."""

    def __init__(self, chance: Chance, careless: float) -> None:
        self.chance, self.careless = chance, careless
        self.lsn, self.tick, self.tock = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0), 0
        self.made: list[list[Any]] = []
        self.head: dict[str, list[Any] | None] = {"a": None, "b": None}

    def is_careless(self) -> bool:
        return self.chance.random() < self.careless

    def own(self, node: str, value: str | None) -> Line:
        """A change of its own."""
        self.lsn[node] += 1
        self.tick[node] += 1
        self.tock += 0 if self.is_careless() else 1
        over = self.head[node]
        links = [[node, self.tick[node]]]
        if over is not None and not self.is_careless():
            links += [link for link in over[CHAIN] if link[0] != node]
        before = None if over is None else over[CHAIN][0]
        said = [self.lsn[node], "k", self.tock, value, links, True, True, before]
        self.made.append(said)
        self.head[node] = said
        return node, "durable", "change", said

    def copy(self, node: str, made: list[Any]) -> Line:
        """One that came from elsewhere, whether it stands or has lost."""
        self.lsn[node] += 1
        head = self.head[node]
        stands = head is None or order(made) > order(head)
        said = [self.lsn[node], *made[1:IS_OWN], False, stands != self.is_careless(), None]
        if stands:
            self.head[node] = made
        return node, "durable", "change", said


def draw_store_causal(chance: Chance) -> list[Line]:
    author = Author(chance, 0.04)
    lines: list[Line] = []
    for _ in range(chance.randint(1, 7)):
        node, do = chance.choice("ab"), chance.choice(("own", "own", "own", "delete", "copy", "back"))
        if do in ("own", "delete"):
            lines.append(author.own(node, "01" if do == "own" else None))
            lines += _stored(chance, lines)
        elif do == "copy" and author.made:
            made = chance.choice(author.made)
            if made[CHAIN][0][0] != node:
                lines.append(author.copy(node, made))
        elif do == "back" and author.lsn[node]:
            lines.append((node, "info", "journal", [author.lsn[node]]))
            author.head[node] = None
    return lines


def _stored(chance: Chance, lines: list[Line]) -> Iterator[Line]:
    node, _, _, said = lines[-1]
    if chance.random() < 0.6:
        is_free = said[BEFORE] is None
        wanted = chance.choice(("any", said[BEFORE])) if chance.random() < 0.9 else ["a", 1]
        if wanted is None and not is_free:
            return
        yield node, "ok", "stored", ["k", *said[CHAIN][0], wanted]


def long_store(chance: Chance) -> list[Line]:
    """Two nodes that write, delete, and hear of each other's changes; in the end the entry is deleted."""
    author = Author(chance, 0)
    lines: list[Line] = []
    for number in range(1, 101):
        node = chance.choice("ab")
        lines.append(author.own(node, "01" if number % 4 and number < 100 else None))
        said = lines[-1][3]
        lines.append((node, "ok", "stored", ["k", *said[CHAIN][0], said[BEFORE] if number % 2 else "any"]))
        lines.append(author.copy("b" if node == "a" else "a", said))
    last = author.made[-1]
    ends = [(node, "info", "holding", [node, [["k", *last[CHAIN][0], last[TOCK], True]], {}, {}]) for node in "ab"]
    return [*lines, *ends, QUIET]


def _own(facts: list[Fact]) -> list[int]:
    return places(facts, "change", lambda fact: fact.value[IS_OWN] and fact.value[BEFORE] is not None)


def tock_not_merged(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(_own(facts))
    value = list(facts[at].value)
    value[TOCK] -= chance.randint(1, 3)
    return changed(facts, at, value=value)


def before_is_not_said(facts: list[Fact], chance: Chance) -> list[Fact]:
    """The chain leaves out what stood there before."""
    at = chance.choice([at for at in _own(facts) if facts[at].value[BEFORE][0] != facts[at].node])
    value = list(facts[at].value)
    value[CHAIN] = value[CHAIN][:1]
    return changed(facts, at, value=value)


def condition_not_met(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "stored", lambda fact: isinstance(fact.value[3], list)))
    value = list(facts[at].value)
    value[3] = [value[3][0], value[3][1] + 1]
    return changed(facts, at, value=value)


# What was deleted stays deleted


def twin_of_no_resurrection(facts: list[Fact]) -> bool:
    return all(_stays_deleted(facts[:at], fact) for at, fact in enumerate(facts))


def _stays_deleted(before: list[Fact], fact: Fact) -> bool:
    if fact.what == "change" and fact.value[IS_SHOWN] and fact.value[VALUE] is not None:
        deletions = [v for v in journal(before, fact.node) if v[IS_SHOWN] and v[VALUE] is None]
        return all(order(fact.value) > order(value) for value in deletions)
    if fact.what == "quiet":
        somewhere = [value for node in "ab" for value in journal(before, node)]
        greatest = max(somewhere, key=order, default=None)
        holding = {other.node: other.value[1] for other in before if other.what == "holding"}
        shown = [entry for entries in holding.values() for entry in entries if not entry[4]]
        is_deleted = greatest is not None and greatest[VALUE] is None
        ever = [other.value for other in before if other.what == "change"]
        old = [v for v in ever if greatest is not None and order(v) < order(greatest)]
        return not is_deleted or not any(entry[1:3] == value[CHAIN][0] for entry in shown for value in old)
    return True


def draw_no_resurrection(chance: Chance) -> list[Line]:
    author = Author(chance, 0.04)
    lines: list[Line] = []
    for _ in range(chance.randint(1, 7)):
        node, do = chance.choice("ab"), chance.choice(("own", "own", "delete", "delete", "copy", "copy"))
        if do in ("own", "delete"):
            lines.append(author.own(node, "01" if do == "own" else None))
        elif author.made:
            made = chance.choice(author.made)
            if made[CHAIN][0][0] != node:
                lines.append(author.copy(node, made))
    for node in "ab":
        head = author.head[node] if chance.random() < 0.9 or not author.made else chance.choice(author.made)
        entries = [] if head is None else [["k", *head[CHAIN][0], head[TOCK], head[VALUE] is None]]
        lines.append((node, "info", "holding", [node, entries, {}, {}]))
    return [*lines, QUIET] if chance.random() < 0.5 else lines


def there_again(facts: list[Fact], chance: Chance) -> list[Fact]:
    """A node shows an older change once more, behind a deletion."""
    gone = places(facts, "change", lambda fact: fact.value[VALUE] is None)
    at = chance.choice(gone[1:])
    old = chance.choice(places(facts[:at], "change", lambda fact: fact.value[VALUE] is not None))
    value = [facts[at].value[LSN] + 1, *facts[old].value[1:IS_OWN], False, True, None]
    return put(facts, at + 1, Fact(0, facts[at].node, 1, "durable", "change", value))


def there_in_the_end(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "holding"))
    old = facts[chance.choice(places(facts, "change", lambda fact: fact.value[VALUE] is not None))].value
    return changed(facts, at, value=[facts[at].node, [["k", *old[CHAIN][0], old[TOCK], False]], {}, {}])


CASES: Final = (
    Case(
        StoreCausal,
        draw_store_causal,
        twin_of_store_causal,
        long_store,
        (tock_not_merged, before_is_not_said, condition_not_met),
    ),
    Case(
        NoResurrection,
        draw_no_resurrection,
        twin_of_no_resurrection,
        long_store,
        (there_again, there_in_the_end),
    ),
)
