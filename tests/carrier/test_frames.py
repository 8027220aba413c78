"""The bytes of a node link: the vectors in both directions, limits, and nothing but a value or a refusal."""

import json
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.base.errors import PeerError
from weft.wire import hop
from weft.wire.hop import Bye, Hack, Hello, Hop, HopItem, Refuse, Welcome

VECTORS = Path(__file__).parents[1] / "vectors"
A, B = b"\x0a" * 16, b"\x0b" * 16
ERA_A = 115592396808061089


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


def frames_of(line: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in line["frames"]]


def unhexed(value: Any) -> Any:
    """The vector's `{"bin": hex}` as bytes, everywhere."""
    if isinstance(value, dict):
        return bytes.fromhex(value["bin"]) if value.keys() == {"bin"} else {k: unhexed(v) for k, v in value.items()}
    return [unhexed(part) for part in value] if isinstance(value, list) else value


LINES = {line["id"]: line for line in lines("chains-frames.jsonl")}
NODE_LINES = [LINES[name] for name in LINES if name.startswith("h-") or name in {"beat", "bye", "n-refuse"}]


@pytest.mark.proves("CLI-003", "CLI-004")
@pytest.mark.parametrize("line", NODE_LINES, ids=lambda line: line["id"])
def test_vectors_are_read_and_written_byte_for_byte(line: dict[str, Any]) -> None:
    frames = frames_of(line)
    message = hop.decode(frames)
    assert frames == hop.encode(message)
    assert unhexed(line["means"]["header"]) == msgpack.unpackb(frames[0])


def test_what_the_vectors_mean_stands_in_the_fields() -> None:
    hello = hop.decode(frames_of(LINES["h-hello"]))
    assert Hello(v=1, role="node", name="A", id=A, era=ERA_A, first=5, next=8) == hello
    welcome = hop.decode(frames_of(LINES["h-welcome"]))
    assert isinstance(welcome, Welcome)
    assert (B, 5, 1000, 8 << 20, None) == (welcome.node, welcome.upto, welcome.win, welcome.winb, welcome.safe)
    sent = hop.decode(frames_of(LINES["h-hop"]))
    assert isinstance(sent, Hop)
    report = b'<report origin="A" type="leaf" num="%d"/>'
    expected = [(6, (A, ERA_A, 6), [report % 0]), (7, (A, ERA_A, 7), [report % 1])]
    assert expected == [(number, item.mid, frames) for number, item, frames in sent.numbered()]
    assert Hack(era=ERA_A, upto=7, win=1000, winb=8 << 20) == hop.decode(frames_of(LINES["h-hack"]))
    assert Bye("done") == hop.decode(frames_of(LINES["bye"]))


@pytest.mark.proves("CLI-003")
@pytest.mark.parametrize("name", ["x-notmap", "x-op", "x-key", "x-trunc"])
def test_refusals_of_the_vectors(name: str) -> None:
    line = LINES[name]
    expected = line["means"]["refused"]
    try:
        hop.decode(frames_of(line))
        actual = None
    except PeerError as error:
        actual = error.code
    assert expected == actual


def hop_of(*items: HopItem, frames: list[bytes], s: int = 1) -> Hop:
    return Hop(ERA_A, s, list(items), frames)


def item(n: int = 1, kind: str = "demo.report", **fields: Any) -> HopItem:
    standard: dict[str, Any] = {"mid": (A, ERA_A, 1), "type": kind, "via": (A,), "depth": 0, "ts": 0, "n": n}
    return HopItem(**standard | fields)


def refusal(frames: list[bytes]) -> str:
    with pytest.raises(PeerError) as caught:
        hop.decode(frames)
    return caught.value.code


@pytest.mark.proves("CLI-004")
def test_the_frames_of_a_batch_are_exactly_those_announced() -> None:
    header = hop.encode(hop_of(item(1), item(2), frames=[]))[0]
    assert "bad-frames" == refusal([header, b"1", b"2"])
    assert "bad-frames" == refusal([header, b"1", b"2", b"3", b"4"])
    whole = hop.decode([header, b"1", b"2", b"3"])
    assert isinstance(whole, Hop)
    assert [[b"1"], [b"2", b"3"]] == [frames for _, _, frames in whole.numbered()]
    assert "bad-frames" == refusal([*hop.encode(Bye()), b"x"])


