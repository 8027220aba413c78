"""What clients and nodes say to one another: the vectors in both directions, drawn messages, and refusals by name."""

from itertools import chain
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strict import Frames, frames_of, lines
from weft.base.errors import PeerError
from weft.wire import clients
from weft.wire.clients import (
    Beat,
    Bye,
    Conf,
    Credit,
    Done,
    Drop,
    Error,
    Fail,
    GiveUp,
    Hello,
    Next,
    NextItem,
    Place,
    Rec,
    RecItem,
    Refuse,
    Reg,
    Send,
    SendItem,
    Status,
    StatusItem,
    Unreg,
    Welcome,
)
from weft.wire.multipart import HEADER_BYTES_MAX, ITEM_FRAMES_MAX, MESSAGES_MAX, PAYLOAD_BYTES_MAX

LINES = {name: line for name, line in lines("chains-frames.jsonl").items() if not name.startswith("h-")}
"""Those of node links are for another codec: tests/carrier/test_frames.py."""
VALID = {name: line for name, line in LINES.items() if "header" in line["means"]}
REFUSED = {"x-notmap", "x-op", "x-short", "x-long", "x-trunc"}
"""What no codec takes; of the other bad inputs it is the core that refuses them (tests/chains/test_sessions.py)."""
TO_NODE, TO_CLIENT = "client>node", "node>client"
DECODERS = {TO_NODE: clients.decode_asked, TO_CLIENT: clients.decode_answered}


def decoders(line: dict[str, Any]) -> list[Any]:
    return list(DECODERS.values()) if line["direction"] == "both" else [DECODERS[line["direction"]]]


def shown(value: Any) -> Any:
    """A value as the vectors write it."""
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return [shown(each) for each in value] if isinstance(value, list | tuple) else value


@pytest.mark.proves("CLI-003", "CLI-004")
@pytest.mark.parametrize("name", VALID)
def test_vectors_are_read_and_written_byte_for_byte(name: str) -> None:
    frames = frames_of(LINES[name])
    for decode in decoders(LINES[name]):
        assert frames == clients.encode(decode(frames))
    assert LINES[name]["means"]["header"] == shown(msgspec.msgpack.decode(frames[0]))


@pytest.mark.proves("CLI-003")
def test_a_vector_means_what_it_says() -> None:
    report = frames_of(LINES["c-send-batch"])[1]
    send = clients.decode_asked(frames_of(LINES["c-send-batch"]))
    assert isinstance(send, Send)
    items = [
        SendItem(tag=4, type="demo.report", to=["PARENTSOF"]),
        SendItem(tag=5, type="demo.report", to=["CHILDRENOF"], n=2),
    ]
    assert Send(items, [report, b"one", b"two"]) == send
    assert [(report,), (b"one", b"two")] == [own for _, own in clients.each_with_frames(send.m, send.frames)]
    full = Reg(
        reg=2, dir="out", type="demo.report", at=100, access="rw", fail="closed", timeout=2_000, window=16
    )  # fmt: skip
    assert msgspec.structs.replace(full, noself=True, ordered=True) == clients.decode_asked(
        frames_of(LINES["c-reg-full"])
    )
    assert Reg(reg=1, dir="in", type="demo.report") == clients.decode_asked(frames_of(LINES["c-reg-min"]))


@pytest.mark.proves("CLI-003", "CLI-004", "CLI-006")
@pytest.mark.parametrize("name", [name for name in LINES if name.startswith("x-")])
def test_bad_input_is_refused_by_name_or_left_to_the_core(name: str) -> None:
    frames, means = frames_of(LINES[name]), LINES[name]["means"]
    if name not in REFUSED:
        assert frames[1:] == clients.encode(clients.decode_asked(frames))[1:]
        return
    with pytest.raises(PeerError) as refused:
        clients.decode_asked(frames)
    assert means["refused"] == refused.value.code


def test_an_unknown_key_is_ignored() -> None:
    assert Beat() == clients.decode_asked(frames_of(LINES["x-key"]))


def header(**values: Any) -> bytes:
    return msgspec.msgpack.encode(values)


ITEM = {"tag": 1, "type": "t", "to": ["PARENTSOF"]}
HELLO = {"op": "hello", "v": 1, "role": "client", "name": "a", "id": bytes(16)}


