"""Histories at the edge: right by a hair, or wrong in the one word that a careless checker would not look at (CHK-004)."""

from typing import Any

import pytest

from tests.checks.standard import QUIET, Line, facts_of
from tests.checks.telling import history
from tests.checks.test_others import LINKED, TREE
from tests.checks.test_store import FRESH, GONE, ONE, TWO, change, holding, journal, shown, stored, watching
from weft.checks import (
    Acknowledged,
    Checker,
    Complete,
    Durable,
    ExactlyOnce,
    Linearizable,
    Order,
    Timely,
    Unknown,
    Violation,
    Wall,
    Watched,
    judge,
)
from weft.checks.fleet import Kept, Numbers, Swift
from weft.checks.hints import Unmoved
from weft.checks.store import NoResurrection, StoreCausal, StoreDurable, StoreTicks, StoreWatched

RIGHT: list[tuple[type[Checker], str, str]] = [
    (Wall, "an old disk has it", "a takes 1 | a disk old: a 1 | a sends c 1: a 1"),
    (Wall, "damage has left a second one", "a takes 1 | a takes 1 | a loses by damage a 1 | a disk harmed: a 1 | a sends c 1: a 1"),
    (
        Wall,
        "a root has called it safe before the damage",
        "r starts root | a takes 1 | a sends c 1: a 1 | c holds a 1 | r holds a 1 | r loses by damage a 1 | r disk harmed | c tells a 1 safe 1",
    ),
    (
        Wall,
        "the lake of a damaged root has it",
        "r starts root | a takes 1 | r holds a 1 | r drains 1: a 1 | r loses by damage a 1 | r disk harmed | a sends r 1: a 1 | r tells a 1 safe 1",
    ),
    (
        Durable,
        "the lake of a damaged root has it",
        ("r starts root | a takes 1 | r holds a 1 | r drains 1: a 1 | r loses by damage a 1 | r disk harmed |"
        "a sends r 1: a 1 | r tells a 1 safe 1 | r restores"),
    ),
    (
        Order,
        "a damaged journal had it",
        "r starts root | a takes 1-3 | c holds a 1-3 | c loses by damage a 2 | c disk harmed: a 1, a 3 | r holds a 1 | r holds a 3 | r holds a 2",
    ),
    (Durable, "at a root already", "r holds a 1 | a takes 1 | a sends c 1: a 1 | c tells a 1 safe 0 | c restores"),
    (Durable, "a link is no record", "a takes 1 | a sends c 1: link, a 1 | c holds a 1 | c tells a 2 safe 0 | c restores a 1"),
    (
        Durable,
        "answered before the disk was lost, and again",
        "a takes 1 | a sends c 1: a 1 | c holds a 1 | c tells a 1 safe 0 | c disk lost | c tells a 0 safe 0 | c tells a 1 safe 0 | c restores",
    ),
    (Durable, "answered somebody who said nothing", "c tells a 3 safe 0 | c restores"),
    (Durable, "answered more than was said", "a takes 1 | a sends c 1: a 1 | c tells a 5 safe 0 | c restores"),
    (ExactlyOnce, "held twice before it was the root", "c holds a 1-3 | c holds a 1-3 | c starts root | c drains 1: a 1-3 | c drains 2: a 1-3"),
    (ExactlyOnce, "a root no more", "c starts root | c holds a 1 | c starts collector under r | c holds a 1"),
    (Complete, "an old disk has it", "a takes 1-2 | c holds a 1-2 | c disk old: a 1-2 | a forgets a 1-2 | r drains 1: a 1-2 | quiet"),
    (Complete, "both disks that had it", "a takes 1 | c holds a 1 | a disk lost | c disk lost | quiet"),
    (Complete, "the table may miss what went with a disk", "a takes 1-3 | r holds a 2-3 | a disk lost | r drains 1: a 2-3 | quiet"),
    (Timely, "a pause that ends in time", f"{LINKED} @20 c pauses | @24 c resumes | @60 quiet"),
    (Timely, "never joined, and the parent dies", "@4 c crashes | @90 quiet"),
    (Timely, "who died waits for nobody", f"{LINKED} @20 a crashes | @21 c lost its child a: silent | @90 quiet"),
    (Timely, "cut from the beginning", "@4 path c a cut | c joined | r joined by c | @90 quiet"),
    (Timely, "a parent that nobody knows", "a starts sensor under z | a lost its parent: silent"),
    (Timely, "a child that nobody knows", f"{LINKED} @20 c lost its child z: silent"),
    (Timely, "cut to the parent", f"{LINKED} @20 path a c cut | @27 c lost its child a: silent"),
    (Timely, "cut to the child", f"{LINKED} @20 path c a cut | @27 c lost its child a: silent"),
    (Timely, "dead at the last instant", f"{LINKED} @20 c pauses | @21 c resumes | @25.75 a lost its parent: silent"),
    (Timely, "told at the last instant", f"{LINKED} @20 c crashes | @28.25 quiet"),
    (Timely, "another reason than silence", f"{LINKED} @20 c lost its child a: moved | c joined by a"),
    (Timely, "the process before is dead indeed", f"{LINKED} @20 a crashes | @20.1 a starts sensor under c | @26 c lost its child a: silent"),
]  # fmt: skip
WRONG: list[tuple[type[Checker], str, str, str]] = [
    (Wall, "a loss that went with the disk", "a loses a 1 | a disk lost | a sends c 1: -a 1", "a sent 1 of a/1"),
    (Wall, "what damage has taken", "a takes 1 | a loses by damage a 1 | a disk harmed | a sends c 1: a 1", "a sent 1 of a/1"),
    (
        Wall,
        "a damaged root answers for what it has no more",
        "r starts root | a takes 1 | r holds a 1 | r loses by damage a 1 | r disk harmed | a sends r 1: a 1 | r tells a 1 safe 0",
        "r answers for 1 of a/1",
    ),
    (
        Wall,
        "a damaged collector answers for what it has no more",
        "a takes 1 | c holds a 1 | c loses by damage a 1 | c disk harmed | a sends c 1: a 1 | c tells a 1 safe 0",
        "c answers for 1 of a/1",
    ),
    (Wall, "called safe of who said nothing", "c tells a 0 safe 1", "c acknowledges 0 messages of a"),
    (Wall, "what is needed still", "a takes 1-2 | a sends c 1: a 1, a 2 | a knocks at c from 2 | c tells a 2 safe 0", "c answers for 2 of a/1"),
    (Durable, "what the old disk had", "a takes 1 | a disk old: a 1 | a restores", "a answered for 1 of a/1"),
    (Durable, "given up on the disk before", "a takes 1 | a forgets a 1 | a disk lost | a takes 1 | a restores", "a answered for 1 of a/1"),
    (Durable, "what is needed still", "a takes 1-2 | a sends c 1: a 1, a 2 | a knocks at c from 2 | c tells a 2 safe 0 | c restores", "c answered for 2 of a/1"),
    (ExactlyOnce, "held once before it was the root", "c holds a 1 | c starts root | c drains 1: a 1 | c drains 2: a 1", "segment 2 holds of a/1 1"),
    (Complete, "numbers that begin late", "a takes 2-3 | r holds a 2-3 | r drains 1: a 2-3 | quiet", "the completeness table calls 1 of a/1 missing"),
    (Timely, "back, and joined no more", f"{LINKED} @20 c crashes | @21 c starts collector under r | @70 quiet", "c and r are within reach"),
    (Timely, "noticed by a start", f"{LINKED} @20 c crashes | @60 c starts collector under r", "a has not said by 28.250 s"),
    (Timely, "noticed by a link", f"{LINKED} @20 c crashes | @40 link a c down", "a has not said by 28.250 s"),
    (Timely, "a newcomer is not joined", f"{LINKED} @20 b starts sensor under c | @70 quiet", "b and c are within reach"),
    (Timely, "a pause that nobody notices", f"{LINKED} @20 c pauses | @40 quiet", "a has not said by 28.250 s"),
    (Timely, "joined as it started", "@1 link a c up | @3 c joined by a | @20 c lost its child a: silent", "c calls a dead"),
    (Timely, "forgotten by its parent", f"{LINKED} @20 c lost its child a: moved | @90 quiet", "a and c are within reach"),
]  # fmt: skip

