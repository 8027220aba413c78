"""Histories of a catalog and of documents: small ones, long ones, and what is wrong with them; their twins."""

from collections.abc import Iterator
from typing import Any, Final

from tests.checks.standard import QUIET, Case, Line, changed, places, put, without
from weft.base.chance import Chance
from weft.checks import Deregistered, Fact, PrefixFold, Watched

GONE: Final = ("remove", "leave")
NAMES: Final = "xyz"


def announced(epoch: str, index: int, name: str = "x", op: str = "register", node: str = "r") -> Line:
    return node, "durable", "announced", [epoch, index, op, name]


def opened(epoch: str, *names: str, node: str = "r") -> Line:
    return node, "info", "opened", [epoch, list(names)]


def mirrored(epoch: str, index: int, *names: list[str]) -> Line:
    return "", "ok", "mirrored", ["w", epoch, index, *names]


def shown(epoch: str, index: int, name: str = "x", op: str = "register") -> Line:
    return "", "ok", "told", ["w", epoch, index, op, name]


# Watchers: the twin


def listed(facts: list[Fact], epoch: str, index: int) -> list[str]:
    """What a start of the broker lists as of a change, by all that it said."""
    names: set[str] = set()
    for fact in facts:
        if fact.what == "opened" and fact.value[0] == epoch:
            names |= {*fact.value[1]}
        if fact.what == "announced" and fact.value[0] == epoch and fact.value[1] <= index:
            names = names - {fact.value[3]} if fact.value[2] in GONE else names | {fact.value[3]}
    return sorted(names)


def twin_of_watched(facts: list[Fact]) -> bool:
    return all(_is_due(facts[:at], fact) for at, fact in enumerate(facts))


def _is_due(before: list[Fact], fact: Fact) -> bool:
    said = [other.value for other in before if other.what == "announced"]
    stands = next((other for other in reversed(before) if other.what in ("mirrored", "told", "unwatched")), None)
    place = stands.value[1:3] if stands is not None and stands.what != "unwatched" else None
    if fact.what == "announced":
        return bool(fact.value[1] == sum(value[0] == fact.value[0] for value in said) + 1)
    if fact.what == "mirrored":
        _, epoch, index, *names = fact.value
        is_durable = index == 0 or any(value[:2] == [epoch, index] for value in said)
        return is_durable and all(sorted(each) == listed(before, epoch, index) for each in names)
    if fact.what == "told":
        return fact.value[1:] in said and place == [fact.value[1], fact.value[2] - 1]
    if fact.what == "quiet" and place is not None:
        starts = [other.value[0] for other in before if other.what in ("announced", "opened")]
        newest = starts[-1] if starts else None
        return bool(place == [newest, sum(value[0] == newest for value in said)])
    return True


def draw_watched(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    counts = {"e": 0, "f": 0}
    epoch, at, stands = "e", 0, ""
    for _ in range(chance.randint(1, 8)):
        do = chance.choice(("say", "say", "list", "tell", "tell", "tell", "leave", "open"))
        if do == "say":
            counts[epoch] += 1 if chance.random() < 0.97 else 2
            op = chance.choice(("register", "update", "remove"))
            lines.append(announced(epoch, counts[epoch], chance.choice(NAMES), op))
        elif do == "open" and epoch == "e":
            epoch = "f"
            lines.append(opened(epoch, *chance.sample(NAMES, k=chance.randint(0, 2))))
        elif do == "list":
            stands, at = epoch, counts[epoch] if chance.random() < 0.9 else chance.randint(0, 3)
            right = listed([Fact(0, *_at(line)) for line in lines], epoch, at)
            names = [right if chance.random() < 0.95 else ["x"]] if chance.random() < 0.5 else []
            lines.append(mirrored(stands, at, *names))
        elif do == "tell":
            said = [line[3] for line in lines if line[2] == "announced"]
            due = [value for value in said if value[:2] == [stands, at + 1]]
            value: list[Any] = (
                due[0] if due and chance.random() < 0.97 else chance.choice(said) if said else [epoch, 1, "", ""]
            )
            if due or chance.random() < 0.03:
                lines.append(("", "ok", "told", ["w", *value]))
                at = value[1]
        elif do == "leave":
            stands = ""
            lines.append(("", "ok", "unwatched", ["w"]))
    if stands and chance.random() < 0.5 and counts[epoch]:
        lines.append(mirrored(epoch, counts[epoch]))
    return [*lines, QUIET]


def _at(line: Line) -> tuple[str, int, str, str, Any]:
    node, kind, what, value = line
    return node, 1, kind, what, value


def long_watched(chance: Chance) -> list[Line]:
    """Two starts of a broker; a watcher that is told everything, and takes a list now and then."""
    lines: list[Line] = []
    names: set[str] = set()
    for epoch in "ef":
        lines += [opened(epoch, *sorted(names)), mirrored(epoch, 0, sorted(names))]
        for index in range(1, 101):
            name = f"n{chance.randrange(20)}"
            op = "remove" if name in names and chance.random() < 0.5 else "register"
            (names.discard if op == "remove" else names.add)(name)
            lines += [announced(epoch, index, name, op), shown(epoch, index, name, op)]
            if index % 10 == 0:
                lines.append(mirrored(epoch, index, sorted(names)))
    return [*lines, QUIET]


def told_twice(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "told"))
    return put(facts, chance.randint(at + 1, len(facts) - 1), facts[at])


