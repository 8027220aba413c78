"""Links that hold messages: windows, policies, waiting, confirming (CHN-010 to CHN-019)."""

from typing import Any

import pytest

from tests.chains.rig import Recorder, Rig, by_client
from weft.base.mail import INBOX, Mail
from weft.cores.chains import limits
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.context import Flow
from weft.cores.chains.messages import LinkRecovered, LinkSickened, MessagesLost
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.states import LINK_TABLE, LinkState, On
from weft.wire import clients

TREE: dict[str, str | None] = {"A": "B", "B": None}


def rig_with(node: str = "A", **options: Any) -> tuple[Rig, HolderLink]:
    """A rewriter `h` on one chain, and how it stands."""
    rig = Rig(TREE)
    link = rig.reg(node, "h", 1, {"access": "rw", **options}).links[1]
    assert isinstance(link, HolderLink)
    return rig, link


def seen(rig: Rig, node: str, name: str, what: str = "rec") -> list[Any]:
    return [event[3:] for event in rig.events if event[:3] == (what, node, name)]


def payloads(rig: Rig, node: str, name: str) -> list[str]:
    return [event[2] for event in seen(rig, node, name)]


def statuses(rig: Rig, node: str = "A", name: str = "s") -> list[tuple[int, str]]:
    return [(tag, why) for tag, _, why in seen(rig, node, name, "status")]


def offers(session: Recorder) -> list[tuple[int, bool]]:
    return [(number, re) for _, number, re in session.offers]


# The table


def arranged(state: LinkState, **options: Any) -> tuple[Rig, HolderLink]:
    """A link in this state, with something to answer where that is possible."""
    rig, link = rig_with(dir="out", timeout=100, window=2 if state is LinkState.OPEN else 1, **options)
    if state is LinkState.OPEN:
        rig.send("A", "s", 1, "m1")
    elif state is LinkState.FULL:
        rig.send("A", "s", 1, "m1")
        rig.send("A", "s", 2, "m2")
    elif state is LinkState.GONE:
        rig.unreg("A", "h", 1)
    else:
        for tag in range(1, 6):
            rig.send("A", "s", tag, f"m{tag}")
            rig.advance(100)
        if state is LinkState.PROBING:
            rig.advance(30_000)
            rig.send("A", "s", 6, "m6")
    assert state is link.state
    return rig, link


@pytest.mark.proves("CHN-016", "CHN-017")
@pytest.mark.parametrize("state, on", list(LINK_TABLE), ids=lambda value: value.name)
def test_every_row_of_the_table_happens(state: LinkState, on: On) -> None:
    rig, link = arranged(state)
    pending, backlog = list(link.pending), len(link.backlog)
    match on:
        case On.ARRIVED | On.FILLED | On.RESTED:
            if state is LinkState.OPEN and on is On.ARRIVED:
                link.window = 3
            if on is On.RESTED and state is LinkState.SICK:
                rig.advance(30_000)
            rig.send("A", "s", 99, "one more")
        case On.ANSWERED:
            rig.next("A", "h", 1, _held(rig, link))
        case On.DRAINED:
            link.backlog.clear()
            rig.next("A", "h", 1, pending[0])
        case On.MISSED | On.SICKENED:
            _held(rig, link)
            link.misses = 4 if on is On.SICKENED else 0
            rig.advance(100)
        case On.LEFT:
            rig.unreg("A", "h", 1)
    if (state, on) in {(LinkState.FULL, On.ANSWERED), (LinkState.FULL, On.MISSED)}:
        assert backlog - 1 == len(link.backlog), "one of those in line is offered"
        assert (LinkState.OPEN if link.has_room else LinkState.FULL) is link.state
    else:
        assert LINK_TABLE[state, on].then is link.state


def _held(rig: Rig, link: HolderLink) -> int:
    """A message that it holds; a sick link may still have one from before."""
    if not link.pending:
        parcel = Parcel(1, "out", Mail(origin=b"", era=0, sequence=1, type="t", frames=(b"x",), to=("DIRECT",)))
        parcel.flow, parcel.sender = Flow(), rig.sites["A"].session("s")
        state, link.state = link.state, LinkState.OPEN
        rig.sites["A"].core.walker.holding.arrive(link, parcel, rig.now)
        link.state = state
        link.resolved.clear()
    return next(iter(link.pending))


