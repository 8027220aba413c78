"""Roots that are none: what anybody can say of a root, and what a fleet makes of it (FLD-010, FLD-011)."""

from typing import Any

import pytest

from tests.topology.net import Machine, Net
from tests.topology.test_net import fleet, settle, start_all
from weft.base.effects import Source
from weft.base.records import CoreRecord
from weft.cores.topology.context import Context
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Memory, Place, Promised, Root, from_record, to_record
from weft.cores.topology.messages import Announcement, Asked, Control, ResetRoot, RootLeft, RootReset, Wtf

NOWHERE = "10.66.0.1:27500"
LIAR = b"f" * 16


def grown() -> Net:
    return start_all(fleet(Net("wrong"), collectors=3, sensors=2))


def without_voters() -> Net:
    net = fleet(Net("sensors"), collectors=0, sensors=3)
    for name in ("s1", "s2", "s3"):
        net[name].settings["level"] = "sensor"
    return start_all(net)


def marco(epoch: int, endpoint: str = NOWHERE, **more: Any) -> Announcement:
    content = {"fleet": "lab", "epoch": epoch, "count": 1, "protocol": 1, "holds": [epoch, 1], "why": "start"}
    return Announcement("/MARCO", endpoint, LIAR, content | more)


def tell_all(net: Net, said: Any, channel: str = "announced") -> None:
    for machine in net.machines.values():
        machine.hear(said, Source(channel, b"liar"))


def kept(machine: Machine) -> list[Any]:
    found = [from_record(record) for _, record in machine.disk if isinstance(record, CoreRecord)]
    return [memory for memory in found if isinstance(memory, Root | Promised)]


def harm(net: Net) -> list[str]:
    """What of it is not as it was in a fleet whose root, of epoch 0, has lived all the time."""
    wrong = [f"{m.name} keeps {memory}" for m in net.machines.values() for memory in kept(m) if memory.epoch > 1]
    return [*wrong, *astray(net)]


def astray(net: Net) -> list[str]:
    """The same, whatever was kept meanwhile."""
    wrong = [f"{m.name} follows {m.following}" for m in net.machines.values() if m.following == NOWHERE]
    wrong += ["the root gave way"] if any(isinstance(event, RootLeft) for event in net["root"].events) else []
    wrong += [] if net["root"].is_root else ["the root leads no longer"]
    return [*wrong, *net.wrong, *([] if net.is_settled() else net.unsettled())]


def marco_of_a_far_epoch() -> Net:
    net = grown()
    for _ in range(3):
        tell_all(net, marco(4_000_000))
        net.run(5)
    net.run(30)
    return net


def marco_of_the_next_epoch() -> Net:
    net = grown()
    for _ in range(3):
        tell_all(net, marco(1))
        net.run(5)
    net.run(60)
    return net


def a_call_for_votes_in_a_far_epoch() -> Net:
    """The root is silent for a moment, so that the vote of everybody is free."""
    net = grown()
    collectors = [f"c{number}" for number in (1, 2, 3)]
    net.cut(["root"], collectors)
    net.run(4)
    said = {"fleet": "lab", "election": "e", "propose": 4_000_000, "holds": [4_000_000, 1]}
    tell_all(net, Announcement("/RECOVERY/wutup", NOWHERE, b"\xff" * 16, said))
    net.heal()
    net.run(30)
    return net


@pytest.mark.proves("FLD-011", part="epochs grow by bounded steps")
def test_a_forged_marco_of_epoch_4_000_000_was_followed_by_all_and_demoted_the_root() -> None:
    net = marco_of_a_far_epoch()
    assert [] == harm(net)
    assert {"root", "c1", "c2", "c3", "s1", "s2"} == {name for name, code in net.refused if code == "epoch-jump"}


@pytest.mark.proves("FLD-010")
def test_a_forged_marco_of_the_next_epoch_is_asked_for_and_forgotten() -> None:
    net = marco_of_the_next_epoch()
    assert [] == harm(net)
    assert "polo" in [command for _, name, command, _ in net.said if name == "root"]


def test_a_vote_in_epoch_4_000_000_is_promised_to_nobody() -> None:
    net = a_call_for_votes_in_a_far_epoch()
    assert [] == harm(net)
    assert "epoch-jump" in [code for _, code in net.refused]


@pytest.mark.proves("FLD-010")
def test_a_refusal_that_names_another_root_demotes_nobody() -> None:
    net = grown()
    for epoch in (1, 4_000_000):
        wtf = Wtf(9, f"epoch {epoch} is led by {NOWHERE}")
        net["root"].hear(Asked((b"",), wtf), Source("control", b"liar"))
        net.run(10)
    assert [] == harm(net)


@pytest.mark.proves("FLD-010")
def test_a_marco_that_names_a_node_that_is_no_root_demotes_nobody() -> None:
    net = grown()
    tell_all(net, marco(1, net["c1"].endpoint))
    net.run(30)
    assert [] == harm(net)


