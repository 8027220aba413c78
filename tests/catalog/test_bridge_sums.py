"""Bits that flip between two brokers, and brokers that know no checksums (FLD-030)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.bridgenet import Bridged, pair, without_sum
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.cores.catalog.bridgelinks import read
from weft.cores.catalog.context import BRIDGE, DIAL
from weft.cores.catalog.messages import BridgeDown, Garbled
from weft.node.channels import CHANNELS
from weft.wire.catalog import bridges as wire
from weft.wire.catalog.messages import Message

OWN = {"interfaces": {"pub": {"ip": "127.0.0.1", "port": 9}}, "topics": None, "metadata": {"place": "kitchen"}}

GREETINGS = 2


def flipped(message: Message, frame: int, bit: int) -> Message:
    """One bit of one frame is another one; the frames are as long as before."""
    frames = [message.command, message.time, *message.body]
    whole = frames[frame % len(frames)]
    at, mask = bit // 8 % len(whole), 1 << bit % 8
    frames[frame % len(frames)] = whole[:at] + bytes((whole[at] ^ mask,)) + whole[at + 1 :]
    return Message(frames[0], frames[1], tuple(frames[2:]))


def altering(number: int, change: Callable[[Message], Message]) -> Callable[[str, str, Message], Message]:
    """What a cable does that alters one message, the one of that number."""
    left = [number]

    def alter(sender: str, hearer: str, message: Message) -> Message:
        left[0] -= 1
        return change(message) if left[0] == -1 else message

    return alter


def altered(net: Bridged) -> int:
    """How many messages were refused as altered, at all brokers."""
    return sum(node.core.context.counters["bridge_dropped", "bad-sum"] for node in net.nodes.values())


def played(alter: Callable[[str, str, Message], Message]) -> Bridged:
    """Two brokers that exchange a bit of everything, and then have time enough to begin anew."""
    net = pair()
    net.alter = alter
    net.register("green", "thermo", **OWN)
    net.subscribe("blue", b"net/green/room/")
    net.run(1)
    net.register("blue", "clock", **OWN)
    net.publish("green", "thermo", b"room/temp", b"21.5")
    net.run(2)
    net.register("green", "door", **OWN)
    net.run(8)
    net.publish("green", "thermo", b"room/temp", b"21.6")
    net.run(1)
    return net


def judge(net: Bridged) -> None:
    """Both have what the other exports, as it is; nothing else was ever shown, and no credit is gone."""
    assert ["clock@blue", "door", "thermo"] == net.names("green")
    assert ["clock", "door@green", "thermo@green"] == net.names("blue")
    for broker, name in (("blue", "thermo@green"), ("green", "clock@blue")):
        assert "kitchen" == net.ask(broker, name.encode())[name]["metadata"]["place"]
    heard = [body for topic, body in net.nodes["blue"].published if topic.startswith(b"net/")]
    assert {(b"21.5",), (b"21.6",)} >= set(heard)
    assert (b"21.6",) in heard, "subscriptions are said anew, too"
    links = [link for node in net.nodes.values() for link in node.core.bridges.links.values()]
    assert [True, True] == [link.is_on for link in links]
    assert all(link.has_credit(1) for link in links)


@pytest.mark.proves("FLD-030", part="a bit that flips on a bridge is refused and counted, and changes nothing")
@settings(max_examples=60)
@given(number=st.integers(0, 30), frame=st.integers(0, 3), bit=st.integers(0, 4_000))
def test_a_flipped_bit_is_refused_and_counted_and_all_is_sent_again(number: int, frame: int, bit: int) -> None:
    net = played(altering(number, lambda message: flipped(message, frame, bit)))
    assert number < GREETINGS or altered(net) == 1, (
        "what is no JSON any more is no greeting, and is not counted as altered"
    )
    judge(net)


@pytest.mark.proves("FLD-030", part="a bit that flips on a bridge is refused and counted, and changes nothing")
def test_of_an_altered_entry_nothing_is_taken_over_and_the_end_of_the_bridge_says_why() -> None:
    net = pair()
    net.register("green", "thermo", **OWN)
    net.run(1)
    seen = Message(b"", b"", ())

    def spoil(sender: str, hearer: str, message: Message) -> Message:
        nonlocal seen
        if b"bathroom" not in b"".join(message.body) or seen.body:
            return message
        header, offer = message.body
        seen = Message(message.command, message.time, (header, offer.replace(b"bathroom", b"cathroom")))
        return seen

    net.alter = spoil
    net.say("green", b"UoU", {"name": "thermo", "id": "thermo1", "metadata": {"place": "bathroom"}})
    net.run(0.01)
    assert seen.body, "it was on its way"
    assert (1, [BridgeDown("green", "damaged on the way")]) == (
        altered(net),
        [each for each in net.nodes["blue"].told if isinstance(each, BridgeDown)],
    )
    assert "unreachable" == net.ask("blue", b"thermo@green")["state"]
    net.run(2)
    assert "bathroom" == net.ask("blue", b"thermo@green")["thermo@green"]["metadata"]["place"]


def unnamed(message: Message) -> Message:
    """One bit of the sum's name is another one."""
    return Message(message.command, message.time, (message.body[0].replace(b'"sum"', b'"sul"'), *message.body[1:]))


