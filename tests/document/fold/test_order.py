"""The order of operations, and which of several copies counts (DOC-010, DOC-012, DOC-013)."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.fold.feeding import Feed, copy_of, said, source_of
from weft.base.errors import OurFault
from weft.cores.document.fold.order import Order, prefixes
from weft.wire.document.operations import Operation


def names(order: Order) -> list[str]:
    return [f"{source[:1].decode()}{sequence}" for _, source, sequence, _ in order.entries]


def lost(order: Order) -> list[str]:
    return sorted(f"{source[:1].decode()}{sequence}" for source, sequence in order.superseded)


def test_what_comes_later_in_time_stands_at_the_end_and_leaves_all_others_where_they_were() -> None:
    order = Order()
    assert [0, 1] == [order.take([said("a", 1, 1.0)]), order.take([said("b", 1, 2.0)])]
    assert ["a1", "b1"] == names(order)


def test_what_is_late_says_how_many_stay_in_front_of_it() -> None:
    order = Order()
    order.take([said("a", number, float(number)) for number in (1, 2, 3, 4)])
    assert 2 == order.take([said("b", 1, 2.5)])
    assert ["a1", "a2", "b1", "a3", "a4"] == names(order)


def test_a_batch_says_it_for_the_first_of_all() -> None:
    order = Order()
    order.take([said("a", number, float(number)) for number in (1, 2, 3, 4)])
    assert 1 == order.take([said("c", 1, 9.0), said("b", 1, 1.5), said("b", 2, 3.5)])
    assert ["a1", "b1", "a2", "a3", "b2", "a4", "c1"] == names(order)


@pytest.mark.proves("DOC-010")
def test_a_clock_that_steps_back_does_not_invert_its_own_source() -> None:
    order = Order()
    order.take([said("a", 1, 5.0), said("a", 2, 3.0), said("b", 1, 4.0)])
    assert (["b1", "a1", "a2"], 5.0) == (names(order), order.eff(source_of("a"), 2))


@pytest.mark.proves("DOC-010")
def test_at_one_time_the_bytes_of_the_source_decide_then_the_sequence() -> None:
    order = Order()
    order.take([said("b", 1, 1.0), said("b", 2, 1.0), said("a", 1, 1.0)])
    assert ["a1", "b1", "b2"] == names(order)


def test_what_is_known_is_passed_over_and_a_gap_is_our_fault() -> None:
    order = Order()
    order.take([said("a", 1, 1.0)])
    assert (1, ["a1"]) == (order.take([said("a", 1, 1.0), said("a", 1, 0.5)]), names(order))
    with pytest.raises(OurFault):
        order.take([said("a", 3, 1.0)])


@pytest.mark.proves("DOC-013")
def test_of_copies_the_one_with_the_smallest_key_counts() -> None:
    order = Order()
    order.take([copy_of("b", 1, ("d", 7), 5.0)])
    assert [] == lost(order)
    assert 0 == order.take([copy_of("a", 1, ("d", 7), 5.0)])
    assert ["b1"] == lost(order)
    order.take([copy_of("c", 1, ("d", 7), 6.0)])
    assert ["b1", "c1"] == lost(order)


@pytest.mark.proves("DOC-013")
def test_the_original_takes_the_place_of_its_copies_and_what_stood_behind_the_first_is_folded_again() -> None:
    order = Order()
    order.take([said("a", 1, 1.0), copy_of("a", 2, ("d", 2), 2.0), said("a", 3, 3.0), said("d", 1, 4.0)])
    assert 1 == order.take([said("d", 2, 5.0)])
    assert ["a2"] == lost(order)


def test_a_copy_that_cannot_be_read_is_none_and_neither_is_one_of_itself() -> None:
    order = Order()
    unread = said("a", 1, 1.0, "<b", more=' origsource="64646464-6464-6464-6464-646464646464" origsequence="1"')
    order.take([unread, copy_of("b", 1, ("d", 1), 2.0), copy_of("c", 1, ("c", 1), 3.0)])
    assert ("malformed", []) == (unread.inert, lost(order))


def test_the_winner_of_a_fork_moves_what_its_source_said_after_it() -> None:
    order = Order()
    order.take([said("a", number, float(number)) for number in (1, 2, 3)] + [said("b", 1, 2.5)])
    assert 1 == order.replace([said("a", 2, 9.0, "other")])
    assert ["a1", "b1", "a2", "a3"] == names(order)
    assert [1.0, 9.0, 9.0] == [order.eff(source_of("a"), number) for number in (1, 2, 3)]


def test_the_winner_of_a_fork_may_be_no_copy_any_more() -> None:
    order = Order()
    order.take([copy_of("a", 1, ("d", 1), 1.0), copy_of("b", 1, ("d", 1), 2.0)])
    assert 0 == order.replace([said("a", 1, 3.0)])
    assert (["b1", "a1"], []) == (names(order), lost(order))


def some(draw: Random) -> list[Operation]:
    """Operations of four sources, many of them copies of few."""
    found = []
    for letter in "abcd":
        for sequence in range(1, draw.randint(2, 6)):
            original, at = (draw.choice("abcd"), draw.randint(1, 5)), float(draw.randint(1, 8))
            is_copy = draw.random() < 0.4
            found.append(copy_of(letter, sequence, original, at) if is_copy else said(letter, sequence, at))
    return found


@pytest.mark.proves("DOC-012", "DOC-013")
@given(seed=st.integers(0, 1 << 32))
def test_neither_arrival_nor_batches_nor_forks_decide_the_order(seed: int) -> None:
    draw = Random(seed)
    operations = some(draw)
    at = draw.randrange(len(operations))
    loser = operations[at]
    operations[at] = said(loser.source[:1].decode(), loser.sequence, float(draw.randint(1, 8)), "winner")
    expected = Order()
    expected.take(prefixes(operations))
    arriving = [*operations[:at], loser, *operations[at + 1 :]]
    draw.shuffle(arriving)
    order, feed = Order(), Feed()
    while arriving:
        size = draw.randint(1, 4)
        order.take(feed.take(arriving[:size]))
        del arriving[:size]
    order.replace([operations[at]])
    assert (names(expected), lost(expected)) == (names(order), lost(order))


def test_prefixes_are_what_has_no_gap_before_it_each_once() -> None:
    three = [said("a", 1, 1.0), said("a", 2, 2.0), said("b", 1, 3.0)]
    for shuffled in permutations([*three, said("a", 4, 4.0), said("c", 2, 5.0), said("b", 1, 3.0)]):
        assert [("a", 1), ("a", 2), ("b", 1)] == [
            (each.source[:1].decode(), each.sequence) for each in prefixes(shuffled)
        ]