@pytest.mark.proves("CHN-017")
def test_every_answer_about_a_link_that_is_gone_is_refused() -> None:
    rig, _ = arranged(LinkState.GONE)
    for answer in (rig.next, rig.drop, rig.fail, rig.conf):
        answer("A", "h", 1, 1)
    assert ["not-holding"] * 4 == [why for *_, why in seen(rig, "A", "h", "error")]
    assert set(LinkState) - {LinkState.GONE} == {state for state, _ in LINK_TABLE}
    assert set(On) == {on for _, on in LINK_TABLE}


# Windows


def test_deadlines_are_counted_from_offering_and_not_from_parking() -> None:
    rig, link = rig_with(dir="out", timeout=100, window=1)
    rig.send("A", "s", 1, "m1")
    rig.send("A", "s", 2, "m2")
    rig.advance(99)
    rig.next("A", "h", 1, 1)
    rig.advance(99)
    assert [2] == list(link.pending)
    rig.advance(1)
    assert ([], 1) == (list(link.pending), link.counters.timed_out)


def test_a_backlog_that_is_full_leaves_the_next_to_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKLOG_MAX", 2)
    rig, _ = rig_with(dir="out", fail="closed", window=1)
    for tag in range(1, 6):
        rig.send("A", "s", tag, f"m{tag}")
    assert [(4, "filter-failed"), (5, "filter-failed")] == statuses(rig)
    (event,) = [event for event in rig.sites["A"].told if isinstance(event, MessagesLost)]
    assert ("h", 1, "t", "backlog", 1) == (event.client, event.reg, event.type, event.why, event.count)


@pytest.mark.proves("CHN-016")
def test_losses_are_told_once_a_minute_with_all_that_happened_meanwhile() -> None:
    rig, _ = rig_with(dir="out", fail="closed", timeout=100)
    for tag in range(1, 4):
        rig.send("A", "s", tag, f"m{tag}")
        rig.fail("A", "h", 1, tag)
    rig.advance(60_000)
    rig.send("A", "s", 4, "m4")
    rig.fail("A", "h", 1, 4)
    told = [event.count for event in rig.sites["A"].told if isinstance(event, MessagesLost)]
    assert [1, 3] == told


def test_a_sick_client_and_its_recovery_are_told() -> None:
    rig, link = arranged(LinkState.PROBING)
    rig.next("A", "h", 1, next(iter(link.pending)))
    events = [event for event in rig.sites["A"].told if isinstance(event, LinkSickened | LinkRecovered)]
    assert [LinkSickened("h", 1, "out", "t"), LinkRecovered("h", 1, "out", "t")] == events


def test_one_answer_in_time_begins_the_count_of_misses_anew() -> None:
    rig, link = rig_with(dir="out", timeout=100)
    for tag in range(1, 10):
        rig.send("A", "s", tag, f"m{tag}")
        if tag == 5:
            rig.next("A", "h", 1, tag)
        rig.advance(100)
    assert (LinkState.OPEN, 4) == (link.state, link.misses)


def test_an_answer_is_remembered_for_ten_thousand_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESOLVED_MAX", 2)
    rig, _ = rig_with(dir="out")
    for tag in range(1, 4):
        rig.send("A", "s", tag, f"m{tag}")
        rig.next("A", "h", 1, tag)
    for number in (3, 2, 1):
        rig.next("A", "h", 1, number)
    assert [("next", 3, "expired"), ("next", 2, "expired"), ("next", 1, "not-holding")] == seen(rig, "A", "h", "error")


# Ordered


@pytest.mark.proves("CHN-015")
def test_a_deadline_frees_what_was_answered_behind_it_in_an_ordered_link() -> None:
    rig, link = rig_with(dir="out", ordered=True, timeout=100)
    for tag in (1, 2, 3):
        rig.send("A", "s", tag, f"m{tag}")
    rig.next("A", "h", 1, 3)
    rig.next("A", "h", 1, 2, "two")
    assert [] == statuses(rig)
    rig.next("A", "h", 1, 2)
    assert [("next", 2, "expired")] == seen(rig, "A", "h", "error")
    rig.advance(100)
    assert [(1, "spooled"), (2, "spooled"), (3, "spooled")] == statuses(rig)
    assert ({}, 1) == (link.pending, link.counters.timed_out)


