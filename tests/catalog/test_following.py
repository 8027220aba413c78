"""A watcher misses nothing: the order of subscription, tick and snapshot, gaps, new epochs (CAT-043)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.watchrig import Broker, Watcher
from weft.base.now import SECOND
from weft.client.catalog import following
from weft.client.catalog.errors import BadRequest, CatalogError, LimitReached, NotFound
from weft.client.catalog.following import Ask, Follower, Phase, Reopen, Subscribe
from weft.cores.catalog import limits
from weft.cores.catalog.context import Context

LAB = {"tags": ["lab"]}


def live(broker: Broker, given: dict[str, Any] | None = None) -> Watcher:
    """A watcher that has its snapshot, and told of it."""
    watcher = Watcher(broker, given)
    watcher.settle()
    assert watcher.follower.is_live
    watcher.told.clear()
    watcher.asked.clear()
    return watcher


def losing(watcher: Watcher, *numbers: int) -> None:
    """Lose these of what it hears from now on, counted from 0."""
    heard = -1

    def loses(frames: tuple[bytes, ...]) -> bool:
        nonlocal heard
        heard += 1
        return heard in numbers

    watcher.loses = loses


def agree(watcher: Watcher) -> None:
    """It has what the broker has, and told of it."""
    expected = watcher.broker.table(watcher.given)
    assert expected == watcher.table()


# The beginning


@pytest.mark.proves("CAT-043")
def test_it_subscribes_to_its_topic_then_to_ticks_and_asks_only_after_a_tick() -> None:
    follower = Follower(LAB)
    assert (None, []) == (follower.deadline(), follower.actions())
    follower.opened(0)
    assert [Subscribe(b"watch/" + follower.topic[6:]), Subscribe(b"tick")] == follower.actions()
    broker = Broker()
    broker.subscribe(b"tick")
    [tick] = broker.publications()
    follower.heard((tick.topic, *tick.body), 1)
    [ask] = follower.actions()
    assert isinstance(ask, Ask)
    assert (b"dbp.watch", b'{"tags":["lab"]}') == ask.frames
    assert not follower.is_live


def check_nothing_falls_between_subscription_and_snapshot() -> None:
    """What changes while subscriptions are under way is in the snapshot, or is heard."""
    broker = Broker()
    broker.register("thermo", tags=["lab"])
    watcher = Watcher(broker, LAB, joins_late=True)
    watcher.answer()
    broker.register("hygro", tags=["lab"])
    watcher.join()
    watcher.settle()
    agree(watcher)


@pytest.mark.proves("CAT-043")
def test_nothing_falls_between_subscription_and_snapshot() -> None:
    check_nothing_falls_between_subscription_and_snapshot()


def test_canary_a_snapshot_before_the_tick_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 6."""
    opened = Follower.opened

    def hasty(self: Follower, now: int) -> None:
        opened(self, now)
        self._ask_snapshot()

    monkeypatch.setattr(Follower, "opened", hasty)
    with pytest.raises(AssertionError):
        check_nothing_falls_between_subscription_and_snapshot()


@pytest.mark.proves("CAT-043")
def test_the_snapshot_is_told_as_entering_and_events_that_it_holds_are_dropped() -> None:
    broker = Broker()
    broker.register("thermo", tags=["lab"])
    watcher = Watcher(broker, LAB)
    watcher.hear()
    broker.register("hygro", tags=["lab"])
    watcher.answer()
    broker.update("hygro", port=9)
    watcher.settle()
    assert ["enter thermo", "enter hygro", "update hygro"] == watcher.ops()
    assert [2, 2, 3] == [change.index for change in watcher.told]
    agree(watcher)


@pytest.mark.proves("CAT-043")
def test_events_that_come_before_the_snapshot_is_answered_wait_for_it() -> None:
    broker = Broker()
    broker.register("thermo")
    watcher = Watcher(broker)
    watcher.hear()
    [ask] = watcher.asks
    told = broker.ask(*ask.frames)
    broker.register("hygro")
    watcher.hear()
    assert [] == watcher.told
    watcher.follower.answered(ask.ticket, told, broker.mono)
    watcher.act()
    assert ["enter thermo", "register hygro"] == watcher.ops()
    agree(watcher)


