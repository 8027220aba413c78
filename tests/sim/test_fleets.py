"""Fleets that place themselves, lose collectors and roots, and are cut: what they promise about it."""

import pytest

from weft.checks import FLEET_CHECKERS, Violation
from weft.sim import report
from weft.sim.fleetplan import FLEET_SCENARIOS, VARIANTS
from weft.sim.plan import read, write
from weft.sim.run import run
from weft.sim.shrink import without
from weft.sim.swarm import draw_plan


@pytest.mark.proves("SIM-008", "REC-010", "REC-011", "REC-012", "REC-014", "REC-015", "REC-017", "CFG-024", "TOP-010")
@pytest.mark.varies("seed", range(2), range(500), prove=range(2, 10))
def test_every_small_fleet_is_green(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "small-fleet"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario small-fleet --explain")


@pytest.mark.prove("nights of the simulator")
@pytest.mark.varies("seed", range(2), range(100))
def test_every_fleet_is_green(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "fleet"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario fleet --explain")


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLD-001")
@pytest.mark.varies("seed", range(1), range(100), prove=range(1, 2))
def test_snapshots_are_whole_where_sockets_take_eight_messages_at_once(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "narrow"))
    assert outcome.plan.queue in (8, 9, 12)
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario narrow --explain")


@pytest.mark.proves("REC-011", "REC-015")
@pytest.mark.varies("seed", range(1), range(100), prove=range(1, 6))
def test_a_root_that_gave_up_voters_and_started_again_confirms_nothing_alone(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "given-up"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario given-up --explain")


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("REC-005", "REC-013")
@pytest.mark.varies("seed", range(1), range(3), prove=range(1, 3))
def test_the_dead_are_replaced_within_their_bounds(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "quick"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario quick --explain")
    assert outcome.counts["met a node dead for good"] == 1


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-012")
def test_the_same_seed_is_the_same_fleet() -> None:
    plan = draw_plan("5", "splits")
    assert run(plan).trace_hash == run(draw_plan("5", "splits")).trace_hash
    assert plan == read(write(plan))


def test_every_variant_is_drawn_somewhere() -> None:
    drawn = {draw_plan(str(seed), "fleet").menu[0] for seed in range(300)}
    drawn |= {
        draw_plan(str(seed), name).menu[0]
        for seed in range(20)
        for name in ("shapes", "liars", "snapshots", "given-up")
    }
    assert drawn == set(VARIANTS)
    assert all(set(names) <= set(VARIANTS) for names in FLEET_SCENARIOS.values())


@pytest.mark.prove("nights of the simulator")
def test_what_a_root_that_acts_is_asked_is_refused() -> None:
    met = run(draw_plan("0", "splits")).counts
    assert met["met a node that acts for the root"] > 0
    assert met["met a write refused"] > 0


@pytest.mark.prove("nights of the simulator")
def test_a_rule_that_is_broken_is_named_by_its_checker() -> None:
    class Wrong(FLEET_CHECKERS[-1]):  # type: ignore[misc,valid-type]  # whichever is the last
        rule = "wrong"

        def end(self) -> Violation:
            return Violation(self.rule, "on purpose")

    outcome = run(draw_plan("1", "quick"), [Wrong()])
    assert [verdict.rule for verdict in outcome.verdicts] == ["wrong"]


@pytest.mark.prove("many plans")
def test_a_plan_can_lose_a_member_but_not_who_is_needed() -> None:
    plan = draw_plan("1", "quick")
    member = next(node.name for node in plan.nodes if node.name.startswith("m"))
    smaller = without(plan, member)
    assert member not in {node.name for node in smaller.nodes}
    assert run(smaller).is_green


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CHK-012")
@pytest.mark.parametrize(("scenario", "seed"), [("fleet", 4), ("shapes", 16)])
def test_whoever_reads_is_told_when_values_go_back_and_sees_only_what_is_durable(scenario: str, seed: int) -> None:
    outcome = run(draw_plan(str(seed), scenario))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario {scenario} --explain")


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CFG-034", "CFG-041")
@pytest.mark.parametrize("seed", [139, 148])
def test_leaves_hear_of_another_history_that_has_come_to_the_same_number(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "small-fleet"))
    assert outcome.plan.menu[0] == "the root's disk is an old one"
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario small-fleet --explain")
