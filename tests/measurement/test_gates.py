"""Thresholds: each sample leaves at most once, and the right ones do (MEA-010)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import Taken, World, metrics
from weft.base.calculated import calculate
from weft.cores.measurement import limits
from weft.cores.measurement.messages import MetricSpec, PlanMetrics, Reading, Sample, Stop
from weft.wire import samples

BASIC: dict[str, Any] = {"detail": "MEMORY", "rate": "1s", "phase": 0}
COUNTER: dict[str, Any] = {"detail": "CONTEXT", "rate": "1s", "phase": 0}
PERCENT: dict[str, Any] = {"detail": "CPU", "rate": "1s", "phase": 0}
VALUES = st.lists(st.integers(-20, 20), min_size=1, max_size=40)


def series(world: World, values: list[int], base: int | None = None) -> None:
    """Let the machine answer with these values, one per tick, and nothing behind them."""
    left = iter(values)
    counted = iter(range(1, 1 << 30))

    def answer(spec: MetricSpec, at_ms: int) -> Reading:
        value = next(left, None)
        found: tuple[Sample, ...] = () if value is None else (((), value, base and base * next(counted)),)
        return Reading(spec.name, at_ms, found)

    world.answer = answer


def sent(threshold: str, values: list[int], table: dict[str, Any], **more: Any) -> list[int | float]:
    world = World(metrics(m={**table, "threshold": threshold, **more}))
    series(world, values, 100 if table is PERCENT else None)
    world.run(len(values) + 1)
    world.order(Stop())
    return [value for _, _, value in world.numbered]


def everything(world: World) -> list[Taken]:
    world.order(Stop())
    return world.numbered


@pytest.mark.proves("MEA-010")
def test_hold_sends_all_by_timer_and_nothing_between() -> None:
    world = World(metrics(m={**BASIC, "threshold": "*10s"}))
    world.sleep(0.5)  # the first sample stands off the grid
    world.run(42)
    assert [11, 10, 10, 10] == [len(batch.rows) for batch in world.batches]
    assert world.taken == everything(world)


@pytest.mark.proves("MEA-010")
def test_hold_of_a_metric_that_hangs_is_sent_all_the_same() -> None:
    world = World(metrics(m={**BASIC, "threshold": "*10s"}))
    world.run(3.5)
    world.hanging["m"] = None
    world.run(20)
    assert world.taken == world.numbered


def test_a_full_hold_sends_early_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELD_ROWS_MAX", 5)
    world = World(metrics(m={**BASIC, "threshold": "*1h"}))
    world.run(20.5)
    assert 20 <= len(world.numbered)
    assert world.taken == everything(world)


@pytest.mark.proves("MEA-010")
def test_thin_sends_mean_least_and_greatest_of_basic_values() -> None:
    world = World(metrics(m={**BASIC, "threshold": "+4s"}))
    world.sleep(0.5)
    series(world, [1, 5, 3, 3, 10, 20, 30, 40, 7])
    world.run(30)
    found = [(row.series.labels["agg"], row.value) for batch in world.batches for row in samples.explode(batch)]
    assert [("mean", 4.4), ("min", 1), ("max", 10)] == found[:3]  # taken at 0.5, 1, 2, 3, 4
    assert [("mean", 24.25), ("min", 7), ("max", 40)] == found[3:]


@pytest.mark.proves("MEA-010")
def test_thin_sends_the_last_of_a_counter() -> None:
    world = World(metrics(m={**COUNTER, "threshold": "+5s"}))
    world.sleep(0.5)
    world.run(23.5)
    assert [6, 11, 16, 21, 25] == [value for _, _, value in everything(world)]


@pytest.mark.proves("MEA-010")
@pytest.mark.parametrize(
    "threshold, clear, values, expected",
    [
        (">10", None, [1, 2, 10, 12, 9, 8, 11], [2, 10, 12, 8, 11]),
        ("<3", None, [5, 4, 3, 9, 9, 1, 2], [4, 3, 9, 1, 2]),
        (">10", 5, [1, 10, 8, 6, 5, 6, 9, 10], [1, 10, 8, 6, 9, 10]),
        ("<10", 15, [20, 10, 14, 15, 14, 9], [20, 10, 14, 14, 9]),
        (">10", None, [12, 13], [12, 13]),
        (">100", None, [1, 2, 3], []),
    ],
)
def test_limits_of_basic_values(threshold: str, clear: int | None, values: list[int], expected: list[int]) -> None:
    more = {} if clear is None else {"clear": clear}
    assert expected == sent(threshold, values, BASIC, **more)


@pytest.mark.proves("MEA-010")
def test_limit_of_a_counter_is_one_of_its_rate_and_brings_the_sample_before() -> None:
    assert [3, 103] == sent(">100", [1, 2, 3, 103, 104], COUNTER)
    assert [10, 111, 112, 250] == sent(">50", [10, 111, 112, 250], COUNTER)


@pytest.mark.proves("MEA-010")
def test_limit_of_a_share_is_one_of_the_share() -> None:
    assert [10, 100] == sent(">80", [0, 10, 100, 110], PERCENT)


@pytest.mark.proves("MEA-010")
def test_a_counter_that_ran_backwards_has_no_value_and_is_not_sent_for_it() -> None:
    assert [5, 200] == sent(">100", [1_000, 5, 200, 210], COUNTER)


@pytest.mark.proves("MEA-010")
@given(VALUES, st.integers(-15, 15), st.integers(0, 8), st.sampled_from("<>"), st.sampled_from([BASIC, COUNTER]))
def test_limits_send_what_an_oracle_sends(values: list[int], limit: int, slack: int, kind: str, table: Any) -> None:
    clear = limit - slack if kind == ">" else limit + slack
    assert oracle(values, kind, limit, clear, table) == sent(f"{kind}{limit}", values, table, clear=clear)


def oracle(values: list[int], kind: str, limit: int, clear: int, table: dict[str, Any]) -> list[int]:
    """The rule of MEA-010, said another way: mark each sample, then take marked ones and those before them."""
    type_of = "basic" if table is BASIC else "rate"
    marks, is_on = [], False
    for index, value in enumerate(values):
        before = (1_000 * (index - 1), values[index - 1], None) if index else None
        result = calculate(type_of, before, (1_000 * index, value, None)).result
        if result is not None:
            high, low = (result, limit) if kind == ">" else (-result, -limit)
            is_on = high >= low or (is_on and high > (clear if kind == ">" else -clear))
        marks.append(is_on and result is not None)
    marks.append(False)
    return [value for index, value in enumerate(values) if marks[index] or marks[index + 1]]


@pytest.mark.proves("MEA-010")
@given(
    st.sampled_from(["*4s", "+4s", ">0", "<0", ""]), st.lists(st.integers(0, 5_000), min_size=1, max_size=12), VALUES
)
def test_each_sample_leaves_at_most_once_whatever_the_plan_does(first: str, gaps: list[int], values: list[int]) -> None:
    choices = [{**COUNTER, "threshold": kind} if kind else COUNTER for kind in ("*4s", ">3", "+8s", "", "<9")]
    world = World(metrics(m={**COUNTER, "threshold": first} if first else COUNTER))
    for index, gap_ms in enumerate(gaps):
        world.run(gap_ms / 1_000)
        world.order(PlanMetrics(metrics(m=choices[(index + len(values)) % 5])))
    found = everything(world)
    assert len(dict.fromkeys(found)) == len(found)
    assert dict.fromkeys(found).keys() <= dict.fromkeys(world.taken).keys()


@pytest.mark.proves("MEA-010", "CFG-051")
@pytest.mark.parametrize("threshold", ["*60s", ""])
def test_changing_a_metric_loses_nothing_that_it_holds(threshold: str) -> None:
    table: dict[str, Any] = {**COUNTER, "threshold": threshold} if threshold else COUNTER
    world = World(metrics(m=table))
    world.run(10.5)
    world.order(PlanMetrics(metrics(m={**table, "rate": "2s"})))
    world.run(10.5)
    world.order(PlanMetrics(metrics(m={**COUNTER, "rate": "2s"})))
    world.run(10.5)
    world.order(PlanMetrics(()))
    world.run(2)
    assert world.taken == world.numbered