ROOT: Line = ("r", "info", "start", ["root", "", 0])
ENTRY: Line = ("r", "durable", "held", [8, "s/ab", 1, 1])
LOST: Line = ("b", "info", "disk", ["lost", [], []])


def root(node: str, epoch: int) -> Line:
    return node, "event", "root-taken", ["f", epoch, False]


def write(node: str, number: int, value: str = "v", fleet: str = "f") -> Line:
    return node, "sent", "write", [fleet, number, "/k", value]


def wrote(number: int, value: str = "v", *, is_confirmed: bool = True) -> Line:
    return "a", "ok", "wrote", ["f", "/k", value, number, is_confirmed]


def store(*pairs: list[Any]) -> Line:
    return "a", "info", "store", ["f", list(pairs)]


def moved(why: str = "moved") -> Line:
    return "a", "event", "parent-lost", [why]


UP: Line = ("", "info", "link", ["a", "r", True])
JOINED: Line = ("a", "event", "parent-joined", ["r"])
DUE: Line = ("a", "info", "due", ["parent", "m", 2, "a"])
BEGUN_LATE = (("a", "durable", "taken", [1, "a/1", 2, 3]), ("r", "durable", "segment", [1, 1, [["a/1", 2, 3]], [], []]))

STORED = stored("a", "a:1")
OTHER = change("a", 2, "b:1", 9)
"""Of a node that had not seen the first."""
SNAPSHOT = (ONE, FRESH, shown("a", 0, "a:1", 5), watching("a", "uptodate", 1))
EMPTIED: Line = ("a", "durable", "emptied", [2])
REST = watching("a", "rest")


