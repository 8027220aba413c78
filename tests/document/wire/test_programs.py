"""What programs and their node say to each other, and what comes of bytes that are neither."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import PeerError
from weft.wire.document import programs
from weft.wire.document.clients import Answer, Asked

PACK = msgspec.msgpack.encode
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)
IDS = st.binary(min_size=1, max_size=8)
ARGS = st.dictionaries(st.text("abc_", max_size=9), PLAIN, max_size=4)


@given(number=IDS, verb=st.text("abc", min_size=1, max_size=9), session=st.text("aé ", max_size=9), args=ARGS)
def test_request_comes_back(number: bytes, verb: str, session: str, args: dict[str, Any]) -> None:
    asked = Asked(number, verb, session, args)
    assert asked == programs.decode(programs.encode_request(asked))


@given(number=IDS, body=PLAIN, code=st.sampled_from(["", "too-large"]), more=st.booleans())
def test_answer_comes_back(number: bytes, body: Any, code: str, *, more: bool) -> None:
    answer = Answer(number, body, code, more)
    assert answer == programs.decode_answer(programs.encode(answer))


def test_what_has_its_default_is_left_out() -> None:
    assert [b"1", PACK({"verb": "status"})] == programs.encode_request(Asked(b"1", "status"))
    assert [b"1", PACK({})] == programs.encode(Answer(b"1", None))


def test_unknown_keys_are_ignored() -> None:
    assert Asked(b"1", "show") == programs.decode([b"1", PACK({"verb": "show", "later": 1})])


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"1"],
        [b"", PACK({"verb": "show"})],
        [b"123456789", PACK({"verb": "show"})],
        [b"1", PACK({"verb": "show"}), b""],
        [b"1", b""],
        [b"1", b"\xc1"],
        [b"1", b"\xdf\xff\xff\xff\xff"],
        [b"1", b"\x91" * 100_000],
        [b"1", PACK({"verb": "show"}) + b"\0"],
        [b"1", PACK(["show"])],
        [b"1", PACK({})],
        [b"1", PACK({"verb": ""})],
        [b"1", PACK({"verb": "x" * 65})],
        [b"1", PACK({"verb": 7})],
        [b"1", PACK({"verb": "show", "args": {7: 1}})],
        [b"1", PACK({"verb": "show", "args": {str(key): 1 for key in range(65)}})],
        [b"1", b"\x82\xa4verb\xa1a\xa4args\x81\xa1a" + b"\x91" * 5_000],
        [b"1", b"\x82\xa4verb\xa2\xff\xfe\xa4args\x80"],
        [b"1", bytes((4 << 20) + 1)],
    ],
    ids=range(20),
)
def test_request_that_cannot_be_read_is_answered_and_its_id_kept(frames: list[bytes]) -> None:
    with pytest.raises(PeerError) as caught:
        programs.decode(frames)
    assert "bad-request" == caught.value.code
    said = programs.refuse(frames, caught.value)
    assert (frames[0][:8] if frames else b"") == said[0]
    assert {"code": "bad-request"} == {
        key: value for key, value in msgspec.msgpack.decode(said[1]).items() if key != "body"
    }


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    for decode, code in ((programs.decode, "bad-request"), (programs.decode_answer, "bad-answer")):
        try:
            said = decode([b"1", data])
            assert b"1" == said.id
        except PeerError as error:
            assert code == error.code
