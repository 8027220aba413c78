"""Programs that send, read and rewrite on simulated machines: whole nights, what they must show, and what must turn red."""

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import msgspec
import pytest

from weft.base.now import SECOND
from weft.base.records import Stream
from weft.checks import MAIL_CHECKERS, Fact, Violation, judge
from weft.checks.mail import (
    Conserved,
    MailComplete,
    MailOnce,
    MailOrder,
    MailWall,
    OfferedOnce,
    OneStatus,
    ReadersServed,
)
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.sim import report
from weft.sim.canaries import catch, load
from weft.sim.fleetplan import FLEET_MAIL
from weft.sim.plan import plan_hash, read, write
from weft.sim.programplan import MISDEEDS
from weft.sim.programs import ANSWERS, HABITS
from weft.sim.run import run
from weft.sim.sometimes import PREFIX
from weft.sim.swarm import draw_plan
from weft.sim.tree import Tree
from weft.wire import clients

BUGS = {name: bug for name, bug in load().items() if bug.scenario in ("mail", "chains", "readers", FLEET_MAIL)}
QUICK = (
    "mail_hacked_before_persist",
    "mail_for_one_parent_only",
    "mail_era_kept_over_a_restart",
    "identities_without_their_era",
    "identities_forgotten",
    "newest_first_into_the_outbox",
    "backlog_not_refilled_after_drop",
    "answer_not_checked_against_the_holder",
    "status_again_at_hack",
    "tags_forgotten_at_reconnect",
    "tags_forgotten_at_a_restart",
    "reader_that_is_away_has_no_turn",
    "given_up_without_a_word",
    "copies_end_uncounted",
)
PYTHON = "import sys; from weft.sim.run import run; from weft.sim.swarm import draw_plan; print(run(draw_plan(sys.argv[1], 'mail')).trace_hash)"


# Nights.


