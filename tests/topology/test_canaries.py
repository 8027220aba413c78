"""Planted bugs: each is written as someone might really write it, and each must be caught; without it all is clean."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.topology.net import Net
from tests.topology.test_net import ROOT, fleet, start_all
from weft.base.chance import Chance
from weft.base.effects import Source, Tell
from weft.base.endpoints import LINK, shifted
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.topology import beaconing as beaconing_module
from weft.cores.topology import election, limits, registry
from weft.cores.topology.atlas import NodeRecord
from weft.cores.topology.beaconing import Beaconing
from weft.cores.topology.core import Topology
from weft.cores.topology.election import Cue, Election
from weft.cores.topology.member import Member
from weft.cores.topology.memory import Promised
from weft.cores.topology.messages import Announcement, Beacon, LinkIs, ParentMoved, StopNodes, TopologySettings
from weft.cores.topology.registry import Asker, Registry
from weft.cores.topology.states import Hears


def root_killed() -> list[str]:
    net = start_all(fleet(Net("canary"), collectors=3, sensors=2))
    net["root"].crash()
    net.run(20)
    return net.wrong


def root_killed_while_one_lags() -> list[str]:
    """c2 is cut from the root when the last writes come, and has the higher UUID."""
    net = start_all(fleet(Net("canary"), collectors=2, sensors=0))
    net.cut(["root"], ["c2"])
    net.add("late", "10.0.2.9:27500", join=(ROOT,)).start()
    net.run(2)
    net["root"].crash()
    net.heal()
    net["late"].crash()
    net.run(20)
    return net.wrong


def acting() -> list[str]:
    net = start_all(fleet(Net("canary"), collectors=1, sensors=1))
    net["root"].crash()
    net.run(12)
    net.add("late", "10.0.2.9:27500", join=(net["c1"].endpoint,)).start()
    net.run(3)
    return net.wrong


def mass_start() -> list[str]:
    """The root learns of nodes that nobody told about it, each by a fresh connection."""
    net = Net("canary", beat_ns=10 * SECOND)
    net.configure(site={"members": ["10.0.2.1:27500"]})
    net.add("root", ROOT, level="root").start()
    net.run(21)
    for i in (1, 2):
        net.add(f"s{i}", f"10.0.2.{i}:27500").start()
    net["root"].apply({"/CONFIG/site/members": b'["10.0.2.1:27500","10.0.2.2:27500"]'}, net["root"].number + 1)
    took = net.run_until(net.is_settled, 60)
    return net.wrong + ([] if took is not None and took < 1 else [f"not within a second: {took}"])


def one_group_stopped() -> list[str]:
    net = Net("canary")
    net.configure(g1={"members": ["10.1.0.0/16"]}, g10={"members": ["10.10.0.0/16"]})
    net.add("root", ROOT, level="root")
    net.add("a", "10.1.0.1:27500", join=(ROOT,))
    net.add("b", "10.10.0.1:27500", join=(ROOT,))
    start_all(net)
    net.said.clear()
    net["root"].order(StopNodes(1, "g1"))
    net.run(3)
    asked = [name for _, name, command, _ in net.said if command == "polo"]
    return [f"{name} was called with g1" for name in asked if name != "a"]


def a_stranger_beacons() -> list[str]:
    """A child and a node with a common name hear what anybody can say by datagram (FLD-010)."""
    settings = TopologySettings(fleet="lab", name="s1", level="sensor", parent="root", base_port=27_510)
    core = Topology(settings, b"s" * 16, 10, Chance("canary"))
    core.restore((), Now(0, 0))

    def hear(name: str, port: int, host: bytes) -> None:
        with contextlib.suppress(PeerError):
            core.receive(Beacon("lab", name, b"f" * 16, "root", port, 1), Source("beacon", host), Now(20 * SECOND, 0))

    hear("root", 27_500, b"127.0.0.1")
    core.command(LinkIs(is_up=True), Now(SECOND, 0))
    core.effects()
    hear("root", 29_500, b"127.0.0.1")
    hear("s1", 29_500, b"127.0.0.1")
    hear("stranger", 29_500, b"10.0.0.9")
    return [type(effect.event).__name__ for effect in core.effects() if isinstance(effect, Tell)]


def aye_before_durable(self: Election, cue: Cue, now: Any) -> None:
    self.context.say(cue.endpoint, "aye", {"election": cue.election, "propose": cue.propose})
    self.context.remember(Promised(cue.propose, cue.node))


def acting_root_writes(self: Registry, asker: Asker) -> None:
    self._seat(asker, "site", self.context.started_at)  # type: ignore[arg-type]  # the time is not looked at


def record_holds_its_parents(record: Any) -> bytes:
    import msgspec

    plain = msgspec.to_builtins(record)
    if isinstance(record, NodeRecord):
        plain["parent"] = {"endpoint": record.parent, "level": "branch"}
    return msgspec.json.encode(plain, order="sorted")


def g1_matches_g10(self: Member, said: Announcement, epoch: int) -> Hears | None:
    return Hears.CALL if self.context.place.group.startswith(said.group) else None


def number_only(holds: Any) -> int:
    return 0


def twin_believed(self: Beaconing, heard: Any, now: Any) -> None:
    self.give_way(heard.beacon.node, now)


def parent_followed(self: Beaconing, heard: Any, now: Any) -> None:
    if shifted(heard.endpoint, LINK) != self.parent_endpoint:
        self._assign(ParentMoved, heard.endpoint, heard.beacon.level)


class Canary(NamedTuple):
    """`place.attribute` is wrong; `scenario` says what came of it."""

    scenario: Callable[[], list[str]]
    place: Any
    attribute: str
    bug: Any


CANARIES: dict[str, Canary] = {
    "aye before durable": Canary(root_killed, Election, "vote", aye_before_durable),
    "voter ignoring holds": Canary(
        root_killed_while_one_lags, Election, "rank", property(lambda self: (0, self.context.node))
    ),
    "acting root writing": Canary(acting, Registry, "answer_as_recorded", acting_root_writes),
    "first MARCO not repeated": Canary(mass_start, limits, "MARCO_BURST_NS", (0,)),
    "record holding its parent's record": Canary(root_killed, registry, "value_of", record_holds_its_parents),
    "twin believed by its datagram": Canary(a_stranger_beacons, Beaconing, "ask_twin", twin_believed),
    "parent followed while it answers": Canary(a_stranger_beacons, Beaconing, "follow", parent_followed),
    "another machine heard on loopback": Canary(
        a_stranger_beacons, beaconing_module, "is_loopback", lambda host: host == "10.0.0.9"
    ),
    "g1 matching g10": Canary(one_group_stopped, Member, "_judge", g1_matches_g10),
}


@pytest.mark.parametrize("name", CANARIES)
def test_a_planted_bug_is_caught_and_without_it_all_is_clean(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = CANARIES[name]
    assert [] == canary.scenario()
    monkeypatch.setattr(canary.place, canary.attribute, canary.bug)
    if canary.attribute == "rank":
        monkeypatch.setattr(election, "_number", number_only)
    try:
        found = canary.scenario()
    except (AssertionError, TypeError, AttributeError) as error:
        found = [repr(error)]
    assert [] != found
