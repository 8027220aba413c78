"""How a voter answers a call for votes, and what a candidate makes of the answers, word by word."""

from typing import Any

import pytest

from tests.topology.test_states import core
from weft.base.effects import Persist, Send, Source, Tell
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Candidates, Promised, from_record
from weft.cores.topology.messages import (
    Announcement,
    Asked,
    Control,
    LearnHolds,
    LearnPairs,
    NoteDiverged,
    ParentIs,
    RootTaken,
    VotePromised,
)
from weft.cores.topology.states import Role
from weft.wire.replication import number_of

ENDPOINT = "10.0.0.6:27500"


def at(seconds: float) -> Now:
    return Now(round((100 + seconds) * SECOND), round((100 + seconds) * SECOND))


def quiet() -> Topology:
    made = core()
    made.command(ParentIs("quiet"), at(0))
    made.effects()
    return made


def wutup(made: Topology, *, holds: int = 9, propose: int = 1, node: bytes = b"m" * 16) -> list[Any]:
    content = {"fleet": "lab", "election": "e", "propose": propose, "holds": [0, holds]}
    made.receive(Announcement("/RECOVERY/wutup", ENDPOINT, node, content), Source("announced", b""), at(0))
    return made.effects()


def said(effects: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(e.message.command, e.message.properties) for e in effects if isinstance(e, Send) and e.channel == "call"]


def answer(made: Topology, command: str, node: bytes = b"m" * 16, **properties: Any) -> list[Any]:
    message = Control(command, ENDPOINT, node, {"election": made.election.election, **properties})
    made.receive(Asked((b"",), message), Source("control", b"id"), at(0.1))
    return made.effects()


def promises(effects: list[Any]) -> list[Any]:
    records = [record for effect in effects if isinstance(effect, Persist) for record in effect.records]
    return [from_record(record) for record in records if isinstance(record, CoreRecord)]


@pytest.mark.proves("REC-011")
def test_a_vote_is_durable_before_it_is_said_and_goes_to_one_candidate_per_epoch() -> None:
    made = quiet()
    effects = wutup(made)
    assert isinstance(effects[0], Persist)
    assert [Promised(1, b"m" * 16), Candidates(((1, b"m" * 16),))] == promises(effects)
    assert [("aye", {"election": "e", "propose": 1})] == said(effects)
    again = wutup(made)  # the same candidate may ask twice
    assert [("aye", {"election": "e", "propose": 1})] == said(again)
    assert [Promised(1, b"m" * 16), Candidates(((1, b"m" * 16),))] == promises(
        again
    )  # the first may not be durable yet
    other = wutup(made, node=b"z" * 16)
    assert [("nay", {"election": "e", "why": "promised", "promised": 1})] == said(other)
    later = Topology(made.settings, made.node, 2, made.context.chance)
    later.restore(list(enumerate(made.condense(), 1)), at(0))
    later.command(ParentIs("quiet"), at(0))
    later.wake(at(0))
    later.effects()
    assert "nay" == said(wutup(later, node=b"z" * 16))[-1][0]  # also after a restart


def told_promises(effects: list[Any]) -> list[tuple[tuple[int, bytes], ...]]:
    events = [effect.event for effect in effects if isinstance(effect, Tell)]
    return [event.promises for event in events if isinstance(event, VotePromised)]


@pytest.mark.proves("REC-012")
def test_a_promise_is_told_for_as_long_as_it_may_make_a_root() -> None:
    made = quiet()
    assert [((1, b"m" * 16),)] == told_promises(wutup(made))
    both = ((1, b"m" * 16), (2, b"z" * 16))
    assert [both] == told_promises(wutup(made, propose=2, node=b"z" * 16))  # the first may have its majority already
    last = ((1, b"m" * 16), (3, b"z" * 16))
    assert [last] == told_promises(wutup(made, propose=3, node=b"z" * 16))
    later = Topology(made.settings, made.node, 2, made.context.chance)
    later.restore(list(enumerate(made.condense(), 1)), at(0))
    assert [last] == told_promises(later.effects())  # before the node starts to report
    later.command(LearnHolds(number_of(2, 9), b""), at(0))  # there was a root of epoch 2 or later: m is none of epoch 1
    later.command(ParentIs("quiet"), at(0))
    later.effects()
    content = {"fleet": "lab", "election": "e", "propose": 4, "holds": [2, 10]}
    later.receive(Announcement("/RECOVERY/wutup", ENDPOINT, b"y" * 16, content), Source("announced", b""), at(0))
    assert [((3, b"z" * 16), (4, b"y" * 16))] == told_promises(later.effects())


def test_a_full_list_of_promises_takes_no_more() -> None:
    made = quiet()
    for number in range(100):
        assert "aye" == said(wutup(made, propose=number + 1, node=b"n" * 15 + bytes([number])))[-1][0]
    assert "nay" == said(wutup(made, propose=101, node=b"z" * 16))[-1][0]


def test_who_hears_the_root_says_so() -> None:
    made = core()
    assert [("nay", {"election": "e", "why": "alive"})] == said(wutup(made))


def test_who_holds_more_says_yo_and_calls_itself() -> None:
    made = quiet()
    effects = wutup(made, holds=6)
    assert [("yo", {"election": "e"})] == said(effects)
    assert Role.CALLING is made.role
    assert Role.CALLING is (made.role if wutup(made, holds=6) else None)


def test_an_epoch_of_the_past_gets_no_vote() -> None:
    made = quiet()
    assert "nay" == said(wutup(made, propose=0))[0][0]


