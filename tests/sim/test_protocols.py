"""Nights of one protocol, and of all at once: green whatever befalls them, the same again, red for each planted bug.

A row of `NIGHTS` says of a protocol which scenarios play it, and what its nights have to meet and to do.
"""

import os
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import pytest

from weft.checks import (
    BRIDGE_RULES,
    CATALOG_CHECKERS,
    CATALOG_RULES,
    DOCUMENT_RULES,
    FLEET_CHECKERS,
    MAIL_CHECKERS,
    STORE_RULES,
)
from weft.sim import bridgeplan, catalogplan, documentplan, report, storeplan
from weft.sim.bridgeplan import BRIDGED
from weft.sim.canaries import catch, load
from weft.sim.catalogplan import CATALOGS
from weft.sim.documentplan import DOCUMENTS
from weft.sim.everything import EVERYTHING
from weft.sim.faults import ACTIONS
from weft.sim.plan import Plan, plan_hash, read, write
from weft.sim.run import Outcome, rules_of, run
from weft.sim.sometimes import PREFIX
from weft.sim.storeplan import STORE_SCENARIOS
from weft.sim.swarm import draw_plan

Seeds = dict[str, int]
"""How many seeds of each scenario, from 0."""


class Nights(NamedTuple):
    """What is expected of one protocol."""

    scenarios: frozenset[str]
    """All that play it."""
    usual: Seeds
    """Played in every run of `make prove`, the first of them in `make test`."""
    soaked: Seeds
    """Played with --soak."""
    met: frozenset[str]
    """Situations that the usual seeds meet together."""
    done: dict[str, int]
    """What is counted, and how much of it the usual seeds do together, at least."""
    rules: frozenset[str] = frozenset()
    """Checkers of the protocol alone: each has a planted bug that it catches."""
    menu: frozenset[str] = frozenset()
    """All faults that a plan of it may draw; empty: those of others."""
    quick: tuple[str, ...] = ()
    """Planted bugs that are tried in every run; empty: all."""


