"""Rare branches: drawn per run, taken by the cores, and never by a node of the shell (SIM-009)."""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import pytest

from weft.base.chance import Chance
from weft.cores.carrier.core import Carrier
from weft.cores.configuration import answering
from weft.cores.configuration.answering import Stream
from weft.cores.store.bus import Bus
from weft.node.assembly import build_node
from weft.sim.plan import read, write
from weft.sim.rarely import RARE
from weft.sim.run import Run
from weft.sim.swarm import draw_plan
from weft.wire import replication
from weft.wire.replication import KvPack, KvSync

ROOT = Path(__file__).parents[2]


@pytest.mark.proves("SIM-009")
def test_each_rare_branch_is_taken_by_some_runs_and_by_few_and_stands_in_the_plan() -> None:
    drawn = [draw_plan(str(seed), scenario) for seed in range(150) for scenario in ("fabric", "small-fleet", "store")]
    for name in RARE:
        share = sum(name in plan.rare for plan in drawn) / len(drawn)
        assert 0.04 < share < 0.2, name
    rare = next(plan for plan in drawn if plan.rare)
    assert rare == read(write(rare))


@pytest.mark.proves("SIM-009")
def test_a_node_that_is_not_simulated_takes_none() -> None:
    assert not any(Chance("7/carrier").rarely(name) for name in RARE)
    said = [path for path in (ROOT / "src" / "weft").rglob("*.py") if "rare=" in path.read_text("utf-8")]
    assert {"sim"} == {path.parent.name for path in said if path.name != "assembly.py"}
    assert frozenset() == signature(build_node).parameters["rare"].default


def told(name: str, scenario: str, seed: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What a run does with that branch alone, or with none."""
    seen = {"portion": 0, "packed": 0, "settled": 0, "joined": 0, "hop": 0, "fetched": 0}
    step, pack, settle, join = Stream.step, replication.pack, Carrier._settle, Bus._joined

    def counted_step(self: Stream, effects: list[Any], token: int) -> int:
        count = step(self, effects, token)
        seen["portion"] = max(seen["portion"], count)
        return count

    def counted_pack(pairs: Sequence[KvSync]) -> KvPack:
        seen["packed"] += 1
        return pack(pairs)

    def counted_settle(self: Carrier) -> None:
        seen["settled"] += 1
        settle(self)

    def counted_join(self: Bus, payloads: list[bytes]) -> list[bytes]:
        joined = join(self, payloads)
        seen["joined"] = max(seen["joined"], len(payloads) - len(joined))
        return joined

    monkeypatch.setattr(Stream, "step", counted_step)
    monkeypatch.setattr(answering, "pack", counted_pack)
    monkeypatch.setattr(Carrier, "_settle", counted_settle)
    monkeypatch.setattr(Bus, "_joined", counted_join)
    plan = msgspec.structs.replace(draw_plan(seed, scenario), rare=(name,) if name else ())
    outcome = Run(plan, keep=True).go()
    assert outcome.is_green, outcome.verdicts
    seen["hop"] = max((len(fact.value[3]) for fact in outcome.history if fact.what == "hop"), default=0)
    seen["fetched"] = outcome.counts["met records read back from the journal to be sent"]
    return seen


CASES = [
    ("one pair in a portion", "small-fleet", "1", "portion", 1),
    ("a window of one message", "fabric", "2", "hop", 1),
    ("one change in a message", "store-small", "2", "joined", 0),
]


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-009")
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_rare_branch_makes_large_steps_small(
    case: tuple[str, str, str, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, scenario, seed, what, most = case
    with monkeypatch.context() as patch:
        assert told("", scenario, seed, patch)[what] > most
    with monkeypatch.context() as patch:
        assert told(name, scenario, seed, patch)[what] == most


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-009")
def test_what_is_rare_in_a_carrier_is_done_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        usual = told("", "fabric", "1", patch)
    with monkeypatch.context() as patch:
        assert told("what is safe is passed on at once", "fabric", "1", patch)["settled"] > usual["settled"]
    with monkeypatch.context() as patch:
        assert told("a spool that is on disk only", "fabric", "1", patch)["fetched"] > usual["fetched"]


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-009")
def test_small_snapshots_are_packed_where_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        assert 0 == told("", "small-fleet", "1", patch)["packed"]
    with monkeypatch.context() as patch:
        assert 0 < told("a snapshot of one pair is packed", "small-fleet", "1", patch)["packed"]
