"""Each checker beside a twin that is too slow to be wrong, and against histories with one thing wrong (CHK-004)."""

from collections import Counter
from typing import Any

import pytest

from tests.checks.telling import DEAD_NS
from weft.base.chance import Chance
from weft.checks import Complete, ExactlyOnce, Fact, Order, Violation, judge
from weft.sim.run import Run
from weft.sim.swarm import draw_plan

FORGETFUL = {"crash-lost", "crash-old", "kill-collector", "fill"}  # then some numbers may rightly be missing
NAMES = ("r", "c", "a")
LEVELS = {"r": "root", "c": "collector", "a": "sensor"}


def twin_of_exactly_once(facts: list[Fact]) -> bool:
    """Whether every number is there at most once, counted one by one."""
    given, delivered, drained = Counter[Any](), Counter[Any](), Counter[Any]()
    segments: list[int] = []
    for fact in facts:
        if fact.what in ("taken", "held"):
            stream, origin, first, last = fact.value
            numbers = [(stream, origin, number) for number in range(first, last + 1)]
            if fact.what == "taken":
                given.update(numbers)
            if fact.node == "r":
                delivered.update(numbers)
        elif fact.what == "segment":
            segments.append(fact.value[1])
            for origin, first, last in fact.value[2]:
                drained.update((fact.value[0], origin, number) for number in range(first, last + 1))
    is_once = all(count == 1 for each in (given, delivered, drained) for count in each.values())
    return is_once and segments == list(range(1, len(segments) + 1))


class Sets:
    """Who has which number: plain sets of (stream, origin, number)."""

    def __init__(self) -> None:
        self.taken, self.said, self.lake, self.named = set[Any](), set[Any](), set[Any](), set[Any]()
        self.held: dict[str, set[Any]] = {name: set() for name in NAMES}

    def holds(self, fact: Fact) -> bool:
        """Take one fact in; False if it must not be."""
        if fact.what == "segment":
            return self.drain(fact)
        if fact.what not in ("taken", "held", "lost", "forgot"):
            return True
        stream, origin, first, last = fact.value[:4]
        numbers = {(stream, origin, number) for number in range(first, last + 1)}
        if fact.what == "taken":
            self.taken |= numbers
        if fact.what == "lost":
            self.said |= numbers
        elif fact.what == "forgot":
            self.held[fact.node] -= numbers
            return not (numbers & self.taken) - self.lake - self.named - self.said - set().union(*self.held.values())
        else:
            self.held[fact.node] |= numbers
        return fact.what != "held" or numbers <= self.taken

    def drain(self, fact: Fact) -> bool:
        stream, _, claims, losses, _ = fact.value
        claimed = {(stream, origin, n) for origin, first, last in claims for n in range(first, last + 1)}
        self.lake |= claimed
        self.named |= {(stream, origin, n) for origin, first, last in losses for n in range(first, last + 1)}
        return claimed <= self.taken


def twin_of_complete(facts: list[Fact]) -> bool:
    """Whether at every fact all numbers taken are in a journal, in the lake, or announced, set by set."""
    sets = Sets()
    is_right = all(sets.holds(fact) for fact in facts)
    return is_right and not sets.taken - sets.lake - sets.named and _table_is_empty(sets.lake, sets.named)


def _table_is_empty(lake: set[Any], named: set[Any]) -> bool:
    """Whether the lake alone would call nothing missing."""
    there = lake | named
    highest: dict[Any, int] = {}
    for stream, origin, number in there:
        highest[stream, origin] = max(number, highest.get((stream, origin), 0))
    return all((*key, number) in there for key, last in highest.items() for number in range(1, last + 1))


def twin_of_order(facts: list[Fact]) -> bool:
    """Whether the root's numbers ascend, compared with all that came before; what was given up may come late."""
    seen: list[tuple[Any, str, int, int]] = []
    given_up: list[tuple[Any, str, int]] = []
    for fact in facts:
        if fact.what == "lost":
            stream, origin, first, last, _ = fact.value
            given_up += [(stream, origin, number) for number in range(first, last + 1)]
        elif fact.node == "r" and fact.what in ("taken", "held"):
            stream, origin, first, last = fact.value
            name, _, era = origin.rpartition("/")
            is_given_up = all((stream, origin, number) in given_up for number in range(first, last + 1))
            is_late = any((stream, name) == (s, n) and (int(era), first) <= (e, at) for s, n, e, at in seen)
            if is_late and not is_given_up:
                return False
            seen += [(stream, name, int(era), number) for number in range(first, last + 1)]
    return True


def random_history(chance: Chance) -> list[Fact]:
    """A small history that may be right: most of it follows the rules, some of it does not care."""
    facts = [Fact(0, name, 1, "info", "start", [LEVELS[name], "", DEAD_NS]) for name in NAMES]
    top, segment, drained = 0, 0, 0
    for _ in range(chance.randint(1, 9)):
        kind = chance.choice(("take", "take", "hold", "hold", "forget", "lose", "drain", "drain"))
        first = chance.randint(1, max(1, top))
        last = chance.randint(first, max(first, top))
        if kind == "take":
            first = top + 1 if chance.random() < 0.9 else max(1, top)
            top = max(top, first + chance.randint(0, 2))
            facts.append(_fact("a", "durable", "taken", [1, "a/1", first, top]))
        elif kind == "drain":
            segment += 1 if chance.random() < 0.95 else 0
            begin = drained + 1 if chance.random() < 0.8 else first
            claims = [["a/1", begin, top]] if begin <= top else []
            drained = max(drained, top if claims else 0)
            facts.append(_fact("r", "durable", "segment", [1, segment, claims, [], []]))
        elif kind == "lose":
            facts.append(_fact("c", "durable", "lost", [1, "a/1", first, last, ""]))
        elif kind == "hold":
            facts.append(_fact(chance.choice("rc"), "durable", "held", [1, "a/1", first, last]))
        else:
            facts.append(_fact(chance.choice("ca"), "info", "forgot", [1, "a/1", first, last]))
    facts.append(_fact("", "info", "quiet", None))
    return facts