@pytest.mark.proves("CHN-015", "CHN-016")
def test_what_was_answered_behind_an_open_message_takes_effect_when_the_client_dies() -> None:
    rig, _ = rig_with(dir="out", ordered=True, fail="closed")
    rig.reg("B", "seen", 1, {})
    for tag in (1, 2):
        rig.send("A", "s", tag, f"m{tag}")
    rig.next("A", "h", 1, 2, "two")
    rig.die("A", "h")
    assert [(1, "filter-failed"), (2, "spooled")] == statuses(rig)
    assert ["two"] == payloads(rig, "B", "seen")


# Waiting


@pytest.mark.proves("CHN-016")
def test_a_message_waits_for_a_client_of_that_name_to_come_back() -> None:
    rig, _ = rig_with(dir="out", fail="wait")
    rig.send("A", "s", 1, "m1")
    rig.die("A", "h")
    other = rig.reg("A", "other", 1, {"dir": "out", "access": "rw"})
    rig.advance(59_999)
    assert ([], []) == (statuses(rig), offers(other))
    back = rig.reg("A", "h", 7, {"dir": "out", "access": "rw", "fail": "wait"})
    assert ([(1, True)], []) == (offers(other), offers(back)), "it goes on behind the place where it waited"
    rig.next("A", "other", 1, 1)
    assert [(1, True)] == offers(back)
    rig.next("A", "h", 7, 1)
    assert [(1, "spooled")] == statuses(rig)


@pytest.mark.proves("CHN-012")
def test_who_comes_back_in_front_of_its_place_gets_what_waits_at_once() -> None:
    rig, _ = rig_with(dir="out", fail="wait", at=10)
    after = rig.reg("A", "after", 1, {"dir": "out", "at": 20})
    rig.send("A", "s", 1, "m1")
    rig.die("A", "h")
    back = rig.reg("A", "h", 1, {"dir": "out", "access": "rw", "fail": "wait", "at": 5})
    assert [(1, True)] == offers(back)
    rig.next("A", "h", 1, 1, "changed")
    assert ["changed"] == payloads(rig, "A", after.name)
    assert [(1, "spooled")] == statuses(rig)


def test_what_has_waited_long_enough_ends_as_closed() -> None:
    for direction, ended in (("out", [(1, "filter-failed")]), ("in", [(1, "local")])):
        rig, _ = rig_with(dir=direction, fail="wait")
        rig.send("A", "s", 1, "m1", ["DIRECT"])
        rig.die("A", "h")
        rig.advance(60_000)
        assert ended == statuses(rig)
        assert 0 == len(rig.sites["A"].core.waiting)
        rig.reg("A", "h", 1, {"dir": direction, "access": "rw"})
        assert [] == offers(rig.sites["A"].sessions["h"])


def test_a_waiting_link_is_never_sick() -> None:
    rig, link = rig_with(dir="out", fail="wait", timeout=100)
    for tag in range(1, 9):
        rig.send("A", "s", tag, f"m{tag}")
        rig.advance(100)
    assert (LinkState.OPEN, 8) == (link.state, link.misses)
    assert 8 == len(rig.sites["A"].core.waiting)


@pytest.mark.proves("CHN-016", "CHN-017")
def test_who_was_only_slow_is_heard_as_long_as_its_message_waits_for_it() -> None:
    rig, link = rig_with(dir="out", fail="wait", timeout=100)
    for tag in (1, 2, 3):
        rig.send("A", "s", tag, f"m{tag}")
    rig.advance(100)
    assert 3 == len(rig.sites["A"].core.waiting)
    rig.next("A", "h", 1, 1)
    rig.drop("A", "h", 1, 2)
    rig.fail("A", "h", 1, 3)
    rig.next("A", "h", 1, 3)
    assert [(1, "spooled"), (2, "deleted")] == statuses(rig)
    assert ([("next", 3, "expired")], 1) == (seen(rig, "A", "h", "error"), len(rig.sites["A"].core.waiting))
    assert (0, 0) == (link.misses, len(link.pending))
    rig.advance(60_000)
    assert (3, "filter-failed") == statuses(rig)[-1]


