"""RangeSet against the plainest model there is: a set of numbers."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base.strategies import NUMBERS, RANGE_SETS, SPANS
from weft.base.ranges import Range, RangeSet

TOP = 7
EVERY_SUBSET = [frozenset(some) for size in range(TOP + 1) for some in combinations(range(1, TOP + 1), size)]
EVERY_SPAN = [(first, last) for first in range(1, TOP + 1) for last in range(first, TOP + 1)]


def runs(numbers: frozenset[int] | set[int]) -> list[Range]:
    """Maximal runs of consecutive numbers, the slow and obvious way."""
    found: list[Range] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def numbers_of(ranges: RangeSet) -> set[int]:
    return set(chain.from_iterable(range(first, last + 1) for first, last in ranges))


def made_of(numbers: frozenset[int] | set[int]) -> RangeSet:
    return RangeSet((number, number) for number in numbers)


@pytest.mark.parametrize("model", EVERY_SUBSET, ids=lambda model: "".join(map(str, sorted(model))) or "none")
def test_every_operation_on_every_small_set(model: frozenset[int]) -> None:
    seen = made_of(model)
    assert runs(model) == list(seen)
    assert len(model) == seen.count
    assert max(model, default=0) == seen.highest
    assert bool(model) == bool(seen)
    assert len(runs(model)) == len(seen)
    for first, last in EVERY_SPAN:
        span = set(range(first, last + 1))
        grown, shrunk = seen.copy(), seen.copy()
        assert len(span - model) == grown.add(first, last)
        assert runs(model | span) == list(grown)
        shrunk.remove(first, last)
        assert runs(model - span) == list(shrunk)
        assert (span <= model) == seen.covers(first, last)
        assert runs(model & span) == seen.overlap(first, last)
        assert runs(span - model) == seen.gaps(last, since=first)
    assert ([], []) == (seen.overlap(4, 3), seen.overlap(7, 1))
    assert runs(model) == list(seen), "copies share nothing"


@pytest.mark.parametrize("model", EVERY_SUBSET, ids=lambda model: "".join(map(str, sorted(model))) or "none")
def test_prefix_and_gaps_from_one(model: frozenset[int]) -> None:
    seen = made_of(model)
    expected = next(number for number in range(TOP + 2) if number + 1 not in model)
    assert expected == seen.prefix()
    for upto in range(TOP + 2):
        assert runs(set(range(1, upto + 1)) - model) == seen.gaps(upto)


@given(st.lists(st.tuples(st.booleans(), SPANS), max_size=60))
def test_any_history_of_adds_and_removes(history: list[tuple[bool, Range]]) -> None:
    seen, model = RangeSet(), set[int]()
    for is_add, (first, last) in history:
        span = set(range(first, last + 1))
        if is_add:
            assert len(span - model) == seen.add(first, last)
            model |= span
        else:
            seen.remove(first, last)
            model -= span
        assert runs(model) == list(seen)


@given(RANGE_SETS, RANGE_SETS)
def test_algebra_is_that_of_sets(left: RangeSet, right: RangeSet) -> None:
    a, b = numbers_of(left), numbers_of(right)
    assert runs(a | b) == list(left | right)
    assert runs(a & b) == list(left & right)
    assert runs(a - b) == list(left - right)
    assert (runs(a), runs(b)) == (list(left), list(right)), "operands stay as they were"
    assert (a == b) == (left == right)
    grown = left.copy()
    assert len(b - a) == grown.update(right)
    assert left | right == grown


@given(RANGE_SETS, NUMBERS, NUMBERS)
def test_questions_about_any_span_even_an_empty_one(seen: RangeSet, first: int, last: int) -> None:
    model, span = numbers_of(seen), set(range(first, last + 1))
    assert (span <= model) == seen.covers(first, last)
    assert runs(model & span) == seen.overlap(first, last)
    assert runs(span - model) == seen.gaps(last, since=first)
    assert (first in model) == (first in seen)


@given(st.permutations(range(1, 15)))
def test_order_of_arrival_does_not_matter(numbers: list[int]) -> None:
    assert [(1, 14)] == list(RangeSet((number, number) for number in numbers))


def test_numbers_in_line_keep_one_range() -> None:
    seen = RangeSet()
    assert [1] * 1000 == [seen.add(number) for number in range(1, 1001)]
    assert [(1, 1000)] == list(seen)


@pytest.mark.parametrize("first, last", [(0, 1), (-1, -1), (5, 4)])
def test_numbers_below_one_and_empty_spans_cannot_be_added_or_removed(first: int, last: int) -> None:
    seen = RangeSet([(1, 9)])
    with pytest.raises(AssertionError):
        seen.add(first, last)
    with pytest.raises(AssertionError):
        seen.remove(first, last)
    assert [(1, 9)] == list(seen)


def test_a_mutable_set_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(RangeSet())


def test_a_set_is_no_other_thing() -> None:
    assert RangeSet([(1, 1)]) != [(1, 1)]
