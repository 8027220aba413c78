"""The checksum that an operation carries: which bytes it proves, and what it says of two bodies of one number."""

from hashlib import sha256

import pytest

from tests.document.logs import body
from tests.document.rig import A, B
from weft.base.errors import PeerError
from weft.wire.document.operations import header_of, parse
from weft.wire.document.sums import is_altered, is_proved, rank, with_sum

PLAIN = body(B, 2, "one")
SUMMED = with_sum(PLAIN)


def test_it_is_the_last_attribute_of_the_first_tag_and_no_part_of_the_reference() -> None:
    expected = (
        b'<set path="b" source="b0000000-0000-4000-8000-000000000002" timestamp="1763800000" sequence="2" '
        b'crc32="7020377e">one</set>'
    )
    assert expected == SUMMED
    assert parse(PLAIN).reference == parse(SUMMED).reference == {"path": "b"}
    assert b'<remove eid="x" crc32="1804f27f"/>' == with_sum(b'<remove eid="x"/>')


def altered(said: bytes, bit: int) -> bytes:
    made = bytearray(said)
    made[bit // 8] ^= 1 << bit % 8
    return bytes(made)


def unnoticed(said: bytes) -> list[bytes]:
    """Bodies with one other bit that are read as an operation, and of which no checksum says that they were altered."""
    found = []
    for bit in range(8 * len(said)):
        one = altered(said, bit)
        try:
            if not is_altered(one, header_of(one).attributes):
                found.append(one)
        except PeerError:
            pass
    return found


@pytest.mark.proves("FLD-030", part="operations of documents on links that have no sum")
def test_a_bit_that_flips_is_noticed_unless_it_takes_the_checksum_away_and_then_the_other_body_counts() -> None:
    name = SUMMED.index(b"crc32")
    left = unnoticed(SUMMED)
    assert 0 < len(left) < 40
    assert {name + at for at in range(5)} == {
        next(i for i in range(len(SUMMED)) if one[i] != SUMMED[i]) for one in left
    }
    assert [] == [one for one in left if is_proved(one) or rank(one) < rank(SUMMED)]


@pytest.mark.parametrize(
    "one",
    [
        SUMMED.replace(b'crc32="7020377e"', b"crc32='7020377e'"),
        SUMMED.replace(b"7020377e", b"7020377E"),
        SUMMED.replace(b"7020377e", b""),
        SUMMED.replace(b"7020377e", b"&#55;020377e"),
        SUMMED.replace(b"</set>", b""),
    ],
)
def test_whatever_is_not_what_the_author_wrote_is_altered(one: bytes) -> None:
    assert (True, False) == (is_altered(one, header_of(one).attributes), is_proved(one))


def test_what_says_no_checksum_is_neither_proved_nor_altered() -> None:
    assert (False, False) == (is_altered(PLAIN, header_of(PLAIN).attributes), is_proved(PLAIN))
    assert not is_proved(b"no operation")


def test_of_equals_the_smaller_hash_counts() -> None:
    for one, other in ((PLAIN, body(B, 2, "other")), (SUMMED, with_sum(body(B, 2, "other")))):
        assert (rank(one) < rank(other)) is (sha256(one).digest() < sha256(other).digest())
    assert rank(SUMMED) < rank(PLAIN)
    assert rank(with_sum(body(A, 1))) < min(rank(body(A, 1, f"{n}")) for n in range(100))