def test_a_way_of_64_nodes_is_read_and_a_longer_one_is_refused() -> None:
    assert isinstance(hop.decode(hop.encode(hop_of(item(via=(A,) * 64), frames=[b"a"]))), Hop)
    assert "bad-header" == refusal(hop.encode(hop_of(item(via=(A,) * 65), frames=[b"a"])))


def test_an_item_without_payload_keeps_its_number() -> None:
    sent = hop_of(item(1), item(0), item(1), frames=[b"a", b"c"], s=7)
    heard = hop.decode(hop.encode(sent))
    assert isinstance(heard, Hop)
    assert [(7, [b"a"]), (8, []), (9, [b"c"])] == [(number, frames) for number, _, frames in heard.numbered()]


@pytest.mark.proves("CLI-003")
def test_limits_of_a_multipart() -> None:
    assert "bad-header" == refusal([])
    padded = msgpack.packb({"op": "beat", "x": b"p" * 65_490})
    assert hop.Beat() == hop.decode([padded])
    assert "bad-header" == refusal([msgpack.packb({"op": "beat", "x": b"p" * 65_536})])
    assert "bad-header" == refusal([hop.encode(hop.Beat())[0] + b"\xc0"])
    one = hop.encode(hop_of(item(1), frames=[]))[0]
    assert "bad-frames" == refusal([one, bytes((1 << 20) + 1)])
    assert isinstance(hop.decode([one, bytes(1 << 20)]), Hop)
    five = hop.encode(hop_of(item(5), frames=[]))[0]
    assert "bad-frames" == refusal([five, *[bytes(900_000)] * 5])
    many = hop.encode(hop_of(*[item(16)] * 17, frames=[]))[0]
    assert "bad-frames" == refusal([many, *[b""] * 272])
    assert "bad-header" == refusal(hop.encode(hop_of(frames=[])))
    assert "bad-header" == refusal(hop.encode(hop_of(item(17), frames=[b""] * 17)))
    assert "bad-header" == refusal(hop.encode(hop_of(item(), frames=[b""], s=(1 << 64) - 1)))


@pytest.mark.parametrize(
    ("kind", "is_good"),
    [("a", True), ("9.x-y_z", True), ("a" * 64, True), ("", False), ("A", False), (".a", False), ("a" * 65, False)],
)
def test_names_of_types(kind: str, is_good: bool) -> None:
    frames = hop.encode(hop_of(item(1, kind), frames=[b""]))
    assert is_good == hop.is_type(kind)
    if is_good:
        assert isinstance(hop.decode(frames), Hop)
    else:
        assert "bad-type" == refusal(frames)


@pytest.mark.parametrize(
    ("origin", "is_good"),
    [(A, True), ("n1", True), ("n" * 128, True), ("n" * 129, False), ("", False), (7, False), ([A], False)],
)
def test_origins_are_nodes_or_names(origin: Any, is_good: bool) -> None:
    frames = hop.encode(hop_of(item(1, mid=(origin, None, 1)), frames=[b""]))
    if is_good:
        assert isinstance(hop.decode(frames), Hop)
    else:
        assert "bad-header" == refusal(frames)


def test_additions_are_unknown_keys_to_other_readers() -> None:
    hack = Hack(era=1, upto=7, win=1000, winb=8 << 20, safe=3, back=True, no=[(5, "loop")])
    header = msgpack.unpackb(hop.encode(hack)[0])
    assert ["op", "era", "upto", "win", "winb", "no", "safe", "back"] == list(header)
    assert hack == hop.decode(hop.encode(hack))
    hello = Hello(v=1, role="node", name="A", id=A, era=1, first=1, next=1, had=(B, 4))
    assert ["op", "v", "role", "name", "id", "era", "first", "next", "had"] == list(
        msgpack.unpackb(hop.encode(hello)[0])
    )
    assert hello == hop.decode(hop.encode(hello))


def payload_of(line: dict[str, Any]) -> bytes:
    if "payload" in line:
        return bytes.fromhex(line["payload"])
    return b"".join(bytes.fromhex(part[1]) * (part[2] if part[0] == "repeat" else 1) for part in line["make"])


