"""Alerts are judged where they are measured: raised once, cleared once, over restarts and changed plans (MET-004)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import World, metrics
from tests.tables.tables import pairs
from weft.base.records import CoreRecord
from weft.cores.kit.outbox import Outbox
from weft.cores.measurement.alarms import Alarms, Seen
from weft.cores.measurement.alarmstates import TABLE, Alarm, Cell, Heard
from weft.cores.measurement.alertsettings import AlertSpec, parse_alerts
from weft.cores.measurement.lines import Line
from weft.cores.measurement.messages import (
    AlertCleared,
    AlertRaised,
    AlertsFiring,
    KnowRoot,
    MeasurementSettings,
    MetricSpec,
    PlanMetrics,
    Reading,
    TellAlerts,
    Verdict,
)
from weft.wire.alerts import Alert
from weft.wire.samples import Series

pytestmark = pytest.mark.proves("MET-004", part="judged at the node that measures")

DISK = metrics(disk={"detail": "DISK_PERCENT", "rate": "10s"})
ROOT, OTHER = b"r" * 16, b"s" * 16


def alerts(**tables: dict[str, Any]) -> tuple[AlertSpec, ...]:
    """Alerts about `disk` that have no mistake."""
    specs, mistakes = parse_alerts(
        {name: {"metric": "disk", **table} for name, table in tables.items()}, {"disk": "DISK_PERCENT"}
    )
    assert [] == mistakes
    return tuple(specs)


FULL = alerts(full={"when": "> 90 %", "clear": "85 %", "for": "20s", "severity": "critical", "text": "mend it"})
AT_ONCE = alerts(full={"when": "> 90 %", "clear": "85 %"})


class Disk(World):
    """A machine whose disks are as full as a test says; `None`: the disk is not mounted."""

    def __init__(self, specs: tuple[AlertSpec, ...] = FULL, **how: Any) -> None:
        settings = MeasurementSettings(
            metrics=DISK, alerts=specs, node_name="pi", is_followed=how.pop("follows", False)
        )
        super().__init__(settings=settings, **how)
        self.full: dict[str, float] = {"/": 50.0}
        self.verdict = Verdict.READ
        self.answer = self._disks

    def _disks(self, spec: MetricSpec, at_ms: int) -> Reading:
        samples = tuple(((("mount", mount),), value, None) for mount, value in self.full.items())
        return Reading(spec.name, at_ms, samples if self.verdict is Verdict.READ else (), self.verdict, "no answer")

    def go(self, *values: float) -> list[str]:
        """Let each be measured at one tick; the alerts that were told meanwhile, as `+name` and `-name`."""
        before = len(self.events)
        for value in values:
            self.full["/"] = value
            self.run(10)
        return self.since(before)

    def since(self, index: int) -> list[str]:
        signs: dict[Any, str] = {AlertRaised: "+", AlertCleared: "-"}
        return [signs[type(e)] + e.name for e in self.events[index:] if type(e) in signs]

    def restarted(self, specs: tuple[AlertSpec, ...] = FULL, **how: Any) -> "Disk":
        """The same machine after a crash, from its whole journal."""
        fresh = Disk(specs, era=self.core.numbering.era + 1, kept=self.journal, **how)
        fresh.mono, fresh.full = self.mono, dict(self.full)
        return fresh


def test_it_fires_when_the_condition_has_held_for_its_span_and_ends_at_clear() -> None:
    world = Disk()
    assert [] == world.go(50, 91, 92)
    assert ["+full"] == world.go(93)
    assert [] == world.go(95, 88, 86)
    assert ["-full"] == world.go(85)
    raised, cleared = world.events
    expected = AlertRaised(
        name="full",
        node="pi",
        metric="disk",
        labels={"mount": "/"},
        value=93,
        unit="%",
        when="> 90 %",
        limit=90,
        severity="critical",
        text="mend it",
        since=raised.since,
    )
    assert expected == raised
    assert (85, "back", raised.since, 40_000) == (cleared.value, cleared.why, cleared.since, cleared.at - cleared.since)


def test_a_break_in_the_span_begins_it_anew() -> None:
    assert [] == Disk().go(91, 92, 89, 91, 92, 90, 91, 92)


def test_the_limit_itself_is_not_beyond_it() -> None:
    assert [] == Disk(AT_ONCE).go(90, 90)
    assert ["+full"] == Disk(AT_ONCE).go(90.1)
    assert ["+full", "-full"] == Disk(alerts(full={"when": "< 5"})).go(5, 4.9, 5)


def test_each_series_has_its_own_alert_and_where_chooses_some() -> None:
    world = Disk(alerts(any={"when": "> 90"}, root={"when": "> 90", "where": {"mount": "/"}}))
    world.full["/data"] = 99.0
    assert ["+any"] == world.go(50)
    assert ["+any", "+root"] == world.go(95)
    assert [{"mount": "/data"}, {"mount": "/"}, {"mount": "/"}] == [event.labels for event in world.events]


def test_a_series_that_is_gone_ends_its_alert_and_a_metric_that_fails_does_not() -> None:
    world = Disk(AT_ONCE)
    world.go(95)
    world.verdict = Verdict.FAILED
    assert [] == world.go(10)
    world.verdict = Verdict.READ
    world.full = {"/data": 1.0}
    world.run(10)
    assert "the series is not there any more" == world.events[-1].why
    world.full = {"/": 95.0}
    world.run(10)
    world.verdict = Verdict.UNSUPPORTED
    world.run(10)
    assert ["+full", "-full", "+full", "-full"] == world.since(0)


@pytest.mark.parametrize(
    "plan, why",
    [
        (PlanMetrics(DISK, 2), "the alert is not in the configuration any more"),
        (
            PlanMetrics(DISK, 2, alerts(full={"when": "> 90", "where": {"mount": "/x"}})),
            "the alert is not in the configuration any more",
        ),
        (PlanMetrics((), 2), "the metric is not measured any more"),
        (PlanMetrics(DISK, 2, alerts(full={"when": "> 99"})), "back"),
        (PlanMetrics(DISK, 2, AT_ONCE), None),
    ],
)
def test_what_the_plan_has_no_place_for_ends(plan: PlanMetrics, why: str | None) -> None:
    world = Disk(AT_ONCE)
    world.go(95)
    world.order(plan)
    world.run(10)
    assert ([] if why is None else [why]) == [event.why for event in world.told(AlertCleared)]


def test_a_start_neither_repeats_an_alert_nor_forgets_to_clear_it() -> None:
    world = Disk()
    world.go(91, 92, 93)
    again = world.restarted()
    assert [] == again.go(94, 95, 96, 97)
    assert ["-full"] == again.go(80)
    assert world.events[0].since == again.events[0].since
    assert [] == again.restarted().go(80, 91)


def test_a_start_whose_file_has_no_such_alert_ends_it() -> None:
    world = Disk()
    world.go(91, 92, 93)
    assert ["-full"] == world.restarted(()).go(94)


def test_a_node_that_follows_waits_for_the_configuration_before_it_ends_an_alert() -> None:
    world = Disk()
    world.go(91, 92, 93)
    again = world.restarted((), follows=True)
    assert [] == again.go(94)
    again.order(PlanMetrics(DISK, 7, FULL))
    assert [] == again.go(95)
    again.order(PlanMetrics(DISK, 8))
    assert ["-full"] == again.since(0)


def test_what_fires_is_durable_before_it_is_told() -> None:
    world = Disk(AT_ONCE)
    world.full["/"] = 95.0
    at_event: list[int] = []
    hear = world._hear

    def note(event: Any) -> None:
        if isinstance(event, AlertRaised):
            at_event.append(len([r for r in world.journal if isinstance(r, CoreRecord) and r.kind == 2]))
        hear(event)

    world._hear = note  # type: ignore[method-assign]  # watched
    world.run(10)
    assert [1] == at_event


def test_a_new_root_is_told_what_fires_once() -> None:
    world = Disk(AT_ONCE)
    world.order(KnowRoot(ROOT, 1))
    world.order(KnowRoot(OTHER, 2))
    assert [] == world.events, "nothing has ever fired, so nobody can have missed it"
    world.go(95)
    world.order(KnowRoot(OTHER, 2))
    assert [] == world.told(AlertsFiring)
    world.order(KnowRoot(ROOT, 3))
    raised = world.told(AlertRaised)[0]
    assert [AlertsFiring((Alert(**msgspec.structs.asdict(raised)),))] == world.told(AlertsFiring)
    again = world.restarted(AT_ONCE)
    again.order(KnowRoot(ROOT, 3))
    assert [] == again.told(AlertsFiring)
    again.go(10)
    again.order(KnowRoot(OTHER, 4))
    assert [AlertsFiring(())] == again.told(AlertsFiring), "it was told before, and fires no more"


def test_after_lost_events_everything_is_told_again() -> None:
    world = Disk(AT_ONCE)
    world.go(95)
    world.order(TellAlerts())
    assert 1 == len(world.told(AlertsFiring)[0].alerts)


def test_more_alerts_than_fit_are_counted() -> None:
    world = Disk(AT_ONCE)
    world.full = {f"/{number}": 95.0 for number in range(259)}
    world.run(10)
    assert 256 == len(world.told(AlertRaised))
    assert 3 <= world.core.alarms.refused


@given(st.lists(st.sampled_from([80.0, 85.0, 88.0, 90.0, 95.0]) | st.just("crash"), max_size=25))
def test_over_any_values_and_crashes_raised_and_cleared_take_turns(story: list[Any]) -> None:
    world, told = Disk(alerts(full={"when": "> 90", "clear": "85", "for": "10s"})), []
    for what in story:
        if what == "crash":
            world = world.restarted(alerts(full={"when": "> 90", "clear": "85", "for": "10s"}))
        else:
            told += world.go(what)
    assert told == ["+full", "-full"] * (len(told) // 2) + ["+full"] * (len(told) % 2)
    firing = [alert.name for alert in world.core.alarms.firing.values()]
    assert ["full"] * (len(told) % 2) == firing


def test_condensed_it_is_the_same() -> None:
    world = Disk(AT_ONCE)
    world.go(95)
    other = Alarms("pi", Outbox())
    other.restore(enumerate(world.core.alarms.condense(), 1))
    assert world.core.alarms.firing == other.firing
    assert list(world.core.alarms.condense()) == list(other.condense())


@pytest.mark.parametrize("state, heard, cell", list(pairs(TABLE)), ids=str)
def test_every_state_with_every_input(state: Alarm, heard: Heard, cell: Cell | None) -> None:
    outbox, spec = Outbox(), AT_ONCE[0]
    alarms, line = Alarms("pi", outbox), Line(Series("disk", "DISK_PERCENT", "basic", {"mount": "/"}))
    seen = Seen(("full", (("mount", "/"),)), spec, line, 95, 1)
    if state is Alarm.PENDING:
        alarms.await_span(seen, 0)
    if state is Alarm.FIRING:
        alarms.raise_alert(seen, 0)
    outbox.take()
    alarms._turn(heard, seen, 1)
    assert (cell.then if cell else state) is alarms.state(seen.key)
    assert bool(cell and cell.do in ("raise_alert", "clear_alert")) == bool(outbox.take())


@pytest.mark.parametrize(
    "table, code",
    [
        ({"metric": "disc", "when": "> 9"}, "E07 alert.a.metric"),
        ({"when": "> 9"}, "E03 alert.a.metric"),
        ({"metric": "disk"}, "E03 alert.a.when"),
        ({"metric": "disk", "when": "+60s"}, "E11 alert.a.when"),
        ({"metric": "disk", "when": "> 9 GiB"}, "E11 alert.a.when"),
        ({"metric": "disk", "when": "> 1e300"}, "E11 alert.a.when"),
        ({"metric": "disk", "when": "> 90", "clear": "95 %"}, "E11 alert.a.clear"),
        ({"metric": "disk", "when": "< 5", "clear": 3}, "E11 alert.a.clear"),
        ({"metric": "disk", "when": "> 9", "for": "8d"}, "E04 alert.a.for"),
        ({"metric": "disk", "when": "> 9", "severity": "loud"}, "E04 alert.a.severity"),
        ({"metric": "disk", "when": "> 9", "where": {"disk": "sda"}}, "E04 alert.a.where.disk"),
        ({"metric": "disk", "when": "> 9", "where": "mount"}, "E04 alert.a.where"),
        ({"metric": "disk", "when": "> 9", "text": "x" * 201}, "E04 alert.a.text"),
        ({"metric": "disk", "when": "> 9", "whne": 1}, "E02 alert.a.whne"),
    ],
)
@pytest.mark.proves("MET-004", part="mistakes in an alert are refused with a code")
def test_mistakes_have_codes(table: dict[str, Any], code: str) -> None:
    _, mistakes = parse_alerts({"a": table}, {"disk": "DISK_PERCENT"})
    assert [code] == [line.partition(": ")[0] for line in mistakes]
