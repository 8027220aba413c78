"""Any frames are a message or one typed refusal, within bounds of time and memory (PEE-006)."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given

from tests.document.wire.strategies import ANY_FRAMES
from tests.document.wire.vectors import SENDER
from tests.examples import examples
from weft.base.errors import PeerError
from weft.wire.document import frames
from weft.wire.document.messages import Envelope, Time

CODES: Final = frozenset({"unknown_type", "bad_identity", "bad_frames", "bad_sum", "bad_body"})
MIB: Final = 1 << 20


def outcomes(said: Sequence[Sequence[bytes]]) -> Counter[str]:
    """How often frames were accepted, and how often which counter moved."""
    found: Counter[str] = Counter()
    for each in said:
        try:
            heard = frames.decode(each)
            assert isinstance(heard, Envelope)
            found["accepted"] += 1
        except PeerError as error:
            found[error.code] += 1
    return found


@pytest.mark.proves("PEE-006")
@examples(300)
@given(said=ANY_FRAMES)
def test_any_frames_are_a_message_or_move_one_counter(said: list[bytes]) -> None:
    found = outcomes([said])
    assert 1 == found.total()
    assert found.keys() <= CODES | {"accepted"}, found


@pytest.mark.proves("PEE-006")
@examples(100)
@given(said=ANY_FRAMES)
def test_what_was_accepted_is_heard_the_same_when_said_again(said: list[bytes]) -> None:
    try:
        heard = frames.decode(said)
    except PeerError:
        return
    assert heard == frames.decode([heard.sender, *frames.encode(heard.message)])


LARGEST: Final = 4 * MIB
FLOODS: Final = {
    "HELO": b"1" * LARGEST,
    "PEER": b"[" + b":" * LARGEST,
    "BOUT": b"\0" * LARGEST + b"x",
    "GBYE": b"\xc3\xa9" * (LARGEST // 2),
    "CHAT": b"x" * LARGEST,
    "BEAT": b"7 " * (LARGEST // 2),
    "TIME": b"9" * LARGEST,
    "GSIP": b"c0000000-0000-4000-8000-000000000003 7\n" * (LARGEST // 39),
    "gsip lines": b"\n" * LARGEST,
}


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize("word", FLOODS)
def test_largest_frame_costs_no_multiple_of_itself(word: str) -> None:
    body = FLOODS[word]
    tracemalloc.start()
    try:
        outcomes([[SENDER, word[:4].upper().encode(), body]])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LARGEST, peak


def test_liberal_reader_without_a_bound_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frames._READ, b"TIME", lambda body: Time(float(body)))
    with pytest.raises((ValueError, AssertionError)):
        assert Counter({"bad_body": 2}) == outcomes([[SENDER, b"TIME", b"noon"], [SENDER, b"TIME", b"nan"]])
