"""What follows of a process's memory: nothing grows near the limit, and only what a start frees ends the node (SEC-014)."""

from typing import Any

import pytest

from weft.base.budget import Budget
from weft.base.errors import UserError
from weft.base.now import SECOND, Now
from weft.node.assembly import build_node
from weft.node.guard import BudgetReached, MemoryExceeded, MemoryGuard, MemoryTight
from weft.node.settings import settings_of

MIB = 1 << 20


def guarded(held: int = 0, budget: int = 600) -> tuple[MemoryGuard, Budget]:
    """A process that may have 1,000 bytes, with one core that holds so many of them."""
    core = Budget()
    core.part("things", 100, lambda: held)
    core.give(budget)
    return MemoryGuard(1_000, {"store": core}), core


def at(seconds: int) -> Now:
    return Now(seconds * SECOND, 0)


@pytest.mark.proves("SEC-014")
def test_at_nine_tenths_nothing_grows_any_more_and_below_eight_it_does_again() -> None:
    guard, core = guarded(held=300)
    part = core.parts["things"]
    assert [[], False] == [guard.look(599, at(1)), guard.is_near]
    assert [[], True] == [guard.look(899, at(1)), guard.is_near]
    assert [MemoryTight(True, 900, 1_000, 300)] == guard.look(900, at(2))
    assert not part.has_room(1)
    assert [] == guard.look(800, at(3))
    assert not part.has_room(1)
    assert [MemoryTight(False, 799, 1_000, 300)] == guard.look(799, at(4))
    assert part.has_room(1)


@pytest.mark.proves("SEC-014")
@pytest.mark.parametrize(("held", "resident", "ends"), [(0, 1_000, False), (0, 1_001, True), (500, 1_001, True)])
def test_a_process_above_its_limit_for_5_s_ends_if_a_start_gives_most_of_it_back(
    held: int, resident: int, ends: bool
) -> None:
    guard, _ = guarded(held)
    told = [event for second in range(1, 7) for event in guard.look(resident, at(second))]
    assert [MemoryExceeded(resident, 1_000)] * ends == [event for event in told if isinstance(event, MemoryExceeded)]


@pytest.mark.proves("SEC-014")
def test_a_peak_ends_no_node_and_who_is_a_quarter_above_ends_at_once() -> None:
    guard, _ = guarded()
    peaks = [1_001, 1_200, 1_000, 1_001, 1_250]
    told = [guard.look(resident, at(3 * second)) for second, resident in enumerate(peaks, 1)]
    assert [[MemoryTight(True, 1_001, 1_000, 0)], [], [], [], []] == told
    assert [MemoryExceeded(1_251, 1_000)] == guard.look(1_251, at(16))


@pytest.mark.proves("SEC-014")
def test_a_node_that_holds_what_a_start_would_bring_back_is_never_ended_for_it() -> None:
    guard, _ = guarded(held=700)
    assert [MemoryTight(True, 1_200, 1_000, 700)] == guard.look(1_200, at(1))


@pytest.mark.proves("FLD-032")
def test_refusals_of_a_part_are_told_once_a_minute_and_are_news_for_as_long() -> None:
    guard, core = guarded(held=600)
    for second in (1, 2, 60, 61):
        core.parts["things"].refuse()
        guard.look(100, at(second))
    core.parts["things"].refuse()
    assert [BudgetReached("store", "things", 600, 600, 5)] == guard.look(100, at(121))
    assert ["store"] == guard.short(at(180))
    assert [] == guard.short(at(181))


@pytest.mark.proves("FLD-032")
def test_a_core_that_holds_more_than_it_may_is_named() -> None:
    guard, _ = guarded(held=601)
    assert ["store"] == guard.short(at(1))


# Settings


def budgets(level: str, **tables: Any) -> dict[str, int]:
    parent = {} if level == "root" else {"parent": "127.0.0.1:27500"}
    return settings_of({"node": {"name": "a", "level": level, **parent}, **tables}).budgets


@pytest.mark.proves("FLD-032")
def test_the_cores_that_run_share_half_of_what_the_process_may_have_beside_itself() -> None:
    expected = {"chains": 19_573_418, "configuration": 13_048_945, "carrier": 13_048_945, "measurement": 6_524_472}
    assert {**expected, "topology": 3_262_236, "enrolment": 3_262_236} == budgets("sensor")
    assert sum(budgets("root", catalog={}, store={}).values()) <= 952 * MIB
    tiny = budgets("sensor", limits={"memory_megabytes": 100})
    assert 4_369_066 == tiny["chains"]


@pytest.mark.proves("FLD-032")
def test_the_file_gives_a_core_a_budget_of_its_own_and_the_core_has_it() -> None:
    settings = settings_of(
        {"node": {"name": "a", "level": "root"}, "store": {}, "limits": {"cores": {"store": 300, "chains": 20}}}
    )
    node = build_node(settings, bytes(16), 1, "seed")
    assert [300 * MIB, 20 * MIB] == [node.cores[name].budget.bytes_max for name in ("store", "chains")]
    assert settings.budgets == {name: core.budget.bytes_max for name, core in node.cores.items()}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cores": {"shop": 3}}, "E02 limits.cores.shop: no such core"),
        ({"memory_megabytes": 200, "cores": {"store": 150, "chains": 60}}, "E04 limits.cores: 210 megabytes together"),
        ({"memory_megabytes": 0}, "E04 limits.memory_megabytes"),
    ],
)
def test_limits_that_cannot_be_are_refused(limits: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError) as refused:
        settings_of({"node": {"name": "a", "level": "root"}, "limits": limits})
    assert expected in refused.value.text
