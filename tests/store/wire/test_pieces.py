"""Payloads in pieces (LNK-004)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.wire.strategies import ANY, spoilt
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.wire.store import pieces
from weft.wire.store.pieces import OPEN_MAX, PAYLOAD_BYTES_MAX, Pieces, cut, is_piece

NOW = Now(1_000 * SECOND, 0)
LATER = Now(NOW.mono + 60 * SECOND, 0)
TEXT = bytes(range(256)) * 9


def _all(taker: Pieces, parts: list[bytes], now: Now = NOW) -> list[bytes]:
    return [whole for part in parts if (whole := taker.take(part, now)) is not None]


@pytest.mark.proves("LNK-004")
@given(
    st.binary(min_size=451, max_size=4_000),
    st.sampled_from(["n", "zürich", "x" * 64]),
    st.randoms(use_true_random=False),
)
def test_payload_comes_back_from_its_pieces_in_any_order(payload: bytes, node: str, shuffle: object) -> None:
    parts = cut(payload, node, 7, 450)
    assert [] == [part for part in parts if len(part) > 450 or not is_piece(part)]
    assert -(-len(payload) // (450 - 15 - len(node.encode()))) == len(parts)
    mixed = parts * 2
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]  # a Random
    assert payload in _all(Pieces(), mixed)
    assert [payload] == _all(Pieces(), parts)


@pytest.mark.proves("LNK-004")
def test_payload_that_fits_is_sent_whole() -> None:
    assert [TEXT[:450]] == cut(TEXT[:450], "n1", 1, 450)
    assert not is_piece(TEXT)


@pytest.mark.proves("LNK-004")
def test_payloads_of_several_senders_do_not_mix() -> None:
    one, other = cut(TEXT, "n1", 1, 450), cut(TEXT[::-1], "n2", 1, 450)
    mixed = [part for pair in zip(one, other, strict=True) for part in pair]
    assert [TEXT, TEXT[::-1]] == _all(Pieces(), mixed)


@pytest.mark.proves("LNK-004", "COD-007")
def test_payload_that_is_not_finished_in_a_minute_is_given_up() -> None:
    taker = Pieces()
    *most, last = cut(TEXT, "n1", 1, 450)
    assert [] == _all(taker, most)
    assert (None, 1) == (taker.take(last, LATER), taker.incomplete)
    assert [TEXT] == _all(taker, most, LATER)


@pytest.mark.proves("LNK-004")
def test_sender_may_have_64_payloads_open_and_the_oldest_gives_way() -> None:
    taker = Pieces()
    cuts = [cut(TEXT, "n1", sequence, 450) for sequence in range(OPEN_MAX + 1)]
    assert [] == _all(taker, [parts[0] for parts in cuts])
    assert 1 == taker.incomplete
    assert [TEXT] * 64 == [whole for parts in cuts[1:] for whole in _all(taker, parts[1:])]
    assert [] == _all(taker, cuts[0][1:])


@pytest.mark.proves("LNK-004")
def test_four_megabytes_of_a_sender_are_enough() -> None:
    taker = Pieces()
    first, second = (cut(bytes(PAYLOAD_BYTES_MAX - 9), "n1", sequence, 1 << 20) for sequence in (1, 2))
    assert [] == _all(taker, first[:-1])
    assert [] == _all(taker, second[:2])
    assert 1 == taker.incomplete
    with pytest.raises(PeerError) as caught:
        _all(taker, cut(bytes(PAYLOAD_BYTES_MAX + (1 << 20)), "n2", 1, 1 << 20))
    assert "too-large" == caught.value.code


def test_strangers_with_many_names_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "OPEN_OF_ALL_MAX", 10)
    monkeypatch.setattr(pieces, "BYTES_OF_ALL_MAX", 2_500)
    taker = Pieces()
    assert [] == _all(taker, [cut(TEXT, f"n{number}", 1, 40)[0] for number in range(20)])
    assert 10 == taker.incomplete
    assert [] == _all(taker, [cut(TEXT, f"m{number}", 1, 1_015)[0] for number in range(3)])
    assert 21 == taker.incomplete


@pytest.mark.proves("LNK-004")
def test_sender_that_starts_anew_with_the_same_numbers_is_heard() -> None:
    taker = Pieces()
    assert [] == _all(taker, cut(TEXT, "n1", 1, 450)[:-1])
    assert [TEXT[::-1]] == _all(taker, cut(TEXT[::-1], "n1", 1, 450))
    assert [] == _all(taker, cut(TEXT, "n1", 2, 450)[2:4])
    assert [TEXT[:900]] == _all(taker, cut(TEXT[:900], "n1", 2, 450)[::-1])


REFUSED = [
    (b"\x81\xa3_p0\x05", "bad-field"),
    (b"\x81\xa3_p0\x94\xa2n1\x01\x00\xc4\x00", "bad-field"),
    (b"\x81\xa3_p0\x94\xa0\x01\x01\xc4\x00", "bad-field"),
    (b"\x81\xa3_p0\x94\xa2n1\xff\x01\xc4\x00", "bad-field"),
    (b"\x81\xa3_p0\x94\xa2n1\x01\xce\x00\x10\x00\x00\xc4\x00", "bad-field"),
    (b"\x81\xa3_p0\x94\xa2n1\x01\x01", "malformed"),
    (b"\x81\xa3_p0\x94\xa2\xff\xff\x01\x01\xc4\x00", "malformed"),
    (b"\x81\xa3_p0\xc1", "malformed"),
]


@pytest.mark.proves("COD-007")
@pytest.mark.parametrize("piece, expected", REFUSED)
def test_what_is_no_piece_is_refused(piece: bytes, expected: str) -> None:
    with pytest.raises(PeerError) as caught:
        Pieces().take(piece, NOW)
    assert expected == caught.value.code


@given(st.lists(ANY | spoilt(st.sampled_from(cut(TEXT[:90], "n1", 1, 50))), max_size=6))
def test_any_bytes_are_pieces_or_refused(given_bytes: list[bytes]) -> None:
    taker = Pieces()
    for data in given_bytes:
        try:
            whole = taker.take(data, NOW)
        except PeerError as error:
            assert error.code in ("malformed", "bad-field", "too-large")
        else:
            assert whole is None or type(whole) is bytes
