"""What the root remembers of origins, and its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.records import StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.carrier import limits
from weft.cores.carrier.seen import Notes, Seen, Verdict

A = b"a" * 16


def batch(first: int, rows: int = 1, *, era: int | None = 7, stream: int = 1, origin: bytes | str = A) -> StreamRecord:
    return StreamRecord(stream, origin, era, first, 0, 0, "", b"", {"n": rows})


@pytest.mark.proves("CHN-035")
def test_streams_origins_and_eras_are_apart() -> None:
    seen = Seen()
    ways = [batch(1), batch(1, era=8), batch(1, stream=2), batch(1, origin="n1", era=None), batch(1, origin=b"b" * 16)]
    assert [Verdict.NEW] * 5 == [seen.take(each) for each in ways]
    assert [Verdict.KNOWN] * 5 == [seen.take(each) for each in ways]


@pytest.mark.proves("CHN-035")
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), max_size=40))
def test_verdicts_are_those_of_a_plain_set(pieces: list[tuple[int, int]]) -> None:
    seen, plain = Seen(), set[int]()
    for first, rows in pieces:
        numbers = set(range(first, first + rows))
        expected = Verdict.KNOWN if numbers <= plain else Verdict.OVERLAPS if numbers & plain else Verdict.NEW
        missing = {n for a, b in seen.missing(batch(first, rows)) for n in range(a, b + 1)}
        assert numbers - plain == missing
        assert expected is seen.take(batch(first, rows))
        if expected is Verdict.NEW:
            plain |= numbers


@pytest.mark.proves("CHN-035")
def test_starts_too_old_to_be_compared_are_unsure_and_kept() -> None:
    seen = Seen()
    for era in range(100, 100 + limits.SEEN_ERAS_MAX + 1):
        assert Verdict.NEW is seen.take(batch(1, era=era))
    assert 16 == len(seen)
    assert Verdict.UNSURE is seen.take(batch(1, era=100))
    assert Verdict.UNSURE is seen.take(batch(1, era=100))
    assert Verdict.KNOWN is seen.take(batch(1, era=101))
    assert 16 == len(seen)


def test_holes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEEN_RANGES_MAX", 5)
    seen = Seen()
    for first in range(1, 41, 2):
        assert Verdict.NEW is seen.take(batch(first))
    assert Verdict.NEW is seen.take(batch(1)), "forgotten: twice is better than never"
    assert [Verdict.KNOWN] * 5 == [seen.take(batch(first)) for first in range(31, 41, 2)]


@pytest.mark.proves("JRN-042")
@given(st.lists(st.tuples(st.integers(1, 2), st.sampled_from([None, 1, 2]), st.integers(1, 30)), max_size=60))
def test_a_snapshot_brings_everything_back(pieces: list[tuple[int, int | None, int]]) -> None:
    seen = Seen()
    for stream, era, first in pieces:
        seen.take(batch(first, 2, stream=stream, era=era, origin=A if era else "n1"))
    heir = Seen()
    for kept in seen.condense():
        heir.adopt(kept)
    assert seen == heir
    for kept in seen.condense():
        heir.adopt(kept)
    assert seen == heir


def test_many_origins_are_kept_in_records_of_bounded_size() -> None:
    seen = Seen()
    for number in range(1_234):
        seen.take(batch(1, origin=number.to_bytes(16, "big")))
    assert [500, 500, 234] == [len(VersionVector.decode(piece.vector)) for piece in seen.condense()]


def test_notes_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NOTES_MAX", 3)
    notes = Notes()
    assert [True, True, True, True] == [notes.is_new(bytes([n])) for n in range(4)]
    assert [True, False, False] == [notes.is_new(bytes([n])) for n in (0, 2, 3)]
