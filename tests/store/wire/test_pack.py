"""Values: what may be one, what is the same, and what is refused before it costs anything (STO-005, COD-001, COD-002)."""

import struct
import tracemalloc
from enum import IntEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.wire.computed import COMPUTED, group, lines, payload, value_of
from tests.store.wire.strategies import ANY, VALUES, spoilt
from weft.base.errors import PeerError
from weft.wire.store.pack import DEPTH_MAX, PathValue, canonical, check, ext, fuller, pack, same_value, unpack

BAD = group("mp-bad-")
HOSTILE = [line for line in lines("hostile.jsonl") if line["means"].get("decoder") in ("msgpack", "msgpack-value")]
ORDER = (64 << 10, 16_384, 32)
"""Limits of an order (SEC-042)."""


def _code(does: Any, *given: Any) -> str:
    try:
        does(*given)
    except PeerError as error:
        return error.code
    return "accepted"


@pytest.mark.proves("COD-001", "COD-002")
@pytest.mark.parametrize("name", [name for name in group("mp-") if name not in BAD and name != "mp-neg"])
def test_value_is_read_and_written_byte_for_byte(name: str) -> None:
    raw, value = payload(COMPUTED[name]), value_of(COMPUTED[name]["means"]["value"])
    assert (value, type(value)) == (unpack(raw), type(unpack(raw)))
    assert raw == pack(value) == canonical(raw)
    check(raw, *ORDER)


@pytest.mark.proves("COD-002", "COD-003")
@pytest.mark.parametrize("name", BAD)
def test_value_that_is_none_is_malformed(name: str) -> None:
    raw = payload(COMPUTED[name])
    assert ["malformed"] * 3 == [_code(unpack, raw), _code(check, raw, *ORDER), _code(canonical, raw)]


@pytest.mark.proves("STO-005")
@pytest.mark.parametrize(
    "value", [-(1 << 63) - 1, object(), "\ud800", {(1, 2)}, PathValue(("a", float)), 1j, [[{"a": -(1 << 70)}]]]
)
def test_value_that_nobody_could_send_is_unencodable(value: Any) -> None:
    assert "unencodable" == _code(pack, value)


def test_list_that_contains_itself_is_unencodable() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "unencodable" == _code(pack, endless)


class Level(IntEnum):
    HIGH = 3


class Name(str):
    __slots__ = ()


def test_kinds_of_plain_types_are_written_as_these() -> None:
    given = {Name("a"): Level.HIGH, "b": (1, bytearray(b"x")), "c": [Name("d"), PathValue(("e",))]}
    assert {"a": 3, "b": [1, b"x"], "c": ["d", PathValue(("e",))]} == unpack(pack(given))


@pytest.mark.proves("COD-002")
@pytest.mark.parametrize("code", [4, 5, 6, -1, -7, 0, 127])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 8, 12, 300])
def test_other_extensions_pass_untouched(code: int, size: int) -> None:
    raw = msgspec.msgpack.encode([{"x": msgspec.msgpack.Ext(code, bytes(range(256))[:1] * size)}, 5, "t"])
    assert [{"x": ext(code, b"\0" * size)}, 5, "t"] == unpack(raw)
    assert raw == pack(unpack(raw)) == canonical(raw)
    check(raw, *ORDER)


MALFORMED = [
    b"\x82\xa1a\x01\xa1a\x02",  # a key twice
    b"\x91\x82\x01\x01\xcc\x01\x02",  # a key twice, in two lengths
    b"\x82\x01\x01\xc3\x02",  # keys that Python takes for one
    b"\x81\x90\x01",  # a list as key
    b"\x81\x80\x01",  # a map as key
    b"\x92\xd4\xff\x00\xc1",
    b"\x81\xd4\xff\x00",
    b"\x92\xd4\xff\x00\xd4\x02\x01",  # beside an instant of another length
    b"\x92\xd4\xff\x00\xa1\xff",
    b"\xd4\x03\xc1",
    b"",
]


@pytest.mark.proves("COD-003", "COD-007")
@pytest.mark.parametrize("raw", MALFORMED, ids=bytes.hex)
def test_what_is_wrong_inside_a_value_is_found(raw: bytes) -> None:
    assert ["malformed"] * 2 == [_code(unpack, raw), _code(check, raw, *ORDER)]


def _made(line: dict[str, Any]) -> bytes:
    """The bytes of a hostile vector."""
    if "payload" in line:
        return bytes.fromhex(line["payload"])
    return b"".join(bytes.fromhex(text) * (times or [1])[0] for _, text, *times in line["make"])


@pytest.mark.proves("STO-005", "COD-007")
@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line["id"])
def test_hostile_value_is_refused_by_its_name(line: dict[str, Any]) -> None:
    raw = _made(line)
    codes = (line["means"]["outcome"], "too-large" if len(raw) > ORDER[0] else "")
    assert _code(check, raw, *ORDER) in codes
    if len(raw) < 1 << 20:
        assert (line["means"]["outcome"] == "malformed") == (_code(unpack, raw) == "malformed")


