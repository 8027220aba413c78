"""`complete`: taken = delivered + announced lost + spooled, at every instant; the table names what is missing."""

import pytest

from tests.checks.telling import history
from weft.checks import Complete, Unknown, Violation, judge

TREE = "r starts root | c starts collector under r | a starts sensor under c |"

GOOD = {
    "nothing happens": "quiet",
    "one sample, all the way": "a takes 1 | c holds a 1 | r holds a 1 | r drains 1: a 1 | quiet",
    "forgotten behind the root": "a takes 1-3 | r holds a 1-3 | a forgets a 1-3 | r drains 1: a 1-3 | quiet",
    "forgotten in parts": "a takes 1-4 | r holds a 1-4 | a forgets a 1-2 | a forgets a 3-4 | r drains 1: a 1-4 | quiet",
    "drained in two segments": "a takes 1-4 | r holds a 1-4 | r drains 1: a 1-2 | r drains 2: a 3-4 | quiet",
    "dropped and announced": "a takes 1-4 | a loses a 1-2 | a forgets a 1-2 | r holds a 3-4 | r drains 1: -a 1-2, a 3-4 | quiet",
    "announced, and found after all": "a takes 1-2 | c loses a 1 | r holds a 1-2 | r drains 1: a 1-2, -a 1 | quiet",
    "the root takes samples too": "r takes 1-9 | r drains 1: r 1-9 | r forgets r 1-9 | quiet",
    "two streams": "a takes 1-2 | a takes events 1-2 | r holds a 1-2 | r holds a events 1-2 | r drains 1: a 1-2",
    "a collector's disk is lost, the sensor still has it": (
        "a takes 1-3 | c holds a 1-3 | c disk lost | c holds a 1-3 | r holds a 1-3 | r drains 1: a 1-3 | quiet"
    ),
    "a sensor's disk is lost, the collector has it": (
        "a takes 1-3 | c holds a 1-3 | a disk lost | r holds a 1-3 | r drains 1: a 1-3 | quiet"
    ),
    "a sensor's disk is lost with what nobody else has": "a takes 1-3 | r holds a 1 | a disk lost | r drains 1: a 1 | quiet",
    "a sensor's disk goes back": (
        "a takes 1-3 | a disk old: a 1-2 | r holds a 1-2 | a takes /2 1 | a links 2 of a/1 | r holds a/2 1 |"
        "r drains 1: a 1-2, a/2 1 | quiet"
    ),
    "an era link that is right": (
        "a takes 1-3 | r holds a 1-3 | a takes /2 1 | a links 3 of a/1 | r holds a/2 1 | r drains 1: a 1-3, a/2 1 | quiet"
    ),
    "a collector's journal is damaged, the sensor still has it": (
        "a takes 1-3 | c holds a 1-3 | c loses by damage a 2 | c disk harmed: a 1, a 3 | c holds a 2 | r holds a 1-3 |"
        "r drains 1: a 1-3 | quiet"
    ),
    "a root's journal is damaged, and it announces what is listed of the loss": (
        f"{TREE} a takes 1-3 | r holds a 1-3 | r loses by damage a 2; lists a 2 | r disk harmed: a 1, a 3 | a forgets a 1-3 |"
        "r loses a 2 | r drains 1: a 1, -a 2, a 3 | quiet"
    ),
    "a root's journal is damaged, and nothing lists the loss": (
        f"{TREE} a takes 1-3 | r holds a 1-3 | r loses by damage a 2 | r disk harmed: a 1, a 3 | a forgets a 1-3 |"
        "r drains 1: a 1, a 3 | quiet"
    ),
    "a root's journal is damaged, and its lake has it": (
        f"{TREE} a takes 1-3 | r holds a 1-3 | r drains 1: a 1-3 | r loses by damage a 2; lists a 2 | r disk harmed: a 1 | quiet"
    ),
    "an announcement goes with the disk that held it": (
        "a takes 1-2 | c holds a 1-2 | a forgets a 1-2 | c loses a 1-2 | c forgets a 1-2 | c disk lost | quiet"
    ),
}