NIGHTS: Final = {
    "store": Nights(
        scenarios=frozenset(STORE_SCENARIOS),
        usual={
            "store": 4,
            "store-small": 12,
            "store-deletes": 3,
            "store-moves": 4,
            "store-damages": 4,
            "store-flood": 2,
        },
        soaked={
            "store-flood": 100,
            "store": 500,
            "store-small": 1_000,
            "store-deletes": 500,
            "store-moves": 500,
            "store-damages": 500,
            "store-large": 50,
            "store-long": 50,
        },
        met=frozenset(
            {
                "a conflict",
                "a conflict with a deletion",
                "two changes of one tock",
                "a split of the store that is healed",
                "a node that joined the store",
                "a node that goes on under another name",
                "a client told storage-full",
                "a client told chain-mismatch",
                "a watcher that was told of a gap",
                "deletions that are forgotten",
                "a disk lost",
                "a snapshot restored",
                "a crash inside a write",
            }
        ),
        done={"store acknowledged": 1_001},
        rules=frozenset(kind.rule for kind in STORE_RULES),
        menu=frozenset(storeplan.FAULTS),
        quick=(
            "budget_not_asked",
            "store_no_tie_break",
            "deletion_merged_as_absence",
            "conflict_not_reported",
            "tock_not_merged",
            "hole_in_ticks_accepted",
            "own_ticks_never_asked_for",
            "own_write_not_persisted",
            "known_before_the_entry",
            "tombstone_dropped_while_a_deleter_is_away",
            "condition_not_checked",
            "first_answer_remembered",
            "watcher_without_room_is_skipped",
            "losers_are_shown",
        ),
    ),
    "catalog": Nights(
        scenarios=frozenset(CATALOGS),
        usual={"catalog": 5, "catalog-removals": 1, "catalog-damages": 3},
        soaked={"catalog": 500, "catalog-removals": 200, "catalog-damages": 300, "catalog-large": 50},
        met=frozenset(
            {
                "an instance: register",
                "an instance: update",
                "an instance: suspect",
                "an instance: inactive",
                "an instance: remove",
                "a service dropped: silent",
                "a watcher that takes everything anew",
                "a watcher that hears nothing",
                "a broker that stood still",
                "beats that go another way",
                "a datagram lost",
            }
        ),
        done={"catalog told": 101, "drained": 101},
        rules=frozenset(kind.rule for kind in CATALOG_CHECKERS),
        menu=frozenset(catalogplan.FAULTS),
        quick=(
            "approved_before_persist",
            "deadline_by_the_time_in_the_beat",
            "datagram_registers",
            "watcher_ignores_gaps",
            "removal_forgotten_over_a_restart",
        ),
    ),
    "bridges": Nights(
        scenarios=frozenset(BRIDGED),
        usual={"bridges": 12},
        soaked={"bridges": 500},
        met=frozenset(
            {
                "a bridge that is up",
                "a bridge that is down",
                "a call without an answer",
                "a call that no bridge carries",
                "a tap that ended: time",
                "a tap that ended: stopped",
                "a tap that ended: monitor silent",
            }
        ),
        done={"imports": 1_001, "calls across": 501, "copies": 20},
        rules=frozenset(kind.rule for kind in BRIDGE_RULES),
        menu=frozenset({*catalogplan.FAULTS, *bridgeplan.FAULTS}),
    ),
    "documents": Nights(
        scenarios=frozenset(DOCUMENTS),
        usual={"documents": 5, "documents-lost": 2, "documents-damages": 3},
        soaked={"documents": 500, "documents-lost": 300, "documents-damages": 300, "documents-large": 50},
        met=frozenset(
            {
                "a peer that is gone: silent",
                "a peer that is gone: restarted",
                "a conflict in a document",
                "a disk from the past",
                "identities that the root had already",
            }
        ),
        done={"entries acknowledged": 101, "operations said": 101, "drained": 101},
        rules=frozenset(kind.rule for kind in DOCUMENT_RULES),
        menu=frozenset(documentplan.FAULTS),
        quick=("operation_said_before_persist", "folded_in_the_order_of_arrival", "others_have_no_room_for_more"),
    ),
    "everything": Nights(
        scenarios=frozenset(EVERYTHING),
        usual={"everything-fleet": 2, "everything-tree": 3},
        soaked={"everything": 300, "everything-fleet": 100, "everything-tree": 200},
        met=frozenset(
            {
                "an instance: register",
                "a watcher that takes everything anew",
                "a node that joined the store",
                "a clone that has everything",
                "messages sent again",
            }
        ),
        done={
            "catalog told": 20,
            "store acknowledged": 20,
            "entries acknowledged": 20,
            "clone updates": 20,
            "mail journal": 20,
        },
    ),
}
OF_ONE: Final = ("store", "catalog", "bridges", "documents")
"""Protocols with faults and checkers of their own."""
FOUND: Final = {
    32: "TCP broke, and the other end was deaf to the same socket for ever after",
    269: "a watcher that had seen everything went on in the journal of a new disk as if it were the old one",
    103: "what a dropped node alone had was counted as taken, and thrown away",
}
"""Seeds of `store-small` that were not green once."""
PLANS: Final = {"store": 100, "catalog": 100, "bridges": 100, "documents": 100, "everything": 20}
"""How many plans are looked at."""
ALONE: Final = "import sys; from weft.sim.run import run; from weft.sim.swarm import draw_plan; print(run(draw_plan(sys.argv[1], sys.argv[2])).trace_hash)"
LOADED: Final = load()


def nights_of(seeds: Seeds) -> list[tuple[str, int]]:
    """Scenario and seed of each night."""
    return [(scenario, seed) for scenario, count in seeds.items() for seed in range(count)]


def all_nights(*, soaked: bool) -> list[tuple[str, int]]:
    return [night for row in NIGHTS.values() for night in nights_of(row.soaked if soaked else row.usual)]


def bugs_of(protocol: str) -> list[str]:
    """The planted bugs that a night of the protocol shows."""
    return [name for name, bug in LOADED.items() if bug.scenario in NIGHTS[protocol].scenarios]


FIRST: Final = [nights_of(row.usual)[0] for row in NIGHTS.values()]
"""A night of each protocol, which `make test` plays; the others are left to `make prove`."""
OTHERS: Final = [night for night in all_nights(soaked=False) if night not in FIRST]
QUICK: Final = {protocol: row.quick or bugs_of(protocol) for protocol, row in NIGHTS.items()}


@lru_cache(maxsize=64)
def night(scenario: str, seed: int) -> Outcome:
    """What came of a seed; several tests look at it."""
    return run(draw_plan(str(seed), scenario))


@lru_cache(maxsize=8)
def counts(protocol: str) -> Counter[str]:
    """What the usual nights of a protocol count together."""
    return sum((night(*each).counts for each in nights_of(NIGHTS[protocol].usual)), Counter[str]())


@lru_cache(maxsize=8)
def plans(protocol: str) -> list[Plan]:
    """Some plans of a protocol."""
    return [draw_plan(str(seed), protocol) for seed in range(PLANS[protocol])]