def _fact(node: str, kind: str, what: str, value: Any) -> Fact:
    return Fact(0, node, 1, kind, what, value)


PAIRS = {
    "exactly_once": (ExactlyOnce, twin_of_exactly_once),
    "order": (Order, twin_of_order),
    "complete": (Complete, twin_of_complete),
}


@pytest.mark.prove("many histories")
@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("name", PAIRS)
def test_a_checker_agrees_with_its_twin(name: str, soak: bool) -> None:
    kind, twin = PAIRS[name]
    histories = 100_000 if soak else 10_000
    chance, good = Chance(f"twins/{name}"), 0
    for number in range(histories):
        facts = random_history(chance)
        expected = twin(facts)
        actual = judge(kind(), facts) is None
        assert expected == actual, (number, [str(fact) for fact in facts], str(judge(kind(), facts)))
        good += expected
    assert histories // 50 < good < histories * 49 // 50, "the histories are of both kinds"


@pytest.fixture(scope="module")
def night() -> list[Fact]:
    """A real history: green, and long enough to be spoiled in many places."""
    plans = (draw_plan(str(seed)) for seed in range(99))
    plan = next(plan for plan in plans if len(plan.nodes) > 8 and not FORGETFUL & set(plan.menu))
    outcome = Run(plan, keep=True).go()
    assert outcome.is_green
    return [fact for fact in outcome.history if fact.kind in ("durable", "info")]


def _again(facts: list[Fact], chance: Chance) -> list[Fact]:
    """Something the root holds is held once more."""
    index = chance.choice([i for i, fact in enumerate(facts) if fact.node == "root" and fact.what == "held"])
    later = chance.randint(index + 1, len(facts))
    return [*facts[:later], facts[index], *facts[later:]]


def _drained_again(facts: list[Fact], chance: Chance) -> list[Fact]:
    """A segment holds a claim of another one."""
    places = [i for i, fact in enumerate(facts) if fact.what == "segment" and fact.value[2]]
    one, other = chance.choice(places), chance.choice(places)
    stream, number, claims, *rest = facts[one].value
    if facts[other].value[0] != stream:
        return _drained_again(facts, chance)
    return [
        *facts[:one],
        _with(facts[one], [stream, number, [*claims, chance.choice(facts[other].value[2])], *rest]),
        *facts[one + 1 :],
    ]


def _left_out(facts: list[Fact], chance: Chance) -> list[Fact]:
    """A segment lacks one of its claims."""
    one = chance.choice([i for i, fact in enumerate(facts) if fact.what == "segment" and fact.value[2]])
    stream, number, claims, *rest = facts[one].value
    spoiled = claims.copy()
    spoiled.pop(chance.randrange(len(claims)))
    return [*facts[:one], _with(facts[one], [stream, number, spoiled, *rest]), *facts[one + 1 :]]


def _shortened(facts: list[Fact], chance: Chance) -> list[Fact]:
    """A segment's claim ends one too early."""
    one = chance.choice([i for i, fact in enumerate(facts) if fact.what == "segment" and fact.value[2]])
    stream, number, claims, *rest = facts[one].value
    at = chance.randrange(len(claims))
    origin, first, last = claims[at]
    shorter = [[origin, first, last - 1]] if last > first else []
    return [
        *facts[:one],
        _with(facts[one], [stream, number, [*claims[:at], *shorter, *claims[at + 1 :]], *rest]),
        *facts[one + 1 :],
    ]


def _backwards(facts: list[Fact], chance: Chance) -> list[Fact]:
    """Two that the root got of one origin change places."""
    places = [i for i, fact in enumerate(facts) if fact.node == "root" and fact.what == "held"]
    one = chance.choice(places)
    others = [i for i in places if facts[i].value[:2] == facts[one].value[:2] and i != one]
    if not others:
        return _backwards(facts, chance)
    other = chance.choice(others)
    swapped = facts.copy()
    swapped[one], swapped[other] = facts[other], facts[one]
    return swapped


def _with(fact: Fact, value: Any) -> Fact:
    return Fact(fact.at, fact.node, fact.process, fact.kind, fact.what, value)


MUTATIONS = {
    "held again": (ExactlyOnce, _again),
    "drained again": (ExactlyOnce, _drained_again),
    "left out": (Complete, _left_out),
    "shortened": (Complete, _shortened),
    "backwards": (Order, _backwards),
}


@pytest.mark.prove("long histories")
@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("name", MUTATIONS)
def test_one_thing_wrong_in_a_long_night_is_found(name: str, night: list[Fact], soak: bool) -> None:
    kind, spoil = MUTATIONS[name]
    assert judge(kind(), night) is None
    chance, count = Chance(f"mutation/{name}"), 1_000 if soak else 250
    found = sum(isinstance(judge(kind(), spoil(night, chance)), Violation) for _ in range(count))
    assert found >= count * 99 // 100