@pytest.mark.proves("CLI-003", "CLI-004")
@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "bad-header"),
        ([b""], "bad-header"),
        ([header(op="beat") + b"\x00"], "bad-header"),
        ([header(op="beat") * 2], "bad-header"),
        ([header(op="beat", x="x" * HEADER_BYTES_MAX)], "bad-header"),
        ([header(op="beat"), b""], "bad-frames"),
        ([header(op="welcome")], "unknown-op"),
        ([header(op="hop")], "unknown-op"),
        ([header(op=5)], "bad-header"),
        ([header(x=1)], "bad-header"),
        ([header(**HELLO | {"id": bytes(15)})], "bad-header"),
        ([header(**HELLO | {"name": ""})], "bad-header"),
        ([header(**HELLO | {"name": "a" * 65})], "bad-header"),
        ([header(**HELLO | {"pid": -1})], "bad-header"),
        ([header(op="reg", reg=1 << 32, dir="in", type="t")], "bad-header"),
        ([header(op="reg", reg=1, dir="in", type="t", window=0)], "bad-header"),
        ([header(op="reg", reg=1, dir="in", type="t", timeout=0)], "bad-header"),
        ([header(op="send", m=[])], "bad-header"),
        ([header(op="send", m=[ITEM] * (MESSAGES_MAX + 1)), *[b"x"] * (MESSAGES_MAX + 1)], "bad-frames"),
        ([header(op="send", m=[ITEM | {"n": ITEM_FRAMES_MAX + 1}]), *[b"x"] * 17], "bad-header"),
        ([header(op="send", m=[ITEM | {"n": -1}])], "bad-header"),
        ([header(op="send", m=[ITEM | {"tag": -1}]), b"x"], "bad-header"),
        ([header(op="send", m=[ITEM]), b"x" * (PAYLOAD_BYTES_MAX + 1)], "bad-frames"),
        ([header(op="send", m=[ITEM] * 5), *[b"x" * PAYLOAD_BYTES_MAX] * 5], "bad-frames"),
        ([header(op="next", reg=1, m=[{"id": 1}]), b"x"], "bad-frames"),
        ([header(op="next", reg=1, m=[{"id": 1, "n": 0}])], "bad-header"),
        ([header(op="reg", reg=1, dir="in", type="t", away=30 * 86_400_000 + 1)], "bad-header"),
        ([header(op="conf", reg=1, ids=[])], "bad-header"),
        ([b"\x81" * 200], "bad-header"),
        ([b"\x82\xa2op\xa4beat\xa1x" + b"\x91" * 60_000], "bad-header"),
    ],
)
def test_what_is_malformed_is_refused_by_name(frames: Frames, expected: str) -> None:
    with pytest.raises(PeerError) as refused:
        clients.decode_asked(frames)
    assert expected == refused.value.code


NUMBERS = st.integers(0, (1 << 64) - 1)
SMALL = st.integers(0, (1 << 32) - 1)
IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=64)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=256)
COUNTS = st.integers(0, 3)
PAYLOADS = st.binary(max_size=40)
TARGETS = st.lists(st.none() | TEXTS | IDS | st.integers(0, 300), max_size=3)
MIDS = st.tuples(IDS, st.none() | NUMBERS, NUMBERS)


def several(item: Any) -> Any:
    return st.lists(item, min_size=1, max_size=5)


@st.composite
def with_frames(draw: st.DrawFn, kind: Any, items: Any) -> Any:
    """A message with as many payload frames as its items announce."""
    drawn = draw(several(items))
    frames = [draw(st.lists(PAYLOADS, min_size=item.n, max_size=item.n)) for item in drawn]
    fields = (drawn, list(chain(*frames)))
    return kind(*fields) if kind is Send else kind(draw(SMALL), *fields)


