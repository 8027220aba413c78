"""Fleets that place themselves, lose collectors and roots, and are cut: what they promise about it."""

import msgspec
import pytest

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.checks import FLEET_CHECKERS, Violation
from weft.sim import report
from weft.sim.fleetplan import FLEET_SCENARIOS, VARIANTS, draw_fleet
from weft.sim.plan import Action, Plan, read, write
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


@pytest.mark.proves("CFG-045", "CFG-046", "REC-001")
@pytest.mark.varies("seed", range(1), range(20), prove=range(1, 4))
def test_where_keys_of_others_are_written_often_nobody_is_called_dead(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "undisturbed"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario undisturbed --explain")


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
        for name in ("shapes", "liars", "snapshots", "given-up", "fleet-damages", "fleet-mail", "undisturbed")
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


def two_collectors(seed: int) -> Plan:
    """One of two collectors is cut off until it acts; the root, whose writes the other one confirms, dies as it comes back."""
    drawn, chance = draw_fleet(str(seed), "heirs", ("a lagging heir",)), Chance(f"heir/{seed}")
    fleet, gone = drawn.fleets[0], {node.name for node in drawn.nodes if node.name[0] == "c"} - {"c1", "c2"}
    nodes = [
        msgspec.structs.replace(node, join=tuple(name for name in node.join if name not in gone))
        for node in drawn.nodes
        if node.name not in gone
    ]
    groups = [
        msgspec.structs.replace(group, collectors=tuple(name for name in group.collectors if name not in gone))
        for group in fleet.groups
    ]
    dead = fleet.heartbeat_ms * fleet.dead_after * MILLISECOND
    at, away = 30 * SECOND + 10 * fleet.heartbeat_ms * MILLISECOND, chance.choice(["c1", "c2"])
    back = at + chance.randint(2, 4) * dead
    died = back - chance.randint(0, dead // 4)
    others = [node.name for node in nodes if node.name != away]
    made = [Action(at, "cut", away, other) for other in others]
    made += [Action(back + chance.randint(0, dead // 8), "mend", away, other) for other in others]
    key = f"{fleet.groups[0].name}/metric/w1"
    made += [
        Action(at + (2 + part) * dead // 4, "write", "root", how=key, number=2_000 + part, second=1)
        for part in range(6)
    ]
    made += [Action(died, "crash", "root", how="kept", number=1)]
    made += [Action(died + chance.randint(2, 5) * dead, "start", "root")]
    actions = sorted([action for action in made if action.at < drawn.safety_ns], key=lambda action: action.at)
    fleets = (msgspec.structs.replace(fleet, groups=tuple(groups)),)
    return msgspec.structs.replace(drawn, nodes=tuple(nodes), fleets=fleets, actions=tuple(actions))


@pytest.mark.prove("fleets of the simulator")
@pytest.mark.proves("REC-014", part="a voter does not follow one that acts and holds less")
@pytest.mark.varies("seed", [5, 8, 9, 11], range(100))
def test_what_a_majority_confirmed_is_not_given_up_for_a_node_that_acts_and_holds_less(seed: int) -> None:
    outcome = run(two_collectors(seed))
    assert outcome.is_green, outcome.verdicts
    assert outcome.counts["met a write confirmed"]