def not_told(facts: list[Fact], chance: Chance) -> list[Fact]:
    """One change is not told, where no list makes good for it."""
    return without(facts, chance.choice([at for at in places(facts, "told") if facts[at + 1].what != "mirrored"]))


def told_another(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "told"))
    return changed(facts, at, value=[*facts[at].value[:4], "another"])


def not_announced(facts: list[Fact], chance: Chance) -> list[Fact]:
    return without(facts, chance.choice(places(facts, "announced")))


def list_with_one_more(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "mirrored"))
    return changed(facts, at, value=[*facts[at].value[:3], [*facts[at].value[3], "ghost"]])


def list_with_one_less(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "mirrored", lambda fact: bool(fact.value[3])))
    names = list(facts[at].value[3])
    names.pop(chance.randrange(len(names)))
    return changed(facts, at, value=[*facts[at].value[:3], names])


# Services that are removed


def twin_of_deregistered(facts: list[Fact]) -> bool:
    for at, fact in enumerate(facts):
        if fact.what == "opened":
            names = fact.value[1]
        elif fact.what == "announced" and fact.value[2] not in (*GONE, "register", "enter", "add"):
            names = [fact.value[3]]
        else:
            continue
        if not all(_is_live(facts[:at], fact.node, name) for name in names):
            return False
    return True


def _is_live(before: list[Fact], node: str, name: str) -> bool:
    """Whether a broker may list a name: by its last word about it, or since its disk went back after its last start."""
    is_live = is_excused = False
    for fact in before:
        if fact.node != node:
            continue
        if fact.what == "disk":
            is_excused = True
        elif fact.what == "opened":
            is_live, is_excused = name in fact.value[1], False
        elif fact.what == "announced" and fact.value[3] == name:
            is_live = fact.value[2] not in GONE
    return is_live or is_excused


