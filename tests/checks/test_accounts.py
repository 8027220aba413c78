"""Each stretch of a node's road adds up, or is named with what is missing (FLD-020)."""

from copy import deepcopy
from typing import Any

import pytest

from weft.checks.accounts import unaccounted

WAY = {"accepted": 9, "delivered": 4, "ended": {"expired": 3}, "held": 2}
STATUS: dict[str, Any] = {
    "cores": {
        "chains": {
            "mail": {
                "sends": {"heard": 12, "refused": {"full": 2}, "repeated": 1},
                "ways": {"out": WAY, "in": {**WAY, "accepted": 10, "ended": {"expired": 3}, "held": 3}},
                "copies": {"accepted": 6, "delivered": 3, "ended": {"away": 2}, "held": 1},
            }
        },
        "carrier": {
            "received": 21,
            "accepted": 6,
            "repeated": 1,
            "ahead": 2,
            "known": 3,
            "expired": 4,
            "turned_away": 5,
            "held_back": 0,
        },
    }
}
MAIL = ("cores", "chains", "mail")


def test_a_road_that_adds_up_is_not_named() -> None:
    assert [] == unaccounted(STATUS)


@pytest.mark.proves("FLD-020", part="a check adds up what was taken, passed on, ended and held")
@pytest.mark.parametrize(
    "place, expected",
    [
        ((*MAIL, "sends", "heard"), "sends of programs: 13 taken, 1"),
        ((*MAIL, "ways", "in", "accepted"), "chain in: 11 taken, 1"),
        ((*MAIL, "copies", "accepted"), "copies to confirm: 7 taken, 1"),
        (("cores", "carrier", "received"), "arrivals of other nodes: 22 taken, 1"),
        ((*MAIL, "sends", "repeated"), "sends of programs: 12 taken, -1"),
        ((*MAIL, "sends", "refused", "full"), "sends of programs: 12 taken, -1"),
        ((*MAIL, "ways", "in", "delivered"), "chain in: 10 taken, -1"),
        ((*MAIL, "ways", "out", "ended", "expired"), "chain out: 9 taken, -1"),
        ((*MAIL, "ways", "out", "held"), "chain out: 9 taken, -1"),
        ((*MAIL, "copies", "ended", "away"), "copies to confirm: 6 taken, -1"),
        *(
            (("cores", "carrier", name), "arrivals of other nodes: 21 taken, -1")
            for name in list(STATUS["cores"]["carrier"])[1:]
        ),
    ],
    ids=lambda told: told[-1] if isinstance(told, tuple) else "",
)
def test_one_more_or_less_anywhere_is_named(place: tuple[str, ...], expected: str) -> None:
    status = deepcopy(STATUS)
    table = status
    for name in place[:-1]:
        table = table[name]
    table[place[-1]] += 1
    (said,) = unaccounted(status)
    assert f"{expected} of them neither passed on, ended nor held" == said
