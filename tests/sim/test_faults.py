"""The menu of faults: each is drawn by some seed, is done, and has its effect; and the fabric keeps its word through it (FLT-001).

The runs are those of fixed seeds; what they have to meet are the names of `sim.sometimes`. What real processes go through is
in tests/interop/test_room.py and tests/torture.
"""

from functools import lru_cache
from itertools import combinations

import msgspec
import pytest

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.disk import JournalDisk
from weft.sim.faults import ACTIONS
from weft.sim.fleetplan import SMALL_FLEET, draw_fleet
from weft.sim.mischief import MISCHIEFS
from weft.sim.plan import Action, FleetPlan, Plan
from weft.sim.run import Outcome, Run, run
from weft.sim.swarm import FAULTS, draw_plan

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@lru_cache(maxsize=32)
def night(scenario: str, seed: int) -> Outcome:
    """What came of a seed: green, or the test that asks fails."""
    outcome = run(draw_plan(str(seed), scenario))
    assert outcome.is_green, (scenario, seed, outcome.verdicts)
    return outcome


def met(scenario: str, *seeds: int) -> set[str]:
    """The situations that these seeds have met, and the actions that were done, as `did NAME`."""
    names = {name for seed in seeds for name, count in night(scenario, seed).counts.items() if count}
    return {name.removeprefix("met ") for name in names}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-010")
def test_datagrams_are_lost_doubled_and_late_and_cables_slow() -> None:
    assert met("fabric", 12) >= {"a datagram lost", "a datagram doubled", "a datagram late", "did slow"}
    drawn = [draw_plan(str(seed)).weather for seed in range(100)]
    assert max(weather.loss for weather in drawn) > 65_536 * 25 // 100
    assert max(weather.duplication for weather in drawn) > 65_536 * 8 // 100
    assert max(weather.late_ns for weather in drawn) > 4 * SECOND


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-011")
def test_datagrams_come_in_another_order_and_with_other_bytes_which_are_refused() -> None:
    assert met("fabric", 12) >= {"a datagram late", "a datagram damaged"}
    drawn = [draw_plan(str(seed)).weather for seed in range(100)]
    assert max(weather.reordering for weather in drawn) > 65_536 * 15 // 100
    assert {0, 655} == {weather.damage for weather in drawn}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-012")
def test_cables_are_cut_one_by_one_in_one_direction_in_halves_and_again_and_again() -> None:
    menu = {name for seed in (2, 4, 11, 12) for name in draw_plan(str(seed)).menu}
    assert menu >= {"cut-one", "cut-one-way", "cut-halves", "flap"}
    assert met("fabric", 2, 12) >= {"did cut", "did mend", "a parent lost: silent", "a child lost: silent"}


def sight_of(plan: Plan) -> dict[str, set[str]]:
    """Whom each node of a fleet is in reach of while the first cut lasts."""
    cuts = [action for action in plan.actions if action.do == "cut"]
    cut = {frozenset((one.node, one.other)) for one in cuts if one.at == cuts[0].at}
    names = [node.name for node in plan.nodes]
    return {name: {other for other in names if frozenset((name, other)) not in cut} for name in names}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-012")
def test_in_a_ring_each_voter_sees_a_majority_and_no_two_the_same_and_a_bridge_is_seen_by_both_halves() -> None:
    plans = [draw_plan(str(seed), "shapes") for seed in range(6)]
    shapes = {plan.menu[0]: (seed, plan) for seed, plan in enumerate(plans)}
    assert {"a ring of majorities", "a bridge"} == set(shapes)
    seed, plan = shapes["a ring of majorities"]
    voters = [node.name for node in plan.nodes if node.name[0] in "rc"]
    sight = {name: seen & set(voters) for name, seen in sight_of(plan).items() if name in voters}
    assert all(2 * len(seen) > len(voters) for seen in sight.values())
    assert all(one != other for one, other in combinations(sight.values(), 2))
    assert met("shapes", seed) >= {"did cut", "did mend"}
    seed, plan = shapes["a bridge"]
    sight = sight_of(plan)
    bridges = [name for name, seen in sight.items() if len(seen) == len(plan.nodes)]
    others = [seen - set(bridges) for name, seen in sight.items() if name not in bridges]
    assert 1 == len(bridges)
    assert 2 == len({frozenset(seen) for seen in others})
    assert met("shapes", seed) >= {"did cut", "did mend"}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-012", part="half of a fleet is away for hours, with soak for a day, and comes home")
