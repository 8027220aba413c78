"""The words of real servers on `ping` and `del`: exactly these keys, and nothing that breaks us."""

from typing import Any

import pytest
from hypothesis import given

from tests.store.wire.computed import lines, payload
from tests.store.wire.strategies import ACTORS, some
from weft.base.errors import PeerError
from weft.wire.store import pack
from weft.wire.store.actor import Hist, Init, Pinged, Vers, decode, encode
from weft.wire.store.bus import PING_BYTES_MAX

CODES = {"malformed", "bad-type", "missing-field", "bad-field", "too-large", "wrong-dialect"}
VERS = ("node", "version", "cycle", "gap", "nodes", "splits", "n_hosts", "force_in")
KEYS = {"init": ("node",), "vers": VERS, "ping": ("node", "value", "history"), "hist": ("value", "history")}
PING = {"t": "ping", "node": "n1", "value": [4, 1], "history": ["n1", "n2"]}


def _code(said: Any, topic: str = "ping") -> str:
    try:
        decode(said if isinstance(said, bytes) else pack.pack(said), topic)
    except PeerError as error:
        return error.code
    return "accepted"


@pytest.mark.proves("COD-001")
@given(ACTORS)
def test_message_comes_back_from_its_bytes(message: Any) -> None:
    assert message == decode(encode(message))
    assert message == decode(encode(message), "del")


@given(ACTORS)
def test_message_has_exactly_the_keys_that_real_servers_know(message: Any) -> None:
    said = pack.unpack(encode(message))
    ours = ("weft",) if isinstance(message, Vers) and message.weft else ()
    assert ("t", *KEYS[said["t"]], *ours) == tuple(said)


@pytest.mark.parametrize("topic", ["ping", "del"])
def test_real_message_says_the_same_when_we_say_it(topic: str) -> None:
    heard = [line for line in lines("store-moat.jsonl") if line["means"]["topic"].endswith(f"/{topic}")]
    assert 80 < len(heard)
    for line in heard:
        said = pack.unpack(payload(line))
        said.pop("override", None)
        assert said == pack.unpack(encode(decode(payload(line), topic)))


def test_configuration_that_is_not_said_is_the_usual_one_of_its_topic() -> None:
    said = pack.pack({"t": "vers", "node": "n1"})
    assert Vers("n1") == decode(said)
    assert Vers("n1", 0, 10.0, 2.0, 5, 4, 10, force_in=False, weft="") == decode(said, "ping")
    assert Vers("n1", 1, 100.0, 10.0, 5, 4, 10) == decode(said, "del")
    some_of_it = pack.pack({"t": "vers", "node": "n1", "cycle": 2, "gap": 0.4, "force_in": 1, "weft": "1.0"})
    assert Vers("n1", 1, 2.0, 0.4, force_in=True, weft="1.0") == decode(some_of_it, "del")


def test_node_that_is_not_ready_has_no_value() -> None:
    assert Pinged("n1", None, ("n1",)) == decode(pack.pack({**PING, "value": None, "history": ["n1"]}))
    assert Hist(None, ()) == decode(pack.pack({"t": "hist", "value": None, "history": []}))
    assert Init("n1") == decode(pack.pack({"t": "init", "node": "n1", "more": [1]}))


REFUSED: list[tuple[Any, str]] = [
    ([], "bad-type"),
    (None, "bad-type"),
    (b"\xc1", "malformed"),
    (b"", "malformed"),
    (b"\x91" * 60_000, "malformed"),
    (b"\x84" + pack.pack(PING)[1:] + b"\xc0", "malformed"),
    (b"\x85" + pack.pack(PING)[1:] + b"\xa1t\xa4ping", "malformed"),
    (bytes(PING_BYTES_MAX + 1), "too-large"),
    ({"node": "n1", "tick": 1, "prev": None, "tock": 3}, "wrong-dialect"),
    ({**PING, "t": "else"}, "bad-field"),
    ({**PING, "t": 5}, "bad-field"),
    ({**PING, "node": "n 1"}, "bad-field"),
    ({**PING, "node": "n2"}, "bad-field"),
    ({**PING, "history": []}, "bad-field"),
    ({**PING, "history": ["n1", ""]}, "bad-field"),
    ({**PING, "history": ["n1"] * 65}, "bad-field"),
    ({**PING, "history": "n1"}, "bad-field"),
    ({**PING, "value": [1]}, "bad-field"),
    ({**PING, "value": [1, -1]}, "bad-field"),
    ({**PING, "value": 3}, "bad-field"),
    ({"t": "ping", "node": "n1", "history": ["n1"]}, "missing-field"),
    ({"t": "hist", "value": None}, "missing-field"),
    ({"t": "init"}, "missing-field"),
    ({"t": "vers", "node": "n1", "cycle": 0}, "bad-field"),
    ({"t": "vers", "node": "n1", "cycle": float("nan")}, "bad-field"),
    ({"t": "vers", "node": "n1", "cycle": float("inf")}, "bad-field"),
    ({"t": "vers", "node": "n1", "nodes": -1}, "bad-field"),
    ({"t": "vers", "node": "n1", "force_in": 2}, "bad-field"),
    ({"t": "vers", "node": "n1", "version": "1"}, "bad-field"),
]


@pytest.mark.proves("COD-007")
@pytest.mark.parametrize("said, expected", REFUSED)
def test_what_breaks_a_rule_is_refused_by_its_name(said: Any, expected: str) -> None:
    assert expected == _code(said)


@pytest.mark.proves("COD-007")
@given(some(ACTORS, encode))
def test_any_bytes_are_a_message_or_refused_by_a_name(data: bytes) -> None:
    try:
        message = decode(data)
    except PeerError as error:
        assert error.code in CODES
    else:
        assert message == decode(encode(message))
