"""What the checkers of the store call broken, and what not: histories of one entry, or of two."""

from typing import Any

import pytest

from weft.base.now import SECOND
from weft.checks import STORE_RULES, Checker, Fact, Unknown, Violation, judge
from weft.checks.store import NoResurrection, StoreCausal, StoreDurable, StoreTicks, StoreWatched

Told = tuple[str, str, str, Any]
QUIET: Told = ("", "info", "quiet", None)
_RULES = {kind.rule: kind for kind in STORE_RULES}


def history(*told: Told) -> list[Fact]:
    return [Fact(at * SECOND, node, 1, kind, what, value) for at, (node, kind, what, value) in enumerate(told)]


def change(where: str, lsn: int, links: str, tock: int, how: str = "01") -> Told:
    """`change("a", 2, "a:2 b:1", 7, "02 < a:1")`: a change of entry `k` in the journal of a, its own if a made it.

    `how`: the value, `gone`, or the value and `lost`; behind `<` what stood there before.
    """
    what, _, before = how.partition(" < ")
    value, _, fate = what.partition(" ")
    chain = [link(text) for text in links.split()]
    is_own = chain[0][0].partition("~")[0] == where
    said = [
        lsn,
        "k",
        tock,
        None if value == "gone" else value,
        chain,
        is_own,
        not fate,
        link(before) if before else None,
    ]
    return where, "durable", "change", said


def link(text: str) -> list[Any]:
    node, _, tick = text.partition(":")
    return [node, int(tick)]


def stored(where: str, head: str, wanted: Any = "any") -> Told:
    return where, "ok", "stored", ["k", *link(head), wanted]


def holding(where: str, head: str = "", tock: int = 0, *, deleted: bool = False, forgotten: Any = None) -> Told:
    entries = [["k", *link(head), tock, deleted]] if head else []
    return where, "info", "holding", [where, entries, forgotten or {}, {}]


def shown(where: str, lsn: int, head: str, tock: int, *, deleted: bool = False) -> Told:
    return where, "ok", "shown", ["w", lsn, "k", *link(head), tock, deleted]


def watching(where: str, what: str, lsn: int = 0) -> Told:
    return where, "ok", "watching", ["w", what, lsn]


def lost(where: str, head: str, kept: str) -> Told:
    return where, "event", "conflict", ["k", *link(head), *link(kept)]


def journal(where: str, lsn: int) -> Told:
    return where, "info", "journal", [lsn]


ONE = change("a", 1, "a:1", 5)
TWO = change("a", 2, "a:2", 6, "02 < a:1")
THERE = change("b", 1, "a:1", 5)
GONE = change("a", 2, "a:2", 6, "gone < a:1")
FRESH = watching("a", "fresh")

