"""Calls of clients over bridges, in virtual time: there once, back once, or refused (BRI-011)."""

import json

import pytest

from tests.catalog.bridgenet import ALL, Bridged, pair
from weft.cores.catalog import limits
from weft.wire.catalog import bridges as wire


@pytest.mark.proves("BRI-011")
def test_a_call_goes_over_once_and_its_answer_comes_back_to_who_asked() -> None:
    net = pair()
    net.register("green", "thermo", ip="127.0.0.1", port=9100)
    net.run(1)
    record = net.ask("blue", b"thermo@green")["thermo@green"]
    assert ("127.0.0.1", 5250, 5250) == (record["ip"], record["port"], record["interfaces"]["router"]["port"])
    net.call("blue", b"1", b"read", b"kitchen")
    net.run(0.1)
    ((endpoint, call),) = net.nodes["green"].called
    assert ("127.0.0.1:9100", b"read", (b"kitchen",)) == (endpoint, call.command, call.body)
    net.answer("green", 0, b"21.5")
    net.run(0.1)
    ((peer, answer),) = net.nodes["blue"].relayed
    assert (b"1\0c", b"o_O", (b"21.5",)) == (peer, answer.command, answer.body)
    net.answer("green", 0, b"again")
    net.run(0.1)
    assert 1 == len(net.nodes["blue"].relayed)


@pytest.mark.proves("BRI-011", "BRI-008", part="what has no answer")
def test_a_call_that_nobody_answers_is_refused_once_and_never_said_again() -> None:
    net = pair()
    net.register("green", "thermo", ip="127.0.0.1", port=9100)
    net.run(1)
    net.ask("blue", b"thermo@green")
    net.call("blue", b"1", b"read", b"kitchen")
    net.run(0.5)
    net.cut("green", "blue")
    net.run(5)
    codes = [json.loads(answer.body[0])["code"] for _, answer in net.nodes["blue"].relayed]
    assert ["unreachable"] == codes
    net.heal()
    net.run(40)
    assert (1, 1) == (len(net.nodes["green"].called), len(net.nodes["blue"].relayed))


@pytest.mark.proves("BRI-011", part="what has no answer")
def test_an_answer_after_half_a_minute_is_dropped_where_the_service_is() -> None:
    net = pair()
    net.register("green", "thermo", ip="127.0.0.1", port=9100)
    net.run(1)
    net.ask("blue", b"thermo@green")
    net.call("blue", b"1", b"read", b"kitchen")
    net.run(31)
    net.answer("green", 0, b"21.5")
    net.run(1)
    ((_, refused),) = net.nodes["blue"].relayed
    assert "unreachable" == json.loads(refused.body[0])["code"]
    assert 1 == net.nodes["green"].core.context.counters["bridge_dropped", "no-answer"]
    assert 0 == net.nodes["blue"].core.context.counters["bridge_dropped", "no-answer"]


@pytest.mark.proves("BRI-011", part="idle doors")
def test_a_door_that_nobody_uses_is_closed_and_the_next_lookup_has_another() -> None:
    net = pair()
    net.register("green", "thermo", ip="127.0.0.1", port=9100)
    net.run(1)
    first = net.ask("blue", b"thermo@green")["thermo@green"]["port"]
    net.run(601)
    assert 0 == net.nodes["blue"].doors[b"1"]
    assert "port" not in net.nodes["blue"].core.book.of_name("thermo@green")[0].record
    assert first != net.ask("blue", b"thermo@green")["thermo@green"]["port"]


def chain_of_three() -> Bridged:
    """`red` reaches `green` through `blue`."""
    of = {**ALL, "transit": True}
    return Bridged(green=of, blue={**of, "bridge_to": ("green",)}, red={**of, "bridge_to": ("blue",)})


@pytest.mark.proves("BRI-011", part="calls that only pass")
def test_no_more_calls_pass_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLS_MAX", 2)
    net = chain_of_three()
    net.register("green", "thermo", ip="127.0.0.1", port=9)
    net.run(2)
    red = net.nodes["red"]
    for number in range(3):
        ((channel, peer),) = red.core.bridges.links
        link = red.core.bridges.links[channel, peer]
        link.say(
            wire.Call(id=number, net="green", name="thermo", instance="thermo1", endpoint="read", deadline_ms=5_000),
            (b"x",),
        )
    net._pump("red")
    net.run(0.1)
    assert (2, 2) == (len(net.nodes["green"].called), len(net.nodes["blue"].core.bridges.relays._carried))


@pytest.mark.proves("BRI-011", part="answers of others")
def test_a_call_is_answered_by_the_bridge_over_which_it_went_and_by_no_other() -> None:
    net = Bridged(green=ALL, blue={**ALL, "bridge_to": ("green", "red")}, red=ALL)
    net.register("green", "thermo", ip="127.0.0.1", port=9)
    net.run(1)
    port = net.ask("blue", b"thermo@green")["thermo@green"]["port"]
    (door,) = [tag for tag, bound in net.nodes["blue"].doors.items() if bound == port]
    net.call("blue", door, b"read", b"x")
    ((channel, peer),) = net.nodes["red"].core.bridges.links
    net.nodes["red"].core.bridges.links[channel, peer].say(wire.Return(1, "o_O"), (b"forged",))
    net._pump("red")
    net.run(0.1)
    assert [] == net.nodes["blue"].relayed
    net.answer("green", 0, b"21.5")
    net.run(0.1)
    assert [(b"21.5",)] == [message.body for _, message in net.nodes["blue"].relayed]