# Events


@pytest.mark.proves("CAT-043")
def test_a_watch_of_everything_tells_each_op_as_it_happened() -> None:
    broker = Broker()
    watcher = live(broker)
    broker.register("thermo", port=9)
    broker.state("thermo", "suspect")
    broker.state("thermo", "active")
    broker.health("thermo", "warning")
    broker.update("thermo", port=10)
    broker.state("thermo", "inactive", reason="left")
    watcher.settle()
    agree(watcher)
    broker.remove("thermo")
    watcher.settle()
    ops = ["register", "suspect", "active", "health", "update", "inactive", "remove"]
    assert [f"{op} thermo" for op in ops] == watcher.ops()
    assert [9, 9, 9, 9, 10, 10, None] == [
        None if change.entry is None else change.entry.record["port"] for change in watcher.told
    ]
    assert [] == watcher.asked


@pytest.mark.proves("CAT-041", "CAT-043")
def test_a_watch_of_a_filter_tells_what_enters_and_what_leaves() -> None:
    broker = Broker()
    watcher = live(broker, LAB)
    broker.register("hygro")
    broker.register("thermo", tags=["lab"])
    broker.register("hygro", tags=["lab"])
    broker.update("thermo", tags=["x"])
    broker.update("thermo", tags=["y"])
    broker.remove("hygro")
    watcher.settle()
    assert ["enter thermo", "enter hygro", "leave thermo", "remove hygro"] == watcher.ops()
    left = watcher.told[2].entry
    assert left is not None
    assert ("x",) == left.tags
    assert ({}, []) == (watcher.table(), watcher.asked)


# Gaps


@pytest.mark.proves("CAT-043")
@pytest.mark.parametrize("given", [{}, LAB])
def test_a_lost_event_shows_with_the_next_and_is_asked_for(given: dict[str, Any]) -> None:
    broker = Broker()
    watcher = live(broker, given)
    losing(watcher, 1, 2)
    for number in range(5):
        broker.register(f"job-{number}", tags=["lab"])
    watcher.settle()
    agree(watcher)
    assert ["dbp.changes"] == watcher.asked
    op = "enter" if given else "register"
    assert [f"{op} job-{number}" for number in range(5)] == watcher.ops()


@pytest.mark.proves("CAT-042", "CAT-043")
@pytest.mark.parametrize(("given", "within_s"), [({}, 1), (LAB, 10)])
def test_a_lost_last_event_shows_with_a_tick(given: dict[str, Any], within_s: int) -> None:
    broker = Broker()
    watcher = live(broker, given)
    losing(watcher, 0)
    broker.register("thermo", tags=["lab"])
    broker.advance(within_s)
    watcher.settle()
    agree(watcher)
    assert ["dbp.changes"] == watcher.asked


@pytest.mark.proves("CAT-043")
def test_a_filter_sees_what_it_missed_as_its_topic_would_have_told() -> None:
    broker = Broker()
    broker.register("thermo", tags=["lab"])
    broker.register("baro", tags=["lab"])
    broker.register("other")
    watcher = live(broker, LAB)
    losing(watcher, *range(4))
    broker.update("thermo", tags=["x"])
    broker.update("other", port=1)
    broker.register("hygro", tags=["lab"])
    broker.update("hygro", port=1)
    broker.remove("baro")
    broker.update("hygro", port=2)
    watcher.settle()
    assert ["leave thermo", "enter hygro", "update hygro", "remove baro", "update hygro"] == watcher.ops()
    agree(watcher)


@pytest.mark.proves("CAT-043", "CAT-044")
def test_a_gap_beyond_the_ring_ends_in_a_snapshot_and_its_differences() -> None:
    broker = Broker(ring_max=3)
    for name in ("stays", "goes", "sleeps", "ails", "moves"):
        broker.register(name)
    watcher = live(broker)
    losing(watcher, *range(5))
    broker.remove("goes")
    broker.state("sleeps", "inactive")
    broker.health("ails", "warning")
    broker.update("moves", port=9)
    broker.register("comes")
    broker.update("comes", port=1)
    watcher.settle()
    assert ["dbp.changes", "dbp.watch"] == watcher.asked
    assert ["resync", "remove goes"] == watcher.ops()[:2]
    assert {"inactive sleeps", "health ails", "update moves", "enter comes"} == set(watcher.ops()[2:])
    agree(watcher)