HOSTILE = [line for line in lines("hostile.jsonl") if str(line["means"].get("decoder", "")).startswith("msgpack")]


@pytest.mark.proves("FUZ-001")
@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line["id"])
def test_hostile_headers_are_refused(line: dict[str, Any]) -> None:
    payload = payload_of(line)
    assert refusal([payload]) in {"bad-header", "unknown-op"}
    assert refusal([b"\x82\xa2op\xa4beat" + payload]) == "bad-header"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ops = st.sampled_from(["hello", "welcome", "refuse", "hop", "hack", "beat", "bye", "send", ""])
keys = st.sampled_from(["v", "era", "s", "m", "n", "upto", "win", "winb", "no", "safe", "why", "mid", "type", "via"])
headers = st.builds(lambda op, rest: msgpack.packb({"op": op} | rest), ops, st.dictionaries(keys, values))


@pytest.mark.proves("FUZ-001")
@given(st.lists(st.binary(max_size=64) | headers, max_size=4))
@example([b"\x81\xa2op"])
def test_any_bytes_are_a_message_or_a_refusal(frames: list[bytes]) -> None:
    try:
        message = hop.decode(frames)
    except PeerError:
        return
    assert message == hop.decode(hop.encode(message))


@pytest.mark.proves("FUZ-001")
@given(st.sampled_from(NODE_LINES), st.data())
def test_a_damaged_vector_is_a_message_or_a_refusal(line: dict[str, Any], data: st.DataObject) -> None:
    header = bytearray(frames_of(line)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = hop.decode([bytes(header), *frames_of(line)[1:]])
    except PeerError:
        return
    assert message == hop.decode(hop.encode(message))


node_ids = st.binary(min_size=16, max_size=16)
numbers = st.integers(0, (1 << 64) - 1)
items = st.builds(
    HopItem,
    mid=st.tuples(node_ids | st.text("abc", min_size=1, max_size=8), st.none() | numbers, numbers),
    type=st.sampled_from(["weft.metric", "a", "x.y"]),
    to=st.none() | st.just(["PARENTSOF", None, 3]),
    via=st.lists(node_ids, max_size=4).map(tuple),
    depth=st.integers(0, 16),
    ts=st.integers(-(1 << 63), (1 << 63) - 1),
    fmt=st.sampled_from(["raw", "json"]),
    exp=numbers,
    n=st.integers(0, 3),
)


@st.composite
def hops(draw: st.DrawFn) -> Hop:
    batch = draw(st.lists(items, min_size=1, max_size=5))
    frames = [draw(st.binary(max_size=20)) for each in batch for _ in range(each.n)]
    return Hop(draw(numbers), draw(st.integers(1, 1 << 60)), batch, frames, draw(st.booleans()))


acks = st.builds(
    Hack,
    era=numbers,
    upto=numbers,
    win=numbers,
    winb=numbers,
    no=st.lists(st.tuples(numbers, st.text(max_size=8)), max_size=3),
    safe=st.none() | numbers,
    back=st.booleans(),
)


@pytest.mark.proves("FUZ-003")
@given(hops() | acks | st.builds(Refuse, st.text(max_size=9), st.text(max_size=9)))
def test_what_is_written_is_read_and_another_library_agrees(message: Any) -> None:
    frames = hop.encode(message)
    assert message == hop.decode(frames)
    again = msgspec.msgpack.decode(frames[0])
    assert again == msgpack.unpackb(frames[0], strict_map_key=False)
    assert frames[0] == msgpack.packb(again)


def test_a_name_has_1_to_64_characters_and_a_node_16_bytes() -> None:
    hello = hop.decode(frames_of(LINES["h-hello"]))
    assert isinstance(hello, Hello)
    for fields in ({"name": ""}, {"name": "n" * 65}, {"id": A[:15]}, {"id": A + b"x"}):
        with pytest.raises(PeerError):
            hop.decode(hop.encode(msgspec.structs.replace(hello, **fields)))
    longest = msgspec.structs.replace(hello, name="n" * 64)
    assert longest == hop.decode(hop.encode(longest))