RIGHT: list[tuple[type[Checker], str, list[Told]]] = [
    (StoreTicks, "two in a row", [ONE, TWO]),
    (StoreTicks, "the same at another node", [ONE, THERE]),
    (StoreTicks, "another tock alone", [ONE, change("b", 1, "a:1", 4)]),
    (StoreTicks, "a longer chain alone", [ONE, change("b", 1, "a:1 c:3", 5)]),
    (StoreTicks, "again, since the first is nowhere", [ONE, TWO, journal("a", 2), change("a", 2, "a:2", 9, "03")]),
    (StoreTicks, "another name", [ONE, journal("a", 1), change("a", 1, "a~2:1", 5)]),
    (StoreTicks, "changes of others in any order", [change("b", 1, "a:2", 6), THERE]),
    (
        StoreTicks,
        "behind what others gave back",
        [ONE, TWO, change("b", 1, "a:2", 6, "02"), journal("a", 1), change("a", 1, "a:3", 9)],
    ),
    (StoreTicks, "nothing", []),
    (
        StoreTicks,
        "an old disk and its own changes from others",
        [
            ONE,
            TWO,
            journal("a", 2),
            ("a", "durable", "change", [2, "k", 6, "02", [["a", 2]], False, True, None]),
            change("a", 3, "a:3", 9),
        ],
    ),
    (StoreCausal, "later ones", [ONE, TWO]),
    (StoreCausal, "over another's", [THERE, change("b", 2, "b:1 a:1", 6, "01 < a:1")]),
    (StoreCausal, "an old one of another's, late", [ONE, change("a", 2, "b:1", 2, "01 lost")]),
    (
        StoreCausal,
        "over one of its own, which stands no more on the chain",
        [ONE, TWO, change("a", 3, "a:3", 7, "01 < a:2")],
    ),
    (StoreCausal, "a condition that holds", [ONE, TWO, stored("a", "a:2", ["a", 1])]),
    (StoreCausal, "where nothing was", [ONE, stored("a", "a:1", None)]),
    (
        StoreCausal,
        "where a deletion was",
        [ONE, GONE, change("a", 3, "a:3", 7, "01 < a:2"), stored("a", "a:3", None)],
    ),
    (StoreCausal, "without a condition", [ONE, TWO, stored("a", "a:2")]),
    (StoreCausal, "lower again, since the disk is lost", [ONE, TWO, journal("a", 1), change("a", 1, "a~2:1", 2)]),
    (StoreCausal, "nothing", []),
    (StoreDurable, "one that stands", [ONE, stored("a", "a:1"), holding("a", "a:1", 5), QUIET]),
    (StoreDurable, "one that is written over", [ONE, stored("a", "a:1"), TWO, holding("a", "a:2", 6), QUIET]),
    (
        StoreDurable,
        "one that another's covers",
        [ONE, stored("a", "a:1"), change("a", 2, "b:1 a:1", 6), holding("a", "b:1", 6), QUIET],
    ),
    (
        StoreDurable,
        "one that lost, and was told of",
        [ONE, stored("a", "a:1"), change("a", 2, "b:1", 6), lost("a", "a:1", "b:1"), holding("a", "b:1", 6), QUIET],
    ),
    (StoreDurable, "one that went with its disk", [ONE, stored("a", "a:1"), journal("a", 1), holding("a"), QUIET]),
    (StoreDurable, "a deletion", [ONE, GONE, stored("a", "a:2"), holding("a", "a:2", 6, deleted=True), QUIET]),
    (
        StoreDurable,
        "a deletion that is forgotten",
        [ONE, GONE, stored("a", "a:2"), holding("a", forgotten={"a": [[1, 2]]}), QUIET],
    ),
    (StoreDurable, "one that nobody was told of, and stands", [ONE, holding("a", "a:1", 5), QUIET]),
    (
        StoreDurable,
        "at two nodes",
        [ONE, THERE, stored("a", "a:1"), holding("a", "a:1", 5), holding("b", "a:1", 5), QUIET],
    ),
    (
        StoreDurable,
        "covered by one that lost",
        [
            ONE,
            stored("a", "a:1"),
            TWO,
            change("a", 3, "b:1", 9),
            lost("a", "a:2", "b:1"),
            holding("a", "b:1", 9),
            QUIET,
        ],
    ),
    (NoResurrection, "written again", [ONE, GONE, change("a", 3, "a:3", 7), holding("a", "a:3", 7), QUIET]),
    (
        NoResurrection,
        "an old one that does not stand",
        [ONE, GONE, change("a", 3, "b:1", 2, "01 lost"), holding("a", "a:2", 6, deleted=True), QUIET],
    ),
    (
        NoResurrection,
        "deleted twice",
        [ONE, GONE, change("a", 3, "b:1", 5, "gone"), holding("a", "a:2", 6, deleted=True), QUIET],
    ),
    (
        NoResurrection,
        "by a greater concurrent one",
        [ONE, GONE, change("a", 3, "b:9", 6), holding("a", "b:9", 6), QUIET],
    ),
    (
        NoResurrection,
        "the disk is an old one",
        [ONE, GONE, journal("a", 2), change("a", 2, "b:1", 5), holding("a", "b:1", 5), QUIET],
    ),
    (NoResurrection, "begun anew", [ONE, GONE, ("a", "durable", "emptied", [3]), change("a", 4, "b:1", 5), QUIET]),
    (NoResurrection, "at another node", [ONE, GONE, THERE, QUIET]),
    (NoResurrection, "not there", [ONE, GONE, holding("a"), QUIET]),
    (NoResurrection, "never deleted", [ONE, TWO, holding("a", "a:2", 6), QUIET]),
    (NoResurrection, "nothing", [QUIET]),
    (
        StoreWatched,
        "all of it",
        [FRESH, watching("a", "uptodate", 0), ONE, shown("a", 1, "a:1", 5), TWO, shown("a", 2, "a:2", 6)],
    ),
    (
        StoreWatched,
        "a snapshot, then what follows",
        [
            ONE,
            FRESH,
            shown("a", 0, "a:1", 5),
            watching("a", "uptodate", 1),
            TWO,
            shown("a", 2, "a:2", 6),
            holding("a", "a:2", 6),
            watching("a", "rest"),
        ],
    ),
    (
        StoreWatched,
        "again, where it was",
        [
            ONE,
            FRESH,
            shown("a", 0, "a:1", 5),
            watching("a", "uptodate", 1),
            watching("a", "gone"),
            TWO,
            watching("a", "again"),
            shown("a", 2, "a:2", 6),
            watching("a", "uptodate", 2),
        ],
    ),
    (
        StoreWatched,
        "a gap that is told",
        [
            ONE,
            FRESH,
            watching("a", "uptodate", 1),
            TWO,
            watching("a", "gap"),
            shown("a", 0, "a:2", 6),
            watching("a", "uptodate", 2),
        ],
    ),
    (
        StoreWatched,
        "a loser is not shown",
        [ONE, FRESH, watching("a", "uptodate", 1), change("a", 2, "b:1", 2, "01 lost"), watching("a", "uptodate", 2)],
    ),
    (
        StoreWatched,
        "a deletion",
        [
            ONE,
            FRESH,
            shown("a", 0, "a:1", 5),
            watching("a", "uptodate", 1),
            GONE,
            shown("a", 2, "a:2", 6, deleted=True),
            holding("a", "a:2", 6, deleted=True),
            watching("a", "rest"),
        ],
    ),
    (
        StoreWatched,
        "behind a snapshot only the latest",
        [ONE, TWO, FRESH, shown("a", 0, "a:2", 6), watching("a", "uptodate", 2)],
    ),
    (
        StoreWatched,
        "at two nodes",
        [ONE, THERE, FRESH, watching("b", "fresh"), watching("a", "uptodate", 1), watching("b", "uptodate", 1)],
    ),
    (
        StoreWatched,
        "a stale copy that goes",
        [
            ONE,
            FRESH,
            shown("a", 0, "a:1", 5),
            watching("a", "uptodate", 1),
            ("a", "durable", "stale", [2, "k", "a", 1]),
            shown("a", 2, "a:1", 5, deleted=True),
            holding("a"),
            watching("a", "rest"),
        ],
    ),
    (StoreWatched, "nothing", []),
]
WRONG: list[tuple[type[Checker], str, list[Told]]] = [
    (StoreTicks, "two changes of one name", [ONE, change("b", 1, "a:1", 5, "02")]),
    (StoreTicks, "a value and a deletion", [ONE, change("b", 1, "a:1", 5, "gone")]),
    (StoreTicks, "one again", [ONE, TWO, change("a", 3, "a:2", 6, "02")]),
    (StoreTicks, "back", [ONE, TWO, change("a", 3, "a:1", 5)]),
    (StoreTicks, "a hole", [ONE, change("a", 2, "a:3", 6)]),
    (StoreTicks, "not from one", [change("a", 1, "a:2", 5)]),
    (
        StoreTicks,
        "again, and others have the first",
        [ONE, TWO, change("b", 1, "a:2", 6, "02"), journal("a", 2), change("a", 2, "a:2", 9, "03")],
    ),
    (
        StoreTicks,
        "again behind what others gave back",
        [ONE, TWO, change("b", 1, "a:2", 6, "02"), journal("a", 1), change("a", 1, "a:2", 9, "03")],
    ),
    (StoreTicks, "a hole of another name", [change("a", 1, "a~2:2", 5)]),
    (StoreTicks, "another entry", [ONE, ("b", "durable", "change", [1, "j", 5, "01", [["a", 1]], False, True, None])]),
    (StoreCausal, "the same tock", [ONE, change("a", 2, "a:2", 5)]),
    (StoreCausal, "a lower tock", [ONE, change("a", 2, "a:2", 4)]),
    (StoreCausal, "a tock that it had seen of another", [change("a", 1, "b:1", 9), change("a", 2, "a:1 b:1", 9)]),
    (StoreCausal, "over one that it does not name", [THERE, change("b", 2, "b:1", 6, "01 < a:1")]),
    (StoreCausal, "over one of its own by another name", [ONE, change("a", 2, "a~2:1", 6, "01 < a:1")]),
    (StoreCausal, "over another than it should", [ONE, TWO, stored("a", "a:2", ["b", 1])]),
    (StoreCausal, "where something is", [ONE, TWO, stored("a", "a:2", None)]),
    (StoreCausal, "over nothing, where something should be", [ONE, stored("a", "a:1", ["b", 1])]),
    (StoreCausal, "lower than what the old disk has", [ONE, TWO, journal("a", 2), change("a", 2, "a:2", 5)]),
    (StoreCausal, "a loser's tock", [change("a", 1, "b:1", 9, "01 lost"), change("a", 2, "a:1", 8)]),
    (StoreDurable, "told before it is durable", [stored("a", "a:1"), ONE]),
    (StoreDurable, "durable elsewhere only", [THERE, stored("a", "a:1")]),
    (StoreDurable, "not there", [ONE, stored("a", "a:1"), holding("a"), QUIET]),
    (StoreDurable, "an older one is there", [ONE, TWO, holding("a", "a:1", 5), QUIET]),
    (
        StoreDurable,
        "lost without a word",
        [ONE, stored("a", "a:1"), change("a", 2, "b:1", 6), holding("a", "b:1", 6), QUIET],
    ),
    (StoreDurable, "at one of two", [ONE, THERE, holding("a", "a:1", 5), holding("b"), QUIET]),
    (StoreDurable, "a deletion that is not there, and not forgotten", [ONE, GONE, holding("a"), QUIET]),
    (StoreDurable, "a value among what is forgotten", [ONE, holding("a", forgotten={"a": [[1, 1]]}), QUIET]),
    (
        StoreDurable,
        "the disk of one of two",
        [ONE, THERE, stored("a", "a:1"), journal("a", 1), holding("a"), holding("b", "a:1", 5), QUIET],
    ),
    (
        StoreDurable,
        "covered by one whose fate nobody knows",
        [ONE, stored("a", "a:1"), TWO, stored("a", "a:2"), change("a", 3, "b:1", 9), holding("a", "b:1", 9), QUIET],
    ),
    (NoResurrection, "an older one stands", [ONE, GONE, change("a", 3, "b:1", 5)]),
    (NoResurrection, "the same again", [ONE, GONE, change("a", 3, "a:1", 5)]),
    (NoResurrection, "in the end", [ONE, GONE, holding("a", "a:1", 5), QUIET]),
    (NoResurrection, "at another node in the end", [ONE, GONE, THERE, holding("b", "a:1", 5), QUIET]),
    (NoResurrection, "of one tock, by the lower tick", [ONE, GONE, change("a", 3, "b:1", 6)]),
    (
        NoResurrection,
        "of one tock and tick, by the higher name",
        [change("a", 1, "a:1", 6, "gone"), change("a", 2, "b:1", 6)],
    ),
    (
        NoResurrection,
        "after the second deletion",
        [ONE, GONE, change("a", 3, "a:3", 8, "gone"), change("a", 4, "b:1", 7)],
    ),
    (NoResurrection, "though the disk is an old one", [ONE, GONE, TWO, journal("a", 3), change("a", 3, "b:1", 5)]),
    (
        NoResurrection,
        "by a loser, in the end",
        [GONE, change("a", 3, "b:1", 5, "01 lost"), holding("a", "b:1", 5), QUIET],
    ),
    (NoResurrection, "what another deleted", [change("a", 1, "b:3", 9, "gone"), change("a", 2, "c:1", 8)]),
    (
        StoreWatched,
        "one is missing",
        [ONE, FRESH, watching("a", "uptodate", 1), TWO, change("a", 3, "a:3", 7), shown("a", 3, "a:3", 7)],
    ),
    (
        StoreWatched,
        "one is missing before it is up to date again",
        [ONE, FRESH, watching("a", "uptodate", 1), TWO, watching("a", "uptodate", 2)],
    ),
    (StoreWatched, "what does not stand there", [ONE, FRESH, shown("a", 1, "b:1", 5)]),
    (StoreWatched, "what is not durable", [FRESH, shown("a", 1, "a:1", 5)]),
    (StoreWatched, "a loser", [ONE, change("a", 2, "b:1", 2, "01 lost"), FRESH, shown("a", 2, "b:1", 2)]),
    (
        StoreWatched,
        "an older one behind a snapshot",
        [ONE, TWO, FRESH, shown("a", 0, "a:2", 6), shown("a", 1, "a:1", 5)],
    ),
    (StoreWatched, "never up to date", [ONE, FRESH, holding("a", "a:1", 5), watching("a", "rest")]),
    (
        StoreWatched,
        "not the last one",
        [
            ONE,
            FRESH,
            shown("a", 0, "a:1", 5),
            watching("a", "uptodate", 1),
            TWO,
            holding("a", "a:2", 6),
            watching("a", "rest"),
        ],
    ),
    (
        StoreWatched,
        "a snapshot with a hole",
        [ONE, FRESH, watching("a", "uptodate", 1), holding("a", "a:1", 5), watching("a", "rest")],
    ),
    (
        StoreWatched,
        "the same twice",
        [
            ONE,
            FRESH,
            watching("a", "uptodate", 0),
            shown("a", 1, "a:1", 5),
            TWO,
            shown("a", 2, "a:2", 6),
            shown("a", 1, "b:1", 5),
        ],
    ),
]