def capped(tick: int, *entries: list[Any]) -> Line:
    """What a holds in the end, where changes of a above a tick do not count: it was dropped."""
    return "a", "info", "holding", ["a", list(entries), {}, {"a": tick}]


STORE_RIGHT: dict[str, tuple[type[Checker], tuple[Line, ...]]] = {
    "another change by the name of one that is nowhere": (
        StoreTicks,
        (ONE, journal("a", 1), change("a", 1, "a:1", 9, "02"), change("b", 1, "a:1", 9, "02")),
    ),
    "what others had written over": (StoreCausal, (ONE, change("a", 2, "b:1", 6, "01 < a:1"))),
    "acknowledged by nobody known": (StoreCausal, (stored("a", "z:9", ["a", 1]),)),
    "a copy that tells less of its chain": (
        StoreDurable,
        (ONE, STORED, change("b", 1, "b:1 a:1", 6), change("a", 2, "b:1", 6), holding("a", "b:1", 6), QUIET),
    ),
    "a copy that tells more of its chain": (
        StoreDurable,
        (ONE, STORED, change("a", 2, "b:1", 6), change("b", 1, "b:1 a:1", 6), holding("a", "b:1", 6), QUIET),
    ),
    "of a node that was dropped": (StoreDurable, (ONE, STORED, capped(0), QUIET)),
    "a deletion that lost, and an old disk": (
        NoResurrection,
        (ONE, change("a", 2, "b:9", 3, "gone lost"), journal("a", 5), change("a", 3, "b:1", 2)),
    ),
    "a change that no journal ever had": (NoResurrection, (ONE, GONE, holding("a", "z:9", 5), QUIET)),
    "an entry that stands in no journal": (NoResurrection, (ONE, journal("a", 1), holding("a", "a:1", 5), QUIET)),
    "begun anew, and nothing told": (StoreWatched, (*SNAPSHOT, EMPTIED, holding("a", "a:1", 5), REST)),
    "begun anew, and told": (StoreWatched, (*SNAPSHOT, EMPTIED, shown("a", 0, "a:1", 5), holding("a", "a:1", 5), REST)),
    "begun anew in the middle of a snapshot": (
        StoreWatched,
        (ONE, FRESH, shown("a", 0, "a:1", 5), EMPTIED, shown("a", 0, "b:1", 2)),
    ),
    "nothing left behind a gap": (
        StoreWatched,
        (*SNAPSHOT, watching("a", "gap"), watching("a", "uptodate", 1), holding("a"), REST),
    ),
    "up to date with nothing": (
        StoreWatched,
        (ONE, FRESH, shown("a", 0, "a:1", 5), watching("a", "uptodate", 0), TWO, shown("a", 2, "a:2", 6)),
    ),
    "gone in the middle of a snapshot": (
        StoreWatched,
        (ONE, FRESH, watching("a", "gone", 1), TWO, change("a", 3, "a:3", 7), shown("a", 3, "a:3", 7)),
    ),
    "the history of the node, whatever that is": (
        StoreWatched,
        (
            change("a", 1, "a:1", 9),
            FRESH,
            shown("a", 0, "a:1", 9),
            watching("a", "uptodate", 1),
            change("a", 2, "b:1", 5),
            shown("a", 2, "b:1", 5),
        ),
    ),
    "one twice in a snapshot": (StoreWatched, (ONE, FRESH, shown("a", 0, "a:1", 5), shown("a", 0, "a:1", 5))),
}
STORE_WRONG: dict[str, tuple[type[Checker], tuple[Line, ...], str]] = {
    "the last tick that an old disk has": (
        StoreTicks,
        (ONE, TWO, journal("a", 2), change("a", 2, "a:1", 9)),
        "a takes tick 1 behind 1",
    ),
    "a chain that names an earlier one": (
        StoreCausal,
        (ONE, TWO, change("a", 3, "a~2:1 a:1", 9, "01 < a:2")),
        "a writes over ('a', 2), and its chain does not say so",
    ),
    "the value before a forgotten deletion": (
        StoreDurable,
        (ONE, GONE, holding("a", "a:1", 5, forgotten={"a": [[2, 2]]}), QUIET),
        "a holds ('a', 1) of k, and not ('a', 2)",
    ),
    "an earlier one is forgotten": (
        StoreDurable,
        (ONE, GONE, holding("a", forgotten={"a": [[1, 1]]}), QUIET),
        "a holds None of k, and not ('a', 2)",
    ),
    "up to where its node counts": (
        StoreDurable,
        (ONE, STORED, OTHER, capped(1, ["k", "b", 1, 9, False]), QUIET),
        "a:1 was acknowledged, and is lost without a word",
    ),
    "under a deletion that nobody has": (
        StoreDurable,
        (ONE, GONE, STORED, change("a", 3, "b:1", 9), holding("a", "b:1", 9), QUIET),
        "a:1 was acknowledged, and is lost without a word",
    ),
    "a value that is called forgotten": (
        StoreDurable,
        (ONE, STORED, OTHER, holding("a", "b:1", 9, forgotten={"a": [[1, 1]]}), QUIET),
        "a:1 was acknowledged, and is lost without a word",
    ),
    "between two deletions": (
        NoResurrection,
        (ONE, change("a", 2, "a:2", 8, "gone < a:1"), change("a", 3, "b:1", 6, "gone"), change("a", 4, "c:1", 7)),
        "k was deleted, and is there again",
    ),
    "all of it, and never up to date": (
        StoreWatched,
        (ONE, FRESH, shown("a", 0, "a:1", 5), holding("a", "a:1", 5), REST),
        "w of a was never told that it is up to date",
    ),
    "one that does not stand was not shown": (
        StoreWatched,
        (*SNAPSHOT, TWO, holding("a", "a:1", 5), REST),
        "w of a was not shown ('a', 2)",
    ),
}

