"""Bridges: entries, splits, loops and values between brokers of several networks, in virtual time."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.bridgenet import ALL, Bridged, pair, without_sum
from weft.base.effects import SendFailed, Source
from weft.cores.catalog import limits
from weft.cores.catalog.bridges import Bridges
from weft.cores.catalog.bridgestates import TABLE
from weft.cores.catalog.messages import BridgeDown, BridgeRefused, BridgeUp
from weft.wire.catalog import bridges as wire


def ring() -> Bridged:
    """Three that all know each other, and hand on."""
    of = {**ALL, "transit": True}
    return Bridged(
        green={**of, "bridge_to": ("red",)}, blue={**of, "bridge_to": ("green",)}, red={**of, "bridge_to": ("blue",)}
    )


def test_each_row_names_what_there_is() -> None:
    assert [] == [cell.do for cell in TABLE.values() if not hasattr(Bridges, cell.do)]


@pytest.mark.proves("BRI-001", "BRI-002", "BRI-003", "BRI-005", "CAT-036")
def test_what_is_registered_here_is_found_there_by_name_and_network() -> None:
    net = pair()
    net.register("green", "thermo", tags=["lab"], ip="10.0.0.5", port=9)
    net.register("blue", "clock")
    net.run(1)
    assert (["clock@blue", "thermo"], ["clock", "thermo@green"]) == (net.names("green"), net.names("blue"))
    record = net.ask("blue", b"thermo@green")["thermo@green"]
    assert (["lab"], "green", "active", "thermo1") == (
        record["tags"],
        *(record["_dbp"][key] for key in ("net", "state", "instance")),
    )
    assert "10.0.0.5" != record["ip"]
    assert [BridgeUp("green", 1, 1)] == [event for event in net.nodes["blue"].told if isinstance(event, BridgeUp)]
    assert {"hello", "snapshot"} <= {type(header).__name__.lower() for _, _, header in net.said}
    assert ["warning"] == [key for key in net.ask("blue", b"thermo") if key == "warning"]


@pytest.mark.proves("CAT-036")
def test_a_plain_name_means_one_of_another_network_where_the_settings_say_so() -> None:
    net = pair(lookup_scope="all")
    net.register("green", "thermo")
    net.run(1)
    assert "green" == net.ask("blue", b"thermo")["thermo"]["_dbp"]["net"]
    net.register("blue", "thermo")
    assert "blue" == net.ask("blue", b"thermo")["thermo"]["_dbp"]["net"]


@pytest.mark.proves("BRI-004")
def test_only_what_both_list_crosses() -> None:
    net = Bridged(
        green={"exports": ("th*", "clock")},
        blue={"imports": ("thermo", "x*"), "bridge_to": ("green",)},
        red={"bridge_to": ("green",)},
    )
    for name in ("thermo", "thunder", "clock", "xylo"):
        net.register("green", name)
    net.run(1)
    assert ["thermo@green"] == net.names("blue")
    assert ([], ["clock", "thermo", "thunder", "xylo"]) == (net.names("red"), net.names("green"))


@pytest.mark.proves("BRI-005", "BRI-003")
def test_an_entry_follows_its_origin_and_its_link_and_is_not_restored() -> None:
    net = pair()
    net.register("green", "thermo")
    net.run(1)
    net.say("green", b"UoU", {"name": "thermo", "tags": ["x"]})
    net.run(0.1)
    assert ["x"] == net.ask("blue", b"thermo@green")["thermo@green"]["tags"]
    net.deregister("green", "thermo")
    net.run(0.1)
    assert "unknown" == net.ask("blue", b"thermo@green")["state"]
    net.register("green", "thermo")
    net.run(0.1)
    net.restart("blue")
    assert [] == net.names("blue")
    net.run(1)
    assert ["thermo@green"] == net.names("blue")


@pytest.mark.proves("BRI-003", "BRI-008", "BRI-013")
def test_a_split_is_noticed_after_three_seconds_and_healed_soon_after() -> None:
    net = pair()
    net.register("green", "thermo")
    net.run(1)
    net.cut("green", "blue")
    net.run(2)
    assert ["thermo@green"] == net.names("blue")
    net.run(2)
    assert [] == net.names("blue")
    assert "unreachable" == net.ask("blue", b"thermo@green")["state"]
    assert [BridgeDown("green", "silent or gone")] == [
        each for each in net.nodes["blue"].told if isinstance(each, BridgeDown)
    ]
    net.register("green", "clock")
    net.register("blue", "door")
    net.run(20)
    assert ["door"] == net.names("blue")
    net.heal()
    net.run(2.5)
    assert ["clock@green", "door", "thermo@green"] == net.names("blue")
    assert ["clock", "door@blue", "thermo"] == net.names("green")


@pytest.mark.proves("BRI-003")
def test_two_of_one_name_are_no_bridge() -> None:
    net = Bridged(green={**ALL, "net": "lab"}, blue={**ALL, "net": "lab", "bridge_to": ("green",)})
    net.register("green", "thermo")
    net.run(5)
    assert [] == net.names("blue")
    assert BridgeRefused("lab", "same-net") in net.nodes["green"].told


@pytest.mark.proves("BRI-001", part="either may dial, and both")
def test_of_two_connections_between_two_brokers_that_both_dialled_one_stays() -> None:
    net = Bridged(green={**ALL, "bridge_to": ("blue",)}, blue={**ALL, "bridge_to": ("green",)})
    net.register("green", "thermo")
    net.run(60)
    for name in ("green", "blue"):
        told = [event for event in net.nodes[name].told if isinstance(event, BridgeUp | BridgeDown | BridgeRefused)]
        assert [BridgeUp] == [type(event) for event in told]
    net.cut("green", "blue")
    net.run(20)
    assert [] == net.names("blue")
    net.heal()
    net.run(2.5)
    assert ["thermo@green"] == net.names("blue")


@pytest.mark.proves("BRI-007")
def test_a_lost_change_is_noticed_by_the_next_or_by_a_beat_and_all_is_asked_for_again() -> None:
    net = pair()
    net.register("green", "thermo")
    net.run(1)
    net.lose = lambda sender, hearer, header: sender == "green" and isinstance(header, wire.Change)
    net.register("green", "clock")
    net.lose = lambda sender, hearer, header: False
    assert ["thermo@green"] == net.names("blue")
    net.run(1.1)
    assert ["clock@green", "thermo@green"] == net.names("blue")


@pytest.mark.proves("BRI-007", part="a new epoch")
@pytest.mark.parametrize("disk", [True, False])
def test_a_broker_that_was_killed_is_linked_again_and_both_agree(disk: bool) -> None:
    net = pair()
    net.register("green", "thermo")
    net.run(1)
    net.restart("green", disk=disk)
    net.register("green", "clock")
    net.run(15)
    assert net.names("blue") == [f"{name}@green" for name in net.names("green")]
    assert ["clock@green", "thermo@green"][: 2 if disk else 1] == net.names("blue")


@pytest.mark.proves("BRI-006")
def test_in_a_ring_each_entry_is_there_once_and_goes_the_other_way_when_a_link_is_cut() -> None:
    net = ring()
    net.register("green", "thermo")
    net.run(2)
    assert (["thermo@green"], ["thermo@green"]) == (net.names("blue"), net.names("red"))
    net.cut("green", "blue")
    net.run(6)
    assert (["thermo@green"], ["thermo@green"]) == (net.names("blue"), net.names("red"))
    net.cut("green", "red")
    net.run(8)
    assert ([], []) == (net.names("blue"), net.names("red"))
    net.heal()
    net.run(12)
    assert (["thermo@green"], ["thermo@green"]) == (net.names("blue"), net.names("red"))
    net.deregister("green", "thermo")
    net.run(1)
    assert (["unknown"] * 2) == [net.ask(name, b"thermo@green")["state"] for name in ("blue", "red")]


@pytest.mark.proves("BRI-006", part="transit is off by default")
def test_imports_go_no_further_unless_that_is_wished() -> None:
    net = Bridged(green=ALL, blue={**ALL, "bridge_to": ("green",)}, red={**ALL, "bridge_to": ("blue",)})
    net.register("green", "thermo")
    net.run(2)
    assert (["thermo@green"], []) == (net.names("blue"), net.names("red"))


@pytest.mark.proves("BRI-009")
def test_only_wanted_topics_cross_and_the_last_value_comes_first() -> None:
    net = pair()
    net.register("green", "thermo", interfaces={"pub": {"ip": "127.0.0.1", "port": 9}}, topics=None)
    net.run(1)
    net.publish("green", "thermo", b"room/a", b"20")
    net.publish("green", "thermo", b"hall", b"1")
    net.run(0.1)
    assert [] == [header for _, _, header in net.said if isinstance(header, wire.Pub)]
    net.subscribe("blue", b"net/green/room/")
    net.run(0.1)
    net.publish("green", "thermo", b"room/a", b"21")
    net.publish("green", "thermo", b"hall", b"2")
    net.run(0.1)
    told = [each for each in net.nodes["blue"].published if each[0].startswith(b"net/")]
    assert [(b"net/green/room/a", (b"20",)), (b"net/green/room/a", (b"21",))] == told
    (values,) = [net.ask("blue", b"dbp.lcv", b"room/a")["values"]]
    assert [("thermo@green", "room/a")] == [(value["publisher"], value["topic"]) for value in values]
    net.subscribe("blue", b"net/green/room/", is_on=False)
    net.run(0.1)
    net.publish("green", "thermo", b"room/a", b"22")
    net.run(0.1)
    assert 2 == len([each for each in net.nodes["blue"].published if each[0].startswith(b"net/")])


def test_publishers_of_other_networks_are_forgotten_with_their_last_value() -> None:
    net = pair(values_max=3)
    net.subscribe("green", b"net/blue/")
    net.run(1)
    green = net.nodes["green"].core
    (link,) = green.bridges.links.values()
    for number in range(20):
        header = wire.Pub(net="blue", publisher=f"p{number}", instance="1", seq=number, path=("blue",))
        green.bridges.crossing.heard(link, header, (b"room/a", b"x" * (2_000_000 if number % 2 else 1)), net.at())
    assert (3, 3) == (len(green.values), len(green.values._publishers))


@pytest.mark.proves("BRI-014")
def test_in_a_ring_a_publication_is_heard_once() -> None:
    net = ring()
    net.register("green", "thermo", interfaces={"pub": {"ip": "127.0.0.1", "port": 9}}, topics=None)
    net.run(2)
    for name in ("blue", "red"):
        net.subscribe(name, b"net/green/")
    net.run(0.5)
    for number in range(5):
        net.publish("green", "thermo", b"room/a", b"%d" % number)
    net.run(0.5)
    for name in ("blue", "red"):
        told = [body for topic, body in net.nodes[name].published if topic == b"net/green/room/a"]
        assert [(b"0",), (b"1",), (b"2",), (b"3",), (b"4",)] == told


@pytest.mark.proves("BRI-008")
def test_without_credit_values_give_way_changes_collapse_and_questions_are_busy() -> None:
    net = pair(imports=("thermo",))
    net.register("green", "thermo", interfaces={"pub": {"ip": "127.0.0.1", "port": 9}}, topics=None)
    net.subscribe("blue", b"net/green/")
    net.run(1)
    net.ask("blue", b"thermo@green")
    for name in ("green", "blue"):
        for link in net.nodes[name].core.bridges.links.values():
            link.window = (0, 0)
    for number in range(3):
        net.publish("green", "thermo", b"room/a", b"%d" % number)
        net.say("green", b"UoU", {"name": "thermo", "tags": [f"{number}"]})
    assert "busy" == json.loads(net.say("blue", b"u_U", b"nobody@green")[0].body[0])["state"]
    (door,) = [
        tag
        for tag, port in net.nodes["blue"].doors.items()
        if port == net.ask("blue", b"thermo@green")["thermo@green"]["port"]
    ]
    net.call("blue", door, b"read", b"x")
    assert "busy" == json.loads(net.nodes["blue"].relayed[-1][1].body[0])["code"]
    before = len(net.said)
    for link in net.nodes["green"].core.bridges.links.values():
        link.window = (1_000, 1 << 20)
        net.nodes["green"].core.bridges.sharing.say_late(link)
    net._pump("green")
    said = [header for _, _, header in net.said[before:]]
    assert [wire.Change, wire.Pub] == [type(header) for header in said]
    net.run(0.1)
    assert ["2"] == net.ask("blue", b"thermo@green")["thermo@green"]["tags"]
    assert (b"2",) == net.nodes["blue"].published[-1][1] or b"2" in str(net.nodes["blue"].published).encode()
    assert 2 == net.nodes["green"].core.context.counters["bridge_dropped", "credit"]


@pytest.mark.proves("BRI-008", "BRI-002")
def test_what_is_not_imported_is_asked_for_at_its_own_broker() -> None:
    net = Bridged(green={"exports": ("*",)}, blue={"bridge_to": ("green",)})
    net.register("green", "thermo")
    net.run(1)
    assert [] == net.say("blue", b"u_U", b"thermo@green")
    net.run(0.1)
    assert "active" == json.loads(net.nodes["blue"].answers[-1][1].body[0])["thermo@green"]["_dbp"]["state"]
    net.lose = lambda sender, hearer, header: isinstance(header, wire.Ask)
    assert [] == net.say("blue", b"u_U", b"thermo@green")
    net.run(2.1)
    assert "unreachable" == json.loads(net.nodes["blue"].answers[-1][1].body[0])["state"]


def test_no_more_questions_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLS_MAX", 2)
    net = Bridged(green={"exports": ("*",)}, blue={"bridge_to": ("green",)})
    net.run(1)
    net.lose = lambda sender, hearer, header: isinstance(header, wire.Ask)
    said = [net.say("blue", b"u_U", b"thermo@green") for _ in range(3)]
    assert [[], []] == said[:2]
    assert "busy" == json.loads(said[2][0].body[0])["state"]


@pytest.mark.proves("BRI-002", part="what is none changes nothing")
@pytest.mark.parametrize("body", [b"", b"{", b'{"type":"hello"}', b'{"type":"change","epoch":"zz"}', b"[" * 9_000])
def test_what_is_no_word_of_a_bridge_is_counted_and_changes_nothing(body: bytes) -> None:
    from weft.base.effects import Source
    from weft.wire.catalog.messages import Message

    net = pair()
    net.alter = lambda sender, hearer, message: without_sum(message)
    net.run(1)
    green = net.nodes["green"]
    (peer,) = [peer for channel, peer in green.core.bridges.links if channel == "catalog-bridge"]
    green.core.receive(Message(b"o=o", b"T", (body,)), Source("catalog-bridge", peer, None, ""), net.at())
    assert 1 == green.core.context.counters["bridge_dropped", "malformed"]
    net.run(2)
    assert ["up"] == [row["state"] for row in net.ask("blue", b"dbp.bridge")["bridges"]]


@pytest.mark.proves("BRI-004", part="what another network says of a service is judged as what services here say")
@pytest.mark.parametrize(
    ("record", "health"),
    [
        (b'{"weight":"x"}', "passing"),
        (b'{"tags":5}', "passing"),
        (b'{"metadata":[1]}', "passing"),
        (b"[1]", "passing"),
        (b"{}", "fine"),
    ],
)
def test_an_entry_of_another_network_that_no_service_could_have_is_refused(record: bytes, health: str) -> None:
    from msgspec import Raw

    from weft.base.effects import Source

    net = pair()
    net.register("blue", "clock")
    net.run(1)
    green = net.nodes["green"]
    ((channel, peer),) = green.core.bridges.links
    link = green.core.bridges.links[channel, peer]
    for number in (1, 2):
        offer = wire.Offer(
            net="blue",
            name="odd",
            instance=f"o{number}",
            path=("blue",),
            state="active",
            health=health,
            since=1.0,
            interval_ms=1_000,
            record=Raw(record),
        )
        change = wire.Change(
            epoch=link.epoch, index=link.index + 1, op="offer", net="blue", name="odd", instance=offer.instance
        )
        message = wire.message_of(change, b"T", (wire.encode_offer(offer),))
        green.core.receive(message, Source(channel, peer, None, ""), net.at())
    assert "unknown" == net.ask("green", b"odd@blue")["state"]
    assert ["clock@blue"] == net.names("green", tags=["lab"]) + net.names("green")
    assert 2 == sum(green.core.context.counters["bridge_dropped", code] for code in ("bad-field", "bad-json"))


def said_by(net: Bridged, hearer: str, header: wire.Header, *frames: bytes) -> None:
    """A broker hears a word over its one bridge."""
    node = net.nodes[hearer]
    ((channel, peer),) = node.core.bridges.links
    node.core.receive(wire.message_of(header, b"T", frames), Source(channel, peer, None, ""), net.at())
    net._pump(hearer)


@pytest.mark.proves("BRI-003", part="a broker that is called otherwise is another one")
@pytest.mark.parametrize("hearer", ["green", "blue"])
def test_who_greets_under_another_name_leaves_nothing_behind_under_the_old_one(hearer: str) -> None:
    net, other = pair(), {"green": "blue", "blue": "green"}[hearer]
    net.register(other, "thermo")
    net.run(1)
    said_by(net, hearer, wire.Hello(v=1, net="red", broker="0a", messages=10, bytes=1_000))
    assert ([], 0) == (net.names(hearer), len(net.nodes[hearer].core.bridges.routes))
    net.restart(other)
    net.run(10)
    assert [f"thermo@{other}"] == net.names(hearer)


@pytest.mark.proves("BRI-003", part="a refusal of a bridge that was up")
def test_who_greets_under_our_own_name_leaves_nothing_behind_either() -> None:
    net = pair()
    net.register("blue", "thermo")
    net.run(1)
    said_by(net, "green", wire.Hello(v=1, net="green", broker="0a", messages=10, bytes=1_000))
    assert ([], 0) == (net.names("green"), len(net.nodes["green"].core.bridges.routes))


@pytest.mark.proves("BRI-008", part="words that found no room")
@pytest.mark.parametrize("sayer", ["green", "blue"])
def test_a_word_that_could_not_be_said_takes_no_credit_for_ever(sayer: str) -> None:
    net = pair()
    net.register("green", "thermo")
    net.register("blue", "clock")
    net.run(1)
    node = net.nodes[sayer]
    ((channel, peer),) = node.core.bridges.links
    net.lose = lambda sender, hearer, header: isinstance(header, wire.Change)
    net.register(sayer, "late")
    net.lose = lambda sender, hearer, header: False
    node.core.command(SendFailed(channel, peer), net.at())
    net._pump(sayer)
    net.run(10)
    assert ["clock@blue", "late", "thermo"] == sorted({*net.names("green"), "late"} - {"late@blue"})
    assert [(0, 0), (0, 0)] == [
        link._open for each in net.nodes.values() for link in each.core.bridges.links.values() if link.is_on
    ]


@pytest.mark.proves("BRI-009", part="two subscriptions that want the same")
def test_what_two_subscriptions_want_goes_on_until_both_are_gone() -> None:
    net = pair()
    net.register("green", "thermo", interfaces={"pub": {"ip": "127.0.0.1", "port": 9}}, topics=None)
    net.subscribe("blue", b"net/")
    net.subscribe("blue", b"net/gre")
    net.run(1)
    net.subscribe("blue", b"net/gre", is_on=False)
    net.run(0.1)
    net.publish("green", "thermo", b"room/a", b"1")
    net.run(0.1)
    assert [(b"net/green/room/a", (b"1",))] == [each for each in net.nodes["blue"].published if each[0][:4] == b"net/"]


@pytest.mark.proves("BRI-009", part="no more than there is room for")
def test_a_subscription_that_is_said_again_where_there_is_no_room_is_not_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIBED_TOPICS_MAX", 1)
    net = pair()
    net.register("green", "thermo", interfaces={"pub": {"ip": "127.0.0.1", "port": 9}}, topics=None)
    net.subscribe("blue", b"net/green/")
    net.subscribe("blue", b"net/green/")
    net.run(1)
    net.publish("green", "thermo", b"room/a", b"1")
    net.run(0.1)
    assert [b"net/green/room/a"] == [each[0] for each in net.nodes["blue"].published if each[0][:4] == b"net/"]


@pytest.mark.proves("BRI-006", part="of publications")
@pytest.mark.parametrize(("net_of", "path"), [("red", ("blue",)), ("blue", ("red",)), ("blue", ()), ("red", ("red",))])
def test_a_publication_in_the_name_of_a_network_that_it_does_not_come_from_is_dropped(
    net_of: str, path: tuple[str, ...]
) -> None:
    net = pair()
    net.subscribe("green", b"net/")
    net.run(1)
    said_by(net, "green", wire.Pub(net=net_of, publisher="p", instance="1", seq=1, path=path), b"room/a", b"1")
    green = net.nodes["green"]
    assert [] == [each for each in green.published if each[0][:4] == b"net/"]
    assert 1 == green.core.context.counters["bridge_dropped", "malformed"]


NETS = ("a", "b", "c", "d")
DEED = st.tuples(
    st.sampled_from(("register", "remove", "cut", "heal", "restart", "wait")), st.integers(0, 3), st.integers(0, 3)
)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5, unique=True),
    st.lists(DEED, max_size=12),
)
@settings(max_examples=25, deadline=None)
@pytest.mark.proves("BRI-006", "BRI-013", "BRI-014", part="any graph of links")
def test_whatever_the_graph_and_whatever_happens_tables_agree_in_the_end(
    links: list[tuple[int, int]], deeds: list[tuple[str, int, int]]
) -> None:
    dials: dict[str, tuple[str, ...]] = dict.fromkeys(NETS, ())
    for one, other in links:
        if one != other:
            dials[NETS[one]] = (*dials[NETS[one]], NETS[other])
    net = Bridged(**{name: {**ALL, "transit": True, "bridge_to": to} for name, to in dials.items()})
    for deed, one, other in deeds:
        if deed == "register":
            net.register(NETS[one], f"s{other}")
        elif deed == "remove":
            net.deregister(NETS[one], f"s{other}")
        elif deed == "cut":
            net.cut(NETS[one], NETS[other])
        elif deed == "heal":
            net.heal()
        elif deed == "restart":
            net.restart(NETS[one])
        net.run(1.5)
    net.heal()
    net.run(30)
    local = {name: [each for each in net.names(name) if "@" not in each] for name in NETS}
    for name in NETS:
        expected = [f"{each}@{other}" for other in _reached(name, dials) for each in local[other]]
        assert sorted([*local[name], *expected]) == net.names(name)


def _reached(name: str, dials: dict[str, tuple[str, ...]]) -> set[str]:
    found = {name}
    while True:
        more = {other for one, to in dials.items() for other in to if one in found} | {
            one for one, to in dials.items() if found & set(to)
        }
        if more <= found:
            return found - {name}
        found |= more