@pytest.mark.proves("CAT-043")
def test_many_changes_are_asked_for_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_LIST_MAX", 3)
    broker = Broker()
    watcher = live(broker)
    losing(watcher, *range(8))
    for number in range(9):
        broker.register(f"job-{number}")
    watcher.settle()
    assert 3 == watcher.asked.count("dbp.changes")
    assert [f"register job-{number}" for number in range(9)] == watcher.ops()
    agree(watcher)


def test_pieces_are_asked_for_until_there_are_no_more_though_nothing_else_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CHANGES_LIST_MAX", 3)
    broker = Broker()
    watcher = live(broker)
    losing(watcher, *range(9))
    for number in range(9):
        broker.register(f"job-{number}")
    broker.advance(1)
    watcher.settle()
    assert 3 == watcher.asked.count("dbp.changes")
    agree(watcher)


def test_an_answer_that_goes_back_behind_what_is_known_changes_nothing() -> None:
    broker = Broker()
    broker.register("thermo", port=9)
    broker.update("thermo", port=10)
    watcher = live(broker)
    losing(watcher, 0)
    broker.register("hygro")
    broker.advance(1)
    watcher.hear()
    [ask] = watcher.asks
    watcher.follower.answered(ask.ticket, broker.changes(0), broker.mono)
    watcher.act()
    assert ["register hygro"] == watcher.ops()
    agree(watcher)


@pytest.mark.parametrize(("given", "asked"), [({}, "dbp.changes"), ({"name": "thermo"}, "dbp.watch")])
def test_a_filter_that_missed_far_more_than_it_is_about_takes_a_snapshot(
    given: dict[str, Any], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "CHANGES_LIST_MAX", 3)
    broker = Broker()
    watcher = live(broker, given)
    losing(watcher, 0)
    broker.register("thermo")
    for number in range(7):
        broker.register(f"job-{number}")
    broker.update("thermo", port=9)
    watcher.settle()
    assert [asked] == watcher.asked
    agree(watcher)


# Another broker


def check_a_restart_is_noticed(*, is_kept: bool) -> None:
    """After a restart, with the disk or without, the watch ends as the new broker's state."""
    broker = Broker()
    for number in range(4):
        broker.register(f"job-{number}", tags=["lab"])
    watchers = [live(broker, given) for given in ({}, LAB)]
    fresh = broker.again(is_kept=is_kept)
    for number in range(4):
        if not is_kept:
            fresh.register(f"other-{number}", tags=["lab"])
    for watcher in watchers:
        watcher.settle()
        agree(watcher)
        assert is_kept or "resync" in watcher.ops()


@pytest.mark.proves("CAT-043", "CAT-051")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_new_epoch_ends_in_a_snapshot(is_kept: bool) -> None:
    check_a_restart_is_noticed(is_kept=is_kept)


