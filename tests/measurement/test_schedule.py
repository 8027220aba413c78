"""Ticks: the first at once, then a grid by the node's UUID; no burst, no drift, no tick twice (MEA-004, CFG-051)."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import NODE, World, metrics
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.settings import DAY
from weft.cores.measurement.messages import MeasureNow, PlanMetrics, Stop
from weft.cores.measurement.schedule import next_tick, origin_at, phase_of

SPANS = st.integers(1, DAY)


@given(st.integers(0, 1 << 60), SPANS, st.integers(-(1 << 60), 1 << 60))
def test_next_tick_is_the_first_on_the_grid(after: int, span: int, origin: int) -> None:
    tick = next_tick(after, span, origin)
    assert after < tick <= after + span
    assert 0 == (tick - origin) % span


@pytest.mark.proves("MEA-004")
def test_first_sample_is_taken_at_once_and_the_others_at_the_phase_of_the_node() -> None:
    world = World(metrics(cpu={"detail": "CPU", "rate": "1s"}))
    start = world.mono
    world.run(5)
    first, *others = world.ticks("cpu")
    assert start == first
    assert 5 == len(others)
    wall = [tick + world.wall_ahead for tick in others]
    assert [phase_of(NODE) % SECOND] * 5 == [instant % SECOND for instant in wall]
    assert [SECOND] * 4 == [b - a for a, b in pairwise(others)]


@pytest.mark.proves("MEA-004")
def test_two_nodes_beat_at_different_instants_and_phase_0_aligns_them() -> None:
    def tick(node: bytes, **table: Any) -> int:
        world = World(metrics(cpu={"detail": "CPU", "rate": "10s", **table}), node=node)
        world.run(20)
        return (world.ticks("cpu")[1] + world.wall_ahead) % (10 * SECOND)

    other = bytes(reversed(NODE))
    assert tick(NODE) != tick(other)
    assert (0, 0) == (tick(NODE, phase=0), tick(other, phase=0))


def test_metrics_of_multiple_rates_meet_in_one_order_to_the_shell() -> None:
    world = World(metrics(a={"detail": "CPU", "rate": "1s"}, b={"detail": "MEMORY", "rate": "2s"}))
    world.run(10)
    assert set(world.ticks("b")) <= set(world.ticks("a"))
    assert len(world.works) == len(world.ticks("a"))


@pytest.mark.proves("MEA-004")
@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=60), st.sampled_from([100, 250, 1_000, 7_000]))
def test_however_late_the_wakes_ticks_are_skipped_and_never_made_up(gaps_ms: list[int], rate_ms: int) -> None:
    world = World(metrics(cpu={"detail": "CPU", "rate": f"{rate_ms}ms"}))
    origin = origin_at(world.now, phase_of(NODE))
    world.wake()
    ticks = {world.mono}
    for gap_ms in gaps_ms:
        before = world.mono
        world.sleep(gap_ms / 1_000)
        world.wake()
        if next_tick(before, rate_ms * MILLISECOND, origin) <= world.mono:
            ticks.add(world.mono)
    assert sorted(ticks) == world.ticks("cpu")
    due = world.core.deadline()
    assert due is not None
    assert due <= next_tick(world.mono, rate_ms * MILLISECOND, origin)


def test_a_stepped_wall_clock_moves_no_tick() -> None:
    world = World(metrics(cpu={"detail": "CPU", "rate": "1s"}))
    world.run(3.2)
    world.wall_ahead -= 3_600 * SECOND + 123
    world.run(3)
    assert [SECOND] * 5 == [b - a for a, b in pairwise(world.ticks("cpu")[1:])]


@pytest.mark.proves("MEA-004")
def test_once_is_measured_once_and_on_demand_only_when_asked() -> None:
    world = World(metrics(about={"detail": "INFO"}, asked={"detail": "CPU", "rate": "on-demand"}))
    start = world.mono
    world.run(100)
    assert ([start], []) == (world.ticks("about"), world.ticks("asked"))
    world.order(MeasureNow(("asked", "unknown")))
    assert [world.mono] == world.ticks("asked")


def test_asking_for_a_metric_moves_none_of_its_ticks() -> None:
    plain, asked = (World(metrics(cpu={"detail": "CPU", "rate": "1s"})) for _ in range(2))
    for world in (plain, asked):
        world.run(2.5)
    asked.order(MeasureNow(("cpu",)))
    extra = asked.mono
    for world in (plain, asked):
        world.run(5)
    assert sorted([*plain.ticks("cpu"), extra]) == asked.ticks("cpu")


@pytest.mark.proves("CFG-051")
def test_metrics_that_are_not_changed_keep_their_ticks() -> None:
    table: dict[str, Any] = {"a": {"detail": "CPU", "rate": "1s"}, "b": {"detail": "MEMORY", "rate": "3s"}}
    plain, changed = World(metrics(**table)), World(metrics(**table))
    for seconds in range(1, 12):
        for world in (plain, changed):
            world.run(1.1)
        changed.order(PlanMetrics(metrics(**table, c={"detail": "LOAD", "rate": f"{seconds}s"})))
    assert (plain.ticks("a"), plain.ticks("b")) == (changed.ticks("a"), changed.ticks("b"))


@pytest.mark.proves("CFG-051")
def test_an_added_metric_is_measured_at_once_and_a_removed_one_never_again() -> None:
    world = World(metrics(a={"detail": "CPU", "rate": "1s"}))
    world.run(2.5)
    world.order(PlanMetrics(metrics(b={"detail": "LOAD", "rate": "1s"})))
    changed_at = world.mono
    world.run(3)
    assert changed_at == world.ticks("b")[0]
    assert max(world.ticks("a")) < changed_at


@pytest.mark.proves("CFG-051")
@given(st.sampled_from([100, 500, 1_000, 4_000, 30_000]), st.sampled_from([100, 400, 1_000, 9_000]), SPANS)
def test_a_changed_rate_takes_the_earlier_of_the_old_tick_and_one_new_rate(old_ms: int, new_ms: int, wait: int) -> None:
    check_changed_rate(old_ms, new_ms, wait % (20 * SECOND))


def check_changed_rate(old_ms: int, new_ms: int, wait: int) -> None:
    world = World(metrics(a={"detail": "CPU", "rate": f"{old_ms}ms"}))
    origin = origin_at(world.now, phase_of(NODE))
    world.run(wait / SECOND)
    changed_at, before = world.mono, len(world.ticks("a"))
    old_next = world.core.tasks["a"].due_at if world.core.tasks else world.mono
    world.order(PlanMetrics(metrics(a={"detail": "CPU", "rate": f"{new_ms}ms"})))
    world.run(60)
    after = world.ticks("a")[before:]
    assert old_next is not None
    assert min(old_next, changed_at + new_ms * MILLISECOND) == after[0]
    assert next_tick(after[0], new_ms * MILLISECOND, origin) == after[1]
    assert len(dict.fromkeys(after)) == len(after), "a sample twice"


def test_another_thing_to_measure_is_another_metric() -> None:
    world = World(metrics(a={"detail": "PROC_MEM", "param": "x", "rate": "10s"}))
    world.run(3)
    world.order(PlanMetrics(metrics(a={"detail": "PROC_MEM", "param": "y", "rate": "10s"})))
    assert world.mono == world.ticks("a")[-1]


def test_nothing_is_measured_after_the_stop() -> None:
    world = World(metrics(a={"detail": "CPU", "rate": "1s"}))
    world.run(2.5)
    world.order(Stop())
    stopped_at = world.mono
    world.order(PlanMetrics(metrics(b={"detail": "CPU", "rate": "1s"})))
    world.run(10)
    assert max(world.ticks("a")) < stopped_at
    assert ([], None) == (world.ticks("b"), world.core.deadline())
    assert world.taken == world.numbered


def test_origin_is_where_both_clocks_stood() -> None:
    assert 5 - 100 + 7 == origin_at(Now(5, 100), 7)
