"""`exactly_once`: an identity is given once, delivered once, drained once."""

import pytest

from tests.checks.telling import history
from weft.checks import ExactlyOnce, Violation, judge

TREE = "r starts root | c starts collector under r | a starts sensor under c |"

GOOD = {
    "nothing": "",
    "one": "a takes 1 | r holds a 1 | r drains 1: a 1",
    "in line": "a takes 1-3 | a takes 4 | r holds a 1-3 | r holds a 4 | r drains 1: a 1-4",
    "a collector may hold twice": "a takes 1-3 | c holds a 1-3 | c holds a 1-3 | r holds a 1-3",
    "out of order": "a takes 1-9 | r holds a 4-9 | r holds a 1-3",
    "with holes": "a takes 1-9 | r holds a 1-3 | r holds a 7-9",
    "two eras": "a takes 1-3 | a takes /2 1-3 | r holds a 1-3 | r holds a/2 1-3 | r drains 1: a 1-3, a/2 1-3",
    "two streams": "a takes 1-3 | a takes events 1-3 | r holds a 1-3 | r holds a events 1-3",
    "two origins": "a takes 1-3 | c takes 1-3 | r holds a 1-3 | r holds c 1-3 | r drains 1: a 1-3, c 1-3",
    "the root's own": "r takes 1-3 | r drains 1: r 1-3",
    "two roots": "s starts root | a takes 1 | r holds a 1 | s holds a 1",
    "segments in line": "a takes 1-3 | r drains 1: a 1 | r drains 2: a 2 | r drains 3: a 3",
    "a root begins anew on a new disk": "a takes 1-3 | r holds a 1-3 | r disk lost | r holds a 1-3",
    "a root takes again what its damaged journal has lost": (
        "a takes 1-3 | r holds a 1-3 | r loses by damage a 2 | r disk harmed: a 1, a 3 | r holds a 2 | r drains 1: a 1-3"
    ),
    "home again at a root that does not know its lake": "a takes 1 | r drains 1: a 1 | r misses its lake | r holds a 1 | r drains 2: a 1",
}

BAD = {
    "given twice": "a takes 1-3 | a takes 3",
    "an era used again": "a takes 1-3 | a takes 1-3",
    "a part given twice": "a takes 1-5 | a takes 5-9",
    "given again in between": "a takes 1-9 | a takes 4-5",
    "delivered twice": "a takes 1 | r holds a 1 | r holds a 1",
    "a part delivered twice": "a takes 1-9 | r holds a 1-5 | r holds a 5-9",
    "delivered within what was there": "a takes 1-9 | r holds a 1-9 | r holds a 2",
    "delivered around what was there": "a takes 1-9 | r holds a 4-5 | r holds a 1-9",
    "the last of many": "a takes 1-9 | r holds a 1-3 | r holds a 7-9 | r holds a 3-7",
    "the root's own, twice": "r takes 1-3 | r holds r 2",
    "a root takes again what its damaged journal still has": (
        "a takes 1-3 | r holds a 1-3 | r loses by damage a 2 | r disk harmed: a 1, a 3 | r holds a 3"
    ),
    "a root drains again what its damaged journal has lost": (
        "a takes 1-2 | r holds a 1-2 | r drains 1: a 1-2 | r loses by damage a 2 | r disk harmed: a 1 | r holds a 2 |"
        "r drains 2: a 2"
    ),
    "drained twice": "a takes 1-3 | r drains 1: a 1-3 | r drains 2: a 3",
    "drained twice in one segment": "a takes 1-3 | r drains 1: a 1-3, a 2",
    "home again, and the lake is known": "a takes 1 | r drains 1: a 1 | r misses its lake | r knows its lake | r holds a 1 | r drains 2: a 1",
    "what came home in another start": "a takes 1 | r drains 1: a 1 | r misses its lake | r starts root | r holds a 1 | r drains 2: a 1",
    "a segment's number used again": "a takes 1-3 | r drains 1: a 1 | r drains 1: a 2",
    "a segment's number left out": "a takes 1-3 | r drains 1: a 1 | r drains 3: a 2",
    "a segment's number goes back": "a takes 1-3 | r drains 1: a 1 | r drains 2: a 2 | r drains 1: a 3",
}


@pytest.mark.proves("CHK-010")
@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_good(text: str) -> None:
    assert judge(ExactlyOnce(), history(TREE + text)) is None


@pytest.mark.proves("CHK-010")
@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad(text: str) -> None:
    verdict = judge(ExactlyOnce(), history(TREE + text))
    assert isinstance(verdict, Violation)
    assert verdict.rule == "exactly_once"