def test_no_more_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_MAX", 1)
    rig, _ = rig_with(dir="out", fail="wait")
    rig.send("A", "s", 1, "m1")
    rig.send("A", "s", 2, "m2")
    rig.die("A", "h")
    assert [(2, "filter-failed")] == statuses(rig)


# Confirming


def confirming(window: int = 64, **options: Any) -> Rig:
    rig = Rig(TREE)
    rig.reg("B", "c", 1, {"confirm": True, "window": window, "at": 10, **options})
    rig.reg("B", "seen", 1, {"at": 20})
    return rig


@pytest.mark.proves("CHN-019")
def test_a_confirmed_message_goes_on_at_once_and_its_entry_is_kept() -> None:
    rig = confirming()
    rig.send("A", "s", 1, "m1")
    site = rig.sites["B"]
    assert (["m1"], ["m1"]) == (payloads(rig, "B", "c"), payloads(rig, "B", "seen"))
    assert (1, [INBOX]) == (len(site.core.inbox), [getattr(record, "stream", INBOX) for record in site.journal[:1]])
    rig.conf("B", "c", 1, 1)
    assert 0 == len(site.core.inbox)
    rig.conf("B", "c", 1, 1)
    assert [("conf", 1, "expired")] == seen(rig, "B", "c", "error")


@pytest.mark.proves("CHN-019")
def test_at_the_window_the_chain_waits_at_the_confirming_link() -> None:
    rig = confirming(window=1)
    for tag in (1, 2, 3):
        rig.send("A", "s", tag, f"m{tag}")
    assert ["m1"] == payloads(rig, "B", "seen")
    rig.advance(3_600_000)
    assert ["m1"] == payloads(rig, "B", "seen"), "it may take its time"
    rig.conf("B", "c", 1, 1)
    assert ["m1", "m2"] == payloads(rig, "B", "seen")
    assert ["m1", "m2"] == payloads(rig, "B", "c")


@pytest.mark.proves("CHN-019")
def test_who_vanishes_without_confirming_gets_it_again_and_what_came_meanwhile() -> None:
    rig = confirming(window=1, away=11 * 86_400_000)
    for tag in (1, 2):
        rig.send("A", "s", tag, f"m{tag}")
    rig.die("B", "c")
    assert ["m1", "m2"] == payloads(rig, "B", "seen"), "a reader that is dead delays nobody"
    rig.send("A", "s", 3, "m3")
    assert ["m1", "m2", "m3"] == payloads(rig, "B", "seen"), "in the order in which they came"
    rig.advance(10 * 86_400_000)
    back = rig.reg("B", "c", 5, {"confirm": True, "at": 10})
    assert [(1, True), (2, True), (3, True)] == offers(back)
    assert ["m1", "m2", "m3"] == payloads(rig, "B", "seen")
    for number in (1, 2, 3):
        rig.conf("B", "c", 5, number)
    assert 0 == len(rig.sites["B"].core.inbox)


def test_a_reader_that_confirms_gets_again_what_it_was_shown_and_not_what_became_of_it() -> None:
    rig = confirming()
    rig.reg("B", "ed", 1, {"access": "rw", "at": 15})
    rig.auto("B", "ed", 1, "mark")
    rig.send("A", "s", 1, "m1")
    rig.die("B", "c")
    rig.reg("B", "c", 5, {"confirm": True, "at": 10})
    assert (["m1", "m1"], ["m1+ed"]) == (payloads(rig, "B", "c"), payloads(rig, "B", "seen"))


@pytest.mark.parametrize("policy", ["open", "closed", "drop"])
def test_a_reader_that_need_not_be_waited_for_is_given_up_with_its_client(policy: str) -> None:
    rig = confirming(fail=policy, window=1)
    for tag in (1, 2):
        rig.send("A", "s", tag, f"m{tag}")
    rig.die("B", "c")
    assert (0, 0) == (len(rig.sites["B"].core.inbox), len(rig.sites["B"].core.waiting))
    assert ["m1", "m2"] == payloads(rig, "B", "seen"), "it only reads: what is in line for it ends no earlier"