@pytest.mark.proves("CHN-033", "CHN-034", "CHN-035", "CHN-036", "CHN-042", "CHN-082")
@pytest.mark.varies("seed", range(2), range(1_000), prove=range(2, 10))
def test_messages_of_a_few_programs_come_to_the_root_once(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "mail"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario mail --explain")
    assert outcome.counts["mail journal"] > 20


@pytest.mark.proves("CHN-012", "CHN-016", "CHN-017", "CHN-019", "CHN-030", "CHN-033", "CHN-036")
@pytest.mark.varies("seed", range(1), range(500), prove=range(1, 5))
def test_programs_that_hang_and_die_and_answer_wrongly_cost_no_message(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "chains"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario chains --explain")


@pytest.mark.proves("FLD-020")
@pytest.mark.varies("seed", range(2), range(1_000), prove=range(2, 10))
def test_what_arrives_while_a_confirming_reader_or_its_node_is_away_is_confirmed_or_given_up_by_name(seed: int) -> None:
    outcome = run(draw_plan(str(seed), "readers"))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario readers --explain")


@pytest.mark.proves("CHN-031", "CHN-035", "RTE-007")
@pytest.mark.varies("seed", range(2), range(1_000), prove=range(2, 10))
def test_messages_outlive_the_machines_on_their_way(seed: int) -> None:
    outcome = run(draw_plan(str(seed), FLEET_MAIL))
    assert outcome.is_green, report.failure(outcome, "-", f"weft sim --seed {seed} --scenario {FLEET_MAIL} --explain")
    assert outcome.counts["mail journal"] > 100


@pytest.mark.prove("all usual nights")
@pytest.mark.proves("SIM-010")
def test_nights_of_programs_meet_what_they_are_about() -> None:
    counts: Counter[str] = Counter()
    for seed in range(12):
        counts += run(draw_plan(str(seed), "mail")).counts
    met = {name.removeprefix(PREFIX) for name, count in counts.items() if count}
    assert met >= {
        "a program that hears nothing",
        "sends repeated with their tags",
        "a program of whose death the kernel tells",
        *(f"an answer of habit {habit}" for habit in ("pass", "twice", "wrong-id", "wrong-reg", "die")),
    }
    assert all(counts[f"mail {box}"] for box in ("in", "out", "journal"))


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-012")
def test_a_night_of_programs_is_the_same_whatever_the_hash_seed() -> None:
    env = dict(os.environ)
    traces = {
        subprocess.run(
            [sys.executable, "-c", PYTHON, "3"],
            env={**env, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "1")
    }
    assert {run(draw_plan("3", "mail")).trace_hash} == traces


@pytest.mark.proves("SIM-006")
@pytest.mark.parametrize("scenario", ["mail", "chains"])
def test_programs_and_what_befalls_them_are_in_the_plan(scenario: str) -> None:
    done: set[str] = set()
    for seed in range(30):
        plan = draw_plan(str(seed), scenario)
        assert plan_hash(read(write(plan))) == plan_hash(plan)
        assert any(node.programs for node in plan.nodes)
        assert all(node.hands_over for node in plan.nodes if node.level != "sensor")
        done |= {action.do for action in plan.actions}
    assert done >= {"end-program", "run-program", "hang-program", "wake-program"}


def test_every_habit_is_one_that_programs_know() -> None:
    assert set(MISDEEDS) <= set(HABITS)
    assert set(HABITS) - set(ANSWERS) == {"never"}


# Planted bugs.


@pytest.mark.varies("name", QUICK[:2], tuple(BUGS), prove=QUICK[2:])
def test_a_planted_bug_of_messages_is_caught_by_its_checker(name: str) -> None:
    caught = catch(BUGS[name])
    assert (caught.rule, caught.is_right) == (BUGS[name].caught_by, True)
    assert caught.seeds <= BUGS[name].within


def test_every_promise_about_messages_has_a_planted_bug() -> None:
    assert {kind.rule for kind in MAIL_CHECKERS} <= {bug.caught_by for bug in BUGS.values()}
    assert len(BUGS) >= 8


# The checkers themselves.

SENT = Fact(0, "a", 1, "invoke", "send", ["a.p", "id peer", 1, "t", "a.p/1", True])
SPOOLED = Fact(9, "a", 1, "ok", "status", ["a.p", "id peer", 1, True, "spooled", "a.p/1"])
OUT = Fact(5, "a", 1, "durable", "mail", ["out", "a/1", 1, "t", "a.p/1", ["id", 1]])
ROOTED = Fact(20, "r", 1, "durable", "mail", ["journal", "a/1", 1, "t", "a.p/1+x", None])
TYPES = Fact(0, "", 0, "info", "mail-types", [["t", True, True]])
STARTS = [Fact(0, "a", 1, "info", "start", ["sensor", "r", 5]), Fact(0, "r", 1, "info", "start", ["root", "", 5])]
QUIET = Fact(99, "", 0, "info", "quiet", None)
LOST = Fact(15, "a", 1, "info", "disk", ["lost", [], []])


def test_what_was_called_spooled_and_never_came_is_found_and_a_lost_disk_excuses_it() -> None:
    history = [TYPES, *STARTS, SENT, OUT, SPOOLED, QUIET]
    assert isinstance(judge(MailComplete(), history), Violation)
    assert judge(MailComplete(), [*history[:-1], ROOTED, QUIET]) is None
    assert judge(MailComplete(), [*history[:-1], LOST, QUIET]) is None
    early = msgspec.structs.replace(LOST, at=8)
    assert isinstance(judge(MailComplete(), [*history[:-1], early, QUIET]), Violation)
    dropped = Fact(16, "a", 1, "event", "mail-dropped", ["a/1", 1, 3])
    assert judge(MailComplete(), [*history[:-1], dropped, QUIET]) is None


def test_what_stands_twice_at_the_root_is_found_by_its_identity_and_by_its_text() -> None:
    assert judge(MailOnce(), [SENT, OUT, ROOTED]) is None
    assert isinstance(judge(MailOnce(), [SENT, OUT, ROOTED, msgspec.structs.replace(ROOTED, at=21)]), Violation)
    other = msgspec.structs.replace(ROOTED, value=["journal", "a/2", 9, "t", "a.p/1", None])
    assert isinstance(judge(MailOnce(), [SENT, OUT, ROOTED, other]), Violation)
    assert judge(MailOnce(), [SENT, OUT, LOST, ROOTED, other]) is None


def test_what_nobody_sent_and_what_was_forged_is_found() -> None:
    assert isinstance(judge(MailOnce(), [OUT]), Violation)
    forged = msgspec.structs.replace(ROOTED, value=["journal", "a/1", 1, "t", "a.p/1!", None])
    assert isinstance(judge(MailOnce(), [SENT, OUT, forged]), Violation)


def test_a_step_back_at_the_root_is_found() -> None:
    later = msgspec.structs.replace(ROOTED, value=["journal", "a/1", 2, "t", "a.p/2", None])
    assert judge(MailOrder(), [TYPES, ROOTED, later]) is None
    assert isinstance(judge(MailOrder(), [TYPES, later, ROOTED]), Violation)
    assert judge(MailOrder(), [TYPES, LOST, later, ROOTED]) is None


def test_a_second_status_and_one_that_never_came_are_found() -> None:
    assert judge(OneStatus(), [SPOOLED, Fact(99, "a", 1, "info", "program", ["a.p", []])]) is None
    assert isinstance(judge(OneStatus(), [SPOOLED, msgspec.structs.replace(SPOOLED, at=10)]), Violation)
    assert isinstance(judge(OneStatus(), [Fact(99, "a", 1, "info", "program", ["a.p", [1]])]), Violation)


def test_what_is_said_before_it_is_durable_is_found() -> None:
    met = Fact(8, "r", 1, "durable", "met", ["a/1", [1]])
    gone = Fact(7, "a", 1, "sent", "mail", [1, 4, "a/1", 1])
    hack = Fact(9, "r", 1, "sent", "hack", ["a", 1, 4, 0])
    assert judge(MailWall(), [OUT, SPOOLED, gone, met, hack]) is None
    assert isinstance(judge(MailWall(), [gone, hack, met]), Violation)
    assert isinstance(judge(MailWall(), [SPOOLED, OUT]), Violation)
    assert judge(MailWall(), [gone, Fact(8, "a", 1, "sent", "hello", ["r", 1, 5]), hack]) is None


def test_what_is_handed_out_again_unsaid_is_found() -> None:
    first = Fact(1, "a", 1, "ok", "offered", ["a.p", "id", 1, "b/1", 7, "t", False])
    marked = msgspec.structs.replace(first, at=2, value=[*first.value[:-1], True])
    assert judge(OfferedOnce(), [TYPES, first, marked]) is None
    assert isinstance(judge(OfferedOnce(), [TYPES, first, msgspec.structs.replace(first, at=2)]), Violation)


@pytest.mark.parametrize("what, value", [("accounts", [["chain in", 9, 1]]), ("accounts", [["x", 0, -1]]), ("idle", 1)])
def test_messages_that_are_counted_and_are_nowhere_or_wait_for_nothing_are_found(what: str, value: Any) -> None:
    right = [Fact(1, "a", 1, "info", "accounts", [["chain in", 9, 0]]), Fact(1, "a", 1, "info", "idle", 0)]
    assert judge(Conserved(), right) is None
    assert isinstance(judge(Conserved(), [Fact(1, "a", 1, "info", what, value)]), Violation)


STANDING = Fact(1, "r", 1, "ok", "standing", ["watcher", "*"])
MET = Fact(8, "r", 1, "durable", "met", ["a/1", [1]])
CONFIRMED = Fact(20, "r", 1, "ok", "confirmed", ["watcher", "a/1", 1])


def test_what_a_remembered_reader_never_confirms_is_found_unless_it_was_given_up_by_name() -> None:
    history = [TYPES, STANDING, OUT, MET, QUIET]
    assert isinstance(judge(ReadersServed(), history), Violation)
    assert judge(ReadersServed(), [*history[:-1], CONFIRMED, QUIET]) is None
    given_up = Fact(20, "r", 1, "event", "given-up", ["watcher", "a/1", 1, 3])
    assert judge(ReadersServed(), [*history[:-1], given_up, QUIET]) is None
    other = msgspec.structs.replace(given_up, value=["another", "a/1", 1, 3])
    assert isinstance(judge(ReadersServed(), [*history[:-1], other, QUIET]), Violation)


def test_what_arrives_before_a_reader_stands_or_after_it_is_forgotten_is_not_owed_to_it() -> None:
    forgotten = Fact(5, "r", 1, "event", "forgotten", ["watcher", "*"])
    assert judge(ReadersServed(), [TYPES, OUT, MET, STANDING, QUIET]) is None
    assert judge(ReadersServed(), [TYPES, OUT, STANDING, forgotten, MET, QUIET]) is None
    assert isinstance(judge(ReadersServed(), [TYPES, OUT, STANDING, forgotten, STANDING, MET, QUIET]), Violation)


# A dead parent.


def over(kind: str) -> list[FilterSpec]:
    return parse_filters([{"name": kind, "kind": kind, "dir": "in", "types": ["app.*"]}])[0]


class Talker:
    """A program that sends ten messages a second, and counts its statuses."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.peer = tree, b"\x01talker"
        self.sent = 0
        self.statuses: Counter[tuple[int, bool, str]] = Counter()
        tree.attach("A", self.peer, self)
        tree.say("A", self.peer, clients.Hello(v=clients.VERSION, role="client", name="talker", id=b"talker".ljust(16)))

    def hear(self, message: clients.Answered) -> None:
        if isinstance(message, clients.Status):
            self.statuses.update([(item.tag, item.ok, item.why) for item in message.m])

    def second(self) -> None:
        numbers = range(self.sent, self.sent + 10)
        items = [clients.SendItem(tag=number, type="app.a", to=["PARENTSOF"]) for number in numbers]
        self.tree.say("A", self.peer, clients.Send(items, [b"%d" % number for number in numbers]))
        self.sent += 10
        self.tree.advance(1_000)


@pytest.mark.prove("an hour")
@pytest.mark.proves("CHN-031", "CHN-032", "CHN-036", "CHN-041")
def test_an_hour_without_a_parent_loses_nothing_doubles_nothing_and_keeps_the_order() -> None:
    tree = Tree({"A": "B", "B": "C", "C": ""}, {"B": over("forward"), "C": over("journal")})
    talker = Talker(tree)
    for _ in range(5):
        talker.second()
    tree.kill("B")
    for _ in range(3_600):
        talker.second()
    before = len(tree["C"].kept(Stream.MESSAGES))
    tree.start("B")
    for _ in range(30):
        talker.second()
    tree.advance(10_000)
    arrived = [int(record.payload) for record in tree["C"].kept(Stream.MESSAGES)]
    assert before <= 50
    assert list(range(36_350)) == arrived
    assert {(number, True, "spooled"): 1 for number in range(36_350)} == talker.statuses


@pytest.mark.prove("an hour")
@pytest.mark.soak
@pytest.mark.proves("CHN-034")
def test_an_hour_in_which_everybody_is_killed_now_and_then() -> None:
    tree = Tree({"A": "B", "B": "C", "C": ""}, {"B": over("forward"), "C": over("journal")})
    talker = Talker(tree)
    for number in range(3_600):
        if number % 300 == 299:
            name = "BC"[number // 300 % 2]
            tree.kill(name)
            talker.second()
            tree.start(name)
        talker.second()
    tree.advance(60_000)
    arrived = [int(record.payload) for record in tree["C"].kept(Stream.MESSAGES)]
    assert list(range(talker.sent)) == arrived
    assert talker.sent > 36_000
    assert tree.now.mono > 3_600 * SECOND
