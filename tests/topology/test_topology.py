"""Nodes of one segment find their parents by name, and no two live ones share a name."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.chance import Chance
from weft.base.effects import Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.topology import limits
from weft.cores.topology.beaconing import Beaconing
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import (
    Answer,
    Asked,
    Control,
    LinkIs,
    NameTaken,
    NodeSeen,
    NodeVanished,
    ParentAssigned,
    ParentMoved,
    PlaceAssigned,
    Stop,
    TopologySettings,
    TwinSuspected,
)
from weft.cores.topology.states import TABLE, On, State
from weft.wire import beacon, discovery
from weft.wire.beacon import Beacon

SENSOR = ("/TOPO/root", "/CONFIG/global/", "/CONFIG/all/")


def at(seconds: float) -> Now:
    return Now(round(seconds * SECOND), 1_795_000_000 * SECOND + round(seconds * SECOND))


def node(  # tidy: what a node is made of
    name: str,
    parent: str = "",
    *,
    era: int = 10,
    port: int = 27_500,
    level: str = "sensor",
    host: str = "127.0.0.1",
) -> Topology:
    settings = TopologySettings(fleet="lab", name=name, level=level, parent=parent, base_port=port, host=host)
    core = Topology(settings, name.encode().ljust(16, b"."), era, Chance(name))
    core.restore((), at(0))
    return core


def told(core: Topology) -> list[Any]:
    return [effect.event for effect in core.effects() if isinstance(effect, Tell)]


def called(core: Topology) -> list[Beacon]:
    return [effect.message for effect in core.effects() if isinstance(effect, Send)]


def hear(core: Topology, said: Beacon, seconds: float = 0.0, host: bytes = b"127.0.0.1") -> None:
    core.receive(beacon.decode(beacon.encode(said)), Source("beacon", host), at(seconds))


def talk(core: Topology, others: list[Topology], seconds: float = 0.0) -> list[str]:
    """Carry what a node says to others over links, and their answers; the commands it said."""
    commands = []
    ends = {other.context.endpoint: other for other in others}
    for effect in core.effects():
        if not isinstance(effect, Send) or effect.channel != "call":
            continue
        asked, endpoint = effect.message, effect.peer.decode()
        assert isinstance(asked, Control)
        commands.append(f"{asked.command} {endpoint}")
        if endpoint in ends:
            frames = discovery.encode_call(asked)
            ends[endpoint].receive(discovery.decode_control(frames), Source("control", b"c"), at(seconds))
            for answer in called(ends[endpoint]):
                assert isinstance(answer, Answer)
                back = discovery.decode_called(discovery.encode_control_answer(answer))
                core.receive(back, Source("call", effect.peer), at(seconds))
    return commands


def beacon_of(core: Topology) -> Beacon:
    core.wake(at(0))
    return called(core)[0]


def test_a_parent_given_by_name_is_found_by_its_beacon() -> None:
    child = node("s1", "root")
    child.wake(at(0))
    assert [] == told(child)
    hear(child, beacon_of(node("root", port=27_600, level="root")))
    place = PlaceAssigned("127.0.0.1:27600", "root", "127.0.0.1:27600", "sensor", "all", 1, 0, SENSOR)
    assert [NodeSeen("root", "root"), ParentAssigned("127.0.0.1:27607", "root"), place] == told(child)
    assert State.SETTLED is child.state


def test_a_parent_given_by_address_is_known_at_once() -> None:
    child = node("s1", "127.0.0.1:27600")
    child.wake(at(0))
    assert ParentAssigned("127.0.0.1:27607", "127.0.0.1:27600") in told(child)


def test_the_topics_of_a_static_place_follow_the_level() -> None:
    collector = node("c1", "127.0.0.1:27600", level="collector")
    collector.wake(at(0))
    place = next(event for event in told(collector) if isinstance(event, PlaceAssigned))
    assert ("127.0.0.1:27600", "collector", ("/",)) == (place.parent, place.level, place.topics)


def test_a_parent_that_comes_back_elsewhere_is_followed() -> None:
    child = node("s1", "root")
    hear(child, beacon_of(node("root", port=27_600)))
    child.command(LinkIs(is_up=True), at(0))
    child.command(LinkIs(is_up=False), at(5))
    told(child)
    hear(child, beacon_of(node("root", port=27_700, era=11)), 6)
    moved, place = told(child)
    assert (ParentMoved("127.0.0.1:27707", "root"), "127.0.0.1:27700") == (moved, place.parent)


@pytest.mark.proves("FLD-010", "SEC-015")
@pytest.mark.parametrize("era", [1, 11])
def test_a_beacon_of_the_parents_name_moved_a_child_from_a_parent_that_answers(era: int) -> None:
    child = node("s1", "root")
    hear(child, beacon_of(node("root", port=27_600)))
    child.command(LinkIs(is_up=True), at(0))
    told(child)
    hear(child, changed(beacon_of(node("root", port=27_700, era=era)), node=b"x" * 16), 10)
    assert ([], "127.0.0.1:27607") == (told(child), child.parent_endpoint)


@pytest.mark.proves("FLD-010")
def test_a_stranger_that_is_heard_first_or_most_often_keeps_no_child_from_its_parent() -> None:
    child, real = node("s1", "root"), beacon_of(node("root", port=27_600, era=11))
    false = changed(beacon_of(node("root", port=27_700, era=1)), node=b"x" * 16)
    for second in range(20):
        hear(child, false, second)
        if second % 5 == 4:  # where the parent is knocked at, it answers at once
            hear(child, real, second + 0.5)
            if child.parent_endpoint == "127.0.0.1:27607":
                child.command(LinkIs(is_up=True), at(second + 0.6))
    assert "127.0.0.1:27607" == child.parent_endpoint


def test_one_place_after_the_other_is_knocked_at_and_each_has_time_to_answer() -> None:
    child = node("s1", "root")
    for port in range(100):
        hear(child, beacon_of(node("root", port=20_000 + 10 * port)), 5 + port / 100)
    assert 1 == len([event for event in told(child) if isinstance(event, ParentAssigned | ParentMoved)])


@pytest.mark.proves("FLD-010")
def test_one_datagram_of_an_older_node_of_our_name_ended_this_one() -> None:
    new = node("twin", era=11, port=27_600)
    hear(new, beacon_of(node("twin", era=1)), 1)
    assert ["whois 127.0.0.1:27500"] == talk(new, [])  # nobody is there
    assert ([], State.SETTLED) == (told(new), new.state)
    hear(new, beacon_of(node("twin", era=1)), 1.5)
    assert [] == talk(new, [])  # not asked twice in a second


@pytest.mark.proves("FLD-010")
def test_on_loopback_another_machine_is_not_heard() -> None:
    core = node("s1", "root")
    for said in (node("root", level="root"), node("s1", era=1)):
        with pytest.raises(PeerError) as refused:
            hear(core, beacon_of(said), host=b"10.99.0.2")
        assert "other-machine" == refused.value.code
    assert ([], {}, State.SEEKING) == (told(core), core.neighbours, core.state)


@pytest.mark.proves("FLD-010")
def test_on_a_network_an_older_node_of_our_name_is_only_told_of() -> None:
    """Without keys nobody can prove there who he is; the parent refuses the second of a name over its link."""
    core = node("twin", era=11, host="10.0.0.1")
    for seconds in (1, 2, 60.5, 61.5):
        hear(core, beacon_of(node("twin", era=1)), seconds, b"10.0.0.2")
    assert [TwinSuspected("twin", "10.0.0.2:27500")] * 2 == told(core)
    assert State.SETTLED is core.state


@pytest.mark.proves("FLD-010")
@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({}, State.ENDED),
        ({"name": "other"}, State.SETTLED),
        ({"fleet": "other"}, State.SETTLED),
        ({"era": 12}, State.SETTLED),
        ({"era": "1"}, State.SETTLED),
    ],
)
def test_only_the_answer_of_an_older_node_of_our_name_ends_us(answer: dict[str, Any], state: State) -> None:
    core = node("twin", era=11, port=27_600)
    hear(core, beacon_of(node("twin", era=1)))
    said = Control("iam", "127.0.0.1:27500", b"o" * 16, {"fleet": "lab", "name": "twin", "era": 1} | answer)
    core.receive(said, Source("call", b"127.0.0.1:27500"), at(1))
    assert state is core.state
    if state is not State.ENDED:
        with pytest.raises(PeerError) as refused:  # one answer per question
            core.receive(said, Source("call", b"127.0.0.1:27500"), at(1))
        assert "unasked" == refused.value.code


def test_a_key_proves_who_answers_and_the_key_of_another_does_not() -> None:
    said = Control("iam", "127.0.0.1:27500", b"o" * 16, {"fleet": "lab", "name": "twin", "era": 1})
    core = node("twin", era=11, port=27_600)
    hear(core, beacon_of(node("twin", era=1)))
    with pytest.raises(PeerError) as refused:
        core.receive(said, Source("call", b"127.0.0.1:27500", b"p" * 16), at(1))
    assert ("not-yours", State.SETTLED) == (refused.value.code, core.state)


def test_every_node_says_who_it_is_whatever_its_place() -> None:
    for core in (node("a", "root"), node("root", level="root"), node("a", level="auto")):
        core.receive(Asked((b"",), Control("whois", "10.0.0.1:27500", b"x" * 16, {})), Source("control", b"c"), at(0))
        (answer,) = called(core)
        assert Control(
            "iam", "127.0.0.1:27500", core.node, {"fleet": "lab", "name": core.settings.name, "era": 10}
        ) == (
            answer.message  # type: ignore[attr-defined]  # an Answer
        )


def test_of_two_nodes_with_one_name_exactly_the_newer_one_ends() -> None:
    old, new = node("twin", era=10), node("twin", era=11, port=27_600)
    old_beacon, new_beacon = beacon_of(old), beacon_of(new)
    hear(old, new_beacon)
    answers = called(old)
    assert [old_beacon] == answers  # at once, not at the next beacon
    hear(new, answers[0])
    assert ["whois 127.0.0.1:27500"] == talk(new, [old])
    assert [NameTaken("twin", old.node)] == told(new)
    assert (State.ENDED, State.SETTLED) == (new.state, old.state)
    assert new.deadline() is None


def test_a_neighbour_is_forgotten_after_four_silent_beacons_or_a_goodbye() -> None:
    core = node("a")
    core.wake(at(0))
    hear(core, beacon_of(node("b")))
    hear(core, beacon_of(node("c")))
    told(core)
    leaving = node("c")
    leaving.wake(at(0))
    called(leaving)
    leaving.command(Stop(), at(1))
    hear(core, called(leaving)[0], 1)
    assert [NodeVanished("c", "sensor")] == told(core)
    core.wake(at(limits.KNOWN_NS / SECOND + 1))
    assert [NodeVanished("b", "sensor")] == told(core)


def test_a_goodbye_of_another_era_forgets_nobody() -> None:
    core = node("a")
    hear(core, beacon_of(node("b", era=12)))
    told(core)
    hear(core, changed(beacon_of(node("b", era=11)), port=0))
    assert [] == told(core)


def test_another_fleet_is_refused_and_its_own_voice_ignored() -> None:
    core = node("a")
    with pytest.raises(PeerError) as refused:
        hear(core, changed(beacon_of(node("b")), fleet="other"))
    assert "other-fleet" == refused.value.code
    hear(core, beacon_of(core))
    assert [] == told(core)


def test_it_calls_often_while_young_and_seldom_later() -> None:
    core = node("a")
    instants = []
    for _ in range(limits.BEACONS_YOUNG + 3):
        due = core.deadline()
        assert due is not None
        instants.append(due)
        core.wake(Now(due, 0))
    gaps = [later - before for before, later in itertools.pairwise(instants)]
    young = limits.BEACONS_YOUNG - 1
    assert [1_000_000_000] * young + [5_000_000_000] * (len(gaps) - young) == gaps


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("on", On)
def test_every_cell_of_the_table_names_a_method_and_only_ended_has_no_rows(state: State, on: On) -> None:
    cell = TABLE.get((state, on))
    if cell is None:
        assert state is State.ENDED or on is On.PARENT_HEARD
    else:
        assert callable(getattr(Beaconing, cell.do))


@given(st.lists(st.binary(max_size=600), max_size=2))
def test_any_datagram_is_a_beacon_or_one_typed_refusal(frames: list[bytes]) -> None:
    try:
        said = beacon.decode(frames)
    except PeerError as error:
        outcome: Any = error.code
    else:
        outcome = beacon.decode(beacon.encode(said)) == said
    assert outcome in ("bad-beacon", True)


@given(
    st.from_regex(beacon.NAME, fullmatch=True),
    st.binary(min_size=16, max_size=16),
    st.sampled_from(beacon.LEVELS),
    st.integers(0, 65_529),
    st.integers(0, 2**64 - 1),
)
def test_a_beacon_survives_the_wire(name: str, uuid: bytes, level: str, port: int, era: int) -> None:
    said = Beacon("lab", name, uuid, level, port, era)
    assert said == beacon.decode(beacon.encode(said))


@pytest.mark.parametrize(
    "text",
    [
        b"WEFTN1 lab a 00 sensor 27500 1",
        b"WEFTN1 lab a " + b"0" * 32 + b" king 27500 1",
        b"WEFTN1 lab a " + b"0" * 32 + b" root 65530 1",
        b"WEFTN1 lab a " + b"0" * 32 + b" root 27500 18446744073709551616",
        b"SHALOM 5246",
        b"WEFTN1 lab a " + b"0" * 32 + b" root 27500 1 " + b"x" * 500,
        b"\xff\xfe",
    ],
)
def test_what_is_not_exactly_a_beacon_is_refused(text: bytes) -> None:
    with pytest.raises(PeerError):
        beacon.decode([text])


def test_unknown_tokens_behind_a_beacon_are_ignored() -> None:
    said = Beacon("lab", "a", b"0" * 16, "root", 27_500, 1)
    assert said == beacon.decode([beacon.encode(said)[0] + b" mac=00 x"])


def changed(said: Beacon, **changes: Any) -> Beacon:
    return msgspec.structs.replace(said, **changes)
