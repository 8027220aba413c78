"""What clients of one place, sessions, watchers and documents are promised, and histories that break it."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest

from tests.checks.catalogs import announced, document, holds, log, mirrored, opened, passes, shown
from tests.checks.standard import QUIET, Line
from weft.base.chance import Chance
from weft.checks import (
    Checker,
    Deregistered,
    Fact,
    Linearizable,
    PrefixFold,
    Unknown,
    Violation,
    Watched,
    judge,
)


def told(*lines: Line) -> list[Fact]:
    return [Fact(at, node, 1, kind, what, value) for at, (node, kind, what, value) in enumerate(lines)]


def asks(client: str, number: int, *operation: Any, key: str = "k") -> Line:
    return "", "invoke", "call", [client, number, key, list(operation)]


def hears(client: str, number: int, result: Any = None) -> Line:
    return "", "ok", "call", [client, number, result]


def is_refused(client: str, number: int) -> Line:
    return "", "fail", "call", [client, number]


def one(client: str, number: int, *operation: Any, result: Any = None, key: str = "k") -> tuple[Line, Line]:
    return asks(client, number, *operation, key=key), hears(client, number, result)


LINEAR: dict[str, tuple[Line, ...]] = {
    "nothing": (),
    "nothing is read where nothing was written": one("a", 1, "get"),
    "what was written is read": (*one("a", 1, "set", 1), *one("b", 1, "get", result=1)),
    "a read beside a write sees the old": (asks("a", 1, "set", 1), *one("b", 1, "get"), hears("a", 1)),
    "or the new": (asks("a", 1, "set", 1), *one("b", 1, "get", result=1), hears("a", 1)),
    "a write without answer takes effect later": (
        asks("a", 1, "set", 1),
        *one("b", 1, "get"),
        *one("b", 2, "get", result=1),
    ),
    "or never": (asks("a", 1, "set", 1), *one("b", 1, "get"), *one("b", 2, "get")),
    "a write that was refused is never seen": (asks("a", 1, "set", 1), is_refused("a", 1), *one("b", 1, "get")),
    "of two who register a name one is told that it is taken": (
        asks("a", 1, "swap", None, "a"),
        asks("b", 1, "swap", None, "b"),
        hears("a", 1, result=False),
        hears("b", 1, result=True),
        *one("c", 1, "get", result="b"),
    ),
    "a name that was freed is taken again": (
        *one("a", 1, "swap", None, "a", result=True),
        *one("a", 2, "swap", "a", None, result=True),
        *one("b", 1, "swap", None, "b", result=True),
    ),
    "a name is claimed again by who has it": (
        *one("a", 1, "claim", "a", result=True),
        *one("a", 2, "claim", "a", result=True),
        *one("b", 1, "claim", "b", result=False),
    ),
    "a name is claimed once it is free": (
        *one("a", 1, "claim", "a", result=True),
        *one("a", 2, "swap", "a", None, result=True),
        *one("b", 1, "claim", "b", result=True),
    ),
    "keys know nothing of each other": (*one("a", 1, "set", 1), *one("b", 1, "get", key="other")),
}

NOT_LINEAR: dict[str, tuple[Line, ...]] = {
    "something is read where nothing was written": one("a", 1, "get", result=1),
    "a write that was answered is not read": (*one("a", 1, "set", 1), *one("b", 1, "get")),
    "an older value comes back": (
        *one("a", 1, "set", 1),
        *one("a", 2, "set", 2),
        *one("b", 1, "get", result=1),
    ),
    "two reads beside a write go back": (
        asks("a", 1, "set", 1),
        *one("b", 1, "get", result=1),
        *one("b", 2, "get"),
        hears("a", 1),
    ),
    "a write without answer is taken back": (
        asks("a", 1, "set", 1),
        *one("b", 1, "get", result=1),
        *one("b", 2, "get"),
    ),
    "a write that was refused is seen": (
        asks("a", 1, "set", 1),
        is_refused("a", 1),
        *one("b", 1, "get", result=1),
    ),
    "two register one name": (
        asks("a", 1, "swap", None, "a"),
        asks("b", 1, "swap", None, "b"),
        hears("a", 1, result=True),
        hears("b", 1, result=True),
    ),
    "nobody may register a name that is free": one("a", 1, "swap", None, "a", result=False),
    "a name is freed by who does not have it": (
        *one("a", 1, "swap", None, "a", result=True),
        *one("b", 1, "swap", "b", None, result=True),
    ),
    "two claim one name": (
        asks("a", 1, "claim", "a"),
        *one("b", 1, "claim", "b", result=True),
        hears("a", 1, result=True),
        *one("c", 1, "get", result="b"),
    ),
    "a value is read before anybody asked for it": (*one("b", 1, "get", result=1), *one("a", 1, "set", 1)),
    "an answer without a call": (hears("a", 1),),
}


WATCHED_GOOD = {
    "all of it": (announced("e", 1), mirrored("e", 0), shown("e", 1), QUIET),
    "a list, then the rest": (announced("e", 1), mirrored("e", 1), announced("e", 2), shown("e", 2), QUIET),
    "a list anew, of another start": (announced("e", 1), mirrored("e", 1), announced("f", 1), mirrored("f", 1), QUIET),
    "who left misses nothing": (announced("e", 1), mirrored("e", 0), ("", "ok", "unwatched", ["w"]), QUIET),
    "nobody watches": (announced("e", 1), announced("e", 2), QUIET),
    "nothing happens": (opened("e"), mirrored("e", 0, []), QUIET),
    "what was kept over a start": (opened("f", "x"), mirrored("f", 0, ["x"]), QUIET),
    "a list by name": (announced("e", 1), mirrored("e", 1, ["x"]), QUIET),
    "a list without what is removed": (
        announced("e", 1),
        announced("e", 2, "x", "remove"),
        mirrored("e", 2, []),
        QUIET,
    ),
    "a list that is a little old, and the rest": (
        announced("e", 1),
        announced("e", 2, "x", "remove"),
        mirrored("e", 1, ["x"]),
        shown("e", 2, "x", "remove"),
        QUIET,
    ),
    "another broker begins anew meanwhile": (
        announced("e", 1),
        mirrored("e", 1),
        announced("g", 1, node="other"),
        QUIET,
    ),
}
WATCHED_BAD = {
    "one is left out": (announced("e", 1), announced("e", 2), mirrored("e", 0), shown("e", 2)),
    "one comes twice": (announced("e", 1), mirrored("e", 0), shown("e", 1), shown("e", 1)),
    "out of order": (announced("e", 1), announced("e", 2), mirrored("e", 1), shown("e", 2), shown("e", 1)),
    "before it is durable": (mirrored("e", 0), shown("e", 1)),
    "under another name": (announced("e", 1), mirrored("e", 0), shown("e", 1, "y")),
    "a list of what is not durable": (announced("e", 1), mirrored("e", 2)),
    "the last is never told": (announced("e", 1), mirrored("e", 0), QUIET),
    "an index is left out": (announced("e", 1), announced("e", 3)),
    "nobody asked for it": (announced("e", 1), shown("e", 1)),
    "a list with what is removed": (announced("e", 1), announced("e", 2, "x", "remove"), mirrored("e", 2, ["x"])),
    "a list without what is there": (announced("e", 1), mirrored("e", 1, [])),
    "a list with a name twice": (announced("e", 1), mirrored("e", 1, ["x", "x"])),
    "still at a start that is over": (announced("e", 1), mirrored("e", 1), opened("f", "x"), QUIET),
}
REMOVED = announced("e", 2, "x", "remove")
DISK: Line = ("r", "info", "disk", ["old", [], []])
DEREGISTERED_GOOD = {
    "registered and removed": (announced("e", 1), REMOVED),
    "registered again": (announced("e", 1), REMOVED, announced("e", 3)),
    "changed while it is there": (announced("e", 1), announced("e", 2, "x", "update"), REMOVED),
    "silent, and there again": (
        announced("e", 1),
        announced("e", 2, "x", "inactive"),
        announced("e", 3, "x", "active"),
    ),
    "kept over a start": (announced("e", 1), opened("f", "x")),
    "not there after a start": (announced("e", 1), REMOVED, opened("f")),
    "registered after a start": (announced("e", 1), REMOVED, opened("f"), announced("f", 1)),
    "back with an old disk": (announced("e", 1), REMOVED, DISK, opened("f", "x")),
    "changed after it came back with an old disk": (DISK, opened("f", "x"), announced("f", 1, "x", "update")),
    "at another broker": (announced("e", 1), REMOVED, announced("g", 1, "x", "register", "other")),
    "removed twice": (announced("e", 1), REMOVED, announced("e", 3, "x", "remove")),
}
DEREGISTERED_BAD = {
    "active after it was removed": (announced("e", 1), REMOVED, announced("e", 3, "x", "active")),
    "changed after it was removed": (announced("e", 1), REMOVED, announced("e", 3, "x", "update")),
    "silent after it was removed": (announced("e", 1), REMOVED, announced("e", 3, "x", "suspect")),
    "in the journal after it was removed": (announced("e", 1), REMOVED, opened("f", "x")),
    "in the journal two starts later": (announced("e", 1), REMOVED, opened("f"), opened("g", "x")),
    "never registered": (announced("e", 1, "x", "active"),),
    "in the journal of who never had it": (opened("f", "x"),),
    "by the registration of another name": (announced("e", 1), REMOVED, announced("e", 3, "y"), opened("f", "x", "y")),
    "by a registration at another broker": (
        announced("e", 1),
        REMOVED,
        announced("g", 1, "x", "register", "other"),
        announced("e", 3, "x", "active"),
    ),
    "long after the old disk": (announced("e", 1), REMOVED, DISK, opened("f"), announced("f", 1, "x", "active")),
    "after it left": (announced("e", 1), announced("e", 2, "x", "leave"), announced("e", 3, "x", "health")),
}


LOST: Line = ("a", "info", "disk", ["lost", [], []])
FOLD_GOOD = {
    "in order": (holds("a", 1), passes("a", 1), holds("a", 2), passes("a", 2)),
    "a hole that was filled": (holds("a", 2), holds("a", 1), passes("a", 2)),
    "equal logs": (document("a", "l", "d", "d"), document("b", "l", "d", "d")),
    "another log": (document("a", "l", "d", "d"), document("b", "m", "e", "e")),
    "nothing": (),
    "said again": (holds("a", 1), passes("a", 1), passes("a", 1)),
    "an older one": (holds("a", 1), holds("a", 2), passes("a", 2), passes("a", 1)),
    "a hole behind what is said": (holds("a", 1), holds("a", 3), passes("a", 1)),
    "had again after its disk was lost": (holds("a", 1), LOST, holds("a", 1), passes("a", 1)),
    "another's disk is lost": (holds("b", 1), LOST, passes("b", 1)),
    "a log from the first number on": (log("a", ["p", [[1, 3]]], ["q", []]),),
    "another session's document": (
        document("a", "l", "d", "d"),
        ("b", "info", "document", ["other", "l", "e", "e"]),
    ),
}
FOLD_BAD = {
    "past a hole": (holds("a", 2), passes("a", 2)),
    "what it does not have": (holds("a", 1), passes("b", 1)),
    "what its lost disk had": (holds("a", 1), LOST, passes("a", 1)),
    "one log, two documents": (document("a", "l", "d", "d"), document("b", "l", "e", "e")),
    "not what the log folds to": (document("a", "l", "d", "e"),),
    "before it is durable": (passes("a", 1), holds("a", 1)),
    "past a hole in the middle": (holds("a", 1), holds("a", 3), passes("a", 3)),
    "the next one, which nobody had": (holds("a", 1), passes("a", 1), passes("a", 2)),
    "of another source": (holds("a", 1, "q"), passes("a", 1, "p")),
    "of another session": (("a", "durable", "operation", ["t", "p", 1]), passes("a", 1)),
    "past the hole that a lost disk made": (holds("a", 1), LOST, holds("a", 2), passes("a", 2)),
    "a log with a hole": (log("a", ["p", [[1, 3], [5, 6]]]),),
    "a log that begins late": (log("a", ["p", [[2, 3]]]),),
    "one log, two documents, later": (
        document("a", "l", "d", "d"),
        document("b", "m", "e", "e"),
        document("b", "l", "e", "e"),
    ),
}

GOOD = [
    *((Linearizable, LINEAR[name], name) for name in LINEAR),
    *((Watched, WATCHED_GOOD[name], name) for name in WATCHED_GOOD),
    *((Deregistered, DEREGISTERED_GOOD[name], name) for name in DEREGISTERED_GOOD),
    *((PrefixFold, FOLD_GOOD[name], name) for name in FOLD_GOOD),
]
BAD = [
    *((Linearizable, NOT_LINEAR[name], name) for name in NOT_LINEAR),
    *((Watched, WATCHED_BAD[name], name) for name in WATCHED_BAD),
    *((Deregistered, DEREGISTERED_BAD[name], name) for name in DEREGISTERED_BAD),
    *((PrefixFold, FOLD_BAD[name], name) for name in FOLD_BAD),
]


@pytest.mark.proves("CHK-003", "CHK-011", "CHK-014", "CHK-015", "CHK-017")
@pytest.mark.parametrize(("kind", "lines"), [pytest.param(k, x, id=f"{k.rule}: {n}") for k, x, n in GOOD])
def test_what_is_right_passes(kind: type[Checker], lines: tuple[Line, ...]) -> None:
    assert judge(kind(), told(*lines)) is None


@pytest.mark.proves("CHK-003", "CHK-011", "CHK-014", "CHK-015", "CHK-017")
@pytest.mark.parametrize(("kind", "lines"), [pytest.param(k, x, id=f"{k.rule}: {n}") for k, x, n in BAD])
def test_what_is_wrong_is_named(kind: type[Checker], lines: tuple[Line, ...]) -> None:
    verdict = judge(kind(), told(*lines))
    assert isinstance(verdict, Violation)
    assert verdict.rule == kind.rule
    assert 1 <= len(verdict.witnesses) <= 20


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("kind", [Linearizable, Watched, Deregistered, PrefixFold])
def test_each_has_ten_of_both(kind: type[Checker]) -> None:
    assert [True, True] == [sum(each is kind for each, _, _ in cases) >= 10 for cases in (GOOD, BAD)]


def test_a_history_that_ends_before_quiet_says_nothing_of_watchers() -> None:
    assert isinstance(judge(Watched(), told(announced("e", 1), mirrored("e", 1))), Unknown)


def random_calls(chance: Chance, calls: int, clients: int) -> list[Fact]:
    """Calls as one place would answer them, each at an instant between its question and its answer."""
    lines: list[Line] = []
    state: Any = None
    numbers = count(1)
    busy: dict[str, list[Any]] = {}
    made = 0
    while made < calls or busy:
        client = chance.choice("abcdefghij"[:clients])
        if client not in busy:
            if made < calls:
                made += 1
                number, operation = next(numbers), random_operation(chance)
                busy[client] = [number, operation, False, None]
                lines.append(asks(client, number, *operation))
            continue
        number, operation, is_done, result = busy[client]
        if is_done:
            lines.append(hears(client, number, result))
            del busy[client]
        else:
            busy[client][2], busy[client][3], state = True, *obey(state, operation)
    return told(*lines)


def random_operation(chance: Chance) -> list[Any]:
    kind = chance.choice(("get", "set", "swap", "claim"))
    if kind == "get":
        return ["get"]
    if kind == "claim":
        return ["claim", chance.randrange(3)]
    return ["set", chance.randrange(3)] if kind == "set" else ["swap", chance.randrange(3), chance.randrange(3)]


def obey(state: Any, operation: list[Any]) -> tuple[Any, Any]:
    """What a key that holds `state` answers, and what it holds then."""
    if operation[0] == "get":
        return state, state
    if operation[0] == "set":
        return None, operation[1]
    if operation[0] == "claim":
        return (False, state) if state is not None and state != operation[1] else (True, operation[1])
    return (True, operation[2]) if state == operation[1] else (False, state)


def orders(facts: list[Fact]) -> Iterator[list[Fact]]:
    """All orders of the calls in which none stands before another that was answered before it was made."""
    made = [fact for fact in facts if fact.kind == "invoke"]
    answered = {tuple(fact.value[:2]): fact.at for fact in facts if fact.kind == "ok"}

    def extend(order: list[Fact], rest: list[Fact]) -> Iterator[list[Fact]]:
        if not rest:
            yield order
        for fact in rest:
            others = [other for other in rest if other is not fact]
            if all(answered.get(tuple(other.value[:2]), len(facts)) > fact.at for other in others):
                yield from extend([*order, fact], others)

    yield from extend([], made)


def twin(facts: list[Fact]) -> bool:
    """Whether some order explains all answers, by trying all of them."""
    results = {tuple(fact.value[:2]): fact.value[2] for fact in facts if fact.kind == "ok"}

    def explains(order: list[Fact]) -> bool:
        state: Any = None
        for fact in order:
            answer, state = obey(state, fact.value[3])
            if answer != results[tuple(fact.value[:2])]:
                return False
        return True

    return any(explains(order) for order in orders(facts))


def spoiled(facts: list[Fact], chance: Chance) -> list[Fact]:
    """One answer is another one."""
    places = [at for at, fact in enumerate(facts) if fact.kind == "ok"]
    at = chance.choice(places)
    client, number, result = facts[at].value
    other = (not result) if isinstance(result, bool) else chance.choice([None, 0, 1, 2])
    return [*facts[:at], msgspec.structs.replace(facts[at], value=[client, number, other]), *facts[at + 1 :]]


@pytest.mark.proves("CHK-004", "CHK-014")
def test_the_search_agrees_with_trying_all_orders() -> None:
    chance, good = Chance("orders"), 0
    for number in range(10_000):
        facts = random_calls(chance, calls=chance.randint(1, 4), clients=3)
        if chance.random() < 0.5:
            facts = spoiled(facts, chance)
        expected = twin(facts)
        assert expected == (judge(Linearizable(), facts) is None), (number, [str(fact) for fact in facts])
        good += expected
    assert 2_000 < good < 9_800, "the histories are of both kinds"


def wrong_answer(facts: list[Fact], chance: Chance) -> list[Fact]:
    """Somebody reads what nobody ever wrote."""
    gets = {tuple(fact.value[:2]) for fact in facts if fact.kind == "invoke" and fact.value[3] == ["get"]}
    at = chance.choice([at for at, fact in enumerate(facts) if fact.kind == "ok" and tuple(fact.value[:2]) in gets])
    client, number, _ = facts[at].value
    return [*facts[:at], msgspec.structs.replace(facts[at], value=[client, number, 99]), *facts[at + 1 :]]


@pytest.mark.prove("long histories")
@pytest.mark.proves("CHK-004")
def test_one_wrong_answer_among_five_hundred_is_found(soak: bool) -> None:
    count = 1_000 if soak else 100
    chance = Chance("one wrong answer")
    facts = random_calls(chance, calls=500, clients=5)
    assert judge(Linearizable(), facts) is None
    found = sum(isinstance(judge(Linearizable(), wrong_answer(facts, chance)), Violation) for _ in range(count))
    assert found == count


@pytest.mark.proves("CHK-030", part="a call of many takes a bounded number of steps")
@pytest.mark.parametrize(("calls", "clients"), [(5_000, 5), (1_000, 10)])
def test_long_histories_are_searched_step_by_step(calls: int, clients: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of steps, which says the same on every machine: at most 60 a call, where a wild search has no bound."""
    monkeypatch.setattr("weft.checks.linearizable.STEPS_MAX", 60 * calls)
    facts = random_calls(Chance(f"{calls} calls"), calls, clients)
    assert judge(Linearizable(), facts) is None


def test_calls_that_overlap_too_much_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.checks.linearizable.STEPS_MAX", 3)
    assert isinstance(judge(Linearizable(), random_calls(Chance("wild"), 20, 5)), Unknown)