TOLD_RIGHT: dict[str, tuple[type[Checker], tuple[Line, ...]]] = {
    "a loss that an old disk has": (
        Wall,
        (
            ("a", "info", "disk", ["old", [], [[1, "a/1", 1, 1]]]),
            ("a", "sent", "hop", ["c", 1, 1, [[1, "a/1", 1, 1, "loss"]]]),
        ),
    ),
    "an entry from below, and as its own": (ExactlyOnce, (ROOT, ENTRY, ENTRY)),
    "the same on a new disk": (ExactlyOnce, (ROOT, ENTRY, ENTRY, ("r", *LOST[1:]), ENTRY, ENTRY)),
    "entries in any order": (Order, (ROOT, ("r", "durable", "held", [8, "s/ab", 5, 5]), ENTRY)),
    "who made it has lost it": (Complete, (("c", "durable", "taken", [8, "s/ab", 1, 1]), ("c", *LOST[1:]), QUIET)),
    "numbers of the configuration begin anywhere": (
        Complete,
        (("r", "durable", "taken", [6, "root/1", 5, 6]), ("r", "durable", "segment", [6, 1, [["root/1", 5, 6]], [], []]), QUIET),
    ),
    "somebody is dead for good": (Complete, (*BEGUN_LATE, ("x", "info", "gone", None), QUIET)),
    "a number again, since a disk is lost": (Numbers, (root("a", 0), write("a", 1), LOST, root("b", 0), write("b", 1, "w"))),
    "a write said again": (Numbers, (root("a", 0), write("a", 1), write("a", 1))),
    "below the root before, since a disk is lost": (Numbers, (root("a", 0), write("a", 5), LOST, root("b", 1), write("b", 4))),
    "a late word of the root before": (Numbers, (root("b", 1), write("b", 9), root("a", 0), write("a", 5))),
    "not confirmed, and gone": (Kept, (wrote(3, is_confirmed=False), store())),
    "confirmed, and there": (Kept, (wrote(3), store(["/k", 3, "v"]))),
    "not confirmed, and nobody says": (Kept, (wrote(3, is_confirmed=False),)),
    "a parent at the last instant": (Swift, (LOST, DUE, ("m", "event", "parent-joined", ["b"]), QUIET)),
    "a parent that nobody waits for": (Swift, (JOINED, QUIET)),
    "moved after it had lost its parent": (Unmoved, (UP, JOINED, moved("silent"), moved())),
    "moved after a start": (Unmoved, (UP, JOINED, ("a", "info", "start", ["sensor", "r", 0]), moved())),
}  # fmt: skip
TOLD_WRONG: dict[str, tuple[type[Checker], tuple[Line, ...], str]] = {
    "an entry three times": (ExactlyOnce, (ROOT, ENTRY, ENTRY, ENTRY), "r delivered of s/ab 1"),
    "a root that was told of a later one": (
        Numbers,
        (root("a", 0), ("a", "event", "root-left", ["f", 1]), write("a", 1)),
        "a writes number 1, and is no root",
    ),
    "a root that started again": (
        Numbers,
        (root("a", 0), ("a", "info", "start", ["root", "", 0]), write("a", 1)),
        "a writes number 1, and is no root",
    ),
    "one number in two fleets": (
        Numbers,
        (root("a", 0), write("a", 5), write("a", 5, fleet="g")),
        "a writes number 5 after number 5",
    ),
    "the number of a later root": (
        Numbers,
        (root("b", 1), write("b", 9), root("a", 0), write("a", 9)),
        "number 9 of epoch 0 does not agree with those of epoch 1",
    ),
    "the number of the root before": (
        Numbers,
        (root("a", 0), write("a", 9), root("b", 1), write("b", 9)),
        "number 9 of epoch 1 does not agree with those of epoch 0",
    ),
    "an earlier one is told later": (Kept, (wrote(5, "w"), wrote(3), store(["/k", 4, "x"])), "/k = w was confirmed"),
    "the later one is gone": (Kept, (wrote(3), wrote(5, "w"), store(["/k", 4, "x"])), "/k = w was confirmed"),
    "another value under its number": (Kept, (wrote(3), store(["/k", 3, "w"])), "/k = v was confirmed as number 3"),
    "a parent too late": (Swift, (DUE, LOST, LOST, ("m", "event", "parent-joined", ["b"])), "m has no new parent"),
}


