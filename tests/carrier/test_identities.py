"""Which mail has been here: the window of the specification, its bounds, and that a restart finds it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cores.carrier import limits
from weft.cores.carrier.identities import Identities, Meeting, Window
from weft.cores.carrier.memory import Met, MetKept, from_record, to_record

A, B = b"a" * 16, b"b" * 16
VECTORS = Path(__file__).parents[1] / "vectors" / "chains-filters.jsonl"
WORDS = {"new": Meeting.NEW, "duplicate": Meeting.DUPLICATE, "unsure": Meeting.UNSURE}


def vector() -> Any:
    lines = (json.loads(line) for line in VECTORS.read_text("utf-8").splitlines())
    return next(line["means"] for line in lines if line["id"] == "seen-8")


@pytest.mark.proves("CHN-035")
def test_verdicts_are_those_of_the_vector() -> None:
    means = vector()
    met = Identities(means["window"])
    for at, (number, word) in enumerate(means["rows"]):
        assert WORDS[word] is met.meet(A, 7, number), at


@pytest.mark.proves("CHN-035")
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 20))
def test_verdicts_are_those_of_a_plain_set(numbers: list[int], width: int) -> None:
    met, plain, high = Identities(width), set[int](), 0
    for number in numbers:
        if number <= high - width:
            expected = Meeting.UNSURE
        else:
            expected = Meeting.DUPLICATE if number in plain else Meeting.NEW
            plain.add(number)
            high = max(high, number)
        assert expected is met.meet(A, 7, number)


def test_canary_18_a_window_that_slides_over_bits_that_stay_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def ring(self: Window, sequence: int, width: int) -> Meeting:
        """As `meet`, with the bits of numbers long gone in the places of new ones."""
        if sequence <= self.high - width:
            return Meeting.UNSURE
        bit = 1 << sequence % width
        if self.pages.get(0, 0) & bit:
            return Meeting.DUPLICATE
        self.pages[0] = self.pages.get(0, 0) | bit
        self.high = max(self.high, sequence)
        return Meeting.NEW

    monkeypatch.setattr(Window, "meet", ring)
    with pytest.raises(AssertionError):
        test_verdicts_are_those_of_the_vector()
    property_of_seen: Any = test_verdicts_are_those_of_a_plain_set
    with pytest.raises(AssertionError):
        property_of_seen.hypothesis.inner_test([2, 12], 10)


@pytest.mark.proves("CHN-035")
def test_origins_and_eras_are_apart_and_the_window_is_that_of_the_specification() -> None:
    met = Identities()
    pairs = [(A, 7), (A, 8), (B, 7)]
    assert [Meeting.NEW] * 3 == [met.meet(*pair, 1) for pair in pairs]
    assert [Meeting.DUPLICATE] * 3 == [met.meet(*pair, 1) for pair in pairs]
    assert Meeting.NEW is met.meet(A, 7, 65_536)
    assert Meeting.DUPLICATE is met.meet(A, 7, 1)
    assert Meeting.NEW is met.meet(A, 7, 65_537)
    assert Meeting.UNSURE is met.meet(A, 7, 1)
    assert Meeting.NEW is met.meet(A, 7, (1 << 64) - 2)


@pytest.mark.proves("CHN-035", "JRN-042")
@given(st.lists(st.integers(1, 9_000), max_size=40), st.sampled_from([1, 100, 2_048, 5_000]))
def test_windows_over_many_pages_judge_as_a_plain_set_and_survive_a_snapshot(numbers: list[int], width: int) -> None:
    met, plain, high = Identities(width), set[int](), 0
    for number in numbers:
        if number <= high - width:
            expected = Meeting.UNSURE
        else:
            expected = Meeting.DUPLICATE if number in plain else Meeting.NEW
            plain.add(number)
            high = max(high, number)
        assert expected is met.meet(A, 7, number)
        heir = Identities(width)
        for kept in met.condense():
            heir.adopt(round_trip(kept))
        assert met.state() == heir.state()
        met = heir


@pytest.mark.parametrize("number", [2_047, 2_048, 4_095, 4_096])
def test_the_edges_of_pages_survive_a_snapshot(number: int) -> None:
    window, again = Window(), Window()
    assert Meeting.NEW is window.meet(number, 65_536)
    again.adopt(window.high, window.bits(65_536), 65_536)
    assert Meeting.DUPLICATE is again.meet(number, 65_536)


def test_a_window_full_of_holes_keeps_its_bounds() -> None:
    window = Window()
    for number in range(1, 300_000, 2):
        assert Meeting.NEW is window.meet(number, 65_536)
    assert len(window.pages) <= 33
    assert 32_768 == window.bits(65_536).bit_count()
    window.meet((1 << 64) - 2, limits.IDENTITIES)
    assert 1 == len(window.pages) == window.bits(65_536).bit_count()


steps = st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 3), st.integers(1, 30)), max_size=60)


@pytest.mark.proves("CHN-035", "JRN-042")
@given(steps, steps, st.integers(0, 5))
def test_snapshot_and_what_was_written_behind_it_bring_everything_back(first: Any, second: Any, overlap: int) -> None:
    met, written = Identities(8), []
    for step in first:
        met.meet(*step)
        written += met.news()
    image, behind = list(met.condense()), max(0, len(written) - overlap)
    for step in second:
        met.meet(*step)
        written += met.news()
    assert [] == met.news()
    heir = Identities(8)
    for kept in image:
        heir.adopt(round_trip(kept))
    for each in written[behind:]:
        heir.replay(round_trip(each))
    replayed = Identities(8)
    for each in written:
        replayed.replay(each)
    assert met.state() == replayed.state()
    assert sorted(met.state()) == sorted(heir.state())


def round_trip(memory: Any) -> Any:
    """Through the journal and back."""
    there = from_record(to_record(memory))
    assert memory == there
    assert isinstance(there, Met | MetKept)
    return there


@pytest.mark.proves("CHN-035")
def test_the_pair_longest_without_anything_new_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IDENTITY_PAIRS_MAX", 3)
    met = Identities()
    for era in (1, 2, 3):
        met.meet(A, era, 1)
    met.meet(A, 1, 2)
    met.meet(A, 4, 1)
    assert 3 == len(met)
    assert [Meeting.DUPLICATE] * 3 == [met.meet(A, era, 1) for era in (3, 1, 4)]
    assert Meeting.NEW is met.meet(A, 2, 1)
