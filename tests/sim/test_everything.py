"""Nights of whole nodes: configuration, tree, carrier, mail, measurement, store, catalog, documents and clones at once."""

from collections import Counter
from functools import lru_cache

import pytest

from weft.checks import CATALOG_RULES, DOCUMENT_RULES, FLEET_CHECKERS, MAIL_CHECKERS, STORE_RULES
from weft.sim import report
from weft.sim.canaries import catch, load
from weft.sim.everything import EVERYTHING
from weft.sim.faults import ACTIONS
from weft.sim.plan import plan_hash, read, write
from weft.sim.run import Outcome, rules_of, run
from weft.sim.sometimes import PREFIX
from weft.sim.swarm import draw_plan

BUGS = {name: bug for name, bug in load().items() if bug.scenario in EVERYTHING}
SEEDS = {"everything-fleet": 2, "everything-tree": 3}
SOAKED = {"everything": 300, "everything-fleet": 100, "everything-tree": 200}


def _nights(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, seed) for name, count in counts.items() for seed in range(count)]


@lru_cache(maxsize=64)
def night(scenario: str, seed: int) -> Outcome:
    """What came of a seed; several tests look at it."""
    return run(draw_plan(str(seed), scenario))


@pytest.mark.proves("FLD-041", part="whole nodes")
@pytest.mark.varies("scenario,seed", _nights(SEEDS), _nights(SOAKED))
def test_every_night_of_everything_is_green(scenario: str, seed: int) -> None:
    outcome = night(scenario, seed)
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario {scenario} --explain")


def test_all_checkers_of_all_protocols_judge_it() -> None:
    fleet, tree = rules_of(draw_plan("0", "everything-fleet")), rules_of(draw_plan("0", "everything-tree"))
    assert set(fleet) >= {*STORE_RULES, *CATALOG_RULES, *DOCUMENT_RULES, *FLEET_CHECKERS}
    assert set(tree) >= {*STORE_RULES, *CATALOG_RULES, *DOCUMENT_RULES, *MAIL_CHECKERS}


@pytest.mark.proves("SIM-010")
def test_nights_of_everything_meet_what_they_are_about() -> None:
    counts: Counter[str] = Counter()
    for scenario, count in SEEDS.items():
        for seed in range(count):
            counts += night(scenario, seed).counts
    met = {name.removeprefix(PREFIX) for name, count in counts.items() if count}
    assert met >= {
        "an instance: register",
        "a watcher that takes everything anew",
        "a node that joined the store",
        "a clone that has everything",
        "messages sent again",
    }
    for what in ("catalog told", "store acknowledged", "entries acknowledged", "clone updates", "mail journal"):
        assert counts[what] >= 20, what


@pytest.mark.proves("SIM-006")
def test_what_befalls_everything_is_in_the_plan() -> None:
    for seed in range(20):
        plan = draw_plan(str(seed), "everything")
        assert plan_hash(read(write(plan))) == plan_hash(plan)
        assert {action.do for action in plan.actions} <= set(ACTIONS)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_of_whole_nodes_is_caught_by_its_checker(name: str) -> None:
    caught = catch(BUGS[name])
    assert (caught.rule, caught.is_right) == (BUGS[name].caught_by, True)
