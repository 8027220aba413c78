"""The bytes of replicated configuration: the vectors, foreign forms, limits, and nothing but a value or a refusal."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire import strict
from tests.wire.strategies import ANSWERS, ANY_FRAMES, ASKS, ENVELOPES, KEYS, KVPUBS, NUMBERS
from tests.wire.strict import LINES, chosen, decode, frames_of, heard
from weft.base.errors import PeerError
from weft.base.paths import are_keys, is_key
from weft.wire import jsontext, parts, replication, samples
from weft.wire.envelope import Answer, Asked, split
from weft.wire.replication import (
    Bundle,
    Hugz,
    ICanHaz,
    KThxBai,
    KvPub,
    KvSync,
    Wtf,
    decode_answer,
    decode_ask,
    decode_update,
    encode_answer,
    encode_ask,
    encode_update,
    pack,
    seal_answer,
    seal_ask,
)

ROOT = bytes.fromhex("6f1c2a345b6d4e7f8091a2b3c4d5e6f7")
CPU = "/CONFIG/web/metric/cpu"
REPLICATION = (strict.ASK, strict.ANSWER, "parent PUB -> child SUB (+2)")
OWN = [line for line in chosen("st-") if line["direction"] in REPLICATION]


def refused(decoder: Any, frames: Any) -> str:
    with pytest.raises(PeerError) as error:
        decoder(frames)
    assert len(error.value.shown) <= 256
    return error.value.code


def value_of(message: Any) -> Any:
    """What the vectors say a value means."""
    return json.loads(message.value) if message.value else None


def meaning(message: Any) -> dict[str, Any]:
    """A message in the words of the vectors."""
    said: dict[str, Any]
    match message:
        case Asked(envelope, ICanHaz(subtree, _, dialect)):
            said = {"command": "ICANHAZ", "subtree": subtree, "dialect": dialect, "envelope": len(envelope) + 1}
        case KvSync(key, number):
            said = {"command": "KVSYNC", "key": key, "seq": number, "value": value_of(message)}
        case KThxBai(subtree, number):
            said = {"command": "KTHXBAI", "seq": number, "subtree": subtree}
        case Hugz(tip):
            said = {"command": "HUGZ", "tip": tip}
        case Wtf(code, text):
            said = {"command": "WTF", "code": code, "text": text}
        case Bundle(pairs, end):
            values = {pair.key: value_of(pair) for pair in pairs}
            said = {"command": "BUNDLE", "pairs": values, "seq": end.number}
        case _:
            said = meaning_of_write(message)
    return said


def meaning_of_write(message: KvPub) -> dict[str, Any]:
    known = {"prev": message.prev, "ttl": message.ttl}
    return {
        "command": "KVPUB",
        "key": message.key,
        "seq": message.number,
        "epoch": replication.epoch_of(message.number),
        "counter": replication.counter_of(message.number),
        "uuid": message.uuid.hex(),
        "properties": {name: value for name, value in known.items() if value is not None},
        "value": value_of(message),
        "delete": not message.value,
    }


def assert_means(line: dict[str, Any], message: Any) -> None:
    actual = meaning(message)
    assert line["means"] == {name: actual[name] for name in line["means"]}


# Vectors


@pytest.mark.proves("CFG-001", "CFG-005")
@pytest.mark.parametrize("line", OWN, ids=lambda line: line["id"])
def test_vectors_are_read_and_written_byte_for_byte(line: dict[str, Any]) -> None:
    message = decode(line)
    assert_means(line, message)
    if line["direction"] != strict.ASK:
        assert frames_of(line) == strict.ENCODERS[line["direction"]](message)
    elif line["means"].get("envelope") == 2:
        assert heard(line) == encode_ask(message.message)


@pytest.mark.proves("CFG-001", "CFG-003")
def test_messages_made_from_their_fields_are_those_of_the_vectors() -> None:
    cpu = b'{"detail":"CPU","rate":1}'
    made: dict[str, KvPub | Hugz] = {
        "st-kvpub": KvPub(CPU, 8, ROOT, cpu, prev=7),
        "st-kvpub-ttl": KvPub("/CONFIG/web/note", 9, ROOT, b'"drain"', prev=8, ttl=30.0),
        "st-kvpub-delete": KvPub("/CONFIG/web/note", 10, ROOT, b"", prev=9),
        "st-hugz": Hugz(),
    }
    for name, message in made.items():
        assert frames_of(LINES[name]) == encode_update(message)
    assert [b"", *frames_of(LINES["st-icanhaz"])] == encode_ask(ICanHaz("/CONFIG/web/"))
    assert [b"", *frames_of(LINES["st-tip-ask"])] == encode_ask(ICanHaz("/.tip/CONFIG/web/"))
    assert int.from_bytes(frames_of(LINES["st-kvpub-epoch"])[1]) == replication.number_of(1, 11)


@pytest.mark.proves("CFG-014")
@pytest.mark.parametrize("line", chosen("lib-"), ids=lambda line: line["id"])
def test_foreign_forms_of_the_vectors_are_understood(line: dict[str, Any]) -> None:
    assert_means(line, decode(line))


@pytest.mark.proves("CFG-001", "CFG-003", "CFG-004", "CFG-006")
@pytest.mark.parametrize("line", chosen("bad-"), ids=lambda line: line["id"])
def test_malformed_vectors_are_refused_by_their_reason(line: dict[str, Any]) -> None:
    with pytest.raises(PeerError) as error:
        decode(line)
    assert line["means"]["why"] == error.value.code
    assert line["means"]["code"] == replication.refusal(error.value).code


def test_every_vector_has_its_place() -> None:
    read = {line["id"] for prefix in ("st-", "lib-", "bad-") for line in chosen(prefix)}
    assert LINES.keys() == read | strict.ELSEWHERE.keys()
    assert {line["direction"] for line in map(LINES.__getitem__, read)} == strict.DECODERS.keys()


@pytest.mark.proves("MEA-022")
def test_the_body_of_the_replaced_samples_message_is_the_one_of_the_hop_link() -> None:
    line = LINES["st-samples"]
    body = frames_of(line)[4]
    batch = samples.decode(body)
    _, t0_ms, series, rows = line["means"]["body"]
    assert t0_ms == batch.t0_ms
    assert series == [[one.config_name, one.detail, one.type, one.labels] for one in batch.series]
    assert rows == [[row.series, row.offset_ms, row.value, *([row.base] if row.base else [])] for row in batch.rows]
    assert body == samples.encode(batch)
    assert body == frames_of(LINES["bad-samples-n"])[4]
    assert "malformed" == refused(samples.decode, frames_of(LINES["bad-samples-idx"])[4])


# Envelopes


@pytest.mark.proves("CFG-010", "CFG-011")
@given(ENVELOPES, ASKS, ANSWERS)
def test_an_answer_goes_back_in_the_envelope_of_its_request(envelope: Any, ask: ICanHaz, message: Any) -> None:
    bare = encode_ask(ask)[1:] if ask.dialect == "strict" else encode_ask(ask)
    asked = decode_ask([*envelope, *bare])
    assert Asked(envelope, ask) == asked
    answer = encode_answer(Answer(asked.envelope, message))
    assert [*envelope, *encode_answer(Answer((), message))] == answer


@pytest.mark.proves("CFG-011")
@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "envelope"),
        ([b"abc", b"", b"ICANHAZ"], "envelope"),
        ([b"abcd", b"x", b"ICANHAZ"], "envelope"),
        ([b"abcd"], "envelope"),
        ([b"KTHXBAI", bytes(8), b"", b"", b""], "envelope"),
        ([b""], "command"),
        ([b"", b"GIMME", b"", b"", b"", b""], "command"),
        ([b"", b"ICANHAZ", b"/a"], "frame-count"),
        ([b"", b"ICANHAZ?", b"/a", b"/a"], "frame-count"),
        ([b"", b"ICANHAZ", b"x", b"", b"", b""], "sequence"),
        ([b"", b"ICANHAZ", b"", b"x", b"", b""], "uuid"),
        ([b"", b"ICANHAZ", b"", b"", b"x", b""], "properties"),
        ([b"", b"ICANHAZ", b"", b"", b'{"bundle":1}', b""], "properties"),
        ([b"", b"ICANHAZ", b"", b"", b"", b"a"], "subtree"),
        ([b"", b"ICANHAZ", b"", b"", b"", b"/a//"], "subtree"),
        ([b"", b"ICANHAZ", b"", b"", b"", b"/\xff/"], "subtree"),
        ([b"", b"ICANHAZ", b"", b"", b"", b"/" + b"a" * 300], "subtree"),
    ],
)
def test_what_is_no_request_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    assert expected == refused(decode_ask, frames)


@pytest.mark.proves("CFG-011")
@given(ENVELOPES, st.lists(st.binary(max_size=5), max_size=4))
def test_an_envelope_is_recognised_from_two_frames(envelope: Any, rest: list[bytes]) -> None:
    assert (envelope, [b"ICANHAZ", *rest]) == split([*envelope, b"ICANHAZ", *rest], frozenset({b"ICANHAZ"}))


# Foreign forms


@pytest.mark.proves("CFG-014")
def test_foreign_forms_beyond_the_vectors() -> None:
    chp = Asked((), ICanHaz("/client/", dialect="chp"))
    assert chp == decode_ask([b"ICANHAZ?", b"/client/"])
    assert chp == decode_ask([b"ICANHAZ?", b"", b"", b"", b"/client/"])
    assert Hugz(7) == decode_update([b"/HUGZ", bytes(7) + b"\x07", ROOT, b"x=1\n", b""])
    assert KThxBai(None, 7) == decode_answer([b"", b"KTHXBAI", bytes(8), b"", b"", bytes(7) + b"\x07"])
    assert KvSync("/a", 5, b"1") == decode_answer([b"/a", bytes(7) + b"\x05", ROOT, b"ttl=1795226900300\n", b"1"])
    assert Wtf(0, "") == decode_answer([b"WTF", bytes(4)])
    assert Wtf(0, "x") == decode_answer([b"", b"\xff" * 8, b"x"])


@pytest.mark.proves("CFG-014")
@pytest.mark.parametrize(
    "properties, ttl",
    [(b"ttl=5", 5), (b"ttl=2.5\nx=y=z\n", 2.5), (b"x=1\n", None), (b"ttl=1795226900300\n", None), (b"ttl=0\n", None)],
)
def test_text_properties(properties: bytes, ttl: float | None) -> None:
    message = decode_update([b"/a", bytes(7) + b"\x05", b"", properties, b"1"])
    assert isinstance(message, KvPub)
    assert (ttl, properties) == (message.ttl, message.raw)


# Properties and JSON


@pytest.mark.proves("CFG-006")
@pytest.mark.parametrize(
    "properties",
    [b"{}", b' { "x" : [1, {"y": null}], "prev" : 7 } ', b'{"more":true,"prev":7,"z":1e3}', b"color=red\nttl=5\n", b""],
)
def test_a_collector_forwards_what_it_does_not_know(properties: bytes) -> None:
    frames = [b"/CONFIG/web/x", bytes(7) + b"\x08", ROOT, properties, b"1"]
    assert frames == encode_update(decode_update(frames))


@pytest.mark.proves("CFG-002", "CFG-006")
@pytest.mark.parametrize(
    "properties, expected",
    [
        (b'{"prev":7,"prev":7}', "properties"),
        (b'{"x":{"a":1,"a":2}}', "properties"),
        (b'{"x":NaN}', "properties"),
        (b'{"x":-Infinity}', "properties"),
        (b'{"x":1e999}', "properties"),
        (b'{"x":"\\ud800"}', "properties"),
        (b'{"x":"\xff"}', "properties"),
        (b"\xef\xbb\xbf{}", "properties"),
        (b"{} {}", "properties"),
        (b'{"x":' + b"[" * 16 + b"]" * 16 + b"}", "properties"),
        (b'{"prev":-1}', "properties"),
        (b'{"prev":9223372036854775808}', "properties"),
        (b'{"prev":true}', "properties"),
        (b'{"prev":7.0}', "properties"),
        (b'{"ttl":"5"}', "properties"),
        (b'{"ttl":-5}', "properties"),
        (b'{"more":1}', "properties"),
        (b"ttl=soon\n", "properties"),
        (b"no line", "properties"),
        (b"{" + b" " * 5_000 + b"}", "too-large"),
        (b"x=" + b"y" * 5_000, "too-large"),
    ],
)
def test_properties_that_are_none(properties: bytes, expected: str) -> None:
    assert expected == refused(decode_update, [b"/a", bytes(7) + b"\x05", b"", properties, b"1"])


@pytest.mark.proves("CFG-002")
def test_nesting_of_sixteen_is_read_and_brackets_in_strings_do_not_nest() -> None:
    deep = b'{"x":' + b"[" * 15 + b"]" * 15 + b"}"
    assert deep == jsontext.encode(jsontext.decode(deep, 100))
    text = json.dumps({"x": '["\\' * 50, "y": [[]] * 20}).encode()
    assert json.loads(text) == jsontext.decode(text, len(text))
    for unsound in (b'{"x":"' + b"[" * 40, b'"' + b'\\"[' * 5_000, b"]" * 40, b"\\" * 40 + b"[" * 40):
        assert "json" == refused(lambda data: jsontext.decode(data, 1 << 20), unsound)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.proves("CFG-002")
@given(VALUES.filter(lambda value: "\\ud" not in json.dumps(value)), st.sampled_from([None, 2]), st.booleans())
def test_json_goes_out_canonical_and_comes_in_by_any_layout(value: Any, indent: int | None, escaped: bool) -> None:
    canonical = jsontext.encode(value)
    other = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    assert value == jsontext.decode(canonical, 1 << 20) == jsontext.decode(other, 1 << 20)
    assert canonical == jsontext.encode(jsontext.decode(other, 1 << 20))
    assert canonical.decode() == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.binary(max_size=40) | st.text('{}[]",:\\u0d8 1eNa-', max_size=40).map(str.encode))
@example(b"[" * 1_000)
@example(b"9" * 5_000)
def test_any_bytes_are_json_or_refused(data: bytes) -> None:
    try:
        value = jsontext.decode(data, 1_000)
    except PeerError as error:
        assert error.code in ("json", "too-large")
        return
    assert value == jsontext.decode(jsontext.encode(value), 1 << 20)


# Numbers, keys, refusals


@pytest.mark.proves("CFG-003")
@given(*[st.integers(0, replication.EPOCH_MAX), st.integers(0, (1 << 40) - 1)] * 2)
def test_numbers_are_ordered_by_epoch_then_counter(epoch: int, counter: int, other: int, another: int) -> None:
    number = replication.number_of(epoch, counter)
    assert (epoch, counter) == (replication.epoch_of(number), replication.counter_of(number))
    assert ((epoch, counter) < (other, another)) == (number < replication.number_of(other, another))
    frame = number.to_bytes(8)
    assert number == parts.read_number(frame)
    assert frame[0] < 0x80


@pytest.mark.proves("CFG-016")
@given(KEYS)
def test_the_chain_of_a_key_is_its_first_two_segments(key: str) -> None:
    chain = replication.chain_of(key)
    if key.count("/") < 3:
        assert key == chain
    else:
        assert key.startswith(chain)
        assert (3, True) == (chain.count("/"), chain.endswith("/"))


@pytest.mark.proves("CFG-007")
def test_refusals_have_thirteen_codes_and_at_most_200_bytes_of_text() -> None:
    codes = [
        replication.UNSPECIFIED,
        replication.MALFORMED,
        replication.UNKNOWN_COMMAND,
        replication.NOT_AUTHORISED,
        replication.UNKNOWN_NODE,
        replication.BUSY,
        replication.TOO_LARGE,
        replication.NOT_READY,
        replication.WRONG_DIALECT,
        replication.STALE_EPOCH,
        replication.NO_GROUP,
        replication.NO_QUORUM,
        replication.NOT_ROOT,
    ]
    assert list(range(13)) == codes
    frames = encode_answer(Answer((b"",), Wtf(12, "x" + "é" * 100)))
    assert [b"", b"WTF", b"\0\0\0\x0c", ("x" + "é" * 99).encode()] == frames
    assert Wtf(12, "x" + "é" * 99) == decode_answer(frames)
    assert Wtf(6, "e" * 200) == decode_answer([b"WTF", b"\0\0\0\x06", b"e" * 999])
    assert [1, 2, 6] == [replication.refusal(PeerError(code)).code for code in ("key", "command", "too-large")]


@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "frame-count"),
        ([b""], "frame-count"),
        ([b"x"], "frame-count"),
        ([b"WTF", b"\0", b""], "code"),
        ([b"x", b"y"], "frame-count"),
        ([b"x", b"y", b"z"], "frame-count"),
        ([b"/a", bytes(8), b"", b"", b""], "value"),
        ([b"/a", bytes(8), b"x", b"", b"1"], "uuid"),
        ([b"/a", b"", b"", b"", b"1"], "sequence"),
        ([b"HUGZ", bytes(8), b"", b"", b""], "key"),
        ([b"KTHXBAI", bytes(8), b"", b"", b"x"], "subtree"),
        ([b"KTHXBAI", b"", b"", b"", b""], "sequence"),
        ([b"/a", bytes(8), b"", b"", b"1"] * 2, "frame-count"),
        ([b"KTHXBAI", bytes(8), b"", b"", b""] * 2, "key"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    assert expected == refused(decode_answer, frames)


# Packed pairs


PACKED = bytes.fromhex("9293a22f6105c4013193a42f612f62cd0100c4027878")
"""/a, number 5, "1", and /a/b, number 256, "xx", by hand."""


def test_packed_pairs_are_these_bytes() -> None:
    pairs = [KvSync("/a", 5, b"1"), KvSync("/a/b", 256, b"xx")]
    frames = seal_answer(Answer((b"",), pack(pairs)))
    assert [b"", b"KVPACK", b"", b"", b'{"sum":"51518f91"}', PACKED] == frames
    assert replication.KvPack(pairs, PACKED) == decode_answer(frames)
    assert replication.KvPack(pairs, PACKED) == decode_answer([b"KVPACK", bytes(8), b"", b'{"x":1}', PACKED])
    ask = ICanHaz("/a/", wants_digest=True, takes_packs=True)
    asked = seal_ask(ask)
    assert [b"", b"ICANHAZ", b"", b"", b'{"digest":true,"packed":true,"sum":"9343db7d"}', b"/a/"] == asked
    assert Asked((b"",), ask) == decode_ask(asked)
    assert not decode_ask([b"ICANHAZ", b"", b"", b'{"packed":1}', b"/a/"]).message.takes_packs


@pytest.mark.proves("FLD-030")
@pytest.mark.parametrize("at", range(len(PACKED)))
def test_packed_pairs_that_were_altered_are_refused(at: int) -> None:
    frames = seal_answer(Answer((), pack([KvSync("/a", 5, b"1"), KvSync("/a/b", 256, b"xx")])))
    frames[4] = PACKED[:at] + bytes((PACKED[at] ^ 4,)) + PACKED[at + 1 :]
    assert "bad-sum" == refused(decode_answer, frames)


def packed(*pairs: Any) -> bytes:
    return msgspec.msgpack.encode(pairs)


@pytest.mark.parametrize(
    "body, expected",
    [
        (b"", "value"),
        (b"\xc1", "value"),
        (b"\xdd\xff\xff\xff\xff", "value"),
        (packed(), "value"),
        (packed(("/a", 1)), "value"),
        (packed(("/a", 1, b"1", 2)), "value"),
        (packed(("/a", -1, b"1")), "value"),
        (packed(("/a", 1 << 63, b"1")), "value"),
        (packed(("/a", 1.5, b"1")), "value"),
        (packed(("/a", 1, b"")), "value"),
        (packed(("/a", 1, "1")), "value"),
        (packed((b"/a", 1, b"1")), "value"),
        (packed(("/", 1, b"1")), "value"),
        (packed(("/" + "a" * 255, 1, b"1")), "value"),
        (packed(("/a", 1, b"1")) + b"\xc0", "value"),
        (packed(("/a", 1, bytes(replication.VALUE_BYTES_MAX + 1))), "value"),
        (packed(*(("/a", 1, b"1") for _ in range(replication.PACK_PAIRS_MAX + 1))), "value"),
        (packed(("/b", 1, b"1"), ("/a", 1, b"1")), "key"),
        (packed(("/a", 1, b"1"), ("/a", 2, b"1")), "key"),
        (packed(("a/b", 1, b"1")), "key"),
        (packed(("/a\n/b", 1, b"1")), "key"),
        (packed(("/a//b", 1, b"1")), "key"),
        (packed(("/a/", 1, b"1"), ("/b", 1, b"1")), "key"),
        (packed(("/a b", 1, b"1")), "key"),
        (packed(("/\u00e9", 1, b"1")), "key"),
        (packed(("/.chains/CONFIG/web/a", 1, b"{}"), ("/a", 1, b"1")), "key"),
        (bytes(replication.PACK_BYTES_MAX + 1), "too-large"),
    ],
)
def test_what_are_no_packed_pairs_is_refused_by_name(body: bytes, expected: str) -> None:
    assert expected == refused(decode_answer, [b"KVPACK", b"", b"", b"", body])


@given(st.lists(KEYS | st.text("/a.\n\u00e9 ", max_size=6), max_size=6))
def test_many_keys_are_keys_if_each_is_one(texts: list[str]) -> None:
    assert all(map(is_key, texts)) == are_keys(texts)


# Limits


def test_keys_values_and_bundles_have_their_limits() -> None:
    one, longest = bytes(7) + b"\x01", "/" + "k" * 254
    assert KvPub(longest, 1, b"", b"v") == decode_update([longest.encode(), one, b"", b"", b"v"])
    assert "key" == refused(decode_update, [longest.encode() + b"k", one, b"", b"", b"v"])
    assert KvSync("/.chains" + longest, 1, b"{}") == decode_answer(
        [b"/.chains" + longest.encode(), one, b"", b"", b"{}"]
    )
    assert Asked((b"",), ICanHaz(f"/.chains{longest}")) == decode_ask(encode_ask(ICanHaz(f"/.chains{longest}")))
    large = bytes(replication.VALUE_BYTES_MAX)
    assert KvSync("/a", 1, large) == decode_answer(encode_answer(Answer((), KvSync("/a", 1, large))))
    assert large == encode_update(decode_update([b"/a", one, b"", b"", large]))[4]
    for decoder in (decode_update, decode_answer):
        assert "too-large" == refused(decoder, [b"/a", one, b"", b"", large + b"x"])


def test_a_snapshot_over_8_mib_is_no_bundle() -> None:
    pairs = tuple(KvSync(f"/a/{index}", 1, bytes(1 << 20)) for index in range(8))
    end = KThxBai("/a/", 9)
    small = Bundle(pairs[:7], end)
    assert small == decode_answer(encode_answer(Answer((b"",), small)))
    refusal = decode_answer(encode_answer(Answer((b"",), Bundle(pairs, end))))
    assert isinstance(refusal, Wtf)
    assert 6 == refusal.code
    frames = [frame for pair in pairs for frame in encode_answer(Answer((), pair))]
    assert "too-large" == refused(decode_answer, [*frames, *encode_answer(Answer((), end))])
    assert "too-large" == refused(decode_answer, [b"/a", bytes(8), b"", b"", b"1"] * 200_002)
    assert [b"", b"ICANHAZ", b"", b"", b'{"bundle":true}', b"/a/"] == encode_ask(ICanHaz("/a/", is_bundle=True))


# Whatever is drawn


@pytest.mark.proves("FUZ-003", "CFG-006")
@given(KVPUBS)
def test_an_update_that_is_written_is_read_and_forwarded_unchanged(message: KvPub) -> None:
    frames = encode_update(message)
    received = decode_update(frames)
    assert msgspec.structs.replace(message, raw=frames[3]) == received
    assert frames == encode_update(received)


@pytest.mark.proves("FUZ-003")
@given(ASKS, ANSWERS, NUMBERS)
def test_requests_and_answers_that_are_written_are_read(ask: ICanHaz, message: Any, tip: int) -> None:
    assert ask == decode_ask(encode_ask(ask)).message
    for envelope in ((), (b"",)):
        assert message == decode_answer(encode_answer(Answer(envelope, message)))
    assert Hugz(tip) == decode_update([b"HUGZ", tip.to_bytes(8), b"", b"", b""])


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES)
@example([b"HUGZ", b"", b"", b"", b""])
def test_any_frames_are_an_update_or_a_refusal(frames: list[bytes]) -> None:
    try:
        message = decode_update(frames)
    except PeerError:
        return
    expected = [b"HUGZ", bytes(8), b"", b"", b""] if isinstance(message, Hugz) else frames
    assert expected == encode_update(message)


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES)
@example([b"WTF", bytes(4), b"\xff" * 200])
def test_any_frames_are_an_answer_or_a_refusal(frames: list[bytes]) -> None:
    try:
        message = decode_answer(frames)
    except PeerError:
        return
    assert message == decode_answer(encode_answer(Answer((b"",), message)))


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES)
def test_any_frames_are_a_request_or_a_refusal(frames: list[bytes]) -> None:
    try:
        asked = decode_ask(frames)
    except PeerError:
        return
    again = decode_ask(encode_ask(asked.message)).message
    assert asked.message == (msgspec.structs.replace(again, is_bundle=asked.message.is_bundle))
