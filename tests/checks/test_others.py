"""The other checkers, each with histories that it must pass and others that it must not."""

import pytest

from tests.checks.telling import history
from weft.checks import (
    Bounded,
    Checker,
    Converged,
    Durable,
    Fact,
    Inert,
    Order,
    Same,
    Timely,
    Unknown,
    Violation,
    Wall,
    judge,
    read_lines,
    write_lines,
)

TREE = "r starts root | c starts collector under r | a starts sensor under c |"
LINKED = "@1 link a c up | link c r up | a joined | c joined | c joined by a | r joined by c |"

GOOD: list[tuple[type[Checker], str, str]] = [
    (Wall, "hop behind its wall", "a takes 1 | a sends c 1: a 1"),
    (Wall, "hack behind its wall", "a takes 1 | a sends c 1: a 1 | c holds a 1 | c tells a 1 safe 0"),
    (
        Wall,
        "safe when the root has it",
        "a takes 1 | a sends c 1: a 1 | c holds a 1 | r holds a 1 | c tells a 1 safe 1",
    ),
    (Wall, "known at the root already", "a takes 1 | a sends c 1: a 1 | r holds a 1 | c tells a 1 safe 1"),
    (
        Wall,
        "safe when the loss is at the root",
        "a takes 1 | a sends c 1: a 1 | c holds a 1 | r loses a 1 | c tells a 1 safe 1",
    ),
    (Wall, "a link has no numbers", "a takes 1 | a sends c 1: link, a 1 | c holds a 1 | c tells a 2 safe 0"),
    (Wall, "said again", "a takes 1-2 | a sends c 1: a 1, a 2 | a sends c 2: a 2 | c holds a 1-2 | c tells a 2 safe 0"),
    (Wall, "said again, but given up", "a takes 1 | a sends c 1: a 1 | a sends c 1: link | c tells a 1 safe 0"),
    (Wall, "not needed any more", "a knocks at c from 5 | c tells a 4 safe 4"),
    (Wall, "nothing acknowledged", "c tells a 0 safe 0"),
    (Durable, "found again", "a takes 1-3 | a crashes | a restores a 1-3"),
    (Durable, "given up on purpose", "a takes 1-3 | a forgets a 1-2 | a restores a 3"),
    (Durable, "announced as lost", "a takes 1-3 | c loses a 1 | a restores a 2-3"),
    (Durable, "a new disk owes nothing", "a takes 1-3 | a disk lost | a restores"),
    (Durable, "an old disk owes what it has", "a takes 1-3 | a disk old: a 1 | a restores a 1"),
    (Durable, "acknowledged", "a takes 1 | a sends c 1: a 1 | c holds a 1 | c tells a 1 safe 0 | c restores a 1"),
    (Order, "in line", "a takes 1-3 | r holds a 1-2 | r holds a 3 | r holds a/2 1"),
    (Order, "a hole", "r holds a 1-2 | r holds a 5"),
    (Order, "collectors may go back", "c holds a 5 | c holds a 1"),
    (Order, "late, but announced as lost", "r loses a 1-3 | r holds a 4-9 | r holds a 2"),
    (Inert, "refused, counted", "a injected x | a absorbed x 1 0 0"),
    (Inert, "two nodes", "a injected x | c injected y | c absorbed y 1 0 0 | a absorbed x 1 0 0"),
    (Bounded, "at the limit", "a gauge queue 10 of 10"),
    (Same, "equal plans, equal traces", "trace p t | trace q u | trace p t"),
    (Converged, "all the same", "healed | a state s x | c state s x | quiet"),
    (Converged, "before the heal nobody minds", "a state s x | c waits for it | healed | c state s y | quiet"),
    (Converged, "in the end", "healed | a state s x | c state s y | a state s y | quiet"),
    (Timely, "all is well", LINKED + "@60 quiet"),
    (Timely, "a death in time", LINKED + "@20 c crashes | link a c down | @26 a lost its parent: silent | @27 quiet"),
    (Timely, "a cut in time", LINKED + "@20 path c a cut | link a c down | @27 a lost its parent: silent | @28 quiet"),
    (Timely, "back in time", LINKED + "@20 path c a cut | @22 path c a open | @60 quiet"),
    (Timely, "other reasons than silence", LINKED + "@20 a lost its parent: moved | a joined | @60 quiet"),
    (
        Timely,
        "the caller slept and the parent died",
        LINKED + "@20 a pauses | c crashes | @40 a resumes | a lost its parent: silent",
    ),
    (
        Timely,
        "the transport had ended",
        LINKED + "@20 link a c down | @26 a lost its parent: silent | @27 link a c up | a joined",
    ),
]