def test_a_reader_that_confirms_cannot_rewrite_and_a_rewriter_cannot_confirm() -> None:
    rig = confirming()
    rig.reg("B", "h", 1, {"access": "rw"})
    rig.send("A", "s", 1, "m1")
    rig.next("B", "c", 1, 1, "stolen")
    rig.conf("B", "h", 1, 1)
    assert [("next", 1, "not-holding")] == seen(rig, "B", "c", "error")
    assert [("conf", 1, "not-holding")] == seen(rig, "B", "h", "error")


def test_what_could_not_be_handled_waits_as_if_nothing_had_been_said_about_it() -> None:
    rig = confirming()
    rig.send("A", "s", 1, "m1")
    rig.fail("B", "c", 1, 1)
    assert 1 == len(rig.sites["B"].core.waiting)
    rig.reg("B", "c", 2, {"confirm": True, "at": 10})
    rig.conf("B", "c", 2, 1)
    assert ([], 0) == (seen(rig, "B", "c", "error"), len(rig.sites["B"].core.inbox))


def test_two_registrations_of_one_name_wait_for_it_and_one_that_returns_is_enough() -> None:
    rig = Rig(TREE)
    for reg in (1, 2):
        rig.reg("B", "c", reg, {"confirm": True, "window": 1, "at": 10 * reg})
    for tag in (1, 2):
        rig.send("A", "s", tag, f"m{tag}")
    rig.die("B", "c")
    back = rig.reg("B", "c", 3, {"confirm": True})
    assert [(1, True), (2, True)] == offers(back)
    for number in (1, 2):
        rig.conf("B", "c", 3, number)
    assert (0, 0) == (len(rig.sites["B"].core.inbox), rig.sites["B"].core.engine.parked)


# Own messages


@pytest.mark.proves("CHN-013")
def test_noself_skips_only_the_client_that_has_sent_it() -> None:
    rig = Rig(TREE)
    for name in ("a", "b"):
        rig.reg("B", name, 1, {"noself": True, "access": "rw"})
        rig.reg("B", name, 2, {"noself": True, "dir": "out"})
    rig.send("B", "a", 1, "m1")
    assert [("status", "B", "a", 1, True, "local")] == [event for event in rig.events if event[2] == "a"]
    assert [[2, 1, "m1"], [1, 2, "m1"]] == [event[3:] for event in by_client(rig.events)["B", "b"]]


# Destinations


@pytest.mark.proves("CHN-006")
def test_a_rewriter_on_out_may_send_it_elsewhere() -> None:
    rig, _ = rig_with(dir="out")
    rig.reg("A", "here", 1, {})
    for tag, to in enumerate((["DIRECT"], ["NOWHERE"], ["MULTICAST"], "x"), 1):
        rig.send("A", "s", tag, f"m{tag}")
        rig.next("A", "h", 1, _last(rig), None, to)
    assert [(1, "local"), (2, "bad-destination"), (3, "unimplemented"), (4, "bad-destination")] == statuses(rig)
    assert ["m1"] == payloads(rig, "A", "here")


def _last(rig: Rig) -> int:
    last: int = seen(rig, "A", "h")[-1][1]
    return last


@pytest.mark.proves("CHN-006")
def test_what_was_changed_beside_the_payload_on_in_is_counted() -> None:
    rig, link = rig_with("B")
    rig.send("A", "s", 1, "m1")
    rig.next("B", "h", 1, 1, "x", ["CHILDRENOF"])
    assert (1, 1, 0) == (link.counters.ignored, link.counters.changed, link.counters.passed)
    assert 1 == rig.sites["B"].core.context.counters.ignored


def test_a_payload_that_is_too_large_is_not_taken_back() -> None:
    rig, link = rig_with(dir="out")
    rig.send("A", "s", 1, "m1")
    core, session = rig.sites["A"].core, rig.sites["A"].sessions["h"]
    frames = (b"x" * 600_000, b"y" * 600_000)
    core.engine.hand_back(session, 1, clients.NextItem(id=1, n=2), frames, rig.now)
    assert ([("next", 1, "limit")], [1]) == (seen(rig, "A", "h", "error"), list(link.pending))