SEND_ITEMS = st.builds(
    SendItem, tag=NUMBERS, type=TEXTS, to=TARGETS, want=TEXTS, cause=st.none() | NUMBERS, fmt=TEXTS, keep=TEXTS,
    exp=NUMBERS, n=COUNTS,
)  # fmt: skip
NEXT_ITEMS = st.builds(NextItem, id=NUMBERS, to=st.none() | TARGETS, n=COUNTS)
REC_ITEMS = st.builds(
    RecItem, id=NUMBERS, type=TEXTS, mid=MIDS, own=st.booleans(), to=TARGETS, via=st.lists(IDS, max_size=3).map(tuple),
    depth=NUMBERS, ts=st.integers(-(1 << 63), (1 << 63) - 1), fmt=TEXTS, re=st.booleans(), lost=NUMBERS, n=COUNTS,
)  # fmt: skip
STATUS_ITEMS = st.builds(
    StatusItem, tag=NUMBERS, ok=st.booleans(), why=TEXTS, count=st.none() | NUMBERS, failed=NUMBERS
)
GIVE_UPS = several(st.builds(GiveUp, id=NUMBERS, why=TEXTS))
ASKED = st.one_of(
    st.builds(Hello, v=st.integers(-9, 9), role=TEXTS, name=NAMES, id=IDS, pid=st.none() | NUMBERS),
    st.builds(
        Reg,
        reg=SMALL,
        dir=TEXTS,
        type=TEXTS,
        at=NUMBERS | TEXTS,
        access=TEXTS,
        fail=st.none() | TEXTS,
        timeout=st.integers(1, 3_600_000),
        window=st.integers(1, 65_536),
        confirm=st.booleans(),
        noself=st.booleans(),
        ordered=st.booleans(),
    ),
    st.builds(Unreg, SMALL, st.booleans()),
    with_frames(Send, SEND_ITEMS),
    with_frames(Next, NEXT_ITEMS),
    st.builds(Drop, SMALL, GIVE_UPS),
    st.builds(Fail, SMALL, GIVE_UPS),
    st.builds(Conf, SMALL, several(NUMBERS)),
    st.builds(Beat),
    st.builds(Bye, TEXTS),
)
ANSWERED = st.one_of(
    st.builds(
        Welcome,
        v=st.integers(-9, 9),
        node=st.binary(max_size=20),
        name=NAMES,
        addr=TEXTS,
        boot=NUMBERS,
        level=TEXTS,
        parent=st.none() | TEXTS,
        children=st.lists(NAMES, max_size=3),
        credit=NUMBERS,
        credit_bytes=NUMBERS,
        beat=NUMBERS,
        dead=NUMBERS,
    ),
    st.builds(Refuse, TEXTS, TEXTS),
    st.builds(Done, TEXTS, SMALL, NUMBERS, NUMBERS),
    st.builds(Status, several(STATUS_ITEMS)),
    with_frames(Rec, REC_ITEMS),
    st.builds(Credit, NUMBERS, NUMBERS),
    st.builds(Place, TEXTS, st.none() | TEXTS, st.lists(NAMES, max_size=3)),
    st.builds(Error, about=TEXTS, why=TEXTS, reg=st.none() | SMALL, id=st.none() | NUMBERS, text=TEXTS),
    st.builds(Beat),
    st.builds(Bye, TEXTS),
)


@pytest.mark.proves("CLI-003", "CLI-004")
@given(ASKED)
def test_whatever_a_client_says_is_read_as_it_was_said(message: Any) -> None:
    assert message == clients.decode_asked(clients.encode(message))


@pytest.mark.proves("CLI-003", "CLI-004")
@given(ANSWERED)
def test_whatever_a_node_says_is_read_as_it_was_said(message: Any) -> None:
    assert message == clients.decode_answered(clients.encode(message))


def test_every_word_of_the_protocol_is_drawn() -> None:
    """A message that is added to the protocol is added here."""
    drawn = {"Hello", "Reg", "Unreg", "Send", "Next", "Drop", "Fail", "Conf", "Beat", "Bye"}
    assert drawn == {kind.__name__ for kind in clients.Asked.__args__}
    drawn = {"Welcome", "Refuse", "Done", "Status", "Rec", "Credit", "Place", "Error", "Beat", "Bye"}
    assert drawn == {kind.__name__ for kind in clients.Answered.__args__}


def test_what_has_its_default_is_not_written() -> None:
    item = RecItem(id=7, type="t", mid=(bytes(16), 1, 1), own=False, to=["DIRECT"], via=(), depth=0, ts=5)
    written = msgspec.msgpack.decode(clients.encode(Rec(1, [item], [b"x"]))[0])
    assert ["id", "type", "mid", "own", "to", "via", "depth", "ts"] == list(written["m"][0])
    assert {"op": "hello", "v": 1, "role": "client", "name": "a", "id": bytes(16)} == msgspec.msgpack.decode(
        clients.encode(Hello(v=1, role="client", name="a", id=bytes(16)))[0]
    )


KNOWN = [frames_of(line) for line in LINES.values()]


@st.composite
def damaged(draw: st.DrawFn) -> Frames:
    """A vector with something wrong."""
    frames = list(draw(st.sampled_from(KNOWN)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(frames) - 1)))
        frame = frames[at] if frames else b""
        place = draw(st.integers(0, len(frame)))
        piece = draw(st.binary(max_size=3))
        frames[at : at + 1] = draw(
            st.sampled_from(
                [[], [frame, frame], [frame[:place]], [frame[:place] + piece + frame[place + len(piece) :]]]
            )
        )
    return frames


@pytest.mark.proves("CLI-003")
@given(st.sampled_from(list(DECODERS.values())), damaged() | st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_are_a_value_or_a_refusal_by_name(decode: Any, frames: Frames) -> None:
    try:
        message = decode(frames)
    except PeerError as refused:
        assert refused.code in ("bad-header", "bad-frames", "unknown-op")
    else:
        written = clients.encode(message)
        assert written == clients.encode(decode(written))  # a float that is no number is equal to none