@pytest.mark.proves("STO-012", "STO-013", "STO-030", "STO-031", "STO-032", "HEA-010", "HEA-011", "PNG-013", "CLN-010")
@pytest.mark.proves("CAT-050", "BEA-013", "BEA-022", "GSP-005", "DOC-050")
@pytest.mark.proves("FLD-041", part="whole nodes")
@pytest.mark.proves(
    "BRI-003", "BRI-005", "BRI-006", "BRI-011", "BRI-013", "MON-004", "BEA-024", part="whole nodes under faults"
)
@pytest.mark.varies("scenario,seed", FIRST, all_nights(soaked=True), prove=OTHERS)
def test_every_night_of_a_protocol_is_green(scenario: str, seed: int) -> None:
    outcome = night(scenario, seed)
    assert () == outcome.verdicts, report.failure(
        outcome, "-", f"weft sim --seed {seed} --scenario {scenario} --explain"
    )


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-021", "DEL-006")
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_once_stays_mended(seed: int) -> None:
    assert () == run(draw_plan(str(seed), "store-small")).verdicts


@pytest.mark.prove("all usual nights")
@pytest.mark.proves("SIM-010")
@pytest.mark.parametrize("protocol", NIGHTS)
def test_nights_of_a_protocol_meet_what_they_are_about(protocol: str) -> None:
    met = {name.removeprefix(PREFIX) for name, count in counts(protocol).items() if count}
    assert met >= NIGHTS[protocol].met


@pytest.mark.prove("all usual nights")
@pytest.mark.parametrize(
    ("protocol", "what", "least"), [(p, *d) for p, row in NIGHTS.items() for d in row.done.items()]
)
def test_nights_of_a_protocol_have_much_to_do(protocol: str, what: str, least: int) -> None:
    assert counts(protocol)[what] >= least


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-012")
@pytest.mark.parametrize("scenario", ["store-small", "catalog", "documents"])
def test_a_night_is_the_same_whatever_the_hash_seed(scenario: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", ALONE, "3", scenario],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert night(scenario, 3).trace_hash == told.stdout.strip()


# Plans.


@pytest.mark.proves("SIM-006", "SIM-007")
@pytest.mark.parametrize("protocol", OF_ONE)
def test_every_fault_of_a_protocol_is_drawn_and_no_other(protocol: str) -> None:
    assert NIGHTS[protocol].menu == set(chain.from_iterable(plan.menu for plan in plans(protocol)))


@pytest.mark.proves("SIM-006")
@pytest.mark.parametrize("protocol", NIGHTS)
def test_a_plan_is_read_as_it_was_written(protocol: str) -> None:
    for plan in plans(protocol):
        assert plan_hash(plan) == plan_hash(read(write(plan)))


@pytest.mark.proves("SIM-006")
@pytest.mark.parametrize("protocol", NIGHTS)
def test_what_befalls_a_night_is_something_that_can_be_done(protocol: str) -> None:
    assert set(ACTIONS) >= {action.do for plan in plans(protocol) for action in plan.actions}


def test_a_store_has_two_to_six_nodes() -> None:
    assert {2, 3, 4, 5, 6} == {len(plan.nodes) for plan in plans("store")}


# Checkers, and planted bugs for them.


@pytest.mark.varies(
    "name",
    [QUICK[protocol][0] for protocol in OF_ONE],
    [name for protocol in NIGHTS for name in bugs_of(protocol)],
    prove=[name for names in QUICK.values() for name in names if name not in {QUICK[one][0] for one in OF_ONE}],
)
def test_a_planted_bug_of_a_protocol_is_caught_by_its_checker(name: str) -> None:
    assert LOADED[name].caught_by == catch(LOADED[name]).rule


@pytest.mark.parametrize("protocol", OF_ONE)
def test_every_promise_of_a_protocol_has_a_planted_bug(protocol: str) -> None:
    assert {LOADED[name].caught_by for name in bugs_of(protocol)} >= NIGHTS[protocol].rules


@pytest.mark.prove("nights of the simulator")
@pytest.mark.parametrize(
    ("scenario", "also"), [("everything-fleet", FLEET_CHECKERS), ("everything-tree", MAIL_CHECKERS)]
)
def test_all_checkers_of_all_protocols_judge_a_night_of_everything(scenario: str, also: tuple[type, ...]) -> None:
    assert {*rules_of(draw_plan("0", scenario))} >= {*STORE_RULES, *CATALOG_RULES, *DOCUMENT_RULES, *also}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("FLD-032", "CHK-020")
@pytest.mark.parametrize("what", [f"{PREFIX}a client told storage-full", "store acknowledged"])
@pytest.mark.parametrize("seed", range(2))
def test_a_store_that_is_flooded_refuses_and_goes_on(seed: int, what: str) -> None:
    outcome = night("store-flood", seed)
    assert ((), True) == (outcome.verdicts, outcome.counts[what] > 20)
