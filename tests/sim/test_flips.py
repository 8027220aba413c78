"""Cables that flip bits, in whole runs: nothing that is promised breaks, unless nobody looks at the sums (FLD-030)."""

import msgspec
import pytest

from weft.base.now import SECOND
from weft.sim.canaries import load, planted
from weft.sim.links import altered
from weft.sim.noise import NoiseSource
from weft.sim.plan import Action, Plan
from weft.sim.run import Outcome, run
from weft.sim.swarm import draw_plan

MET = "met a message altered on its way"


def stormy(seed: int) -> Plan:
    """One link, on which a bit of one message in three changes from the first second on; no other fault."""
    plan = draw_plan(f"flips/{seed}", "link")
    (child,) = [node for node in plan.nodes if node.parent]
    return msgspec.structs.replace(plan, actions=(Action(SECOND, "flip", child.name, child.parent, "both", 3),))


def play(seeds: range) -> list[Outcome]:
    return [run(stormy(seed)) for seed in seeds]


@pytest.mark.proves("FLD-030", part="flipped bits are a fault that the simulator draws")
def test_bits_that_flip_on_a_link_break_no_promise() -> None:
    found = play(range(2))
    assert [()] * 2 == [outcome.verdicts for outcome in found]
    assert all(outcome.counts[MET] > 0 for outcome in found)


@pytest.mark.prove("a planted bug")
def test_without_a_look_at_the_sum_they_do() -> None:
    with planted(load()["sum_not_checked"]):
        assert any(outcome.verdicts for outcome in play(range(6)))


def test_the_menu_of_faults_has_them() -> None:
    plans = [draw_plan(str(seed)) for seed in range(40)]
    begun = [a for plan in plans for a in plan.actions if a.do == "flip" and a.number]
    assert begun
    assert all(2 <= action.number <= 40 for action in begun)


def test_an_altered_message_differs_in_one_bit_or_where_its_last_frames_part() -> None:
    noise, whole = NoiseSource("1", "test"), [b"abc", b"", b"defgh", b"i"]
    bits, torn = 0, 0
    for _ in range(200):
        frames = altered(whole, noise.draw())
        if len(frames) == 3:
            assert [b"abc", b"", b"defghi"] == frames
            torn += 1
        else:
            differing = [int.from_bytes(a) ^ int.from_bytes(b) for a, b in zip(whole, frames, strict=True)]
            assert 1 == sum(each.bit_count() for each in differing)
            bits += 1
    assert bits > torn > 0
