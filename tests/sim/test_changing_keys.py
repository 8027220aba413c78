"""Simulated fleets whose keys are rotated and revoked while faults befall them: who has a key of today is heard, nobody else (FLT-023)."""

from typing import Final

import pytest

from weft.sim.canaries import catch, load
from weft.sim.keyplan import AWAY, CHANGES
from weft.sim.run import Outcome, Run, run
from weft.sim.swarm import draw_plan

BUGS: Final = [name for name, bug in load().items() if bug.scenario in (AWAY, CHANGES)]


def night(scenario: str, seed: int) -> Outcome:
    outcome = run(draw_plan(str(seed), scenario))
    assert () == outcome.verdicts
    return outcome


@pytest.mark.proves(
    "FLT-023", part="who is away while all parents that it may have take other keys, or are replaced, comes home"
)
@pytest.mark.proves("SEC-054", part="in virtual time: by what an assignment tells of the keys of today")
@pytest.mark.varies("seed", [0], range(200), prove=[3])
def test_who_was_away_while_all_its_parents_took_other_keys_comes_home(seed: int) -> None:
    outcome = night(AWAY, seed)
    assert outcome.counts["met a key switched"] >= 2
    assert outcome.counts["knocked"] > 10, "former keys are tried at every door"


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-023", part="in whole runs keys are rotated and revoked; former ones open no door in the end")
@pytest.mark.varies("seed", range(4), range(300))
def test_keys_are_rotated_and_revoked_while_faults_befall_the_fleet_and_nothing_is_lost(seed: int) -> None:
    night(CHANGES, seed)


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CHK-021", part="keys that were renewed or revoked come in nowhere, in the simulator")
def test_a_stolen_machine_that_runs_on_is_heard_by_nobody_once_its_key_is_revoked() -> None:
    told = Run(draw_plan("3", CHANGES), keep=True)
    outcome = told.go()
    assert () == outcome.verdicts
    stolen = [action.node for action in outcome.plan.actions if action.do == "steal-machine"]
    assert stolen == list(told.fabric.locksmith.revoked.values())
    knocks = [fact for fact in told.fabric.recorder.history if fact.what == "knocked"]
    assert {"former"} == {fact.value[0] for fact in knocks}
    assert not any(fact.value[2] for fact in knocks)


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLT-023", part="planted bugs of keys that change are caught")
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_of_changing_keys_is_caught(name: str) -> None:
    caught = catch(load()[name])
    assert caught.is_right, (name, caught.rule)


def test_there_are_bugs_of_changing_keys() -> None:
    assert {"assignments_tell_no_keys", "revoked_key_stays_known", "the_former_one_is_looked_for"} == set(BUGS)
