"""Simulated fabrics with keys: their own nodes work as ever under faults, and no intruder has any effect (CHK-021, SEC-027)."""

from collections import Counter
from typing import Final

import pytest

from weft.sim.canaries import catch, load
from weft.sim.intruders import INTRUDERS, KINDS
from weft.sim.run import Run, run
from weft.sim.swarm import draw_plan

BUGS: Final = [name for name, bug in load().items() if bug.scenario == INTRUDERS]
DOORS: Final = {"announced", "control", "data", "document", "down", "mesh", "publish", "serve"}


def test_there_are_bugs_of_keys() -> None:
    assert {"authority_not_asked", "every_role_may_everything", "any_key_is_known"} == set(BUGS)


@pytest.mark.proves("CHK-021", part="intruders at every door of nodes with keys, in the simulator")
@pytest.mark.proves("SEC-027", part="in virtual time, while faults befall the fabric")
@pytest.mark.varies("seed", [1], range(200), prove=[0])
def test_intruders_have_no_effect_and_the_fabric_comes_to_rest(seed: int) -> None:
    outcome = run(draw_plan(str(seed), INTRUDERS))
    assert () == outcome.verdicts
    assert outcome.counts["knocked"] > 10


@pytest.mark.prove("a night of the simulator")
@pytest.mark.proves(
    "CHK-021", part="who has no key comes in nowhere, others are let in, hear refusals and change nothing"
)
def test_each_intruder_has_been_at_each_door_and_some_had_something_to_say() -> None:
    told = Run(draw_plan("2", INTRUDERS), keep=True).go()
    assert () == told.verdicts
    lines = [fact.value for fact in told.history if fact.what == "knocked"]
    assert DOORS == {channel for _, channel, *_ in lines}
    assert set(KINDS) == {who for who, *_ in lines}
    said = Counter[str]()
    for who, _, is_in, count, refused, is_changed, answered in lines:
        said[who] += count
        assert (is_in and count, False, 0) == (is_in and refused, is_changed, answered)
    assert (0, 0) == (said["plain"], said["unknown"])
    assert min(said["bridge"], said["service"], said["recorded"]) > 10


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CHK-021", part="planted bugs are caught: nobody asked, every role allowed, any key known")
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_of_keys_is_caught(name: str) -> None:
    caught = catch(load()[name])
    assert caught.is_right, (name, caught.rule)
