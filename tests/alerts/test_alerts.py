"""The root's alerts: what fires in the fleet is known once, and whoever is to be told is told, over crashes (MET-004)."""

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.tables import pairs
from weft.base.effects import Perform, Persist, Reply, Tell
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Entry
from weft.cores.alerts.core import Alerts
from weft.cores.alerts.lane import Lane
from weft.cores.alerts.messages import (
    AlertNotSent,
    AlertsSettings,
    ForgetAlert,
    Hear,
    Notice,
    NoticeFailed,
    NoticeSent,
    SendNotice,
    SinkSettings,
)
from weft.cores.alerts.states import TABLE, Cell, On, State
from weft.wire.alerts import Alert, AlertCleared, AlertRaised, AlertsFiring, ident

pytestmark = pytest.mark.proves("MET-004", part="the root tells sinks, at least once, over crashes")

PI, MAX = b"p" * 16, b"m" * 16
WALL_MS = 1_795_000_000_000
FULL: dict[str, Any] = {
    "name": "full",
    "node": "pi",
    "metric": "disk",
    "labels": {"mount": "/"},
    "value": 93.5,
    "unit": "%",
    "when": "> 90 %",
    "limit": 90,
    "severity": "critical",
    "text": "mend it",
    "since": WALL_MS,
}
ONE = (SinkSettings("hook"),)
Told = tuple[str, str, str]
"""Sink, what, the alert's name."""


class Root:
    """An alerts core, its journal, and sinks that succeed unless they are `down`."""

    def __init__(self, sinks: tuple[SinkSettings, ...] = ONE, kept: list[Any] | None = None, **limits: int) -> None:
        self.core = Alerts(AlertsSettings(fleet="lab", sinks=sinks, **limits))
        self.journal = list(kept or [])
        self.mono = 5 * SECOND
        entries: list[Entry] = list(enumerate(self.journal, 1))
        self.core.restore(entries, self.now)
        self.down: dict[str, NoticeFailed | None] = {}
        """Sinks that do not take a notice; None: that do not answer."""
        self.sent: list[Told] = []
        self.arrived: list[Notice] = []
        self.tries: list[SendNotice] = []
        self.tried_at: list[int] = []
        self.events: list[Any] = []
        self.answers: list[tuple[int, Any]] = []

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL_MS * MILLISECOND + self.mono)

    def hear(self, told: Any, origin: bytes = PI) -> None:
        key = {AlertRaised: "alert.raised", AlertCleared: "alert.cleared", AlertsFiring: "alert.firing"}[type(told)]  # type: ignore[index]  # classes of structs
        self.order(Hear(origin, key, msgspec.json.encode(told)))

    def order(self, order: Any) -> None:
        self.core.command(order, self.now)
        self.settle()

    def settle(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Persist):
                self.journal += effect.records
            elif isinstance(effect, Tell):
                self.events.append(effect.event)
            elif isinstance(effect, Reply):
                self.answers.append((effect.ticket, effect.answer))
            elif isinstance(effect, Perform):
                self._try(effect.work)

    def _try(self, work: SendNotice) -> None:
        self.tries.append(work)
        self.tried_at.append(self.mono)
        notice = work.notice
        if notice.sink not in self.down:
            self.arrived.append(notice)
            self.sent.append((notice.sink, notice.what, notice.alert.name))
            self.order(NoticeSent(notice.sink, notice.number, work.attempt))
        elif (failed := self.down[notice.sink]) is not None:
            self.order(msgspec.structs.replace(failed, number=notice.number, attempt=work.attempt))

    def run(self, seconds: float) -> None:
        end = self.mono + round(seconds * SECOND)
        while (due := self.core.deadline()) is not None and due <= end:
            self.mono = max(self.mono, due)
            self.core.wake(self.now)
            self.settle()
        self.mono = end

    def restarted(self, sinks: tuple[SinkSettings, ...] = ONE) -> "Root":
        """After a crash, from its whole journal."""
        root = Root(sinks, self.journal)
        root.mono = self.mono
        return root


def raised(**other: Any) -> AlertRaised:
    return AlertRaised(**(FULL | other))


def cleared(why: str = "back", **other: Any) -> AlertCleared:
    return AlertCleared(**(FULL | other), at=WALL_MS + 60_000, why=why)


def refusing(sink: str = "hook", *, is_final: bool = False) -> dict[str, NoticeFailed | None]:
    return {sink: NoticeFailed(sink, 0, 0, "connection refused", is_final=is_final)}


def test_what_is_raised_and_cleared_is_told_once_each_however_often_it_is_heard() -> None:
    root = Root()
    for told in (raised(), raised(), cleared()):
        root.hear(told)
    assert [("hook", "raised", "full"), ("hook", "cleared", "full")] == root.sent
    assert {} == root.core.active