def follow_a_liar(net: Net) -> None:
    """Somebody who lies, and answers, takes all but the root; then it is gone. Nothing on an open network prevents this."""
    for machine in net.machines.values():
        if machine.name == "root":
            continue
        machine.hear(marco(2), Source("announced", b"liar"))
        place = {"parent": NOWHERE, "root": NOWHERE, "level": "leaf", "group": "site", "tier": 1, "epoch": 2}
        said = Control("assignment", machine.endpoint, machine.node, {**place, "root_uuid": LIAR.hex()})
        machine.hear(said, Source("call", NOWHERE.encode()))
    net.run(0.1)
    assert {NOWHERE, ""} == {machine.following for machine in net.machines.values()}


@pytest.mark.proves("FLD-011", part="a fleet that followed a wrong root finds back")
def test_a_fleet_that_followed_a_wrong_root_finds_back_when_the_root_of_record_speaks() -> None:
    net = grown()
    follow_a_liar(net)
    settle(net, 60)
    net.run(10)
    assert (True, 0) == (net["root"].is_root, net["root"].epoch)
    assert {0} == {machine.core.context.root.epoch for machine in net.machines.values()}


@pytest.mark.proves("FLD-011", part="a fleet that followed a wrong root finds back")
def test_a_wrong_root_that_vanished_is_left_by_a_fleet_in_which_nobody_votes() -> None:
    net = without_voters()
    follow_a_liar(net)
    settle(net, 60)
    assert (True, 0) == (net["root"].is_root, net["root"].epoch)
    assert {0} == {machine.core.context.root.epoch for machine in net.machines.values()}
    assert [] == net.wrong


def test_a_silent_root_that_the_configuration_names_is_not_left_for_one_of_the_past() -> None:
    """The way home leads only to the root that the own configuration names."""
    net = grown()
    net["root"].crash()
    net.run(20)
    root = net.root
    assert root is not None
    follower = next(m for m in net.machines.values() if m.up and m is not root)
    past = marco(0, "10.0.0.1:27500")
    net.cut([root.name], [m.name for m in net.machines.values() if m is not root])
    net.run(8)
    follower.hear(past, Source("announced", b""))
    assert "polo" not in [word for at, name, word, _ in net.said if name == follower.name and at >= net.mono]


def test_a_fleet_that_waits_for_a_root_that_never_was_is_mended_by_hand() -> None:
    """As versions before left it: all have promised epoch 4,000,000, and follow a root that is not there."""
    net = grown()
    for machine in net.machines.values():
        machine.crash()
        wrong: tuple[Memory, ...] = (Root(4_000_000, LIAR, NOWHERE), Promised(4_000_000, LIAR), Place())
        machine.disk += [(len(machine.disk) + n, to_record(memory)) for n, memory in enumerate(wrong, 1)]
        machine.start()
    net.run(30)
    assert None is net.root
    for machine in net.machines.values():
        machine.order(ResetRoot(1))
    settle(net, 60)
    answers = {machine.name: machine.replies[0] for machine in net.machines.values()}
    assert RootReset(NOWHERE, 4_000_000, "becomes-root") == answers.pop("root")
    assert {RootReset(NOWHERE, 4_000_000, "seeks")} == set(answers.values())
    assert (True, 0) == (net["root"].is_root, net["root"].epoch)
    assert [] == net.wrong
    net["root"].order(ResetRoot(2))
    assert RootReset(net["root"].endpoint, 0, "leads") == net["root"].replies[-1]


def any_epoch(self: Context, epoch: int) -> None:
    """Whatever anybody says is taken for the epoch of the fleet."""


def believed_at_once(self: Topology, cue: Any, now: Any) -> None:
    if self.election.is_above(cue):
        if self._is_member:
            self.election.crowned(cue, now)
        else:
            self._give_way(cue, now)


def nobody_is_of_record(self: Context, node: bytes) -> bool:
    return False


def found_home() -> Net:
    net = grown()
    follow_a_liar(net)
    net.run(60)
    return net


def found_home_without_voters() -> Net:
    net = without_voters()
    follow_a_liar(net)
    net.run(60)
    return net


@pytest.mark.parametrize(
    ("scenario", "judge", "place", "attribute", "bug"),
    [
        (a_call_for_votes_in_a_far_epoch, harm, Context, "check_epoch", any_epoch),
        (marco_of_the_next_epoch, harm, Topology, "_hear_root", believed_at_once),
        (found_home, astray, Context, "is_of_record", nobody_is_of_record),
        (found_home_without_voters, astray, Context, "is_of_record", nobody_is_of_record),
    ],
)
def test_a_planted_bug_is_caught(
    scenario: Any, judge: Any, place: Any, attribute: str, bug: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # tidy: a row of the table, and the patch
    assert [] == judge(scenario())
    monkeypatch.setattr(place, attribute, bug)
    assert [] != judge(scenario())
