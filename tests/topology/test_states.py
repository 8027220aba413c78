"""Every state of a member and of an election with every input: rows do what they say, the others do nothing."""

from typing import Any

import pytest

from tests.tables.tables import pairs
from weft.base.chance import Chance
from weft.base.effects import Connect, Persist, Send, Tell
from weft.base.now import SECOND, Now
from weft.cores.topology.core import Topology
from weft.cores.topology.election import Cue, ReplicaState
from weft.cores.topology.member import Heard
from weft.cores.topology.memory import Place, Root
from weft.cores.topology.messages import (
    ElectionCalled,
    LearnPairs,
    PlaceAssigned,
    PlaceLost,
    RootLeft,
    RootTaken,
    TopologySettings,
)
from weft.cores.topology.states import ELECTION_TABLE, MEMBER_TABLE, Event, Hears, Role, Standing

NOW = Now(100 * SECOND, 100 * SECOND)
OWN = Place(parent="10.0.0.1:27500", root="10.0.0.1:27500", level="branch", group="all", tier=1)
OTHER = Place(parent="10.0.0.9:27500", root="10.0.0.1:27500", level="leaf", group="all", tier=2)


def record(node: bytes, endpoint: str) -> tuple[str, bytes]:
    value = b'{"endpoint":"%s","level":"branch","parent":"10.0.0.1:27500","tier":1}' % endpoint.encode()
    return f"/TOPO/all/node/{node.hex()}", value


def core() -> Topology:
    settings = TopologySettings(fleet="lab", name="n", level="auto", host="10.0.0.5", base_port=27_500, beacons=False)
    made = Topology(settings, b"n" * 16, 1, Chance("n"))
    made.context.recall(Root(0, b"r" * 16, "10.0.0.1:27500", "root"))
    made.context.recall(OWN)
    voters = [record(b"n" * 16, "10.0.0.5:27500"), record(b"m" * 16, "10.0.0.6:27500")]
    made.command(LearnPairs(tuple(voters), 7), NOW)
    made.wake(NOW)
    made.effects()
    return made


def kinds(made: Topology) -> list[str]:
    """What was done, by name."""
    names = []
    for effect in made.effects():
        if isinstance(effect, Tell):
            names.append(type(effect.event).__name__)
        elif isinstance(effect, Send):
            names.append(getattr(effect.message, "command", getattr(effect.message, "key", "WTF")))
        else:
            names.append(type(effect).__name__)
    return names


SAYS: dict[str, set[str]] = {
    "polo": {"polo"},
    "take_place": {Persist.__name__, PlaceAssigned.__name__},
    "rest": set(),
    "back_off": set(),
    "ask_later": set(),
    "ask_there": {"polo"},
    "warn": {"WTF"},
    "leave_place": {Persist.__name__, PlaceLost.__name__},
    "lose_place": {Persist.__name__, PlaceLost.__name__},
}


@pytest.mark.parametrize("standing, on, step", list(pairs(MEMBER_TABLE)))
def test_a_member(standing: Standing, on: Hears, step: Any) -> None:
    made = core()
    made.member.standing = standing
    made.member._turn(on, Heard("10.0.0.2:27500", 1, OTHER), NOW)
    assert (step.then if step else standing) is made.standing
    assert (SAYS[step.do] if step else set()) == {*kinds(made)}


CALLS = {Connect.__name__, ElectionCalled.__name__, "/RECOVERY/wutup"}
DOES: dict[str, set[str]] = {
    "call": CALLS,
    "call_on": set(),
    "calm": set(),
    "vote": {Persist.__name__, "VotePromised", "aye"},
    "outbid": {"yo", *CALLS},
    "say_yo": {"yo"},
    "refuse_vote": {"nay"},
    "begin": set(),
    "fetch": {PlaceAssigned.__name__},
    "ascend": {Persist.__name__, RootTaken.__name__},
    "win": {Persist.__name__, RootTaken.__name__, "/RECOVERY/iwin"},
    "wait": set(),
    "raise_bid": {Persist.__name__},
    "act": {RootTaken.__name__},
    "rest": set(),
    "submit": set(),
    "give_up": {Persist.__name__, RootLeft.__name__},
}


@pytest.mark.parametrize("role, on, turn", list(pairs(ELECTION_TABLE)))
def test_an_election(role: Role, on: Event, turn: Any) -> None:
    made = core()
    election = made.election
    election.role, election.propose = role, 5
    made.context.is_root, made.context.is_acting = role is Role.ROOT, role is Role.ACTING
    election._donors = {"10.0.0.7:27500": ReplicaState(99, "")}
    if on in (Event.MAJORITY, Event.ALONE):
        made.announcer.connect(election.voters().values(), NOW)
        made.effects()
    election._turn(on, Cue("10.0.0.6:27500", b"m" * 16, "e", 5, "alive"), NOW)
    assert (turn.then if turn else role) is made.role
    expected = DOES[turn.do] if turn else set()
    if turn and turn.do == "submit" and role in (Role.ROOT, Role.ACTING):
        expected = {Persist.__name__, RootLeft.__name__}
    assert expected == {*kinds(made)}