@pytest.mark.proves("FLD-030", part="a sum that a bit has taken away")
@pytest.mark.parametrize("number", [0, 1, 2, 3, 9])
def test_a_sum_that_a_bit_takes_away_ends_the_bridge_be_it_that_of_a_greeting(number: int) -> None:
    net = played(altering(number, unnamed))
    assert 1 == altered(net)
    judge(net)


@pytest.mark.proves("FLD-030", part="a sum that a bit has taken away")
def test_no_flipped_bit_of_a_greeting_is_taken_for_one_without_sums() -> None:
    net = pair()
    heard: list[Message] = []

    def listen(sender: str, hearer: str, message: Message) -> Message:
        heard.append(message)
        return message

    net.alter = listen
    net.run(1)
    for greeting in heard[:2]:
        assert b'"type":"hello"' in greeting.body[0]
        frames = (greeting.command, greeting.time, *greeting.body)
        for frame, bit in [(at, bit) for at, whole in enumerate(frames) for bit in range(8 * len(whole))]:
            with pytest.raises(PeerError):
                read(None, flipped(greeting, frame, bit))


@pytest.mark.proves("FLD-030", part="brokers without sums are understood")
@pytest.mark.parametrize("older", [{"green"}, {"blue"}, {"green", "blue"}])
def test_with_a_broker_that_knows_no_sums_all_goes_as_before(older: set[str]) -> None:
    net = played(lambda sender, hearer, message: without_sum(message) if sender in older else message)
    assert 0 == altered(net)
    assert ["up", "up"] == [net.ask(name, b"dbp.bridge")["bridges"][0]["state"] for name in net.nodes]
    judge(net)


@pytest.mark.proves("FLD-030", part="brokers without sums are understood")
def test_a_broker_that_is_replaced_by_an_earlier_version_is_taken_as_it_is_now() -> None:
    net = played(lambda sender, hearer, message: message)
    net.alter = lambda sender, hearer, message: without_sum(message) if sender == "green" else message
    net.restart("green")
    net.register("green", "thermo", **OWN)
    net.register("green", "door", **OWN)
    net.run(8)
    assert ["clock", "door@green", "thermo@green"] == net.names("blue")
    assert altered(net) <= 1


def test_a_stranger_whose_first_word_was_altered_is_told_so_and_not_met() -> None:
    net = pair()
    green = net.nodes["green"]
    hello = wire.message_of(wire.Hello(v=1, net="red", broker="0a", messages=10, bytes=1_000), b"T")
    source = Source(BRIDGE, b"x", None, "")
    green.core.receive(flipped(hello, 1, 40), source, net.at())
    (said,) = [effect for effect in green.core.effects() if getattr(effect, "peer", b"") == b"x"]
    answer: Any = said
    assert "bye" == json.loads(answer.message.body[0])["type"]
    assert (BRIDGE, b"x") not in green.core.bridges.links


@pytest.mark.parametrize(("channel", "is_named"), [(BRIDGE, True), (DIAL, True), ("catalog-events", False)])
def test_what_a_bridge_sends_that_is_no_message_reaches_the_core(channel: str, is_named: bool) -> None:
    assert (CHANNELS[channel].garbled is Garbled) is is_named


def test_what_is_unreadable_at_a_bridge_counts_against_no_client() -> None:
    net = pair()
    net.run(2)
    core = net.nodes["green"].core
    before = dict(core.serving.connections._bound)
    core.command(Garbled(BRIDGE, b"nobody", "unknown-command"), net.at())
    assert before == core.serving.connections._bound
