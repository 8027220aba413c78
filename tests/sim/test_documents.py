"""Nights of documents: nodes of a tree that edit together, and what befalls them."""

import os
import subprocess
import sys
from collections import Counter
from functools import lru_cache

import pytest

from weft.checks.documents import DOCUMENT_RULES
from weft.sim import report
from weft.sim.canaries import catch, load
from weft.sim.documentplan import DOCUMENTS, FAULTS, draw_documents
from weft.sim.faults import ACTIONS
from weft.sim.plan import plan_hash, read, write
from weft.sim.run import Outcome, run
from weft.sim.sometimes import PREFIX
from weft.sim.swarm import draw_plan

BUGS = {name: bug for name, bug in load().items() if bug.scenario in DOCUMENTS}
QUICK = ("operation_said_before_persist", "folded_in_the_order_of_arrival", "others_have_no_room_for_more")
SEEDS = {"documents": 5, "documents-lost": 2}
SOAKED = {"documents": 500, "documents-lost": 300, "documents-large": 50}
PYTHON = "import sys; from weft.sim.run import run; from weft.sim.swarm import draw_plan; print(run(draw_plan(sys.argv[1], 'documents')).trace_hash)"


def _nights(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, seed) for name, count in counts.items() for seed in range(count)]


@lru_cache(maxsize=64)
def night(scenario: str, seed: int) -> Outcome:
    """What came of a seed; several tests look at it."""
    return run(draw_plan(str(seed), scenario))


@pytest.mark.proves("GSP-005", "DOC-050")
@pytest.mark.varies("scenario,seed", _nights(SEEDS), _nights(SOAKED))
def test_every_night_of_a_document_is_green(scenario: str, seed: int) -> None:
    outcome = night(scenario, seed)
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario {scenario} --explain")


@pytest.mark.proves("SIM-010")
def test_nights_of_documents_meet_what_they_are_about() -> None:
    counts: Counter[str] = Counter()
    for scenario, count in SEEDS.items():
        for seed in range(count):
            counts += night(scenario, seed).counts
    met = {name.removeprefix(PREFIX) for name, count in counts.items() if count}
    assert met >= {
        "a peer that is gone: silent",
        "a peer that is gone: restarted",
        "a conflict in a document",
        "a disk from the past",
        "identities that the root had already",
    }
    assert counts["entries acknowledged"] > 100
    assert counts["operations said"] > 100
    assert counts["drained"] > 100


@pytest.mark.proves("SIM-012")
def test_a_night_of_documents_is_the_same_whatever_the_hash_seed() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PYTHON, "3"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert night("documents", 3).trace_hash == told.stdout.strip()


@pytest.mark.proves("SIM-006", "SIM-007")
def test_what_befalls_documents_is_in_the_plan() -> None:
    menus: set[str] = set()
    for seed in range(100):
        plan = draw_documents(str(seed))
        assert plan_hash(read(write(plan))) == plan_hash(plan)
        assert {action.do for action in plan.actions} <= set(ACTIONS)
        menus |= set(plan.menu)
    assert set(FAULTS) == menus


@pytest.mark.varies("name", QUICK, tuple(BUGS))
def test_a_planted_bug_of_documents_is_caught_by_its_checker(name: str) -> None:
    caught = catch(BUGS[name])
    assert (caught.rule, caught.is_right) == (BUGS[name].caught_by, True)


def test_every_promise_about_documents_has_a_planted_bug() -> None:
    assert {kind.rule for kind in DOCUMENT_RULES} <= {bug.caught_by for bug in BUGS.values()}
