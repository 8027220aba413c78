"""What goes wrong with one metric stays with it; clocks that step are noticed; limits hold (MEA-002, 005, 006)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import World, metrics, records
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import (
    ClockStepped,
    Measured,
    MeasurementSettings,
    MetricFailed,
    MetricSpec,
    MetricUnsupported,
    Place,
    PlanMetrics,
    Reading,
    Verdict,
)
from weft.cores.measurement.states import TABLE, On, Phase, State

TWO = metrics(good={"detail": "CPU", "rate": "1s"}, bad={"detail": "DISK_USE", "rate": "1s", "timeout": "300ms"})


@pytest.mark.proves("MEA-006")
def test_a_metric_that_hangs_delays_no_other_and_is_told_once() -> None:
    healthy, sick = World(TWO), World(TWO)
    sick.hanging["bad"] = None
    for world in (healthy, sick):
        world.run(10.5)
    assert healthy.ticks("good") == sick.ticks("good")
    assert [t for t in healthy.taken if t[0] == "good"] == [t for t in sick.taken if t[0] == "good"]
    assert [MetricFailed("bad", "no answer within 300 ms")] == sick.events
    assert 1 == len(sick.ticks("bad")), "it must never be measured twice at once"
    assert len(sick.ticks("good")) - 1 == sick.core.counters.skipped_ticks


def test_a_metric_that_answers_late_is_taken_and_goes_on() -> None:
    world = World(TWO)
    world.hanging["bad"] = None
    world.run(0.5)
    (_, work), *_ = [(at, work) for at, work in world.works if work.specs[0].name == "bad"]
    del world.hanging["bad"]
    world.measure(work)
    world.run(3)
    assert 4 == len(world.ticks("bad"))
    assert sorted(world.taken) == sorted([*world.numbered, *[t for t in world.taken if t not in world.numbered]])
    assert 4 == len([name for name, _, _ in world.taken if name == "bad"])


def test_what_may_hang_is_asked_for_alone() -> None:
    tables = {name: {"detail": name, "rate": "1s"} for name in ("CPU", "MEMORY", "PROC_MEM", "PROC_CPU", "TEMP", "FAN")}
    world = World(metrics(**tables))
    world.run(0.1)
    asked = [(work.place, [spec.name for spec in work.specs]) for _, work in world.works]
    assert [
        (Place.INLINE, ["CPU", "MEMORY"]),
        (Place.PROCESSES, ["PROC_CPU", "PROC_MEM"]),
        (Place.APART, ["FAN"]),
        (Place.APART, ["TEMP"]),
    ] == asked


@pytest.mark.proves("MEA-006")
def test_a_failure_is_told_once_per_reason_until_it_succeeds() -> None:
    world = World(TWO)
    whys = iter(["x", "x", "y", "", "y", "y"] + [""] * 99)

    def answer(spec: MetricSpec, at_ms: int) -> Reading:
        why = next(whys) if spec.name == "bad" else ""
        return Reading(spec.name, at_ms, verdict=Verdict.FAILED, why=why) if why else world.count(spec, at_ms)

    world.answer = answer
    world.run(8)
    assert [MetricFailed("bad", why) for why in ("x", "y", "y")] == world.events
    assert 5 == world.core.counters.failed


@pytest.mark.proves("MEA-002")
def test_a_missing_source_is_told_once_and_looked_for_again() -> None:
    world = World(TWO)
    left = iter(range(5))

    def answer(spec: MetricSpec, at_ms: int) -> Reading:
        if spec.name == "bad" and next(left, None) is not None:
            return Reading(spec.name, at_ms, verdict=Verdict.UNSUPPORTED, why="no driver")
        return world.count(spec, at_ms)

    world.answer = answer
    world.run(10)
    assert [MetricUnsupported("bad", "no driver")] == world.events
    assert [name for name, _, _ in world.taken].count("bad") in (5, 6)


def test_an_answer_to_an_older_plan_changes_nothing() -> None:
    world = World(TWO)
    world.hanging |= {"bad": None, "good": None}
    world.run(0.1)
    old = world.works[0][1]
    world.order(PlanMetrics(metrics(good={"detail": "MEMORY", "rate": "1s"})))
    world.order(Measured((Reading("good", 5, (((), 1, None),)), Reading("bad", 5), Reading("x", 5)), old.number))
    world.order(Measured((Reading("good", 5),), 99))
    assert (4, 0) == (world.core.counters.stale, world.core.counters.readings)


def test_only_data_is_heard_by_this_core() -> None:
    with pytest.raises(PeerError):
        World(TWO).core.receive(b"", Source("up", b""), World(TWO).now)


@pytest.mark.proves("MEA-005")
@pytest.mark.parametrize("by_s", [-3_600, 3_600, 2, -2, 365 * 86_400, -365 * 86_400])
def test_a_step_of_the_wall_clock_is_told_and_marks_the_next_batch(by_s: int) -> None:
    world = World(TWO)
    world.run(3.5)
    world.wall_ahead += by_s * SECOND
    world.run(3)
    assert [ClockStepped(by_s * SECOND)] == world.events
    marks = [record.attributes.get("step") for record in records(world.journal)]
    assert [by_s * 1_000] == [mark for mark in marks if mark is not None]
    stepped_at = world.mono - 3 * SECOND + world.wall_ahead - by_s * SECOND  # by the clock before
    first = marks.index(by_s * 1_000)
    old, new = records(world.journal)[:first], records(world.journal)[first:]
    assert all(0 <= stepped_at - record.at < 4 * SECOND for record in old)
    assert all(0 <= record.at - by_s * SECOND - stepped_at < 4 * SECOND for record in new)
    assert world.taken[: len(world.numbered)] == world.numbered


@pytest.mark.proves("MEA-005")
def test_the_mark_waits_for_a_batch_that_the_chain_lets_pass() -> None:
    world = World(TWO)
    world.run(2)
    world.wall_ahead += 10 * SECOND
    world.let_pass = lambda batch: None
    world.run(3)
    world.let_pass = lambda batch: batch
    world.run(3)
    assert [10_000] == [record.attributes["step"] for record in records(world.journal) if "step" in record.attributes]


@given(st.integers(-50_000_000, 50_000_000), st.lists(st.integers(1, 60_000), min_size=1, max_size=30))
def test_a_clock_that_drifts_by_5_percent_never_steps(drift_ppb: int, gaps_ms: list[int]) -> None:
    world = World(TWO)
    world.wake()
    for gap_ms in gaps_ms:
        world.sleep(gap_ms / 1_000)
        world.wall_ahead += gap_ms * drift_ppb // 1_000
        world.wake()
    assert [] == world.told(ClockStepped)


def test_a_suspended_machine_is_a_step() -> None:
    world = World(TWO)
    world.run(1.5)
    world.wall_ahead += 3_000 * SECOND  # the monotonic clock slept, too
    world.run(1.5)
    assert [ClockStepped(3_000 * SECOND)] == world.events


def test_series_beyond_the_limit_are_refused_with_one_event() -> None:
    settings = MeasurementSettings(metrics=metrics(m={"detail": "CPU", "rate": "1s"}), series_max=5)
    world = World(settings=settings)
    world.answer = lambda spec, at_ms: Reading(spec.name, at_ms, tuple((((("n", str(n)),)), n, None) for n in range(9)))
    world.run(4)
    assert [MetricFailed("m", "more than 5 series on this node")] == world.events
    assert {0, 1, 2, 3, 4} == {value for _, _, value in world.numbered}


@pytest.mark.parametrize(
    "labels", [tuple((str(n), "") for n in range(16)), (("x" * 65, ""),), (("x", "ä" * 129),), (("x", "y" * 257),)]
)
def test_labels_beyond_the_limits_are_refused_with_one_event(labels: tuple[tuple[str, str], ...]) -> None:
    world = World(metrics(m={"detail": "CPU", "rate": "1s"}))
    world.answer = lambda spec, at_ms: Reading(spec.name, at_ms, ((labels, 1, None), ((), 2, None)))
    world.run(4)
    assert 1 == len(world.told(MetricFailed))
    assert {2} == {value for _, _, value in world.numbered}


def test_lines_of_what_has_vanished_are_forgotten() -> None:
    world = World(metrics(m={"detail": "PROC_MEM", "per": "name", "rate": "100ms"}))
    numbers = iter(range(1 << 30))
    world.answer = lambda spec, at_ms: Reading(
        spec.name, at_ms, tuple(((("process", str(next(numbers))),), 1, None) for _ in range(10))
    )
    world.run(60)
    assert len(world.core.tasks["m"].lines) <= 2 * 10 + 64
    assert len(world.numbered) >= 5_900


def test_values_are_calculated_for_whoever_watches() -> None:
    world = World(metrics(c={"detail": "CPU", "rate": "1s"}, m={"detail": "MEMORY", "rate": "1s"}))
    world.answer = lambda spec, at_ms: Reading(spec.name, at_ms, (((), 3 * at_ms // 4, at_ms),))
    world.run(3.5)
    found = {series.config_name: (at, value.result) for series, at, value in world.core.values()}
    at_ms = max(at for at, _ in found.values())
    assert {"c": (at_ms, 75.0), "m": (at_ms, 3 * at_ms // 4)} == found


def test_table_names_only_what_the_core_can_do_and_covers_every_phase() -> None:
    assert [] == [cell.do for cell in TABLE.values() if not callable(getattr(Measurement, cell.do, None))]
    assert set(Phase) == {phase for phase, _ in TABLE} == {cell.then for cell in TABLE.values()}
    assert set(On) == {on for _, on in TABLE}


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("on", list(On))
def test_every_input_in_every_phase_is_a_row_or_is_counted(phase: Phase, on: On) -> None:
    world = World(metrics(m={"detail": "CPU", "rate": "on-demand"}))
    world.wake()
    task = world.core.tasks["m"]
    task.phase = phase
    heard = "late" if on is On.TIMED_OUT else Reading("m", 5, (((), 1, None),), why="why")
    went_on = world.core._turn(task, on, heard)
    cell = TABLE.get((phase, on))
    assert (cell.then if cell else phase) == task.phase
    assert went_on == (cell is not None and cell.then is not phase)
    assert (cell is None) == (world.core.counters.stale == 1)


def test_core_is_planned_until_its_first_wake() -> None:
    world = World(TWO)
    assert (State.PLANNED, 0) == (world.core.state, world.core.deadline())
    world.wake()
    assert State.RUNNING is world.core.state
    assert "measurement" == world.core.name