BAD: list[tuple[type[Checker], str, str]] = [
    (Wall, "hop before its wall", "a sends c 1: a 1 | a takes 1"),
    (Wall, "hop of what was never held", "c sends r 1: a 1"),
    (Wall, "hop of a new disk", "a takes 1 | a disk lost | a sends c 1: a 1"),
    (Wall, "hack before its wall", "a takes 1 | a sends c 1: a 1 | c tells a 1 safe 0 | c holds a 1"),
    (Wall, "safe, and not at the root", "a takes 1 | a sends c 1: a 1 | c holds a 1 | c tells a 1 safe 1"),
    (Wall, "a loss said before it is durable", "a takes 1 | a sends c 1: -a 1"),
    (Wall, "acknowledged what was never sent", "a takes 1 | a sends c 1: a 1 | c holds a 1 | c tells a 2 safe 0"),
    (Wall, "numbers left out", "a takes 1-2 | a sends c 1: a 1 | a sends c 3: a 2"),
    (Wall, "acknowledged somebody who said nothing", "c tells a 3 safe 0"),
    (Durable, "one is gone", "a takes 1-3 | a crashes | a restores a 1-2"),
    (Durable, "all is gone", "a takes 1-3 | a restores"),
    (Durable, "acknowledged and gone", "a takes 1 | a sends c 1: a 1 | c tells a 1 safe 0 | c restores"),
    (Durable, "given up another one", "a takes 1-3 | a forgets a 1 | a restores a 3"),
    (Order, "back", "r holds a 1-3 | r holds a 2"),
    (Order, "an era back", "r holds a/2 1 | r holds a 9"),
    (Order, "the same", "r holds a 1 | r holds a 1"),
    (Inert, "a state changed", "a injected x | a absorbed y 1 0 0"),
    (Inert, "not counted", "a injected x | a absorbed x 0 0 0"),
    (Inert, "counted twice", "a injected x | a absorbed x 2 0 0"),
    (Inert, "answered", "a injected x | a absorbed x 1 1 0"),
    (Inert, "kept", "a injected x | a absorbed x 1 0 1"),
    (Inert, "out of nowhere", "a absorbed x 1 0 0"),
    (Bounded, "above the limit", "a gauge queue 11 of 10"),
    (Same, "equal plans, unequal traces", "trace p t | trace p u"),
    (Converged, "different", "healed | a state s x | c state s y | quiet"),
    (Converged, "waiting", "healed | a waits for it | quiet"),
    (Timely, "a live parent called dead", LINKED + "@20 a lost its parent: silent"),
    (Timely, "a live child called dead", LINKED + "@20 c lost its child a: silent"),
    (Timely, "woken late, calls the parent dead", LINKED + "@20 a pauses | @40 a resumes | a lost its parent: silent"),
    (Timely, "a dead parent not missed", LINKED + "@20 c crashes | @40 quiet"),
    (Timely, "a cut not noticed", LINKED + "@20 path c a cut | @40 quiet"),
    (Timely, "never joined again", LINKED + "@20 a lost its parent: moved | @60 quiet"),
    (
        Timely,
        "the parent does not know its child",
        LINKED + "@20 c crashes | c starts collector under r | c joined | r joined by c | @70 quiet",
    ),
]


def _names(cases: list[tuple[type[Checker], str, str]]) -> list[str]:
    return [f"{kind.rule}-{name}" for kind, name, _ in cases]


@pytest.mark.proves("CHK-005", "CHK-006", "CHK-007", "CHK-018", "CHK-019", "CHK-020", "CHK-022")
@pytest.mark.parametrize("kind,_name,text", GOOD, ids=_names(GOOD))
def test_good(kind: type[Checker], _name: str, text: str) -> None:
    assert judge(kind(), history(TREE + text)) is None


@pytest.mark.proves("CHK-005", "CHK-006", "CHK-007", "CHK-018", "CHK-019", "CHK-020", "CHK-022")
@pytest.mark.parametrize("kind,_name,text", BAD, ids=_names(BAD))
def test_bad(kind: type[Checker], _name: str, text: str) -> None:
    verdict = judge(kind(), history(TREE + text))
    assert isinstance(verdict, Violation)
    assert verdict.rule == kind.rule


@pytest.mark.parametrize("kind,text", [(Converged, "healed"), (Converged, "quiet"), (Inert, "a injected x")])
def test_what_the_history_does_not_say_is_not_ok(kind: type[Checker], text: str) -> None:
    assert isinstance(judge(kind(), history(text)), Unknown)


@pytest.mark.proves("CHK-001")
def test_a_history_is_json_lines() -> None:
    facts = history(TREE + "a takes 1-3 | r holds a 1-3 | r drains 1: a 1-3 | quiet")
    data = write_lines(facts)
    assert data.count(b"\n") == len(facts)
    assert data.splitlines()[3] == (
        b'{"at":4000000000,"node":"a","process":1,"kind":"durable","what":"taken","value":[1,"a/1",1,3]}'
    )
    assert list(read_lines(data)) == facts


def test_a_violation_has_at_most_twenty_witnesses() -> None:
    checker = Bounded()
    facts = [Fact(0, "a", 1, "info", "gauge", ["queue", 1, 2])] * 50
    with pytest.raises(Exception, match="bounded: too much") as found:
        checker.broken("too much", *facts)
    assert len(found.value.violation.witnesses) == 20  # type: ignore[attr-defined]  # raised by a checker
