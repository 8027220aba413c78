"""Updates, infos and pings: what comes back, what is refused by which name, and batches (COD-003, COD-007, LNK-003)."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.store.wire.strategies import INFOS, PINGS, TICKS, UPDATES, some
from weft.base.changes import Chain, Event
from weft.base.errors import OurFault, PeerError
from weft.base.ranges import RangeSet
from weft.wire.store import bus, pack
from weft.wire.store.bus import LINKS_MAX, decode, encode
from weft.wire.store.messages import Info, Ping, Update

CODES = {"malformed", "bad-type", "missing-field", "bad-field", "bad-path", "bad-chain", "too-large", "wrong-dialect"}
"""What reading may say; `tock-jump bad-mac incomplete` are for others to say (COD-007)."""
PATH = pack.PathValue(("a",))
SAID: dict[str, Any] = {"node": "n1", "tick": 5, "prev": None, "path": PATH, "value": 1, "tock": 3}
INFO: dict[str, Any] = {"node": "n1", "tick": 5, "tock": 3}
PING: dict[str, Any] = {"node": "n1", "tick": 5, "prev": None, "tock": 3}
EVENT = Event(Chain((("n1", 5),)), 3, ("a",), b"\x01")


def _code(topic: str, payload: bytes) -> str:
    try:
        decode(topic, payload)
    except PeerError as error:
        return error.code
    return "accepted"


def _linked(count: int) -> dict[str, Any] | None:
    chain: dict[str, Any] | None = None
    for place in range(count):
        chain = {"node": f"x{place}", "tick": 1, "prev": chain}
    return chain


@pytest.mark.proves("COD-003", "STO-006")
@given(UPDATES)
def test_update_comes_back_from_its_bytes(update: Update) -> None:
    assert [update] == decode("update", encode(update))


@pytest.mark.proves("COD-003", "COD-004")
@given(INFOS)
def test_info_comes_back_from_its_bytes(info: Info) -> None:
    assert [info] == decode("info", encode(info))


@pytest.mark.proves("COD-003")
@given(PINGS)
def test_ping_comes_back_from_its_bytes(ping: Ping) -> None:
    assert [ping] == decode("ping", encode(ping)) == decode("wping", encode(ping))


@pytest.mark.proves("COD-007")
@given(st.sampled_from(["update", "info", "ping", "wping", "else"]), some(UPDATES | INFOS | PINGS, encode))
def test_any_bytes_are_messages_or_refused_by_a_name(topic: str, payload: bytes) -> None:
    try:
        messages = decode(topic, payload)
    except PeerError as error:
        assert error.code in CODES
        return
    for message in messages:
        assert [message] == decode(topic, encode(message))


@pytest.mark.proves("COD-003")
@given(
    UPDATES,
    st.permutations(range(12)),
    st.dictionaries(st.text("xyz", min_size=1) | st.integers(-9, 99), TICKS, max_size=2),
)
def test_order_of_keys_and_keys_of_others_change_nothing(
    update: Update, order: list[int], more: dict[Any, Any]
) -> None:
    pairs = [*pack.unpack(encode(update)).items(), *more.items()]
    mixed = [pairs[place] for place in order if place < len(pairs)] + pairs[12:]
    assert [update] == decode("update", pack.pack(dict(mixed)))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("update", {**SAID, "node": "a b"}, "bad-field"),
    ("update", {**SAID, "node": "a" * 65}, "bad-field"),
    ("update", {**SAID, "node": "é" * 33}, "bad-field"),
    ("update", {**SAID, "node": "a\n"}, "bad-field"),
    ("update", {**SAID, "tick": 1 << 63}, "bad-field"),
    ("update", {**SAID, "tick": 1.0}, "bad-field"),
    ("update", {**SAID, "tick": None}, "bad-field"),
    ("update", {**SAID, "tock": "3"}, "bad-field"),
    ("update", {**SAID, "at": float("nan")}, "bad-field"),
    ("update", {**SAID, "at": "now"}, "bad-field"),
    ("update", {**SAID, "by": b"joe"}, "bad-field"),
    ("update", {**SAID, "ack": 1}, "bad-field"),
    ("update", {**SAID, "path": "a"}, "bad-path"),
    ("update", {**SAID, "path": [{}]}, "bad-path"),
    ("update", {**SAID, "path": ["a", None]}, "bad-path"),
    ("update", {**SAID, "path": ["a"] * 65}, "bad-path"),
    ("update", {**SAID, "path": ["a" * 1_022]}, "bad-path"),
    ("update", {**SAID, "path": [float("nan")]}, "bad-path"),
    ("update", {**SAID, "path": pack.ext(4, b"\x01")}, "bad-path"),
    ("update", {**SAID, "path": pack.ext(3, b"\xa5a")}, "bad-path"),
    ("update", {**SAID, "prev": 1}, "bad-chain"),
    ("update", {**SAID, "prev": {"node": "n2", "tick": 0, "prev": None}}, "bad-chain"),
    ("update", {**SAID, "prev": {"node": "n2", "prev": None}}, "bad-chain"),
    ("update", {**SAID, "prev": {"tick": 1, "prev": None}}, "bad-chain"),
    ("update", {**SAID, "prev": {"node": "", "tick": 1, "prev": None}}, "bad-chain"),
    ("update", {**SAID, "prev": _linked(LINKS_MAX)}, "bad-chain"),
    ("update", {**SAID, "chain": None}, "bad-chain"),
    ("update", {**SAID, "chain": {"node": "n2", "tick": 1, "prev": {"node": "n2", "tick": 1}}}, "bad-chain"),
    ("info", {**INFO, "node": ""}, "bad-field"),
    ("info", {**INFO, "node": "", "tick": 0}, "bad-field"),
    ("info", {**INFO, "node": "", "deleted": {"a": [1]}}, "bad-field"),
    ("info", {**INFO, "ticks": {"a": -1}}, "bad-field"),
    ("info", {**INFO, "ticks": {"": 1}}, "bad-field"),
    ("info", {**INFO, "ticks": {1: 1}}, "bad-field"),
    ("info", {**INFO, "missing": {"a": [[1, 1]]}}, "malformed"),
    ("info", {**INFO, "missing": {"a": [0]}}, "malformed"),
    ("info", {**INFO, "known": {"a": [[1, 2, 3]]}}, "bad-field"),
    ("info", {**INFO, "node_drop": "n7"}, "bad-field"),
    ("info", {**INFO, "node_drop": [""]}, "bad-field"),
    ("info", {**INFO, "reason": 5}, "bad-chain"),
    ("info", {"node": "n1", "tock": 3}, "missing-field"),
    ("info", {"node": "n1", "tick": 3}, "missing-field"),
    ("ping", {"node": "n1", "tick": 1}, "missing-field"),
    ("ping", {"tick": 1, "tock": 1}, "missing-field"),
    ("ping", {**PING, "node": ""}, "bad-field"),
    ("ping", {**PING, "tick": -1}, "bad-field"),
    ("ping", {**PING, "t": None}, "wrong-dialect"),
    ("else", PING, "bad-type"),
]


@pytest.mark.proves("COD-007", "STO-001", "STO-004", "STO-006")
@pytest.mark.parametrize("topic, said, expected", REFUSED)
def test_what_breaks_a_rule_is_refused_by_its_name(topic: str, said: dict[str, Any], expected: str) -> None:
    assert expected == _code(topic, pack.pack(said))
    assert expected == _code(topic, pack.pack({"new": 1, **said})), "also beside a key that nobody knows"


BROKEN = [
    (b"\x87" + pack.pack(SAID)[1:] + b"\xa4tick\x05", "malformed"),  # a key twice
    (b"\x87" + pack.pack(SAID)[1:] + b"\xa4tick\x06", "malformed"),
    (b"\x88" + pack.pack(SAID)[1:] + b"\x01\x02\x01\x03", "malformed"),  # one that nobody knows
    (pack.pack(SAID) + b"\x00", "malformed"),
    (pack.pack(SAID)[:-1], "malformed"),
    (pack.pack({**SAID, "value": "aé"}).replace("é".encode(), b"\xff\xff"), "malformed"),
    (b"\x87" + pack.pack(SAID)[1:] + b"\xa1\xff\x01", "malformed"),
    (b"\x87" + pack.pack(SAID)[1:] + b"\xa1x\xc1", "malformed"),
    (b"\x87" + pack.pack(SAID)[1:] + b"\xa1x\x82\xa1a\x01\xa1a\x01", "malformed"),
    (pack.pack({**SAID, "value": 7}).replace(b"value\x07", b"value\x82\x01\x01\x01\x01"), "malformed"),
    (pack.pack({**SAID, "value": 7}).replace(b"value\x07", b"value\xd4\x02\x01"), "malformed"),
    (
        pack.pack({**SAID, "prev": 7}).replace(b"prev\x07", b"prev\x83\xa4node\xa1x\xa4tick\x01\xa4tick\x01"),
        "malformed",
    ),
    (b"\xdf\xff\xff\xff\xff", "malformed"),
    (pack.pack({**SAID, **dict.fromkeys(range(58))}), "accepted"),
    (pack.pack({**SAID, **dict.fromkeys(range(59))}), "too-large"),
    (b"\x80" * 1_001, "too-large"),
    (b"\x81" * 100_000, "malformed"),
    (pack.pack({**SAID, "value": 7}).replace(b"value\x07", b"value" + b"\x91" * 600 + b"\x01"), "too-large"),
    (pack.pack({**SAID, "prev": 7}).replace(b"prev\x07", b"prev" + b"\x82\xa4node\xa1x\xa4prev" * 30_000), "malformed"),
    (b"\x90", "bad-type"),
    (b"\xc0", "bad-type"),
    (b"\xc1", "malformed"),
    (b"\x80", "missing-field"),
]


@pytest.mark.proves("COD-003", "COD-007")
@pytest.mark.parametrize("payload, expected", BROKEN)
def test_broken_bytes_are_refused_by_their_name(payload: bytes, expected: str) -> None:
    assert expected == _code("update", payload)


def test_chain_too_deep_for_the_decoder_is_a_bad_chain() -> None:
    link = b"\x83\xa4node\xa1x\xa4tick\x01\xa4prev"
    whole = pack.pack({**SAID, "prev": 7}).replace(b"prev\x07", b"prev" + link * 400 + b"\xc0")
    assert "bad-chain" == _code("update", whole)


@pytest.mark.proves("STO-006")
def test_longest_chain_that_may_be_said_is_read() -> None:
    (update,) = decode("update", pack.pack({**SAID, "prev": _linked(LINKS_MAX - 1)}))
    assert isinstance(update, Update)
    assert 64 == len(update.event.chain.links)


@pytest.mark.proves("COD-002")
def test_path_as_a_plain_array_is_the_same_path() -> None:
    said = {**SAID, "path": [None, "x" * 40, 5, b"b", 1 << 70, True, -3]}
    (update,) = decode("update", pack.pack(said))
    assert isinstance(update, Update)
    assert tuple(said["path"]) == update.event.path
    assert [update] == decode("update", encode(update))


@pytest.mark.proves("STO-005")
def test_value_beyond_a_megabyte_is_left_out_and_head_and_chain_are_kept() -> None:
    whole, most = "x" * ((1 << 20) - 4), "x" * ((1 << 20) - 5)
    for value, expected in ((whole, pack.LEFT_OUT), (most, pack.pack(most))):
        said = {**SAID, "value": value, "prev": {"node": "n2", "tick": 1, "prev": None}}
        (update,) = decode("update", pack.pack(said))
        assert Update(Event(Chain((("n1", 5), ("n2", 1))), 3, ("a",), expected)) == update
    with pytest.raises(OurFault):
        encode(Update(Event(EVENT.chain, 3, ("a",), pack.LEFT_OUT)))


def test_payload_beyond_what_anybody_says_is_too_large() -> None:
    assert ["too-large"] * 3 == [
        _code("update", bytes(17 << 20)),
        _code("info", bytes(5 << 20)),
        _code("ping", bytes(1 << 17)),
    ]


@pytest.mark.proves("COD-001")
def test_float_of_four_bytes_is_kept_as_it_came() -> None:
    raw = b"\xca" + struct.pack(">f", 0.1)
    (update,) = decode("update", pack.pack({**SAID, "value": 7}).replace(b"value\x07", b"value" + raw))
    assert Update(Event(EVENT.chain, 3, ("a",), raw)) == update


@pytest.mark.proves("COD-003")
def test_numbers_of_any_width_are_read() -> None:
    wide = pack.pack({**SAID, "tick": 7}).replace(b"tick\x07", b"tick\xcf" + bytes(7) + b"\x05")
    assert [Update(EVENT)] == decode("update", wide)


def test_superseded_is_known_by_another_name() -> None:
    both = {**INFO, "known": {"a": [1, 2], "b": [1]}, "superseded": {"a": [[2, 5]], "c": [9]}}
    (info,) = decode("info", pack.pack(both))
    assert isinstance(info, Info)
    assert {"a": RangeSet([(1, 4)]), "b": RangeSet([(1, 1)]), "c": RangeSet([(9, 9)])} == info.known
    (alone,) = decode("info", pack.pack({**INFO, "superseded": {"a": [3]}}))
    assert Info(node="n1", tick=5, tock=3, known={"a": RangeSet([(3, 3)])}) == alone


def test_node_of_which_only_the_name_is_known_has_no_top() -> None:
    assert [Info(node="n1", tick=5, tock=3, ticks={"a": 0})] == decode(
        "info", pack.pack({**INFO, "ticks": {"a": 0, "b": None}})
    )


# Batches


@pytest.mark.proves("LNK-003")
@given(st.lists(UPDATES, min_size=1, max_size=5))
def test_batch_is_read_in_its_order(updates: list[Update]) -> None:
    assert updates == decode("update", b"".join(map(encode, updates)))


@pytest.mark.proves("LNK-003")
def test_batch_has_a_thousand_messages_and_256_kib_at_most() -> None:
    one = encode(Update(EVENT))
    assert 1_000 == len(decode("update", one * 1_000))
    assert "too-large" == _code("update", one * (1_000 + 1))
    big = encode(Update(Event(EVENT.chain, 3, ("a",), pack.pack(bytes(60_000)))))
    assert (4, "too-large") == (len(decode("update", big * 4)), _code("update", big * 5))


@pytest.mark.proves("LNK-003", "COD-007")
def test_one_bad_message_refuses_its_batch() -> None:
    one = encode(Update(EVENT))
    bad = pack.pack({**SAID, "tick": 0})
    assert ["bad-field", "bad-field", "malformed", "malformed"] == [
        _code("update", payload) for payload in (one + bad, bad + one, one + b"\xc0", one + one[:-1])
    ]


@pytest.mark.proves("LNK-003")
def test_keys_that_nobody_knows_are_ignored_in_a_batch() -> None:
    assert [Update(EVENT)] * 2 == decode("update", pack.pack({**SAID, "more": [1]}) * 2)


# Planted bugs: each of them turns a check above red


def test_planted_bug_that_null_deletes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "Raw", lambda raw: UNSET if raw == b"\xc0" else raw)
    null = Update(Event(EVENT.chain, 3, ("a",), b"\xc0"))
    assert [null] != decode("update", encode(null))


def test_planted_bug_that_keys_may_stand_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "dict_of", dict)
    with pytest.raises(AssertionError):
        test_broken_bytes_are_refused_by_their_name(BROKEN[0][0], "malformed")


LONG = "\U0001f9f5" * 35
"""Few characters, and 140 bytes: the journal, vectors and the lake take 128 of an origin."""


@pytest.mark.proves("STO-001")
@pytest.mark.parametrize(
    "payload",
    [
        {"node": LONG},
        {"chain": {"node": LONG, "tick": 1, "prev": None}},
        {"prev": {"node": LONG, "tick": 1, "prev": None}},
    ],
)
def test_the_name_of_a_node_is_counted_in_bytes_and_not_in_characters(payload: dict[str, Any]) -> None:
    assert 140 == len(LONG.encode())
    assert _code("update", pack.pack({**SAID, **payload})) in ("bad-field", "bad-chain")
    assert "accepted" == _code("update", pack.pack({**SAID, "node": LONG[:16]}))
    assert "bad-field" == _code("update", pack.pack({**SAID, "node": LONG[:17]}))