def draw_deregistered(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    live: set[str] = set()
    for index in range(1, chance.randint(2, 9)):
        do = chance.choice(("register", "register", "update", "remove", "remove", "open", "disk"))
        if do == "open":
            names = sorted(live) if chance.random() < 0.8 else chance.sample(NAMES, k=2)
            live = {*names}
            lines.append(opened(f"e{index}", *names))
        elif do == "disk":
            lines.append(("r", "info", "disk", ["old", [], []]))
        else:
            known = sorted(live)
            name = chance.choice(known if known and do != "register" and chance.random() < 0.8 else NAMES)
            (live.discard if do == "remove" else live.add)(name)
            lines.append(announced("e", index, name, do))
    return lines


def long_deregistered(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    live: set[str] = set()
    for index in range(1, 201):
        name = f"n{chance.randrange(30)}"
        op = "register" if name not in live else chance.choice(("update", "remove", "suspect"))
        (live.discard if op == "remove" else live.add)(name)
        lines.append(announced("e", index, name, op))
        if index % 25 == 0:
            lines.append(opened(f"e{index}", *sorted(live)))
    return lines


def _removal(facts: list[Fact], chance: Chance) -> tuple[int, str]:
    """A removal, behind which the name is not registered again before the broker starts anew."""
    found = []
    for at in places(facts, "announced", lambda fact: fact.value[2] == "remove"):
        name = facts[at].value[3]
        behind = next((f for f in facts[at + 1 :] if f.what == "opened" or f.value[3] == name), None)
        if behind is not None and behind.what == "opened":
            found.append((at, name))
    return chance.choice(found)


def active_again(facts: list[Fact], chance: Chance) -> list[Fact]:
    at, name = _removal(facts, chance)
    return put(facts, at + 1, Fact(0, "r", 1, "durable", "announced", ["e", 0, "active", name]))


def there_at_the_next_start(facts: list[Fact], chance: Chance) -> list[Fact]:
    at, name = _removal(facts, chance)
    start = next(index for index in places(facts, "opened") if index > at)
    epoch, names = facts[start].value
    return changed(facts, start, value=[epoch, [*names, name]])


# Documents


def holds(node: str, sequence: int, source: str = "p") -> Line:
    return node, "durable", "operation", ["s", source, sequence]


def passes(node: str, sequence: int, source: str = "p") -> Line:
    return node, "sent", "operation", ["s", source, sequence]


def document(node: str, log: str, shows: str, anew: str) -> Line:
    return node, "info", "document", ["s", log, shows, anew]


def log(node: str, *sources: list[Any]) -> Line:
    return node, "info", "log", ["s", list(sources)]


def twin_of_prefix_fold(facts: list[Fact]) -> bool:
    return all(_may_be(facts[:at], fact) for at, fact in enumerate(facts))


def _may_be(before: list[Fact], fact: Fact) -> bool:
    if fact.what == "operation" and fact.kind == "sent":
        session, source, sequence = fact.value
        disks = [at for at, other in enumerate(before) if other.what == "disk" and other.node == fact.node]
        since = before[disks[-1] :] if disks else before
        held = [other.value for other in since if (other.node, other.kind) == (fact.node, "durable")]
        return all([session, source, number] in held for number in range(1, sequence + 1))
    if fact.what == "document":
        session, known, shows, anew = fact.value
        others = [o.value for o in before if o.what == "document" and o.value[:2] == [session, known]]
        return shows == anew and all(shows == other[2] for other in others)
    if fact.what == "log":
        numbers = [{n for first, last in ranges for n in range(first, last + 1)} for _, ranges in fact.value[1]]
        return all(each == set(range(1, len(each) + 1)) for each in numbers)
    return True


def draw_prefix_fold(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    last = dict.fromkeys("ab", 0)
    for _ in range(chance.randint(1, 8)):
        node = chance.choice("ab")
        do = chance.choice(("hold", "hold", "hold", "pass", "document", "log", "disk"))
        if do == "hold":
            last[node] += 1 if chance.random() < 0.9 else 2
            lines.append(holds(node, last[node]))
        elif do == "pass" and last[node]:
            lines.append(passes(node, chance.randint(1, last[node])))
        elif do == "document":
            shows = chance.choice("lm") if chance.random() < 0.2 else "l"
            lines.append(document(node, "l", shows, shows if chance.random() < 0.9 else "l"))
        elif do == "log":
            lines.append(log(node, ["p", chance.choice(([[1, 2]], [[1, 1]], [[1, 1], [2, 3]], [], [[2, 2]]))]))
        elif do == "disk":
            last[node] = 0
            lines.append((node, "info", "disk", ["lost", [], []]))
    return lines


def _shuffled(chance: Chance, node: str, source: str) -> Iterator[Line]:
    numbers = list(range(1, 41))
    chance.shuffle(numbers)
    said = 0
    for at, number in enumerate(numbers):
        yield holds(node, number, source)
        while said + 1 in numbers[: at + 1]:
            said += 1
            yield passes(node, said, source)


def long_prefix_fold(chance: Chance) -> list[Line]:
    """Three nodes, two sources: what comes out of order is passed on when the hole is filled."""
    lines = [line for node in "abc" for source in "pq" for line in _shuffled(chance, node, source)]
    ends = [document(node, "l", "d", "d") for node in "abc"] + [log(node, ["p", [[1, 40]]]) for node in "abc"]
    return [*lines, *ends]


def passed_on_too_soon(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "operation", lambda fact: fact.kind == "sent"))
    fact = facts[at]
    own = [i for i, other in enumerate(facts) if (other.node, other.kind) == (fact.node, "durable")]
    return put(facts[:at] + facts[at + 1 :], own[0], fact)


def never_durable(facts: list[Fact], chance: Chance) -> list[Fact]:
    return without(facts, chance.choice(places(facts, "operation", lambda fact: fact.kind == "durable")))


def another_document(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "document"))
    place = chance.randint(2, 3)
    value = [*facts[at].value]
    value[place] = "e"
    return changed(facts, at, value=value)


def log_with_a_hole(facts: list[Fact], chance: Chance) -> list[Fact]:
    at, hole = chance.choice(places(facts, "log")), chance.randint(2, 39)
    return changed(facts, at, value=["s", [["p", [[1, hole - 1], [hole + 1, 40]]]]])


CASES: Final = (
    Case(
        Watched,
        draw_watched,
        twin_of_watched,
        long_watched,
        (told_twice, not_told, told_another, not_announced, list_with_one_more, list_with_one_less),
    ),
    Case(
        Deregistered,
        draw_deregistered,
        twin_of_deregistered,
        long_deregistered,
        (active_again, there_at_the_next_start),
    ),
    Case(
        PrefixFold,
        draw_prefix_fold,
        twin_of_prefix_fold,
        long_prefix_fold,
        (passed_on_too_soon, never_durable, another_document, log_with_a_hole),
    ),
)