def test_of_the_same_alert_each_series_and_node_is_one() -> None:
    root = Root()
    root.hear(raised())
    root.hear(raised(labels={"mount": "/data"}))
    root.hear(raised(), origin=MAX)
    assert 3 == len(root.core.active) == len(root.sent)
    assert 3 == len({work.notice.ident: None for work in root.tries})


def test_an_alert_that_begins_anew_is_another_one_and_an_old_end_does_not_end_it() -> None:
    root = Root()
    root.hear(raised())
    root.hear(raised(since=WALL_MS + 5))
    root.hear(cleared())
    assert ["raised", "raised"] == [what for _, what, _ in root.sent]
    assert [WALL_MS + 5] == [alert.since for alert in root.core.active.values()]


def test_a_sink_hears_only_what_is_grave_enough() -> None:
    root = Root((SinkSettings("hook"), SinkSettings("pager", "critical")))
    root.hear(raised(severity="warning"))
    root.hear(raised(name="worse"))
    expected = [("hook", "raised", "full"), ("hook", "raised", "worse"), ("pager", "raised", "worse")]
    assert expected == sorted(root.sent)


def test_a_notice_is_durable_before_it_is_tried() -> None:
    core = Alerts(AlertsSettings(sinks=ONE))
    core.command(Hear(PI, "alert.raised", msgspec.json.encode(raised())), Now(1, 1))
    assert [Persist, Perform] == [type(effect) for effect in core.effects()]


def test_what_was_not_sent_waits_is_said_once_and_goes_in_order() -> None:
    root = Root()
    root.down = refusing()
    root.hear(raised())
    root.hear(cleared())
    root.run(600)
    assert [] == root.sent
    assert [AlertNotSent("hook", "full", "pi", "raised", "connection refused", False, 1)] == root.events
    assert ["raised"] * len(root.tries) == [work.notice.what for work in root.tries]
    root.down = {}
    root.run(600)
    assert [("hook", "raised", "full"), ("hook", "cleared", "full")] == root.sent