def _names(cases: list[Any]) -> list[str]:
    return [f"{case[0].rule}-{case[1]}" for case in cases]


@pytest.mark.parametrize(("kind", "_name", "text"), RIGHT, ids=_names(RIGHT))
def test_what_is_right_is_left_alone(kind: type[Checker], _name: str, text: str) -> None:
    assert judge(kind(), history(TREE + text)) is None


@pytest.mark.parametrize(("kind", "_name", "text", "why"), WRONG, ids=_names(WRONG))
def test_what_is_wrong_is_named(kind: type[Checker], _name: str, text: str, why: str) -> None:
    verdict = judge(kind(), history(TREE + text))
    assert isinstance(verdict, Violation)
    assert (kind.rule, True) == (verdict.rule, verdict.why.startswith(why)), verdict.why


@pytest.mark.parametrize("name", [*TOLD_RIGHT, *STORE_RIGHT])
def test_what_is_told_right_is_left_alone(name: str) -> None:
    kind, lines = (TOLD_RIGHT | STORE_RIGHT)[name]
    assert judge(kind(), facts_of(lines)) is None


@pytest.mark.parametrize("name", [*TOLD_WRONG, *STORE_WRONG])
def test_what_is_told_wrong_is_named(name: str) -> None:
    kind, lines, why = (TOLD_WRONG | STORE_WRONG)[name]
    verdict = judge(kind(), facts_of(lines))
    assert isinstance(verdict, Violation)
    assert (kind.rule, True) == (verdict.rule, verdict.why.startswith(why)), verdict.why


def test_of_calls_that_nothing_explains_the_open_ones_are_shown_and_no_later_ones() -> None:
    lines: tuple[Line, ...] = (
        ("", "invoke", "call", ["a", 1, "k", ["get"]]),
        ("", "ok", "call", ["a", 1, "x"]),
        ("", "invoke", "call", ["b", 1, "k", ["set", "y"]]),
        ("", "ok", "call", ["b", 1, None]),
    )
    verdict = judge(Linearizable(), facts_of(lines))
    assert isinstance(verdict, Violation)
    assert [("invoke", "a"), ("ok", "a")] == [(fact.kind, fact.value[0]) for fact in verdict.witnesses]


def test_without_watchers_there_is_no_doubt_and_without_rest_there_is() -> None:
    assert judge(Watched(), []) is None
    assert isinstance(judge(Acknowledged(), []), Unknown)


@pytest.mark.parametrize("lines", [(ONE, QUIET), (ONE, holding("a", "a:1", 5))], ids=["nothing", "not at rest"])
def test_what_nobody_says_in_the_end_is_unknown(lines: tuple[Line, ...]) -> None:
    assert isinstance(judge(StoreDurable(), facts_of(lines)), Unknown)