@pytest.mark.proves("REC-010")
def test_a_majority_of_ayes_makes_a_root_and_an_aye_of_a_stranger_is_none() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    assert Role.CALLING is made.role
    made.effects()
    assert [] == answer(made, "aye", b"stranger" * 2, propose=1)
    assert [] == answer(made, "aye", propose=2)  # of another proposal
    effects = answer(made, "aye", propose=1)
    assert Role.ROOT is made.role
    assert isinstance(effects[0], Persist)
    assert [RootTaken(1, False, 2, 3)] == [e.event for e in effects if isinstance(e, Tell)][:1]


def test_who_has_promised_its_own_epoch_away_does_not_win_it() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    wutup(made, propose=1)
    assert Role.FOLLOW is made.role
    answer(made, "aye", propose=1)
    assert Role.FOLLOW is made.role


def test_without_answers_a_candidate_calls_three_times_and_then_acts() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    proposals = []
    while made.role is Role.CALLING:
        due = made.deadline()
        assert due is not None
        made.wake(Now(due, due))
        proposals += [e.event.attempt for e in made.effects() if isinstance(e, Tell) and hasattr(e.event, "attempt")]
    assert [1, 2, 3] == proposals
    assert Role.ACTING is made.role


def test_a_candidate_waits_for_the_better_one_and_calls_again_if_it_fails() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    answer(made, "yo")
    assert Role.WAITING is made.role
    due = made.election.deadline()
    assert due == at(0.1).mono + 3 * made.context.election_ns
    made.wake(Now(due, due))
    assert Role.CALLING is made.role


def test_a_higher_promise_raises_the_bid() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    answer(made, "nay", why="promised", promised=7)
    while made.election.propose < 8:
        due = made.deadline()
        assert due is not None
        made.wake(Now(due, due))
    assert 8 == made.election.propose


def test_a_root_that_speaks_again_ends_the_call() -> None:
    made = quiet()
    made.command(ParentIs("silent"), at(0))
    made.command(ParentIs("heard"), at(1))
    assert Role.FOLLOW is made.role


DIGEST, OTHER = b"d" * 16, b"o" * 16


def holding(number: int = 7, digest: bytes = DIGEST) -> Topology:
    """A voter that holds that."""
    made = quiet()
    made.command(LearnHolds(number, digest), at(0))
    made.effects()
    return made


def holding_a_part() -> Topology:
    """A voter of late, that has not got the rest of the configuration yet."""
    made = quiet()
    made.command(LearnPairs((), 7, is_partial=True), at(0))
    made.effects()
    return made


def call_with(made: Topology, digest: bytes | None, holds: int = 7) -> list[tuple[str, dict[str, Any]]]:
    content = {"fleet": "lab", "election": "e", "propose": 1, "holds": [0, holds]}
    if digest is not None:
        content["digest"] = digest.hex()
    made.receive(Announcement("/RECOVERY/wutup", ENDPOINT, b"z" * 16, content), Source("announced", b""), at(0))
    return said(made.effects())


@pytest.mark.proves("FLD-003")
def test_a_voter_says_nay_to_who_has_other_pairs_at_the_same_number() -> None:
    assert [("nay", {"election": "e", "why": "diverged"})] == call_with(holding(), OTHER)
    assert [("nay", {"election": "e", "why": "diverged"})] == call_with(holding(), None)
    shown = {"holds": [0, 7], "digest": DIGEST.hex()}
    assert [("aye", {"election": "e", "propose": 1, **shown})] == call_with(holding(), DIGEST)
    assert ["aye"] == [word for word, _ in call_with(holding(), OTHER, holds=8)], (
        "of a higher number it has seen nothing"
    )


@pytest.mark.proves("FLD-002", "FLD-003")
def test_who_has_other_pairs_than_its_parent_has_no_vote_and_does_not_call_until_its_next_snapshot() -> None:
    made = holding()
    made.command(NoteDiverged(), at(0))
    assert [] == call_with(made, DIGEST)
    made.command(ParentIs("silent"), at(1))
    assert Role.FOLLOW is made.role
    made.command(LearnHolds(7, DIGEST), at(2))
    assert ["aye"] == [word for word, _ in call_with(made, DIGEST)]


@pytest.mark.proves("FLD-002", "REC-012")
def test_who_holds_a_part_of_the_configuration_votes_for_who_holds_more_but_never_calls() -> None:
    made = holding_a_part()
    made.command(ParentIs("silent"), at(0))
    assert Role.FOLLOW is made.role
    assert [("nay", {"election": "e", "why": "partial"})] == call_with(made, OTHER, holds=6)
    assert Role.FOLLOW is made.role
    assert ["aye"] == [word for word, _ in call_with(made, OTHER, holds=8)]


@pytest.mark.proves("REC-016")
def test_a_node_offers_its_store_to_a_root_without_a_disk_only_if_it_is_all_there() -> None:
    assert [True, False] == [made.member.portrait(at(0))["is_full"] for made in (holding(), holding_a_part())]


@pytest.mark.proves("FLD-003")
def test_a_candidate_counts_an_aye_only_of_who_has_shown_what_it_holds() -> None:
    made = holding(9)
    made.command(ParentIs("silent"), at(0))
    made.effects()
    assert Role.CALLING is made.role
    for shown in (
        {},
        {"holds": [0, 9]},
        {"holds": [0, 9], "digest": OTHER.hex()},
        {"holds": [0, 10], "digest": DIGEST.hex()},
    ):
        answer(made, "aye", propose=1, **shown)
        assert {} == made.election.granted, shown
    answer(made, "aye", propose=1, holds=[0, 9], digest=DIGEST.hex())
    assert Role.ROOT is made.role