def test_canary_a_fixed_epoch_is_seen_by_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 13."""
    begin = Context.__init__

    def fixed(self: Context, *args: Any) -> None:
        begin(self, *args)
        self.epoch = "0" * 16

    monkeypatch.setattr(Context, "__init__", fixed)
    with pytest.raises(AssertionError):
        check_a_restart_is_noticed(is_kept=False)


def test_an_event_of_the_old_broker_behind_the_snapshot_of_the_new_one_does_no_harm() -> None:
    broker = Broker()
    watcher = live(broker)
    broker.register("thermo")
    old = list(watcher.inbox)
    fresh = broker.again(is_kept=True)
    watcher.settle()
    watcher.inbox += old
    watcher.settle()
    fresh.register("hygro")
    watcher.settle()
    assert watcher.follower.is_live
    agree(watcher)


@pytest.mark.proves("CAT-043")
def test_who_hears_no_tick_wants_a_fresh_socket_and_starts_anew() -> None:
    broker = Broker()
    watcher = live(broker)
    follower = watcher.follower
    assert 3 * SECOND == follower.deadline()
    follower.wake(3 * SECOND)
    assert ([Reopen()], False, None) == (follower.actions(), follower.is_live, follower.deadline())
    broker.at(4 * SECOND)
    broker.register("thermo")
    watcher.connect(broker)
    watcher.settle()
    assert ["resync", "enter thermo"] == watcher.ops()
    agree(watcher)


def test_who_missed_nothing_while_it_had_no_socket_is_told_nothing() -> None:
    broker = Broker()
    broker.register("thermo")
    watcher = live(broker)
    watcher.connect(broker)
    watcher.settle()
    assert ([], ["dbp.watch"]) == (watcher.ops(), watcher.asked)


def test_a_topic_that_is_silent_for_long_is_made_anew() -> None:
    broker = Broker()
    watcher = live(broker, LAB)
    broker.subscribe(watcher.topics[0], is_on=False)
    for _ in range(61):
        broker.advance(1)
        watcher.settle()
    assert 0 == len(broker.publishing._watching)
    broker.register("thermo", tags=["lab"])
    for _ in range(35):
        broker.advance(1)
        watcher.settle()
    agree(watcher)
    assert ["dbp.watch"] == watcher.asked


# Answers that do not come


def test_what_is_not_answered_is_asked_again_each_time_after_twice_as_long() -> None:
    broker = Broker()
    watcher = Watcher(broker)
    watcher.hear()
    follower, waits = watcher.follower, []
    now = 0
    for _ in range(8):
        [ask] = watcher.asks
        watcher.asks.clear()
        follower._tick_due = now + 60 * SECOND
        follower.failed(ask.ticket, now)
        follower.failed(ask.ticket + 1, now)
        due = follower.deadline()
        assert due is not None
        waits.append((due - now) / SECOND)
        now = due
        follower.wake(now)
        watcher.act()
    assert [0.25, 0.5, 1, 2, 4, 8, 8, 8] == waits
    watcher.answer()
    assert follower.is_live


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"Error": "too many", "code": "limit"}, LimitReached),
        ({"Error": "nobody", "warning": "inactive", "service": "dbp.watch", "state": "unknown"}, NotFound),
    ],
)
def test_a_watch_that_is_refused_at_first_is_an_error(told: dict[str, Any], error: type[CatalogError]) -> None:
    watcher = Watcher(Broker())
    watcher.hear()
    with pytest.raises(error):
        watcher.follower.answered(watcher.asks[0].ticket, told, 0)
    assert (Phase.SHUT, []) == (watcher.follower.phase, watcher.follower.actions())


def test_a_watch_that_is_refused_later_is_asked_for_again() -> None:
    watcher = live(Broker())
    watcher.connect(watcher.broker)
    watcher.hear()
    [ask] = watcher.asks
    watcher.follower.answered(ask.ticket, {"Error": "too many", "code": "limit"}, 0)
    assert (Phase.SNAPSHOT, SECOND // 4) == (watcher.follower.phase, watcher.follower.deadline())


def test_a_filter_that_is_none_is_refused_before_anything_is_said() -> None:
    with pytest.raises(BadRequest) as raised:
        Follower({"colour": "red"})
    assert "bad-argument" == raised.value.code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["epoch", "index", "records", "changes", "Error", "resync", "more", "name", "instance", "record", "op"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.sampled_from(["tick", "topic", "answer"]), JSON, st.binary(max_size=9)), max_size=8))
def test_whatever_a_broker_says_the_follower_lives_and_agrees_with_the_next_one(
    said: list[tuple[str, Any, bytes]],
) -> None:
    watcher = live(Broker())
    follower = watcher.follower
    for where, told, raw in said:
        if where == "answer":
            follower.answered(follower._ticket, told, 0)
        else:
            topic = follower.topic if where == "topic" else b"tick"
            follower.heard((topic, json.dumps(told).encode(), raw), 0)
            follower.heard((topic, raw), 0)
            follower.heard((raw,), 0)
    fresh = Broker(era=9)
    fresh.register("thermo")
    watcher.connect(fresh)
    watcher.settle()
    agree(watcher)
