"""What every core is made of, by itself."""

from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Confirm, Connect, Disconnect, Effect, Perform, Persist, Reply, Send, Tell
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Record
from weft.cores.kit import limits
from weft.cores.kit.backoff import BackOff
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.refusals import Refusal
from weft.cores.kit.tickets import Tickets
from weft.cores.kit.timers import Parts, Timers, earliest

ONE, TWO = (CoreRecord("kit", 1, data) for data in (b"one", b"two"))


def test_effects_leave_in_the_order_in_which_they_were_wanted_and_once() -> None:
    outbox = Outbox()
    outbox.connect("c", "host:1", b"tag", (b"topic",))
    outbox.send("c", b"peer", "message")
    outbox.confirm("c", b"peer", 1, 5)
    outbox.disconnect("c")
    outbox.perform("work")
    outbox.reply(7, "answer")
    outbox.tell("event")
    expected: list[Effect] = [
        Connect("c", "host:1", b"tag", (b"topic",)),
        Send("c", b"peer", "message"),
        Confirm("c", b"peer", 1, 5),
        Disconnect("c"),
        Perform("work"),
        Reply(7, "answer"),
        Tell("event"),
    ]
    assert expected == outbox.take()
    assert [] == outbox.take()


@pytest.mark.proves("HSE-001", part="the outbox")
def test_what_is_kept_stands_in_one_wall_before_all_that_the_turn_says() -> None:
    outbox = Outbox()
    outbox.tell("before")
    outbox.keep(ONE)
    outbox.tell("after")
    outbox.keep(TWO)
    assert [Persist((ONE, TWO)), Tell("before"), Tell("after")] == outbox.take()
    assert [] == outbox.take()


KEPT_SOON: list[tuple[list[tuple[Record, int | None]], int]] = [
    ([(ONE, 5)], 5),
    ([(ONE, 5), (TWO, 3)], 3),
    ([(ONE, 3), (TWO, 5)], 3),
    ([(ONE, None), (TWO, 5)], 0),
    ([(TWO, 5), (ONE, None)], 0),
]


@pytest.mark.parametrize(("kept", "within_ns"), KEPT_SOON)
def test_what_may_wait_stands_behind_what_must_be_kept(kept: list[tuple[Record, int | None]], within_ns: int) -> None:
    outbox = Outbox()
    for record, soon in kept:
        if soon is None:
            outbox.keep(record)
        else:
            outbox.keep_soon(record, soon)
    outbox.tell("said")
    assert [Persist((ONE, TWO)[: len(kept)], within_ns), Tell("said")] == outbox.take()
    outbox.keep_soon(ONE, 9)
    assert [Persist((ONE,), 9)] == outbox.take()


def test_nothing_to_keep_is_no_wall() -> None:
    outbox = Outbox()
    outbox.keep()
    outbox.tell("said")
    assert [Tell("said")] == outbox.take()


def test_a_wall_at_its_place_holds_back_only_what_is_said_after_it() -> None:
    outbox = Outbox()
    outbox.tell("free")
    outbox.persist([ONE, TWO])
    outbox.tell("walled")
    assert [Tell("free"), Persist((ONE, TWO)), Tell("walled")] == outbox.take()


def test_the_same_news_is_told_once_in_a_span() -> None:
    outbox = Outbox()
    told = [outbox.tell_seldom("a", at, at, 10) for at in (0, 9, 10, 19, 20)]
    assert [True, False, True, False, True] == told
    assert [Tell(0), Tell(10), Tell(20)] == outbox.take()


def test_news_about_something_else_is_told_and_strangers_cannot_fill_the_memory() -> None:
    outbox = Outbox()
    for number in range(limits.QUIET_MAX + 1):
        assert outbox.tell_seldom(number, number, 0)
    told = [outbox.tell_seldom(number, number, 1) for number in (limits.QUIET_MAX, 1, 0)]
    assert [False, False, True] == told


def test_the_first_of_some_instants() -> None:
    assert [3, 0, None, None] == [earliest(5, None, 3), earliest(0, 1), earliest(None), earliest()]


@pytest.mark.proves("HSE-001", part="deadlines")
def test_a_timer_is_due_once_and_the_last_word_counts() -> None:
    timers = Timers()
    timers.set("a", 5)
    timers.set("b", 3)
    timers.set("a", 4)
    timers.start("a", 1)
    timers.start("c", 200)
    assert (4, 200, 3) == (timers["a"], timers["c"], timers.earliest())
    assert ["b"] == list(timers.due(Now(3, 0)))
    assert "b" not in timers
    assert ["a"] == list(timers.due(Now(100, 0)))
    timers.clear()
    assert (None, []) == (timers.earliest(), list(timers.due(Now(1_000, 0))))


@pytest.mark.parametrize("is_put_off", [True, False])
def test_what_the_timer_before_stops_or_puts_off_is_not_due(is_put_off: bool) -> None:
    timers = Timers()
    timers.set("a", 1)
    timers.set("b", 1)
    due = []
    for name in timers.due(Now(1, 0)):
        due.append(name)
        if is_put_off:
            timers.set("b", 2)
        else:
            timers.stop("b", "nothing that is set")
    assert (["a"], is_put_off) == (due, "b" in timers)


class Beat:
    """A part that is due every second, the first time at once."""

    def __init__(self, name: str, woken: list[str]) -> None:
        self.name, self.woken = name, woken
        self.at: int | None = 0

    def wake(self, now: Now) -> None:
        self.woken.append(self.name)
        self.at = now.mono + SECOND

    def deadline(self) -> int | None:
        return self.at


def test_parts_that_are_due_are_woken_in_their_order_and_the_first_deadline_counts() -> None:
    woken: list[str] = []
    parts = Parts(first := Beat("first", woken), second := Beat("second", woken), last := Beat("last", woken))
    second.at = None
    assert 0 == parts.deadline()
    parts.wake(Now(1, 0))
    assert (["first", "last"], 1 + SECOND) == (woken, parts.deadline())
    first.at = last.at = None
    assert parts.deadline() is None


@pytest.mark.proves("HSE-001", part="tickets")
def test_a_ticket_is_answered_once_and_its_number_never_given_again() -> None:
    tickets = Tickets[Any]()
    numbers = [tickets.open(waiting) for waiting in ("a", "b")]
    assert ([1, 2], 2, "a", "b") == (numbers, len(tickets), tickets[1], tickets[2])
    assert ["b", None, None] == [tickets.close(number) for number in (2, 2, 99)]
    tickets.clear()
    assert (0, 3) == (len(tickets), tickets.open("c"))


@pytest.mark.proves("HSE-001", part="refusals")
def test_a_refusal_says_its_code_and_why() -> None:
    refusal = Refusal("too-large", "9 bytes", "send less")
    assert ("too-large", "9 bytes", "send less") == (refusal.code, refusal.why, refusal.mend)
    assert ["too-large: 9 bytes", "closed"] == [str(refusal), str(Refusal("closed"))]


@pytest.mark.proves("HSE-002", part="the pause before the next attempt")
def test_a_pause_doubles_up_to_the_longest_and_differs_from_node_to_node() -> None:
    plain = BackOff(1_000, 5_000, share=0.0)
    assert [1_000, 2_000, 4_000, 5_000, 5_000] == [plain.pause_ns(Chance("a"), failed) for failed in (0, 1, 2, 3, 99)]
    spread = BackOff(1_000, 5_000, share=0.2)
    drawn = [spread.pause_ns(Chance(f"node {number}"), 0) for number in range(100)]
    assert (True, True) == (800 <= min(drawn) < 900, 1_100 < max(drawn) <= 1_200)