def _names(cases: list[tuple[type[Checker], str, list[Told]]]) -> list[str]:
    return [f"{kind.rule}-{name}" for kind, name, _ in cases]


@pytest.mark.proves("CHK-004", "CHK-008", "CHK-011", "CHK-017")
@pytest.mark.parametrize("kind,_name,told", RIGHT, ids=_names(RIGHT))
def test_what_is_right_is_left_alone(kind: type[Checker], _name: str, told: list[Told]) -> None:
    assert not isinstance(judge(kind(), history(*told)), Violation)


@pytest.mark.proves("CHK-004", "CHK-008", "CHK-011", "CHK-017")
@pytest.mark.parametrize("kind,_name,told", WRONG, ids=_names(WRONG))
def test_what_is_wrong_is_named(kind: type[Checker], _name: str, told: list[Told]) -> None:
    verdict = judge(kind(), history(*told))
    assert isinstance(verdict, Violation)
    assert kind.rule == verdict.rule


@pytest.mark.proves("CHK-004")
@pytest.mark.parametrize("rule", _RULES)
def test_each_rule_has_ten_of_both(rule: str) -> None:
    assert [10, 10] == [sum(kind.rule == rule for kind, _, _ in cases) for cases in (RIGHT, WRONG)]


@pytest.mark.proves("CHK-001")
def test_a_history_that_does_not_say_what_stands_in_the_end_is_not_ok() -> None:
    assert isinstance(judge(StoreDurable(), history(ONE, stored("a", "a:1"))), Unknown)
