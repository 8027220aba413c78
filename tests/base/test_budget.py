"""A budget in parts: what has room, what is frozen, what is counted (FLD-032)."""

import pytest

from weft.base.budget import Budget, Part


def test_a_part_takes_its_share_to_the_last_byte_and_no_more() -> None:
    held = [0]
    budget = Budget()
    part = budget.part("things", 25, lambda: held[0])
    budget.give(1_000)
    assert [True, False] == [part.has_room(250), part.has_room(251)]
    held[0] = 250
    assert [False, True, True] == [part.has_room(1), part.has_room(0), part.has_room(-9)]


def test_a_cap_is_below_the_share_however_large_the_budget_is() -> None:
    budget = Budget()
    part = budget.part("things", 50, lambda: 0, cap=40)
    budget.give(1_000)
    assert [True, False] == [part.has_room(40), part.has_room(41)]


def test_what_is_frozen_takes_only_what_makes_it_smaller_until_it_is_thawed() -> None:
    held = [30]
    budget = Budget()
    part = budget.part("things", 50, lambda: held[0])
    budget.give(100)
    budget.freeze(is_frozen=True)
    assert [False, False, True] == [part.has_room(1), part.has_room(0), part.has_room(-1)]
    held[0] = 31
    assert part.is_over
    held[0] = 20
    assert [False, False] == [part.has_room(1), part.is_over]
    budget.freeze(is_frozen=False)
    assert [True, True, False] == [part.has_room(0), part.has_room(30), part.has_room(31)]


def test_what_holds_more_than_it_may_is_over_and_stays_frozen_at_its_share() -> None:
    held = [80]
    budget = Budget()
    part = budget.part("things", 50, lambda: held[0])
    budget.give(100)
    assert part.is_over
    budget.freeze(is_frozen=True)
    held[0] = 50
    assert [False, False] == [part.is_over, part.has_room(1)]


def test_parts_are_together_no_more_than_the_whole() -> None:
    budget = Budget()
    budget.part("one", 60, lambda: 0)
    with pytest.raises(AssertionError):
        budget.part("other", 41, lambda: 0)


def test_refusals_are_counted_by_part_and_shown_beside_bytes_and_budget() -> None:
    budget = Budget()
    one = budget.part("one", 60, lambda: 7)
    budget.part("other", 40, lambda: 5)
    budget.give(100)
    one.refuse()
    one.refuse()
    assert {
        "bytes": 12,
        "budget_bytes": 100,
        "parts": {
            "one": {"bytes": 7, "budget_bytes": 60, "refused": 2},
            "other": {"bytes": 5, "budget_bytes": 40, "refused": 0},
        },
    } == budget.facts()


def test_by_itself_a_part_has_no_limit() -> None:
    assert Part("alone", lambda: 1 << 50).has_room(1 << 50)
