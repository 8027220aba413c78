"""A failure is made small, and stays the same failure (SIM-015)."""

from statistics import median

import msgspec
import pytest

from weft.sim.canaries import catch, load, planted
from weft.sim.run import run
from weft.sim.shrink import Shrinker, horizon, without
from weft.sim.swarm import draw_plan

NAMES = ("newest_first", "end_of_the_last_era_forgotten", "page_cache_trusted")


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-015")
def test_failures_are_shrunk_to_a_handful_of_faults() -> None:
    sizes = []
    for name in NAMES:
        caught = catch(load()[name]).outcome
        assert caught is not None
        with planted(load()[name]):
            made = Shrinker(caught.plan, lambda plan: None, runs_max=150)
            small = made.shrink()
            verdicts = run(small).verdicts
        assert verdicts[0].rule == made.rule == caught.verdicts[0].rule
        assert len(small.nodes) <= len(caught.plan.nodes)
        sizes.append(len(small.actions))
    assert median(sizes) <= 5


def test_only_a_plan_that_fails_can_be_shrunk() -> None:
    with pytest.raises(AssertionError, match="only a plan that fails"):
        Shrinker(draw_plan("1"), lambda plan: None)


def test_a_node_that_others_need_stays() -> None:
    plan = draw_plan("0")
    assert without(plan, "root") == plan
    leaf = plan.nodes[-1].name
    smaller = without(plan, leaf)
    assert leaf not in {node.name for node in smaller.nodes}
    assert not [action for action in smaller.actions if leaf in (action.node, action.other)]
    assert [link for link in smaller.links if leaf in (link.here, link.there)] == []


def test_what_lies_behind_the_failure_goes_first() -> None:
    plan = draw_plan("0")
    middle = plan.actions[len(plan.actions) // 2].at
    shorter = horizon(plan, middle)
    assert all(action.at <= middle for action in shorter.actions)
    assert shorter.safety_ns <= plan.safety_ns
    assert msgspec.structs.replace(shorter, actions=plan.actions, safety_ns=plan.safety_ns) == plan