BAD = {
    "never delivered": "a takes 1-3 | r holds a 1-3 | r drains 1: a 1-2 | quiet",
    "a hole": "a takes 1-5 | r holds a 1-5 | r drains 1: a 1-2, a 4-5 | quiet",
    "the first is missing": "a takes 1-2 | r holds a 2 | r drains 1: a 2 | quiet",
    "forgotten before anybody has it": "a takes 1-3 | a forgets a 1-3",
    "forgotten while only a part is above": "a takes 1-3 | c holds a 1-2 | a forgets a 1-3",
    "the collector forgets what only it has": "a takes 1-2 | c holds a 1-2 | a forgets a 1-2 | c forgets a 1-2",
    "the collector's disk is lost with what only it had": "a takes 1-2 | c holds a 1-2 | a forgets a 1-2 | c disk lost",
    "the collector's disk goes back too far": ("a takes 1-4 | c holds a 1-4 | a forgets a 1-4 | c disk old: a 1-2"),
    "a collector's journal loses by damage what only it had": (
        "a takes 1-2 | c holds a 1-2 | a forgets a 1-2 | c loses by damage a 2 | c disk harmed: a 1"
    ),
    "a collector says nothing of what its damaged journal lists": (
        f"{TREE} a takes 1-2 | c holds a 1-2 | c loses by damage a 2; lists a 2 | c disk harmed: a 1 | r holds a 1 |"
        "r drains 1: a 1 | quiet"
    ),
    "a root says nothing of what its damaged journal lists": (
        f"{TREE} a takes 1-2 | r holds a 1-2 | r loses by damage a 2; lists a 2 | r disk harmed: a 1 | r drains 1: a 1 | quiet"
    ),
    "the root forgets what is not drained": "a takes 1-3 | r holds a 1-3 | a forgets a 1-3 | r forgets a 1-3",
    "dropped in silence": "a takes 1-4 | a forgets a 1-2",
    "dropped more than announced": "a takes 1-4 | a loses a 1-2 | a forgets a 1-3",
    "delivered what was never taken": "a takes 1-3 | r holds a 1-4",
    "drained what was never taken": "a takes 1-3 | r drains 1: a 1-4",
    "the era was said to end too early": "a takes 1-3 | a links 2 of a/1",
    "the era was said to end too late": "a takes 1-3 | a links 4 of a/1",
    "another stream does not help": "a takes 1-3 | c holds a 1-3 | a takes events 1-3 | a forgets a events 1-3",
    "another era does not help": "a takes 1-3 | a takes /2 1-3 | r holds a 1-3 | a forgets a/2 1-3",
}


@pytest.mark.proves("CHK-009")
@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_good(text: str) -> None:
    facts = history(TREE + text + ("" if text.endswith("quiet") else "| r drains 9: | quiet"))
    if "events" in text:
        facts = [*facts[:-2], *history("@90 r drains 2:"), *facts[-1:]]
        facts[-2] = type(facts[-2])(0, "r", 1, "durable", "segment", [4, 1, [["a/1", 1, 2]], [], []])
    assert judge(Complete(), facts) is None


@pytest.mark.proves("CHK-009")
@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad(text: str) -> None:
    verdict = judge(Complete(), history(TREE + text))
    assert isinstance(verdict, Violation)
    assert verdict.rule == "complete"


def test_a_history_that_never_comes_to_rest_proves_nothing() -> None:
    assert isinstance(judge(Complete(), history(TREE + "a takes 1")), Unknown)


def test_a_violation_shows_its_numbers_and_its_witness() -> None:
    verdict = judge(Complete(), history(TREE + "a takes 1-9 | c holds a 1-9 | a forgets a 1-9 | c forgets a 3-5"))
    assert isinstance(verdict, Violation)
    assert verdict.why == "c gave up 3-5 of a/1, which no other node has and nobody named"
    assert verdict.witnesses[0].value == [1, "a/1", 3, 5]