@pytest.mark.varies("hours", [1], [1, 24])
def test_half_of_a_fleet_is_cut_off_for_hours_and_comes_home_to_what_was_written_meanwhile(hours: int) -> None:
    plan = slow_fleet("3", hours)
    outcome = run(plan)
    assert outcome.is_green, outcome.verdicts
    assert outcome.virtual_ns > hours * HOUR
    assert outcome.counts["met a parent lost: silent"]
    assert 12 == outcome.counts["did cut"] == outcome.counts["did mend"]
    assert 3 == outcome.counts["did write"]


def slow_fleet(seed: str, hours: int) -> Plan:
    """A fleet of seven that beats once a minute, of which three are cut off from all others for so many hours."""
    drawn = draw_fleet(seed, SMALL_FLEET, ("writes on both sides",))
    names = [node.name for node in drawn.nodes]
    away, here = names[1:4], [names[0], *names[4:]]
    begin, end = 20 * MINUTE, (20 + 60 * hours) * MINUTE
    cables = [(one, other) for one in away for other in here]
    made = [Action(begin, "cut", *cable) for cable in cables]
    key = f"{drawn.fleets[0].groups[0].name}/metric/w1"
    made += [Action(begin + (end - begin) * part // 4, "write", names[0], how=key, number=part) for part in (1, 2, 3)]
    return msgspec.structs.replace(
        drawn,
        fleets=(_slower(drawn.fleets[0]),),
        actions=(*made, *(Action(end, "mend", *cable) for cable in cables)),
        safety_ns=end + 10 * MINUTE,
        settle_ns=40 * MINUTE,
    )


def _slower(fleet: FleetPlan) -> FleetPlan:
    groups = [
        msgspec.structs.replace(
            group, metrics=tuple(msgspec.structs.replace(one, rate_ns=10 * MINUTE) for one in group.metrics)
        )
        for group in fleet.groups
    ]
    return msgspec.structs.replace(fleet, heartbeat_ms=60_000, dead_after=3, groups=tuple(groups))


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-014")
def test_peers_stand_still_and_are_slow_and_full_queues_refuse() -> None:
    assert met("fabric", 9) >= {"did pause", "a process that stood still longer than death", "did slow"}
    assert met("narrow", 1) >= {"a full queue that refuses messages"}
    spans = [span for seed in range(30) for span in pauses(draw_plan(str(seed), "night"))]
    assert min(spans) < 2 * SECOND
    assert 5 * MINUTE < max(spans) <= 10 * MINUTE


def pauses(plan: Plan) -> list[int]:
    begun: dict[str, int] = {}
    spans = []
    for action in plan.actions:
        if action.do == "pause":
            begun.setdefault(action.node, action.at)
        elif action.do == "resume" and action.node in begun:
            spans.append(action.at - begun.pop(action.node))
    return spans


@pytest.mark.proves("FLT-017")
def test_nodes_crash_with_their_disks_kept_torn_lost_and_old_and_all_at_once_and_while_they_recover() -> None:
    assert met("fabric", 12) >= {"a crash inside a write", "a disk lost", "a disk from the past", "did crash"}
    assert "kill-all" in {name for seed in range(20) for name in draw_plan(str(seed)).menu}
    plan = draw_plan("1", "restarts")
    assert "crash-again" == plan.menu[-1]
    assert night("restarts", 1).counts["crashes"] >= 3
    assert met("restarts", 1) >= {"a crash inside a write"}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-020")
def test_a_journal_is_harmed_between_two_runs_and_its_node_says_so() -> None:
    assert met("damages", 1, 2, 14) >= {
        "a journal with a flipped bit",
        "a journal with a segment cut short",
        "a journal without a segment",
        "a journal with two segments swapped",
        "a journal with a misplaced segment",
    }


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-020", part="journals of collectors and roots; a person repairs them, or replaces the machine")
def test_journals_of_collectors_and_roots_are_harmed_and_what_is_not_whole_is_refused_until_a_person_comes() -> None:
    assert met("damages-anywhere", 0, 2, 5, 15, 19) >= {
        "a root's journal harmed",
        "a collector's journal harmed",
        "a root that does not start on its journal",
        "a collector that does not start on its journal",
        "a damaged journal repaired",
        "a damaged journal replaced",
        "did harm",
    }


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-020", part="journals of stores, of documents, of brokers and of those who vote for a root")
@pytest.mark.parametrize(
    ("scenario", "seeds", "harmed"),
    [
        ("store-damages", (0, 2), {"a root's journal harmed"}),
        ("documents-damages", (0,), {"did harm"}),
        ("fleet-damages", (2,), {"a root's journal harmed", "a collector's journal harmed"}),
        ("catalog-damages", (4, 5), {"a root's journal harmed", "did deregister"}),
    ],
)
def test_journals_of_stores_documents_brokers_and_voters_are_harmed(
    scenario: str, seeds: tuple[int, ...], harmed: set[str]
) -> None:
    assert met(scenario, *seeds) >= {"a damaged journal repaired", *harmed}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-020")
def test_the_verdict_on_a_flipped_bit_is_that_of_the_judge_of_real_segments() -> None:
    told = Run(draw_plan("3", "damages"), keep=True).go()
    verdicts = [fact.value[0] for fact in told.history if fact.what == "verdict"]
    harmed = [fact for fact in told.history if fact.what == "harmed"]
    assert {"clean", "damaged"} == set(verdicts)
    assert len(harmed) >= verdicts.count("damaged") > 0


def test_a_disk_without_a_closed_segment_cannot_be_harmed() -> None:
    disk = JournalDisk(lambda _: None, 16, 1 << 20)
    assert not disk.harm("with a flipped bit", Chance("harm"))


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-021")
def test_a_name_twice_is_refused_a_cloned_disk_takes_over_and_is_told_apart_and_a_stranger_takes_an_address() -> None:
    assert met("twins", 1, 2) >= {
        "a copied disk",
        "a child refused: two-nodes-one-id",
        "a child refused: name-taken",
    }
    assert met("liars", 0) >= {"did impostor", "a stranger that calls samples safe"}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-021", part="a node that starts again at another address")
def test_a_node_gets_another_address() -> None:
    assert met("store-moves", 0, 1, 2) >= {"a machine at another address", "did move"}


@pytest.mark.proves("FLT-023", part="a file that is edited, and its node started again, in any order")
def test_files_are_edited_and_nodes_started_on_them_in_any_order() -> None:
    game = Run(draw_plan("1", "edits"))
    outcome = game.go()
    assert outcome.is_green, outcome.verdicts
    edits = {action.node: action for action in outcome.plan.actions if action.do == "new-file"}
    assert outcome.counts["met a file that was edited"] >= 2
    for name, action in edits.items():
        running = game.fabric.machines[name].running.settings
        assert {action.number} >= {metric.rate_ns for metric in running.metrics}
        assert action.second == round(running.node.flush_s * 1e9)


MENU = {
    "FLT-010": {"slow"},
    "FLT-011": {"flip"},
    "FLT-012": {"cut-one", "cut-one-way", "cut-halves", "flap"},
    "FLT-014": {"pause", "slow"},
    "FLT-016": {"step", "drift"},
    "FLT-017": {"crash-kept", "crash-torn", "crash-lost", "crash-old", "kill-all", "crash-again"},
    "FLT-018": {"fill"},
    "FLT-020": {"harm"},
    "FLT-021": {"twin"},
    "FLT-022": {"garbage", "lie"},
    "FLT-023": {"new-file"},
}
"""Rows of the menu, and what the swarm calls them; the weather of datagrams (FLT-010, 011) is in every plan."""


@pytest.mark.proves("FLT-001", part="the simulated menu is drawn by everyday seeds")
def test_every_row_of_the_menu_is_drawn_by_everyday_seeds_and_every_fault_is_in_a_row() -> None:
    drawn: set[str] = set()
    done: set[str] = set()
    for seed in range(250):
        plan = draw_plan(str(seed))
        drawn |= set(plan.menu)
        done |= {action.do for action in plan.actions}
    rows = set().union(*MENU.values())
    assert set() == rows - drawn
    assert {"kill-root", "kill-collector", "stop"} == {*FAULTS, *MISCHIEFS.values()} - rows
    assert done <= set(ACTIONS)


@pytest.mark.prove("nights of the simulator")
@pytest.mark.varies(
    "scenario,seed", [(name, 0) for name in MISCHIEFS], [(name, seed) for name in MISCHIEFS for seed in range(300)]
)
def test_whatever_befalls_a_fabric_now_and_then_it_keeps_its_word(scenario: str, seed: int) -> None:
    night(scenario, seed)


@pytest.mark.prove("nights of the simulator")
@pytest.mark.varies(
    "scenario,seed",
    [("liars", 0)],
    [(name, seed) for name in ("shapes", "liars", "snapshots") for seed in range(100)],
)
def test_fleets_keep_their_word_through_rings_bridges_liars_and_broken_snapshots(scenario: str, seed: int) -> None:
    night(scenario, seed)
