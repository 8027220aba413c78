"""Plans: drawn whole, read back as they were written, refused when they are none (SIM-006, SIM-007)."""

import msgspec
import pytest

from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.sim.faults import ACTIONS
from weft.sim.mischief import MISCHIEFS
from weft.sim.plan import PLAN_BYTES_MAX, Plan, plan_hash, read, write
from weft.sim.swarm import FAULTS, SIZES, between, draw_plan


@pytest.mark.proves("SIM-006")
@pytest.mark.parametrize("scenario", SIZES)
def test_a_plan_reads_back_as_it_was_written(scenario: str) -> None:
    for seed in range(15):
        plan = draw_plan(str(seed), scenario)
        data = write(plan)
        assert len(data) <= 1 << 20
        assert read(data) == plan
        assert plan_hash(read(data)) == plan_hash(plan)


@pytest.mark.proves("SIM-006")
def test_a_plan_holds_whole_numbers_only() -> None:
    def numbers(value: object) -> list[object]:
        if isinstance(value, dict):
            return [each for item in value.values() for each in numbers(item)]
        if isinstance(value, list):
            return [each for item in value for each in numbers(item)]
        return [value]

    for seed in range(20):
        assert not [
            value for value in numbers(msgspec.json.decode(write(draw_plan(str(seed))))) if isinstance(value, float)
        ]


@pytest.mark.proves("SIM-007")
def test_half_of_the_runs_leave_most_faults_off_and_one_in_ten_has_all() -> None:
    menus = [set(draw_plan(str(seed)).menu) for seed in range(400)]
    few = sum(len(menu) <= len(FAULTS) // 3 for menu in menus) / len(menus)
    everything = sum(len(menu) >= len(FAULTS) - 1 for menu in menus) / len(menus)
    assert 0.4 < few < 0.6
    assert 0.06 < everything < 0.14
    assert {*FAULTS, *MISCHIEFS.values()} == set().union(*menus)


@pytest.mark.proves("SIM-007")
def test_drawn_plans_have_more_than_two_tiers_and_every_action_is_known() -> None:
    plans = [draw_plan(str(seed)) for seed in range(100)]
    assert {action.do for plan in plans for action in plan.actions} <= set(ACTIONS)
    depths = {_depth(plan) for plan in plans}
    assert depths == {2, 3, 4}
    assert all(action.at >= 0 for plan in plans for action in plan.actions)


def _depth(plan: Plan) -> int:
    parents = {node.name: node.parent for node in plan.nodes}

    def tier(name: str) -> int:
        return 1 + tier(parents[name]) if parents[name] else 1

    return max(map(tier, parents))


@pytest.mark.proves("SIM-005")
def test_another_fault_on_the_menu_moves_no_fault_that_was_there() -> None:
    from weft.sim.swarm import draw_actions

    plan = draw_plan("5")
    spans = (plan.safety_ns, plan.dead_ms * 1_000_000)
    few = draw_actions("5", ("cut-one", "step"), plan.nodes, spans)
    more = draw_actions("5", ("cut-one", "step", "garbage"), plan.nodes, spans)
    assert [action for action in more if action.do != "garbage"] == few


def test_each_octave_is_as_likely() -> None:
    chance = Chance("octaves")
    drawn = [between(chance, 1, 1_000) for _ in range(4_000)]
    assert min(drawn) == 1
    assert max(drawn) == 1_000
    assert 0.4 < sum(value < 32 for value in drawn) / len(drawn) < 0.6


BROKEN = {
    "not JSON": b"{",
    "not a plan": b"{}",
    "of another format": write(draw_plan("1")).replace(b'"format": 1', b'"format": 2'),
    "without a root": write(draw_plan("1")).replace(b'"root"', b'"toor"'),
    "too long": b" " * (PLAN_BYTES_MAX + 1),
    "about a stranger": write(draw_plan("1")).replace(
        b'"actions": [', b'"actions": [{"at":1,"do":"start","node":"x"},'
    ),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_plan_is_refused_with_what_to_type(data: bytes) -> None:
    with pytest.raises(UserError) as caught:
        read(data)
    assert caught.value.code == "bad-plan"
    assert "--print-plan" in caught.value.try_this
