"""How fast the checkers judge (CHK-030): calls of several clients on one key, and long histories line by line.

    .venv/bin/python -m bench.checkers [--lines 1000000] [--rounds 3]

CPU time, so that a busy machine spoils less of it; the collector of garbage rests. Each long history is right, so it is read
to its end. `growth` is the time of all lines over that of a quarter of them: 4 where a line costs the same however many
came before.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any, Final

from weft.base.chance import Chance
from weft.checks import (
    ChainOrder,
    Checker,
    Deregistered,
    Fact,
    Linearizable,
    NeverBack,
    OneRoot,
    OwnNumbers,
    PrefixFold,
    Read,
    Saw,
    Sealed,
    Sessions,
    Watched,
    judge,
)
from weft.checks.mail import Conserved
from weft.checks.store import NoResurrection, StoreCausal

Line = tuple[str, str, str, Any]
EPOCH: Final = 1 << 40
LINES_GOAL_S: Final = 30.0
CALLS: Final = ((5_000, 5, 0.1), (1_000, 10, 0.2))
"""Calls, clients, and the seconds that CHK-030 allows."""


def calls(number: int, clients: int) -> list[Fact]:
    """Calls on one key as one place would answer them; several are under way at any time."""
    chance, lines, state, made = Chance(f"{number} calls"), list[Line](), None, 0
    busy: dict[int, list[Any]] = {}
    while made < number or busy:
        client = chance.randrange(clients)
        if client not in busy:
            if made < number:
                made += 1
                operation = chance.choice((["get"], ["set", made], ["swap", state, made]))
                busy[client] = [made, operation, False, None]
                lines.append(("", "invoke", "call", [str(client), made, "k", operation]))
            continue
        call, operation, is_done, result = busy[client]
        if is_done:
            lines.append(("", "ok", "call", [str(client), call, result]))
            del busy[client]
        else:
            busy[client][3], state = _obeyed(state, operation)
            busy[client][2] = True
    return facts(iter(lines), len(lines))


def _obeyed(state: Any, operation: list[Any]) -> tuple[Any, Any]:
    if operation[0] == "get":
        return state, state
    if operation[0] == "set":
        return None, operation[1]
    return (True, operation[2]) if state == operation[1] else (False, state)


def facts(lines: Iterator[Line], number: int) -> list[Fact]:
    """So many of them, a nanosecond apart."""
    return [Fact(at, node, 1, kind, what, value) for at, (node, kind, what, value) in enumerate(islice(lines, number))]


# Long histories, one endless stream of lines each


def versions() -> Iterator[Line]:
    for version in count(1):
        key = f"k{version % 1_000}"
        yield "", "ok", "wrote-version", ["a", key, version]
        yield "", "ok", "read-version", ["b", key, version]


def values(what: str) -> Callable[[], Iterator[Line]]:
    def lines() -> Iterator[Line]:
        for number in count(1):
            value = ["store", f"k{number % 1_000}", number if number % 7 else None]
            yield "a", "invoke", "put", value
            yield "a", "ok", "put", value
            yield "b", "ok", what, value

    return lines


def catalog() -> Iterator[Line]:
    yield "", "ok", "mirrored", ["w", "e", 0, []]
    for index in count(1):
        said = ["e", index, "register" if index // 500 % 2 == 0 else "remove", f"n{index % 500}"]
        yield "r", "durable", "announced", said
        yield "", "ok", "told", ["w", *said]
        if index % 10_000 == 0:
            yield "", "info", "quiet", None


def services() -> Iterator[Line]:
    for index in count():
        operation = ("register", "update", "remove")[index // 500 % 3]
        yield "r", "durable", "announced", ["e", index + 1, operation, f"n{index % 500}"]


def operations() -> Iterator[Line]:
    for number in count(1):
        for node in "abc":
            yield node, "durable", "operation", ["s", "p", number]
            yield node, "sent", "operation", ["s", "p", number]


def elections() -> Iterator[Line]:
    for epoch in count(1):
        node = "abc"[epoch % 3]
        for voter in "abc":
            yield voter, "durable", "promise", [epoch]
            yield voter, "sent", "vote", ["f", epoch]
        yield node, "event", "root-taken", ["f", epoch, False]
        for counter in range(10):
            yield node, "sent", "write", ["f", epoch * EPOCH + counter, "/k", "v"]


def pairs() -> Iterator[Line]:
    for number in count(1):
        key = f"/k{number % 1_000}"
        yield "r", "sent", "write", ["f", number, key, "v"]
        for node in "abc":
            yield node, "event", "applied", [number]
            yield node, "ok", "read-pair", ["f", key, number, "v"]


def own() -> Iterator[Line]:
    for number in count(1):
        yield "r", "durable", "taken", [6, "f:root/1", number, number]
        yield "r", "sent", "write", ["f", EPOCH + number, "/k", "v"]
        yield from copies(number)


def copies(number: int) -> Iterator[Line]:
    """A change of the store, at home and elsewhere."""
    deletes = number % 5 == 0
    for node in "abc":
        links = [["a", number]]
        value = [number, f"k{number % 1_000}", number, None if deletes else "01", links, node == "a", True, None]
        yield node, "durable", "change", value


def changes() -> Iterator[Line]:
    for number in count(1):
        yield from copies(number)


def offers() -> Iterator[Line]:
    keys = [[1, place, 1, 0] for place in range(1, 6)]
    for number in count(1):
        for key in keys:
            yield "n", "sent", "offer", ["in", "a/1", number, key, keys, False]


def accounts() -> Iterator[Line]:
    for number in count(1):
        yield "n", "info", "idle", 0
        yield "n", "info", "accounts", [["x", number, 0], ["y", number, 0]]


def strangers() -> Iterator[Line]:
    yield "", "info", "members", [["a", ""], ["r", ""]]
    for number in count(1):
        yield "r", "durable", "held", [1, "a/1", number, number]
        yield "r", "durable", "met", ["a/1", [number]]


LONG: Final[tuple[tuple[type[Checker], Callable[[], Iterator[Line]]], ...]] = (
    (Sessions, versions),
    (Read, values("got")),
    (Saw, values("saw")),
    (StoreCausal, changes),
    (NoResurrection, changes),
    (Deregistered, services),
    (NeverBack, pairs),
    (OneRoot, elections),
    (PrefixFold, operations),
    (ChainOrder, offers),
    (Conserved, accounts),
    (Watched, catalog),
    (Sealed, strangers),
    (OwnNumbers, own),
)


def seconds(kind: type[Checker], history: list[Fact]) -> float:
    """Of CPU, to judge it."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    verdict = judge(kind(), history)
    taken = time.process_time() - began
    gc.enable()
    assert verdict is None or verdict.rule == "watched", verdict  # a watcher's history ends before quiet
    return taken


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--lines", type=int, default=1_000_000)
    words.add_argument("--rounds", type=int, default=3)
    asked = words.parse_args()
    print("| linearizable | allowed, s | CPU, s | |\n|---|--:|--:|---|")
    for number, clients, goal in CALLS:
        history = calls(number, clients)
        seen = statistics.median(seconds(Linearizable, history) for _ in range(asked.rounds))
        print(
            f"| {number:,} calls of {clients} clients | {goal} | {seen:.3f} | {'met' if seen <= goal else 'missed'} |"
        )
    allowed = LINES_GOAL_S * asked.lines / 1_000_000
    print(f"\n| {asked.lines:,} lines | rule | CPU, s | growth | of {allowed:g} s |\n|---|---|--:|--:|---|")
    for kind, lines in LONG:
        history = facts(lines(), asked.lines)
        quarter, seen = seconds(kind, history[: asked.lines // 4]), seconds(kind, history)
        is_met = "met" if seen <= allowed else "missed"
        print(f"| {kind.__name__} | {kind.rule} | {seen:.2f} | {seen / quarter:.1f} | {is_met} |", flush=True)


if __name__ == "__main__":
    main()