LIMITS = [
    (b"\x90" * 0 + b"\xc4\xff" + b"x" * 255, (256, 0, 9), "too-large"),
    (b"\xc4\xff" + b"x" * 255, (257, 1, 9), "accepted"),
    (pack([0] * 10), (99, 11, 9), "accepted"),
    (pack([0] * 10), (99, 10, 9), "too-large"),
    (pack({"a": 1, "b": 2}), (99, 5, 9), "accepted"),
    (pack({"a": 1, "b": 2}), (99, 4, 9), "too-large"),
    (pack([[[]]]), (99, 9, 3), "accepted"),
    (pack([[[]]]), (99, 9, 2), "too-large"),
    (pack([1, {"a": [{"b": []}]}, []]), (99, 99, 5), "accepted"),
    (pack([1, {"a": [{"b": []}]}, []]), (99, 99, 4), "too-large"),
    (b"\x91" * DEPTH_MAX + b"\xc0", (9_999, 0, DEPTH_MAX), "accepted"),
    (b"\x91" * (DEPTH_MAX + 1) + b"\xc0", (9_999, 0, DEPTH_MAX), "too-large"),
    (pack("x" * 9), (99, 1, 0), "accepted"),
    (b"\x91\xd4\xff\x00", (99, 2, 1), "accepted"),
    (b"\x91\xd4\xff\x00", (99, 1, 1), "too-large"),
]


@pytest.mark.proves("STO-005")
@pytest.mark.parametrize("raw, limits, expected", LIMITS)
def test_limits_of_a_value_are_exact(raw: bytes, limits: tuple[int, int, int], expected: str) -> None:
    assert expected == _code(check, raw, *limits)


@pytest.mark.proves("STO-005")
def test_deepest_value_that_is_taken_can_be_read_compared_and_written() -> None:
    raw = b"\x91" * DEPTH_MAX + b"\xcb" + struct.pack(">d", 0.1)
    assert raw == canonical(raw)
    assert not same_value(raw, b"\x91" * 500 + b"\xc0")
    assert raw == pack(unpack(raw))


@pytest.mark.proves("COD-007")
def test_many_empty_lists_are_looked_at_one_at_a_time() -> None:
    raw = b"\xdd\x00\x00\x80\x00" + b"\x90" * (1 << 15)
    tracemalloc.start()
    try:
        check(raw, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < peak < 16 * (1 << 15), "8 bytes for each place in the one list that is open, 64 were it built"


SAME = [
    ({"a": 1, "b": [2.0]}, {"b": [2.0], "a": 1}, True),
    (0.1, struct.unpack(">f", struct.pack(">f", 0.1))[0], True),
    ({"x": [0.1, 1e300]}, {"x": [struct.unpack(">f", struct.pack(">f", 0.1))[0], float("inf")]}, True),
    (0.1, 0.1000000001, False),
    (1, 1.0, False),
    (True, 1, False),
    (PathValue(("a",)), ["a"], False),
    ("", b"", False),
]


@pytest.mark.proves("COD-001")
@pytest.mark.parametrize("one, other, expected", SAME)
def test_float_that_was_cut_on_its_way_is_no_difference(one: Any, other: Any, expected: bool) -> None:
    a, b = pack(one), pack(other)
    assert [expected] * 2 == [same_value(a, b), same_value(b, a)]
    if expected:
        assert [canonical(a)] * 2 == [canonical(fuller(a, b)), canonical(fuller(b, a))]


@pytest.mark.proves("COD-001")
def test_float_of_four_bytes_is_the_same_value_and_the_longer_one_is_kept() -> None:
    short, long = b"\xca" + struct.pack(">f", 0.1), b"\xcb" + struct.pack(">d", 0.1)
    assert same_value(short, long)
    assert [long] * 2 == [fuller(short, long), fuller(long, short)]
    assert (True, False, False, False) == (
        same_value(None, None),
        same_value(None, long),
        same_value(short, None),
        same_value(b"", long),
    )


def test_every_encoding_of_a_value_has_one_canonical_form() -> None:
    long = b"\xdf\x00\x00\x00\x02\xd9\x01b\xd3" + bytes(7) + b"\x05" + b"\xda\x00\x01a" + b"\xca" + struct.pack(">f", 2)
    assert pack({"a": 2.0, "b": 5}) == canonical(long)
    assert long != pack(unpack(long))


@pytest.mark.proves("COD-001", "COD-002")
@given(VALUES)
def test_value_comes_back_from_its_bytes(value: Any) -> None:
    raw = pack(value)
    check(raw, len(raw))
    assert raw == pack(unpack(raw))
    assert canonical(raw) == canonical(canonical(raw))
    assert same_value(raw, canonical(raw))


@given(VALUES, VALUES)
def test_sameness_has_no_side(one: Any, other: Any) -> None:
    a, b = pack(one), pack(other)
    assert same_value(a, b) == same_value(b, a)
    if same_value(a, b):
        assert fuller(a, b) == fuller(b, a)


@pytest.mark.proves("COD-007")
@given(ANY | spoilt(VALUES.map(pack)), st.integers(0, 9), st.integers(0, 4))
def test_any_bytes_are_a_value_or_none_and_two_readers_agree(raw: bytes, items: int, depth: int) -> None:
    outcomes = [_code(does, raw) for does in (unpack, canonical)]
    assert outcomes in (["accepted"] * 2, ["malformed"] * 2)
    assert outcomes[0] == _code(check, raw, len(raw))
    limited = _code(check, raw, 40, items, depth)
    assert limited in ("accepted", "malformed", "too-large")
    assert limited != "accepted" or outcomes[0] == "accepted"
