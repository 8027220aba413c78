"""Whole nights: green, the same again, void when nothing happened, and red when something is wrong."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from weft.base.effects import Source
from weft.base.now import SECOND, Now
from weft.checks import CHECKERS, FLEET_CHECKERS, Checker, Same, Violation, judge
from weft.checks.history import Fact
from weft.cores.carrier.core import Carrier
from weft.node.node import Node
from weft.sim import report
from weft.sim.canaries import catch, load, planted
from weft.sim.fabric import Fabric
from weft.sim.lake import Lake
from weft.sim.links import Streams
from weft.sim.plan import Action
from weft.sim.run import Run, run
from weft.sim.sockets import Flow
from weft.sim.sometimes import SITUATIONS, unmet
from weft.sim.swarm import draw_plan

QUICK = (
    "hack_before_persist",
    "era_kept_over_a_restart",
    "cursor_before_publication",
    "silence_by_wall_clock",
    "newest_first",
    "aye_before_durable",
    "published_before_durable",
    "condition_of_a_write_not_checked",
    "next_link_by_its_old_number",
    "voter_ignores_what_is_held",
    "new_root_forgets_what_it_has",
    "death_takes_twice_as_long",
    "beacon_moves_a_child",
    "safe_believed_of_a_stranger",
    "damage_read_as_clean",
    "losses_by_damage_unannounced",
    "root_forgets_whom_it_gave_up",
    "root_forgets_whom_it_removed",
    "new_voters_outnumber_the_old_ones",
)
BUGS = load()
ROOT = Path(__file__).parents[2]
MET: dict[int, Counter[str]] = {}
"""What the nights of some seeds have met: they are the same whoever asks."""
PYTHON = "import sys; from weft.sim.run import run; from weft.sim.swarm import draw_plan; print(run(draw_plan(sys.argv[1])).trace_hash)"


@pytest.mark.proves("SIM-001", "SIM-008", "CHK-002", "JRN-042")
@pytest.mark.varies("seed", range(4), range(1_000), prove=range(4, 12))
def test_every_seed_is_green(seed: int) -> None:
    outcome = run(draw_plan(str(seed)))
    MET[seed] = outcome.counts
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --explain")


@pytest.mark.proves("SIM-008")
@pytest.mark.varies("seed", range(1), range(12), prove=range(1, 12))
def test_one_link_is_green(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "link"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario link --explain")


@pytest.mark.soak
def test_a_house_of_forty_is_green() -> None:
    assert run(draw_plan("1", "house")).is_green


@pytest.mark.prove("nights in processes of their own")
@pytest.mark.proves("SIM-012", "CHK-022")
def test_the_same_seed_is_the_same_night_whatever_the_hash_seed() -> None:
    seed = "12"
    traces = []
    for hash_seed in ("0", "1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", PYTHON, seed],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        traces.append(Fact(0, "", 0, "info", "trace", [seed, told.stdout.strip()]))
    traces.append(Fact(0, "", 0, "info", "trace", [seed, run(draw_plan(seed)).trace_hash]))
    assert judge(Same(), traces) is None


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-012")
def test_checkers_history_and_story_change_nothing() -> None:
    plan = draw_plan("9")
    bare = Run(plan, checkers=[]).go()
    told, lines = report.story(plan)
    kept = Run(plan, keep=True).go()
    assert bare.trace_hash == told.trace_hash == kept.trace_hash
    assert lines
    assert kept.history


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CHK-022")
def test_another_seed_is_another_night() -> None:
    assert run(draw_plan("1")).trace_hash != run(draw_plan("2")).trace_hash


@pytest.mark.prove("nights in processes of their own")
@pytest.mark.proves("CHK-022")
def test_effects_in_the_order_of_a_set_are_found_by_three_hash_seeds() -> None:
    spoiled = (
        "from weft.cores.carrier.links import Links\n"
        "Links.__iter__ = lambda self: iter([self._by_name[name] for name in set(self._by_name)])\n"
    )
    seed = next(str(seed) for seed in range(99) if len(draw_plan(str(seed)).nodes) > 8)
    traces = [
        Fact(0, "", 0, "info", "trace", [seed, _trace(spoiled + PYTHON.replace("; ", "\n"), seed, hash_seed)])
        for hash_seed in ("0", "1", "2")
    ]
    assert isinstance(judge(Same(), traces), Violation)


def _trace(program: str, seed: str, hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    told = subprocess.run([sys.executable, "-c", program, seed], env=env, capture_output=True, text=True, check=True)
    return told.stdout.strip()


class Watched(NamedTuple):
    """What the nodes of one night were handed, and when they were woken."""

    heard: Counter[tuple[str, type]]
    """Frames by channel and type."""
    due: list[tuple[bytes, int]]
    """Nodes, and instants at which a message made their deadline be now."""
    woken: set[tuple[bytes, int]]


@pytest.fixture(scope="module")
def watched() -> Watched:
    """A night of a small fleet, whose nodes are watched."""
    night = Watched(Counter(), [], set())
    hear, wake = Node.hear, Node.wake

    def heard(self: Node, messages: Iterable[tuple[Source, list[bytes]]], now: Now) -> None:
        messages = list(messages)
        night.heard.update((source.channel, type(frame)) for source, frames in messages for frame in frames)
        hear(self, messages, now)
        at = self.deadline()
        if at is not None and at <= now.mono:
            night.due.append((self.node, now.mono))

    def woken(self: Node, now: Now) -> None:
        night.woken.add((self.node, now.mono))
        wake(self, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "hear", heard)
        patch.setattr(Node, "wake", woken)
        assert run(draw_plan("1", "small-fleet")).is_green
    return night


@pytest.mark.proves("SIM-002")
def test_whatever_a_node_hears_is_bytes(watched: Watched) -> None:
    """Its cores are handed what it has decoded of them: `Node.hear` is the only way in for a message of others."""
    assert {bytes} == {kind for _, kind in watched.heard}
    assert {"up", "updates", "announced", "control", "call"} <= {channel for channel, _ in watched.heard}


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-011")
def test_a_run_in_which_nothing_happened_is_void_not_green() -> None:
    plan = draw_plan("4")
    silent = msgspec.structs.replace(plan, actions=(), menu=("cut-one",))
    assert run(silent).is_void
    idle = tuple(msgspec.structs.replace(node, metrics=()) for node in plan.nodes[:1])
    nobody = msgspec.structs.replace(plan, nodes=idle, links=(), actions=(), menu=(), safety_ns=SECOND)
    outcome = run(nobody)
    assert outcome.is_void
    assert not outcome.is_green


@pytest.mark.proves("CHK-005", "CHK-009", "CHK-010", "CHK-013", "CHK-014", "CHK-016", "CHK-018", "JRN-006")
@pytest.mark.varies("name", QUICK[:3], tuple(BUGS), prove=QUICK[3:])
def test_a_planted_bug_is_caught_by_its_checker(name: str) -> None:
    caught = catch(BUGS[name])
    assert (caught.rule, caught.is_right) == (BUGS[name].caught_by, True)
    assert caught.seeds <= BUGS[name].within


def test_every_bug_is_planted_where_the_product_has_something() -> None:
    for bug in BUGS.values():
        with planted(bug):
            assert bug.place


CLASSES = re.compile(r"\| \((?P<name>[a-k])\) [^|]*\| (?P<bugs>[^|]*)\|")


@pytest.mark.proves(
    "FLD-041", part="each class of break has a planted bug in the simulator, or says where its check is"
)
def test_every_class_of_break_names_its_planted_bugs() -> None:
    rows = CLASSES.findall((ROOT / "docs" / "torture.md").read_text("utf-8"))
    assert list("abcdefghijk") == [name for name, _ in rows]
    named = {name: re.findall(r"`(\w+)`", bugs) for name, bugs in rows}
    assert [] == [bug for bugs in named.values() for bug in bugs if bug not in BUGS]
    assert {"h", "i"} >= {name for name, bugs in named.items() if not bugs}
    assert {"number_taken_without_count_and_digest", "epoch_without_a_bound", "no_way_home"} <= {
        *named["b"],
        *named["d"],
    }


@pytest.mark.proves("FLD-041", part="a node is woken in the round in which its deadline comes to be now")
def test_a_node_is_woken_in_the_round_in_which_its_deadline_comes_to_be_now(watched: Watched) -> None:
    assert len(watched.due) > 10
    assert [] == [each for each in watched.due if each not in watched.woken]


def test_every_promise_has_a_planted_bug() -> None:
    judged = {bug.caught_by for bug in BUGS.values()}
    assert judged >= {kind.rule for kind in (*CHECKERS, *FLEET_CHECKERS)}
    assert len(BUGS) >= 14
    assert all(len(bug.seeds) <= 200 for bug in BUGS.values())


@pytest.mark.proves("SIM-013")
def test_a_failure_says_seed_plan_witness_story_and_how_to_repeat_it() -> None:
    bug = BUGS["hack_before_persist"]
    with planted(bug):
        outcome = run(draw_plan("3"))
        text = report.failure(outcome, "abc123", "weft sim --seed 3 --explain")
    assert outcome.verdicts
    for part in (
        "seed 3 of fabric",
        "commit abc123",
        outcome.plan_hash,
        "wall: ",
        '"kind":"sent"',
        "starts",
        "weft sim --seed 3",
    ):
        assert part in text
    assert len(text.splitlines()) >= 10


def test_what_a_core_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def wake(self: Carrier, now: Any) -> None:
        raise AssertionError("the table has no such row")

    monkeypatch.setattr(Carrier, "wake", wake)
    outcome = run(draw_plan("1"))
    assert outcome.verdicts[0].rule == "sound"
    assert "the table has no such row" in outcome.verdicts[0].why


@pytest.mark.proves("SIM-004")
def test_a_core_that_asks_to_be_woken_for_ever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Carrier, "deadline", lambda self: 0)
    plan = msgspec.structs.replace(draw_plan("1"), actions=())
    still = tuple(msgspec.structs.replace(node, late_ns=0) for node in plan.nodes)
    outcome = run(msgspec.structs.replace(plan, nodes=still))
    assert outcome.verdicts[0].rule == "sound"
    assert "without time passing" in outcome.verdicts[0].why


# Meta: a suite that cannot turn red proves nothing.


def _mute(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    (kind,) = [kind for kind in CHECKERS if kind.rule == rule]
    monkeypatch.setattr(kind, "HEARS", {})
    monkeypatch.setattr(kind, "end", Checker.end)


@pytest.mark.prove("nights of the simulator")
def test_a_checker_that_always_says_ok_leaves_its_bug_uncaught(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS["newest_first"]
    assert catch(bug, range(3)).is_right
    _mute(monkeypatch, bug.caught_by)
    assert not catch(bug, range(3)).is_right


@pytest.mark.prove("nights of the simulator")
@pytest.mark.soak
def test_a_simulator_that_drops_nothing_leaves_a_bug_uncaught(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS["socket_kept_after_silence"]
    count = catch(bug).seeds
    assert count > 0
    seeds = range(count - 1, count)  # the one that shows it
    monkeypatch.setattr(Flow, "lose", lambda self: 0)
    monkeypatch.setattr(Streams, "give_up", lambda self, child, notice_ns, channel: None)
    monkeypatch.setattr(Fabric, "cut", lambda self, here, there: None)
    assert not catch(bug, seeds).is_right


@pytest.mark.prove("nights of the simulator")
def test_a_lake_that_loses_a_segment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Lake._rename

    def rename(self: Lake, what: Any) -> None:
        if what[0].number == 3:
            self.world.call_at(self.world.at, what[2], _written(what[0]))
        else:
            right(self, what)

    monkeypatch.setattr(Lake, "_rename", rename)
    rules = {verdict.rule for seed in range(4) for verdict in run(draw_plan(str(seed))).verdicts}
    assert rules <= {"complete", "exactly_once"}
    assert rules


def _written(work: Any) -> Any:
    from weft.cores.drain.messages import SegmentWritten

    return SegmentWritten(work.stream, work.number, work.last_lsn, 1, 1, "0" * 32)


def test_a_fault_of_the_plan_is_done_once_and_at_its_time() -> None:
    plan = draw_plan("2")
    only = Action(10 * SECOND, "crash", plan.nodes[-1].name, how="torn")
    told, lines = report.story(msgspec.structs.replace(plan, actions=(only,), menu=("crash-torn",)))
    assert told.counts["did crash"] == told.counts["crashes"] == 1
    assert [line for line in lines if "is killed" in line] == [f"   10.000  {only.node:<8} is killed inside a write"]


@pytest.mark.prove("all usual nights")
@pytest.mark.proves("SIM-010")
def test_situations_are_met_and_those_that_are_not_are_named() -> None:
    counts: Counter[str] = Counter()
    for seed in range(12):
        counts += MET.get(seed) or run(draw_plan(str(seed))).counts
    missing = unmet(counts)
    assert len(SITUATIONS) - len(missing) >= 20
    assert "a parent lost: silent" not in missing
    assert unmet(Counter()) == list(SITUATIONS)
