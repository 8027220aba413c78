"""Records in the order of their numbers, and what becomes of those that are missing (LOG-006, LOG-009)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.listening import Broker, Process, heard, own_form
from weft.base.now import SECOND
from weft.cores.catalog import gaps, limits
from weft.cores.catalog.gaps import Lost, Run
from weft.cores.catalog.messages import LogsLost
from weft.wire.catalog.messages import DENIED

WARN = b"log.thermo.WARNING"


@pytest.mark.proves("LOG-006")
@pytest.mark.proves("LOG-009")
def test_a_hole_is_filled_by_one_request_in_the_order_of_the_numbers() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for number in range(1, 8):
        process.log(is_lost=number in (3, 4))
    assert [1, 2] == heard(broker)
    (asked,) = broker.asked
    assert (b"10.0.0.1:9", b"dbp.logs", {"from": 3, "to": 4}) == (
        asked.peer,
        asked.message.command,
        json.loads(asked.message.body[0]),
    )
    process.answer(asked)
    assert [1, 2, 3, 4, 5, 6, 7] == heard(broker)
    broker.advance(10)
    assert (1, 7) == (len(broker.asked), len(broker.kept()))


@pytest.mark.proves("LOG-006")
def test_a_hole_that_nobody_fills_is_reported_after_five_seconds() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for number in range(1, 5):
        process.log(is_lost=number == 2)
    broker.advance(4.99)
    assert [1] == heard(broker)
    broker.advance(0.01)
    assert [1, (2, 2), 3, 4] == heard(broker)
    assert [LogsLost("thermo", "a", 2, 2)] == [event for event in broker.told if isinstance(event, LogsLost)]
    assert 1 == broker.drops("log_gaps", "")


@pytest.mark.proves("LOG-006")
@pytest.mark.parametrize(
    ("command", "body", "expected"),
    [
        (b"o_O", (b'{"logs":[' + own_form(3) + b"]}",), [1, (2, 2), 3, (4, 5), 6]),
        (b"o_O", (b'{"logs":[' + own_form(5) + b"," + own_form(2) + b"," + own_form(9) + b"]}",), [1, 2, (3, 4), 5, 6]),
        (b"o_O", (b'{"logs":[]}',), [1, (2, 5), 6]),
        (b"o_O", (b'{"Error":"no","code":"unknown-endpoint"}',), [1, (2, 5), 6]),
        (b"o_O", (), [1, (2, 5), 6]),
        (DENIED, (b"{}",), [1, (2, 5), 6]),
        (b"o_O", (b'{"logs":[' + own_form(9) + b"]}",), [1]),
    ],
)
def test_what_an_answer_leaves_out_is_lost_and_of_others_it_is_no_answer(
    command: bytes, body: tuple[bytes, ...], expected: list[Any]
) -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for number in range(1, 7):
        process.log(is_lost=2 <= number <= 5)
    broker.refill(b"10.0.0.1:9", *body, command=command)
    assert expected == heard(broker)


def test_an_answer_that_comes_too_late_or_unasked_changes_nothing() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for number in range(1, 4):
        process.log(is_lost=number == 2)
    broker.advance(5)
    process.answer(broker.asked[0])
    assert [1, (2, 2), 3] == heard(broker)
    assert 1 == broker.drops("log_dropped", "unasked")


def test_who_serves_elsewhere_is_not_asked() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo", ip="10.0.0.1"))
    broker.update("thermo", ip="10.9.9.9")
    for number in range(1, 4):
        process.log(is_lost=number == 2)
    assert ([], [1, (2, 2), 3]) == (broker.asked, heard(broker))


def test_who_serves_where_the_broker_may_probe_is_asked() -> None:
    broker = Broker(probe_allow=("10.9.0.0/16",))
    process = Process(broker, broker.register("thermo"))
    broker.update("thermo", ip="10.9.9.9")
    for number in range(1, 4):
        process.log(is_lost=number == 2)
    assert [b"10.9.9.9:9"] == [asked.peer for asked in broker.asked]


@pytest.mark.proves("LOG-006")
def test_what_a_service_said_before_it_was_listened_to_is_asked_for_and_of_an_old_one_it_is_not() -> None:
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    process.log(is_lost=True)
    process.log()
    process.answer(broker.asked[0])
    assert [1, 2] == heard(broker)
    before = Broker()
    before.register("thermo")
    old = Broker(era=2, before=before.records)
    process = Process(old, b"thermo\0a\0pub")
    process.log(is_lost=True)
    process.log()
    assert ([2], []) == (heard(old), old.asked)


@pytest.mark.proves("LOG-006")
@pytest.mark.parametrize("from_snapshot", [False, True])
def test_what_a_service_said_while_the_broker_was_away_is_asked_for(from_snapshot: bool) -> None:
    first = Broker()
    process = Process(first, first.register("thermo"))
    for number in range(1, 7):
        process.log(is_lost=number == 4)  # 5 and 6 wait for it, and are not in the journal
    process.broker = Broker(era=2, before=first.core.condense() if from_snapshot else first.records)
    process.log(is_lost=True)
    process.log()
    assert [] == heard(process.broker)
    process.answer(process.broker.asked[0])
    assert [4, 5, 6, 7, 8] == heard(process.broker)
    told = [log["seq"] for log in process.broker.ask(b"dbp.logs")["logs"]]
    assert ([] if from_snapshot else [1, 2, 3]) + [4, 5, 6, 7, 8] == told


def test_a_broker_that_comes_back_knows_what_is_lost_and_whose_records_they_were() -> None:
    first = Broker()
    tag = first.register("thermo")
    for number in (1, 2, 5):
        first.hear(tag, WARN, own_form(number, service="bank"))
    first.advance(5)
    second = Broker(era=2, before=[*first.records, *first.core.condense()])
    second.hear(tag, WARN, own_form(6, service="bank"))
    assert ([6], []) == (heard(second), second.asked)
    assert [1, 2, None, 5, 6] == [log["seq"] for log in second.ask(b"dbp.logs")["logs"]]


@pytest.mark.proves("LOG-009")
def test_a_service_that_counts_from_one_again_is_a_new_run() -> None:
    broker = Broker()
    tag = broker.register("thermo")
    for number in (1, 2, 5, 1, 2):
        broker.hear(tag, WARN, own_form(number))
    assert [1, 2, (3, 4), 5, 1, 2] == heard(broker)


@pytest.mark.proves("LOG-006")
def test_log_burst_with_loss_and_recovery() -> None:
    """S13: what the socket dropped in a burst is said again; what the service has forgotten by then is reported."""
    broker = Broker()
    process = Process(broker, broker.register("thermo"))
    for number in range(2_400):  # the socket drops from 300 to 1,899; the service remembers the last thousand
        process.log(is_lost=300 <= number < 1_900)
        if number % 800 == 799:
            broker.advance(1)
    process.answer(broker.asked[0])
    remembered = range(1_401, 2_401)
    assert [*range(1, 301), (301, 1_400), *remembered] == heard(broker)
    process.log()
    assert 2_401 == heard(broker)[-1]
    assert 1 == broker.drops("log_gaps", "")


def test_who_is_removed_has_said_all_that_waits() -> None:
    broker = Broker(reap_ns=SECOND)
    process = Process(broker, broker.register("thermo"))
    for number in range(1, 4):
        process.log(is_lost=number == 2)
    broker.route(b"</3", b"thermo", b"a")
    broker.advance(2)
    assert [1, (2, 2), 3] == heard(broker)
    broker.advance(10)
    assert [1, (2, 2), 3] == heard(broker)
    assert ({}, 0) == (broker.core.logs._asked, broker.core.logs._held)


def test_records_behind_holes_are_bounded_for_all_publishers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOGS_MAX", 10)
    broker = Broker()
    processes = [Process(broker, broker.register(name)) for name in ("thermo", "b")]
    for process in processes:
        process.log()
        process.log(is_lost=True)
    for _ in range(6):
        for process in processes:
            process.log()
    assert broker.core.logs._held <= 10
    assert 1 == broker.drops("log_gaps", "")


def naive(numbers: list[int]) -> list[Any]:
    """What leaves if nobody answers: the numbers, and what is missing between them, run by run."""
    done: list[Any] = []
    top = 0
    for number in numbers:
        if number <= top:
            top = 0
        if number > top + 1:
            done.append(Lost(top + 1, number - 1))
        done.append(number)
        top = number
    return done


@pytest.mark.proves("LOG-006")
@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), max_size=40), st.randoms(use_true_random=False))
def test_each_number_leaves_once_and_in_order_or_is_reported(numbers: list[int], chance: Any) -> None:
    run = Run()
    before = list[Any]()
    for number in numbers:
        before += run.hear(number, number, 0)
        assert len(run.holes()) <= 8
    before += run.end()
    assert 0 == run.held
    expanded = [n for item in before for n in (range(item.first, item.last + 1) if isinstance(item, Lost) else (item,))]
    starts = [place for place, n in enumerate(expanded) if n == 1] or [0]
    for start, end in zip(starts, [*starts[1:], len(expanded)], strict=True):
        assert list(range(1, end - start + 1)) == expanded[start:end]
    if not _has_late(numbers):
        assert naive(numbers) == before


def _has_late(numbers: list[int]) -> bool:
    """Whether a number comes that an open hole may hope for: the naive model knows only new runs."""
    top, missing = 0, set[int]()
    for number in numbers:
        if number in missing:
            return True
        if number <= top:
            top, missing = 0, set()
        missing |= set(range(top + 1, number))
        top = number
    return False


# Planted bugs


def _forget_silently(hole: Any) -> list[Any]:
    return [hole.found[number] for number in sorted(hole.found)]


def _hold_nothing(run: Run, number: int, item: Any, now: int) -> list[Any]:
    run.top = max(run.top, number)
    return [item]


@pytest.mark.parametrize(
    ("place", "bug", "check"),
    [
        ((gaps.Hole, "take"), _forget_silently, test_a_hole_that_nobody_fills_is_reported_after_five_seconds),
        ((gaps.Run, "hear"), _hold_nothing, test_a_hole_is_filled_by_one_request_in_the_order_of_the_numbers),
        ((limits, "GAP_NS"), 3600 * SECOND, test_a_hole_that_nobody_fills_is_reported_after_five_seconds),
    ],
)
def test_a_planted_bug_in_filling_holes_turns_a_check_red(
    place: tuple[Any, str], bug: Any, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*place, bug)
    with pytest.raises((AssertionError, ValueError)):
        check()
