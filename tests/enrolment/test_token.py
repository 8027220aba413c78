"""The token and the frames of joining: the vectors of the specification to the byte, and nothing but a value or a refusal."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import PeerError
from weft.wire import enrolment, token
from weft.wire.enrolment import About, Join, Refused, Welcome, proof_of
from weft.wire.token import Token
from weft.wire.z85 import from_z85, to_z85

VECTORS = Path(__file__).parents[1] / "vectors" / "security.jsonl"
LINES: dict[str, dict[str, Any]] = {
    line["id"]: line for line in map(json.loads, VECTORS.read_text("utf-8").splitlines())
}
SPECIFIED = "weft1.AQChssPU5fYHGAABAgMEBQYHCAkKCwwNDg8Ho3y8FCCTyLdV3BsQ6Gy0JjdK0WqoU-0L38CyuG0cfAHIjNYBDjEwLjAuMC4xOjI3NTA5bJn_MQ"
EXAMPLE = Token(
    role="sensor",
    ident=bytes.fromhex("a1b2c3d4e5f60718"),
    secret=bytes.fromhex("000102030405060708090a0b0c0d0e0f"),
    server_key=bytes.fromhex("07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c"),
    expires_minutes=29_920_470,
    endpoints=("10.0.0.1:27509",),
)


def text_of(name: str) -> str:
    return bytes.fromhex(LINES[name]["payload"]).decode()


def code_of(read: Any, told: Any) -> str:
    try:
        read(told)
    except PeerError as error:
        return error.code
    return "accepted"


@pytest.mark.proves("SEC-021")
def test_the_token_of_the_specification_to_the_byte() -> None:
    assert SPECIFIED == token.encode(EXAMPLE) == text_of("s-token")
    assert EXAMPLE == token.decode(SPECIFIED) == token.decode(text_of("s-token-space"))


@pytest.mark.proves("SEC-021")
def test_a_token_with_two_endpoints_and_the_last_minute_that_there_is() -> None:
    read = token.decode(text_of("s-token-two"))
    assert ("operator", 4_294_967_295) == (read.role, read.expires_minutes)
    assert ("[2001:db8::7]:27509", "root.lab:27509") == read.endpoints
    assert text_of("s-token-two") == token.encode(read)


@pytest.mark.proves("SEC-021")
@pytest.mark.parametrize("name", [name for name in LINES if "error" in LINES[name]["means"]])
def test_tokens_that_are_none_are_refused_by_name(name: str) -> None:
    assert LINES[name]["means"]["error"] == code_of(token.decode, text_of(name))


@pytest.mark.proves("SEC-021")
@pytest.mark.parametrize(
    "wall_s, expected",
    [(29_920_470 * 60 - 1, False), (29_920_470 * 60, True), (29_920_471 * 60, True)],
)
def test_a_token_ends_at_its_minute(wall_s: int, expected: bool) -> None:
    assert expected is EXAMPLE.is_expired(wall_s * 1_000_000_000)


@given(st.integers(6, len(SPECIFIED) - 1), st.characters(min_codepoint=33, max_codepoint=126))
def test_no_single_slip_of_the_pen_goes_through(place: int, letter: str) -> None:
    changed = SPECIFIED[:place] + letter + SPECIFIED[place + 1 :]
    expected = "accepted" if changed == SPECIFIED else "bad-checksum"
    assert expected == code_of(token.decode, changed)


@pytest.mark.proves("SEC-047", part="what a token and a WELCOME show of themselves")
def test_what_is_printed_of_it_shows_no_secret() -> None:
    welcome = Welcome("lab", ("sensor",), "pi7", ("10.0.0.1:27500",), {}, "0" * 32, "5e" * 32)
    shown = repr(EXAMPLE) + str(EXAMPLE) + repr([EXAMPLE]) + f"{welcome}"
    for secret in (EXAMPLE.secret, repr(EXAMPLE.secret)[2:-1].encode(), EXAMPLE.secret.hex().encode(), b"5e" * 32):
        assert secret not in shown.encode()


@pytest.mark.proves("SEC-022", part="the frames and the proof of a JOIN")
def test_a_join_of_the_specification_to_the_byte() -> None:
    line = LINES["s-join"]
    frames = [bytes.fromhex(frame) for frame in line["frames"]]
    read = enrolment.decode_join(frames)
    assert About(name="pi-7", level="sensor", host="pi-7", version="0.1") == read.about
    assert frames == enrolment.encode_join(read)
    node = bytes.fromhex("0b9e4c1d7a224f539c105d6e7f8091a2")
    client = bytes.fromhex("5869aff450549732cbaaed5e5df9b30a6da31cb0e5742bad5ad4a1a768f1a67b")
    proof = proof_of(EXAMPLE.secret, EXAMPLE.ident, node, client, EXAMPLE.server_key)
    assert "b3a25364f86b7355c0a92f4ca1c10741830d2cdff6e4fa564880b55a1d78cd54" == proof.hex() == read.proof.hex()


def test_answers_come_back_as_they_were_said() -> None:
    welcome = Welcome("lab", ("sensor",), "pi7", ("10.0.0.1:27500",), {}, "0" * 32)
    assert welcome == enrolment.decode_answer(enrolment.encode_answer(welcome))
    frames = [bytes.fromhex(frame) for frame in LINES["s-refused"]["frames"]]
    assert Refused("used", "token a1b2c3d4e5f60718 was used on 2026-11-21") == enrolment.decode_answer(frames)
    assert frames == enrolment.encode_answer(enrolment.decode_answer(frames))


JOINED = enrolment.encode_join(Join(b"i" * 8, b"n" * 16, b"p" * 32, About("pi7")))
ANSWERS = [
    (enrolment.decode_join, [*JOINED, b""], "bad-message"),
    (enrolment.decode_join, [b"JOIN", b"i" * 7, *JOINED[2:]], "bad-message"),
    (enrolment.decode_join, [*JOINED[:2], b"n" * 15, *JOINED[3:]], "bad-message"),
    (enrolment.decode_join, [*JOINED[:3], b"p" * 33, JOINED[4]], "bad-message"),
    (enrolment.decode_join, [*JOINED[:4], b"{}"], "bad-message"),
    (enrolment.decode_join, [*JOINED[:4], b'{"name":"' + b"x" * 65 + b'"}'], "bad-message"),
    (enrolment.decode_join, [*JOINED[:4], b'{"name":"\xff"}'], "bad-message"),
    (enrolment.decode_join, [*JOINED[:4], b"[" * 1_024], "bad-message"),
    (enrolment.decode_join, [*JOINED[:4], b" " * 1_025], "too-big"),
    (enrolment.decode_answer, [b"WELCOME"], "bad-message"),
    (enrolment.decode_answer, [b"WELCOME", b"{}"], "bad-message"),
    (enrolment.decode_answer, [b"WELCOME", b" " * 262_145], "too-big"),
    (enrolment.decode_answer, [b"REFUSED", b"used", b"\xff"], "bad-message"),
    (enrolment.decode_answer, [b"REFUSED", b"u" * 33, b""], "too-big"),
]


@pytest.mark.parametrize("read, frames, code", ANSWERS)
def test_frames_that_are_none_are_refused_by_name(read: Any, frames: list[bytes], code: str) -> None:
    assert code == code_of(read, frames)


@given(st.binary(min_size=32, max_size=32))
def test_z85_there_and_back(key: bytes) -> None:
    assert key == from_z85(to_z85(key))


def test_the_key_of_the_vectors_in_z85() -> None:
    means = LINES["s-zap-request"]["means"]
    assert "szs#hp/J=p+C%@ouhp/lzke8P<-A2PtgxmzxZ}%D" == means["key_z85"]
    assert (
        "5869aff450549732cbaaed5e5df9b30a6da31cb0e5742bad5ad4a1a768f1a67b" == (from_z85(means["key_z85"]) or b"").hex()
    )
