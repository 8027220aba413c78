"""Updates, infos and pings: byte for byte as computed, and as real servers said them."""

from typing import Any

import pytest

from tests.store.wire.computed import COMPUTED, as_json_has_it, chain_of, group, lines, path_of, payload, value_of
from weft.base.chance import Chance
from weft.base.changes import Chain
from weft.base.errors import PeerError
from weft.cores.store.context import Context
from weft.cores.store.messages import StoreSettings
from weft.wire.store import actor, bus, pack
from weft.wire.store.messages import Info, Ping, Update
from weft.wire.store.ranges import ticks_of_wire

BUS = [line for line in lines("store-moat.jsonl") if line["direction"] == "bus"]
TOPICS = {"upd": "update", "info": "info", "ping": "wping"}
TICK_MAPS = ("missing", "known", "deleted", "have")


def _update(said: dict[str, Any]) -> Update:
    """What the words of a vector mean."""
    update = bus.decode("update", pack.pack(value_of(said)))[0]
    assert isinstance(update, Update)
    return update


def _is_said(said: dict[str, Any], message: Any) -> None:
    """Every word of a vector stands in the typed message."""
    if isinstance(message, Update):
        event = message.event
        assert chain_of(said.get("chain", said)) == event.chain
        assert path_of(said["path"]["$path"]) == event.path
        assert said["tock"] == event.tock
        assert ("value" in said) == (event.value is not None)
        if event.value is not None:
            assert value_of(said["value"]) == as_json_has_it(pack.unpack(event.value))
        assert ((said["node"], said["tick"]) if "chain" in said else None) == message.sender
        assert (said.get("at"), said.get("by", ""), said.get("ack", False)) == (event.at, event.by, message.wants_ack)
    elif isinstance(message, Info):
        assert (said["node"], said["tick"], said["tock"]) == (message.node, message.tick, message.tock)
        tops = {node: tick for node, tick in said["ticks"].items() if tick is not None} if "ticks" in said else None
        assert tops == message.ticks
        expected = [ticks_of_wire(said[key]) if key in said else None for key in TICK_MAPS]
        assert expected == [getattr(message, key) for key in TICK_MAPS]
        assert (tuple(said["node_drop"]) if "node_drop" in said else None) == message.node_drop
        chains = [chain_of(said[key]) if key in said else None for key in ("reason", "prev")]
        assert chains == [message.reason, message.prev]
    else:
        assert Ping(chain_of(said), said["tock"]) == message


@pytest.mark.proves("COD-003", "STO-001")
@pytest.mark.parametrize("name", [*group("upd-"), *group("info-"), *group("ping-seed")])
def test_message_is_read_and_written_byte_for_byte(name: str) -> None:
    line = COMPUTED[name]
    (message,) = bus.decode(TOPICS[name.partition("-")[0]], payload(line))
    _is_said(line["means"]["message"], message)
    if "tick" in line["means"]["message"]:
        assert payload(line) == bus.encode(message)


def test_ping_without_a_tick_is_said_on_with_a_tick_of_0() -> None:
    without, with_0 = (payload(COMPUTED[name]) for name in ("ping-seed-noinit", "ping-seed-init"))
    assert with_0 == bus.encode(bus.decode("wping", without)[0])


@pytest.mark.parametrize("name", [name for name in COMPUTED if name.startswith("ping-") and "frames" in COMPUTED[name]])
def test_pings_that_meet_are_read_and_written_byte_for_byte(name: str) -> None:
    frames = [bytes.fromhex(frame) for frame in COMPUTED[name]["frames"]]
    assert frames == [bus.encode(bus.decode("ping", frame)[0]) for frame in frames]


@pytest.mark.parametrize("name", group("merge-"))
def test_updates_that_meet_are_read_and_written_byte_for_byte(name: str) -> None:
    frames = [bytes.fromhex(frame) for frame in COMPUTED[name].get("frames", [])]
    assert frames == [bus.encode(bus.decode("update", frame)[0]) for frame in frames]


@pytest.mark.proves("COD-007")
@pytest.mark.parametrize("name", group("bad-"))
def test_message_that_may_not_be_said_is_refused_by_its_reason(name: str) -> None:
    means = COMPUTED[name]["means"]
    with pytest.raises(PeerError) as caught:
        _hear(means["topic"], payload(COMPUTED[name]))
    assert means["outcome"] == caught.value.code


def _hear(topic: str, data: bytes) -> None:
    """As a node that is in the middle of things."""
    (message,) = bus.decode(topic, data)
    assert isinstance(message, Update)
    context = Context(StoreSettings(name="me"), Chance("me"))
    context.takes_any_tock = False
    context.hear_tock(message.event.tock)


@pytest.mark.proves("COD-001", "COD-003", "STO-005")
def test_everything_that_real_servers_said_is_understood() -> None:
    kinds = {"update": 0, "info": 0, "ping": 0, "del": 0}
    for line in BUS:
        topic, said = line["means"]["topic"].rpartition("/")[2], line["means"]["message"]
        if topic in ("update", "info"):
            (message,) = bus.decode(topic, payload(line))
            _is_said(said, message)
        elif topic in kinds:
            _is_said_by_actor(said, actor.decode(payload(line), topic))
        else:
            continue
        kinds[topic] += 1
    assert {"update": 143, "info": 16, "ping": 183, "del": 88} == kinds


def _is_said_by_actor(said: dict[str, Any], message: Any) -> None:
    kinds = {"init": actor.Init, "vers": actor.Vers, "ping": actor.Pinged, "hist": actor.Hist}
    assert kinds[said["t"]] is type(message)
    for key in said.keys() - {"t", "override"}:
        heard = getattr(message, key)
        assert said[key] == (list(heard) if isinstance(heard, tuple) else heard)


def test_update_of_an_author_is_repeated_by_another_with_its_whole_chain() -> None:
    said = COMPUTED["upd-resend"]["means"]["message"]
    assert ("n4", 7) == _update(said).sender
    assert Chain((("n2", 4),)) == _update(said).event.chain
