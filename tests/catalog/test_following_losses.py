"""Watchers that lose events at random, or read too slowly, end with what the broker has (P4, S9; CAT-043)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.test_following import agree, live
from tests.catalog.test_publishing import STEPS, Step, play
from tests.catalog.watchrig import Broker, Watcher
from weft.client.catalog.following import Follower

FILTERS: list[dict[str, Any]] = [
    {},
    {"tags": ["lab"]},
    {"state": ["active", "suspect"]},
    {"name": "a"},
    {"health": "warning"},
]


Deed = Step | tuple[str, int]
DEEDS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(
                ["register", "register", "tag", "update", "suspect", "inactive", "active", "health", "remove"]
            ),
            st.sampled_from("abc"),
            st.sampled_from("12"),
        ),
        st.tuples(
            st.sampled_from(["hear", "answer", "advance", "lose", "heed", "restart", "unanswered"]), st.integers(0, 3)
        ),
    ),
    max_size=40,
)


def do(broker: Broker, watchers: list[Watcher], what: str, number: int) -> Broker:
    """One thing that is no change: of time, of one watcher, or of the broker."""
    watcher = watchers[number % len(watchers)]
    if what == "hear":
        watcher.hear()
    elif what == "answer":
        watcher.answer()
    elif what == "unanswered":
        for ask in watcher.asks:
            watcher.follower.failed(ask.ticket, broker.mono)
        watcher.asks.clear()
    elif what == "advance":
        broker.advance((0.3, 1, 4, 70)[number])
    elif what in ("lose", "heed"):
        watcher.loses = lambda frames: what == "lose"
    else:
        return broker.again(is_kept=number < 2)
    return broker


def check_a_watcher_that_loses_ends_equal(deeds: list[Deed]) -> None:
    """P4: whatever is lost, once ticks come again every watch is the broker's own state, and so is what it told."""
    broker = Broker()
    watchers = [Watcher(broker, given) for given in FILTERS]
    for deed in deeds:
        if len(deed) == 3:
            play(broker, [deed])
        else:
            broker = do(broker, watchers, *deed)
    for watcher in watchers:
        watcher.loses = lambda frames: False
    for _ in range(45):
        broker.advance(1)
        for watcher in watchers:
            watcher.settle()
    for watcher in watchers:
        assert watcher.follower.is_live
        agree(watcher)
        assert watcher.table() == watcher.replayed()


@pytest.mark.proves("CAT-043")
@given(DEEDS)
def test_a_watcher_that_loses_random_events_ends_equal_to_the_snapshot(deeds: list[Deed]) -> None:
    check_a_watcher_that_loses_ends_equal(deeds)


LOST: list[Deed] = [
    *[("answer", number) for number in range(4)],
    *[("hear", number) for number in range(4)],
    *[("answer", number) for number in range(4)],
    *[("lose", number) for number in range(4)],
    ("register", "a", "1"),
    ("register", "b", "1"),
]


def test_a_watcher_that_loses_everything_ends_equal_to_the_snapshot() -> None:
    check_a_watcher_that_loses_ends_equal(LOST)


def test_canary_a_gap_that_is_not_looked_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "_compare", lambda self, heard, before: heard.epoch == self.epoch)
    with pytest.raises(AssertionError):
        check_a_watcher_that_loses_ends_equal(LOST)


# A slow watcher


@pytest.mark.proves("CAT-043")
@settings(max_examples=20)
@given(STEPS, st.integers(1, 5), st.integers(2, 9))
def test_a_slow_watcher_costs_the_broker_nothing_and_ends_equal(steps: list[Step], queue: int, pace: int) -> None:
    """S9: a queue that is full drops what is newest; whoever reads so seldom asks as seldom."""
    broker = Broker()
    slow, quick = live(broker, {}), live(broker, {})
    slow.loses = lambda frames: len(slow.inbox) >= queue
    for number, step in enumerate(steps):
        play(broker, [step])
        quick.settle()
        if number % pace == 0:
            slow.settle()
    assert [] == quick.asked
    assert 3 * (1 + len(steps) // pace) >= len(slow.asked)
    slow.loses = lambda frames: False
    broker.advance(1)
    slow.settle()
    agree(slow)
    assert slow.table() == slow.replayed()