def test_tries_come_later_each_time_up_to_ten_minutes() -> None:
    root = Root()
    root.down = refusing()
    root.hear(raised())
    root.run(2_500)
    waits = [(after - before) // SECOND for before, after in pairwise(root.tried_at)]
    assert [5, 10, 20, 40, 80, 160, 320, 600, 600, 600] == waits


def test_a_sink_that_is_down_holds_back_no_other() -> None:
    root = Root((SinkSettings("hook"), SinkSettings("mail")))
    root.down = refusing()
    root.hear(raised())
    assert [("mail", "raised", "full")] == root.sent


def test_a_root_that_died_before_it_sent_sends_after_its_start() -> None:
    root = Root()
    root.down = {"hook": None}
    root.hear(raised())
    assert 1 == len(root.tries)
    again = root.restarted()
    again.run(1)
    assert [("hook", "raised", "full")] == again.sent
    assert root.tries[0].notice == again.tries[0].notice, "by its id a receiver knows it"
    third = again.restarted()
    third.run(1)
    assert ([], 1) == (third.tries, len(third.core.active))


def test_an_answer_that_does_not_come_is_a_failure_and_a_late_one_is_stale() -> None:
    root = Root()
    root.down = {"hook": None}
    root.hear(raised())
    root.run(70)
    assert 2 == len(root.tries)
    first = root.tries[0]
    root.order(NoticeSent("hook", first.notice.number, first.attempt))
    assert (1, 1) == (root.core.counts["stale"], len(root.core.lanes["hook"].notices))


def test_what_the_receiver_refuses_for_good_is_given_up_and_said_and_the_next_goes() -> None:
    root = Root()
    root.down = refusing(is_final=True)
    root.hear(raised())
    root.down = {}
    root.hear(raised(name="other"))
    assert [True] == [event.is_given_up for event in root.events]
    assert [("hook", "raised", "other")] == root.sent
    again = root.restarted()
    again.run(1)
    assert [] == again.tries


def test_after_a_day_it_is_given_up_and_said() -> None:
    root = Root()
    root.down = refusing()
    root.hear(raised())
    root.run(25 * 3_600)
    assert (None, True) == (root.core.deadline(), root.events[-1].is_given_up)


def test_more_than_fit_give_up_the_oldest_that_is_not_under_way() -> None:
    root = Root(notices_max=3)
    root.down = {"hook": None}
    for number in range(5):
        root.hear(raised(name=f"a{number}"))
    assert ["a0", "a3", "a4"] == [notice.alert.name for notice in root.core.lanes["hook"].notices]
    assert [("a1", True)] == [(event.alert, event.is_given_up) for event in root.events]
    assert 2 == root.core.counts["given_up"]
    again = root.restarted()
    again.run(1)
    assert ["a0", "a3", "a4"] == [name for _, _, name in again.sent]


def test_a_sink_that_the_file_does_not_name_any_more_is_given_up_and_said() -> None:
    root = Root()
    root.down = {"hook": None}
    root.hear(raised())
    again = root.restarted(sinks=())
    again.run(1)
    assert [("hook", True)] == [(event.sink, event.is_given_up) for event in again.events]
    third = again.restarted()
    third.run(1)
    assert [] == third.sent


def test_a_new_root_hears_what_fires_and_whoever_was_told_is_told_the_end() -> None:
    root = Root()
    root.hear(AlertsFiring((Alert(**FULL),)))
    root.hear(AlertsFiring(()))
    assert [("hook", "raised", "full"), ("hook", "cleared", "full")] == root.sent
    root.hear(cleared(name="older"))
    assert ("hook", "cleared", "older") == root.sent[-1], "it began under the root before"


def test_what_no_list_has_room_for_is_told_all_the_same() -> None:
    root = Root(active_max=1)
    root.hear(raised())
    root.hear(raised(name="more"))
    assert (1, 2, 1) == (len(root.core.active), len(root.sent), root.core.counts["unlisted"])


def test_an_alert_of_a_node_that_will_not_come_back_is_forgotten_by_hand() -> None:
    root = Root()
    root.hear(raised())
    root.order(ForgetAlert(1, "no such id"))
    root.order(ForgetAlert(2, ident(PI, Alert(**FULL))))
    assert [(1, {"forgotten": 0}), (2, {"forgotten": 1})] == root.answers
    assert (["raised", "cleared"], {}) == ([what for _, what, _ in root.sent], root.restarted().core.active)


def test_what_cannot_be_read_is_counted() -> None:
    root = Root()
    root.order(Hear(PI, "alert.raised", b'{"name":'))
    assert ([], 1) == (root.sent, root.core.counts["unreadable"])


@pytest.mark.parametrize("field", ["value", "limit", "since"])
@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1, 10**30, 10**400])
def test_a_number_that_no_journal_holds_is_counted(field: str, number: int) -> None:
    """An alert with such a number ended the root of whoever told it, at each start again."""
    root = Root()
    for key, alert in (
        ("alert.raised", FULL),
        ("alert.cleared", {**FULL, "at": WALL_MS, "why": "back"}),
        ("alert.firing", {"alerts": [FULL]}),
    ):
        told = json.loads(json.dumps(alert))
        (told["alerts"][0] if "alerts" in told else told)[field] = number
        root.order(Hear(PI, key, json.dumps(told).encode()))
    assert ({"unreadable": 3}, []) == (dict(root.core.counts), root.sent)


def test_ids_are_of_node_condition_series_and_beginning() -> None:
    alert = Alert(**FULL)
    others = [msgspec.structs.replace(alert, since=1), msgspec.structs.replace(alert, name="x")]
    others += [msgspec.structs.replace(alert, labels={})]
    assert 5 == len({ident(PI, each): None for each in (alert, *others)} | {ident(MAX, alert): None})
    assert ident(PI, alert) == ident(PI, msgspec.structs.replace(alert, value=1))


STEPS = st.sampled_from(["raise", "clear", "crash", "wait", "down", "up"])


@given(st.lists(STEPS, max_size=25))
def test_over_any_story_every_notice_arrives_and_in_order(story: list[str]) -> None:
    root, arrived, fires = Root(), [], False
    said: list[tuple[str, int]] = []
    for number, step in enumerate(story):
        if step == "raise" and not fires:
            said.append(("raised", number))
            root.hear(raised(since=WALL_MS + number))
        elif step == "clear" and fires:
            said.append(("cleared", said[-1][1]))
            root.hear(cleared(since=WALL_MS + said[-1][1]))
        elif step == "crash":
            arrived += root.arrived
            down, root = root.down, root.restarted()
            root.down = down
        elif step == "wait":
            root.run(30)
        elif step in ("down", "up"):
            root.down = refusing() if step == "down" else {}
        fires = bool(said) and said[-1][0] == "raised"
    root.down = {}
    root.run(3_600)
    got = [(notice.what, notice.alert.since - WALL_MS) for notice in (*arrived, *root.arrived)]
    assert said == list(dict.fromkeys(got))


@pytest.mark.parametrize("state, on, cell", list(pairs(TABLE)), ids=str)
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    root = Root()
    lane = root.core.lanes["hook"]
    root.down = {"hook": None}
    root.hear(raised())
    lane.state = state
    lane._turn(on, "why", root.now)
    assert (cell.then if cell else state) is lane.state
    assert isinstance(lane, Lane)
