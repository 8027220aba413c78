"""The Clone dialect: what its servers and clients were heard to say, in both directions, and refusals."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strategies import ANY_FRAMES, NUMBERS, SUBTREES, UUIDS, VALUES
from tests.wire.strict import frames_of, lines
from weft.base.errors import PeerError
from weft.wire import chp
from weft.wire.chp import KvPub, KvSet, KvSync
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Hugz, ICanHaz, KThxBai

LINES = lines("config-chp.jsonl")
SEED = bytes.fromhex("00112233445566778899aabbccddeeff")
DECODERS: dict[str, Callable[[list[bytes]], Any]] = {
    "client DEALER -> server ROUTER (P), no delimiter frame": chp.decode_ask,
    "server ROUTER -> client DEALER (P)": chp.decode_answer,
    "parent ROUTER -> client DEALER (P)": chp.decode_answer,
    "server PUB -> client SUB (P+1)": chp.decode_update,
    "parent PUB -> client SUB (P+1)": chp.decode_update,
    "client PUB -> server SUB (P+2)": chp.decode_set,
}


def encode(message: Any) -> list[bytes]:
    match message:
        case Asked(_, ask):
            return chp.encode_ask(ask)
        case KvSync() | KThxBai():
            return chp.encode_answer(Answer((), message))
        case KvSet():
            return chp.encode_set(message)
        case _:
            return chp.encode_update(message)


def meaning(message: Any) -> dict[str, Any]:
    match message:
        case Asked((), ICanHaz(subtree, _, "chp")):
            return {"command": "ICANHAZ?", "subtree": subtree}
        case KThxBai(subtree, number):
            return {"command": "KTHXBAI", "subtree": subtree or "", "seq": number}
        case Hugz(tip):
            return {"command": "HUGZ", "seq": tip}
        case _:
            return {
                "command": type(message).__name__.upper(),
                "key": message.key,
                "seq": message.number,
                "uuid": message.uuid.hex(),
                "value": message.value.decode(),
                "delete": not message.value,
            }


def spans(message: Any) -> tuple[float | None, int | None]:
    return getattr(message, "ttl_s", None), getattr(message, "expires_ms", None)


@pytest.mark.parametrize("line", LINES.values(), ids=lambda line: line["id"])
def test_what_clone_peers_say_is_understood_and_said_alike(line: dict[str, Any]) -> None:
    frames, means = frames_of(line), line["means"]
    message = DECODERS[line["direction"]](frames)
    actual = meaning(message)
    assert {name: means[name] for name in actual} == actual
    ttl = float(means.get("properties", {}).get("ttl", 0))
    if ttl >= 1e11:
        assert (None, int(ttl)) == spans(message)
    elif ttl >= 1e9:
        assert (None, int(ttl * 1_000)) == spans(message)
    else:
        assert (ttl or None, None) == spans(message)
    expected = frames
    if isinstance(message, Hugz):
        expected = [b"HUGZ", bytes(8), b"", b"", b""]
    elif isinstance(message, KThxBai):
        expected = [*frames[:2], b"", *frames[3:]]
    assert expected == encode(message)


def test_what_weft_says_is_what_clone_clients_were_seen_to_accept() -> None:
    said = {
        "chp-046": KvPub("/client/seed", 1, SEED, b"one"),
        "chp-049": KvSync("/client/seed", 1, b"", b"one"),
        "chp-051": Hugz(),
        "chp-057": KvPub("/client/3378", 5, SEED, b"482597", ttl_s=22.5),
        "chp-081": KvSync("/client/seed", 3 << 40 | 1, b"", b"one"),
        "chp-082": KThxBai("/client/", 3 << 40 | 2),
    }
    for name, message in said.items():
        assert frames_of(LINES[name]) == encode(message)
    assert frames_of(LINES["chp-103"]) != encode(Hugz(3 << 40 | 4)) == frames_of(LINES["chp-051"])


@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "frame-count"),
        ([b"k", bytes(8), b"", b""], "frame-count"),
        ([b"", bytes(8), b"", b"", b"1"], "key"),
        ([b"k" * 256, bytes(8), b"", b"", b"1"], "key"),
        ([b"\xff", bytes(8), b"", b"", b"1"], "key"),
        ([b"HUGZ", bytes(8), b"", b"", b"1"], "key"),
        ([b"k", b"", b"", b"", b"1"], "sequence"),
        ([b"k", b"\x80" + bytes(7), b"", b"", b"1"], "sequence"),
        ([b"k", bytes(8), b"u", b"", b"1"], "uuid"),
        ([b"k", bytes(8), b"", b"{}", b"1"], "properties"),
        ([b"k", bytes(8), b"", b"ttl=\n", b"1"], "properties"),
        ([b"k", bytes(8), b"", b"ttl=1e400\n", b"1"], "properties"),
        ([b"k", bytes(8), b"", b"x=" + b"y" * 254, b"1"], "too-large"),
        ([b"k", bytes(8), b"", b"", bytes((1 << 20) + 1)], "too-large"),
    ],
)
def test_what_is_no_write_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    with pytest.raises(PeerError) as error:
        chp.decode_set(frames)
    assert expected == error.value.code


def test_a_beat_may_have_a_path_and_a_number_but_an_update_needs_one() -> None:
    assert Hugz(7) == chp.decode_update([b"/x/HUGZ", bytes(7) + b"\x07", SEED, b"", b""])
    with pytest.raises(PeerError) as error:
        chp.decode_update([b"k", bytes(8), b"", b"", b"1"])
    assert "sequence" == error.value.code


KEYS = st.text(st.characters(codec="utf-8", exclude_characters="H"), min_size=1, max_size=40)
SPANS = st.none() | st.integers(1, 999_999_999).map(float)
FIELDS = {"key": KEYS, "number": NUMBERS, "uuid": UUIDS | st.just(b""), "value": VALUES | st.just(b""), "ttl_s": SPANS}
PAIRS = st.one_of([st.builds(kind, **FIELDS) for kind in (KvSync, KvPub, KvSet)])
EXPIRING = st.builds(KvSync, KEYS, NUMBERS, UUIDS, VALUES, expires_ms=st.integers(100_000_000_000, 10**14))
READERS: dict[type, Callable[[list[bytes]], Any]] = {
    KvSync: chp.decode_answer,
    KvPub: chp.decode_update,
    KvSet: chp.decode_set,
}


@given(PAIRS | EXPIRING)
def test_pairs_that_are_written_are_read_and_their_properties_are_text(pair: Any) -> None:
    frames = encode(pair)
    received = READERS[type(pair)](frames)
    assert msgspec.structs.replace(pair, raw=frames[3]) == received
    assert frames == encode(received)
    if pair.ttl_s is not None:
        assert f"ttl={int(pair.ttl_s)}\n".encode() == frames[3]


@given(SUBTREES, NUMBERS)
def test_a_request_and_the_end_of_its_snapshot_are_read(subtree: str, number: int) -> None:
    asked = chp.decode_ask(chp.encode_ask(ICanHaz(subtree)))
    assert Asked((), ICanHaz(subtree, dialect="chp")) == asked
    end = KThxBai(subtree or None, number)
    assert end == chp.decode_answer(chp.encode_answer(Answer(asked.envelope, end)))


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES, st.sampled_from([chp.decode_answer, chp.decode_update, chp.decode_set]))
def test_any_frames_are_a_message_or_a_refusal(frames: list[bytes], decoder: Callable[[list[bytes]], Any]) -> None:
    try:
        message = decoder(frames)
    except PeerError:
        return
    if not isinstance(message, Hugz):
        assert message == decoder(encode(message))
