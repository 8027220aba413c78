"""Confirming readers are remembered while they, or their node, are away (FLD-020)."""

from typing import Any

import pytest

from tests.chains.rig import ERA, Recorder, Rig, Site
from tests.chains.test_inbox import A, letter, node, restarted
from weft.base.mail import INBOX
from weft.base.records import CoreRecord, Record, StreamRecord
from weft.checks.accounts import stretches
from weft.cores.chains import memory
from weft.cores.chains.memory import Forgotten, GaveUp, Remembered, Waits
from weft.cores.chains.messages import ForgetReader, HoldBack, MessagesGivenUp, ReaderForgotten

CARRIER = dict.fromkeys(
    ("received", "accepted", "repeated", "ahead", "known", "expired", "turned_away", "held_back"), 0
)


def confirming(rig: Rig, reg: int = 1, **options: Any) -> Recorder:
    return rig.reg("B", "c", reg, {"confirm": True, **options})


def take(site: Site, rig: Rig, *numbers: int) -> list[Record]:
    """Mail arrives; what the carrier is to keep of it."""
    return [kept for number in numbers for kept in site.core.screen(letter(number), rig.now)]


def own(records: list[Record]) -> list[Any]:
    return [memory.from_record(record) for record in records if type(record) is CoreRecord]


def settle(rig: Rig) -> None:
    rig.settle()
    for site in rig.sites.values():
        assert [] == [each for each in stretches(site.core.totals(), CARRIER) if each.missing]


def told(site: Site, kind: type) -> list[Any]:
    return [event for event in site.told if type(event) is kind]


def copies(site: Site) -> tuple[int, int, dict[str, int], int]:
    shown = site.core.totals()["copies"]
    return shown["accepted"], shown["delivered"], shown["ended"], shown["held"]


def test_who_confirms_is_on_disk_before_it_hears_that_it_stands() -> None:
    rig, site = node()
    confirming(rig, type="t", at=7, away=30_000)
    assert [Remembered("c", "t", 7, 30_000)] == own(site.journal)
    rig.die("B", "c")
    confirming(rig, type="t", at=7, away=30_000)
    assert [Remembered("c", "t", 7, 30_000)] == own(site.journal), "once, as long as nothing is another"
    rig.reg("B", "d", 1, {"confirm": True, "fail": "open"})
    assert 1 == len(site.core.engine.readers), "who need not be waited for is not remembered"


@pytest.mark.proves("FLD-020")
def test_what_arrives_while_a_reader_is_away_is_kept_and_comes_in_its_order_and_marked() -> None:
    rig, site = node()
    confirming(rig)
    rig.die("B", "c")
    kept = take(site, rig, 1, 2, 3)
    assert [Waits(A, ERA, number, "c", True) for number in (1, 2, 3)] == own(kept)
    assert [1, 2, 3] == [one.sequence for one in kept if isinstance(one, StreamRecord) and one.stream == INBOX]
    settle(rig)
    session = confirming(rig, window=2)
    assert [(1, 1, True), (1, 2, True)] == session.offers
    take(site, rig, 4)
    for number in (1, 2, 3, 4):
        rig.conf("B", "c", 1, number)
    assert [(1, 1, True), (1, 2, True), (1, 3, True), (1, 4, False)] == session.offers
    settle(rig)
    assert ((4, 4, {}, 0), 0) == (copies(site), len(site.core.inbox))


@pytest.mark.proves("FLD-020")
@pytest.mark.parametrize("is_condensed", [False, True])
def test_what_arrives_at_a_node_that_was_killed_before_its_reader_is_back_waits_for_it(is_condensed: bool) -> None:
    rig, site = node()
    confirming(rig)
    journal = take(site, rig, 1)
    rig, site = restarted(site, list(site.core.condense()) if is_condensed else [*site.journal, *journal])
    kept = take(site, rig, 2)
    assert [Waits(A, ERA, 2, "c", True)] == own(kept)
    session = confirming(rig)
    assert [(1, 1, True), (1, 2, True)] == session.offers
    settle(rig)


@pytest.mark.proves("FLD-020")
def test_who_stays_away_for_too_long_is_forgotten_and_what_waited_is_given_up_by_name() -> None:
    rig, site = node()
    confirming(rig, away=10_000)
    rig.die("B", "c")
    take(site, rig, 1, 2, 4)
    rig.advance(9_999)
    assert 3 == len(site.core.inbox)
    rig.advance(1)
    assert [ReaderForgotten("c", "t", "time-over", 3)] == told(site, ReaderForgotten)
    spans = ((A, ERA, 1, 2), (A, ERA, 4, 4))
    assert [MessagesGivenUp("c", "time-over", 3, spans)] == told(site, MessagesGivenUp)
    assert Forgotten("c", "t") in own(site.journal)
    assert ((3, 0, {"time-over": 3}, 0), 0) == (copies(site), len(site.core.inbox))
    assert [] == take(site, rig, 5), "nothing is kept for it any more"
    settle(rig)


