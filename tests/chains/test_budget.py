"""What messages take in memory: beyond the budget sends are refused, children wait, old copies go (FLD-032, CHN-040)."""

from typing import Any

import pytest

from tests.chains.rig import Rig, Site
from tests.chains.test_inbox import letter, node
from weft.cores.chains.messages import PressureChanged
from weft.cores.chains.post import Copies, Post
from weft.wire.clients import RecItem

HOLDS = {"access": "rw"}


def statuses(rig: Rig) -> list[Any]:
    return [(event[3], event[5]) for event in rig.events if event[0] == "status"]


def only(level: str = "root") -> tuple[Rig, Site]:
    rig, site = node(level=level)
    return rig, site


@pytest.mark.proves("FLD-032")
def test_sends_that_would_wait_beyond_the_memory_are_refused_as_overload_and_those_of_others_pass() -> None:
    rig, site = only()
    rig.reg("B", "holder", 1, {"dir": "out", **HOLDS})
    site.core.budget.give(4 * 2 * 2_010)
    for tag in range(1, 5):
        rig.send("B", "sender", tag, "x" * 10)
    assert [(3, "overload"), (4, "overload")] == statuses(rig)
    assert (2 * 2_010, {"sends": 2}) == (site.core.sending.held, dict(site.core.budget.refused))
    rig.send("B", "sender", 5, "x", None, None, "other")
    assert [(5, "local")] == statuses(rig)[2:]


@pytest.mark.proves("FLD-032")
def test_what_is_handed_back_gives_its_room_back() -> None:
    rig, site = only()
    rig.reg("B", "holder", 1, {"dir": "out", **HOLDS})
    site.core.budget.give(4 * 2_010)
    rig.send("B", "sender", 1, "x" * 10)
    rig.next("B", "holder", 1, 1)
    assert 0 == site.core.sending.held
    rig.send("B", "sender", 2, "x" * 10)
    assert 2_010 == site.core.sending.held


@pytest.mark.proves("FLD-032", "CHN-040")
def test_children_wait_at_three_quarters_of_the_inbox_and_no_more_at_four_fifths_of_that() -> None:
    rig, site = only("collector")
    rig.reg("B", "holder", 1, HOLDS)
    site.core.budget.give(10_000)
    site.core.screen(letter(1), rig.now)
    for number in (2, 3):
        site.core.screen(letter(number), rig.now)
    for number in (1, 2, 3):
        rig.next("B", "holder", 1, number)
    assert [PressureChanged(True), PressureChanged(False)] == [
        event for event in site.told if isinstance(event, PressureChanged)
    ]


@pytest.mark.proves("FLD-032", "CHN-040")
def test_an_own_message_beyond_the_inbox_is_refused_and_one_that_another_brought_about_is_taken() -> None:
    rig, site = only()
    rig.reg("B", "holder", 1, HOLDS)
    site.core.budget.give(10_000)
    for tag in range(1, 5):
        rig.send("B", "sender", tag, "x")
    assert [(1, "local"), (2, "local"), (3, "overload"), (4, "overload")] == statuses(rig)
    rig.send("B", "sender", 5, "x", None, 1, "t")
    assert (5, "local") == statuses(rig)[-1]
    assert {"inbox": 2} == dict(site.core.budget.refused)


def copied(posts: list[Post], count: int) -> None:
    for number in range(count):
        for post in posts:
            item = RecItem(
                id=number, type="t", mid=(b"", 0, 0), own=False, to=(), via=(), depth=0, ts=0, fmt="raw", re=False, n=1
            )
            post.copy(1, item, (b"x" * 400,))


@pytest.mark.proves("FLD-032", "CHN-018")
def test_copies_for_clients_that_are_behind_stay_within_the_memory_of_all() -> None:
    copies = Copies()
    copies.room.bytes_max = 10_000
    posts = [Post(peer, {}, copies) for peer in (b"a", b"b")]
    for post in posts:
        post.retry_at = 1
    copied(posts, 20)
    assert 10 == copies.count
    assert copies.cost <= 10_000
    assert 30 == sum(post.copies_lost for post in posts)
    for post in posts:
        post.close()
    assert (0, 0) == (copies.count, copies.bytes)