def test_nobody_is_forgotten_while_the_journal_has_no_room_to_say_so() -> None:
    rig, site = node()
    confirming(rig, away=10_000)
    rig.die("B", "c")
    site.core.command(HoldBack(is_full=True), rig.now)
    rig.advance(60_000)
    site.core.command(ForgetReader(1, "c"), rig.now)
    assert 1 == len(site.core.engine.readers)
    site.core.command(HoldBack(is_full=False), rig.now)
    rig.advance(1)
    assert 0 == len(site.core.engine.readers)


@pytest.mark.proves("FLD-020")
@pytest.mark.parametrize("bound", [{"reader_messages": 2}, {"reader_bytes": 13}])
def test_what_finds_no_room_is_given_up_and_what_waits_already_stays(bound: dict[str, Any]) -> None:
    rig, site = node(**bound)
    confirming(rig)
    rig.die("B", "c")
    assert 4 == len(take(site, rig, 1, 2))
    assert [] == take(site, rig, 3, 4)
    settle(rig)
    assert [MessagesGivenUp("c", "no-room", 2, ((A, ERA, 3, 4),))] == told(site, MessagesGivenUp)
    assert [(1, 1, True), (1, 2, True)] == confirming(rig).offers
    assert (4, 0, {"no-room": 2}, 2) == copies(site)


def test_a_reader_that_says_so_is_forgotten_at_once_and_one_that_only_leaves_is_not() -> None:
    rig, site = node()
    session = confirming(rig)
    rig.unreg("B", "c", 1)
    take(site, rig, 1)
    session = confirming(rig)
    assert [(1, 1, True)] == session.offers
    site.core.engine.leave(session, 1, rig.now, forget=True)
    settle(rig)
    assert [MessagesGivenUp("c", "forgotten", 1, ((A, ERA, 1, 1),))] == told(site, MessagesGivenUp)
    assert ([], 0) == (take(site, rig, 2), len(site.core.inbox))


def test_by_hand_only_a_reader_that_is_away_is_forgotten() -> None:
    rig, site = node()
    confirming(rig)
    take(site, rig, 1)
    site.core.command(ForgetReader(1, "c"), rig.now)
    assert 1 == len(site.core.engine.readers)
    rig.die("B", "c")
    site.core.command(ForgetReader(2, "c"), rig.now)
    settle(rig)
    assert (0, 0, {"forgotten": 1}) == (len(site.core.engine.readers), len(site.core.inbox), copies(site)[2])


def test_what_is_kept_for_two_readers_is_given_up_for_one_and_not_revived_by_a_restart() -> None:
    rig, site = node()
    confirming(rig, away=10_000)
    rig.reg("B", "d", 1, {"confirm": True})
    rig.die("B", "c")
    journal = take(site, rig, 1)
    rig.advance(10_000)
    assert GaveUp(A, ERA, 1, "c") in own(site.journal)
    rig, site = restarted(site, [*journal, *site.journal])
    rig.advance(1)
    assert ["d"] == [reader.name for reader in site.core.engine.readers.condense()]
    assert [] == confirming(rig).offers
    assert [(1, 1, True)] == rig.reg("B", "d", 1, {"confirm": True}).offers


def test_a_reader_of_an_older_journal_is_waited_for_as_long_as_one_that_says_nothing() -> None:
    rig, site = node()
    confirming(rig)
    journal = [record for record in take(site, rig, 1) if record not in site.journal]
    rig, site = restarted(site, journal)
    rig.advance(599_999)
    assert 1 == len(site.core.inbox)
    rig.advance(1)
    assert (0, ["time-over"]) == (len(site.core.inbox), [event.why for event in told(site, ReaderForgotten)])


def test_a_reader_that_is_slow_gets_all_in_order_though_its_line_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.chains.limits.BACKLOG_MAX", 2)
    rig, site = node()
    session = confirming(rig, window=2)
    for number in range(1, 11):
        take(site, rig, number)
        settle(rig)
    for number in range(1, 11):
        rig.conf("B", "c", 1, number)
        settle(rig)
    assert list(range(1, 11)) == [number for _, number, _ in session.offers]
    assert (10, 10, {}, 0) == copies(site)


def test_there_is_a_bound_of_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.chains.limits.READERS_MAX", 1)
    rig, site = node()
    confirming(rig)
    rig.reg("B", "d", 1, {"confirm": True})
    assert [("error", "B", "d", "reg", None, "limit")] == rig.events
    assert {"limit": 1} == site.core.context.counters.errors


def test_who_is_away_stands_in_its_chain_where_it_stood() -> None:
    rig, site = node()
    confirming(rig, at=5)
    rig.reg("B", "ed", 1, {"access": "rw", "at": 10})
    rig.die("B", "c")
    take(site, rig, 1)
    rig.next("B", "ed", 1, 1, "changed")
    confirming(rig, at=5)
    shown = [(event[2], event[5]) for event in rig.events]
    assert [("ed", "one|two"), ("c", "one|two")] == shown, "the reader is shown what came to its place"
    assert ["c", "ed"] == [link.name for link in site.core.chain("in", "t")]
