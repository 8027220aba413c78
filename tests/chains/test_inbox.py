"""What has arrived: screened, kept, forwarded, journaled, and found again after a restart (CHN-033, CHN-034)."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.chains.rig import ERA, WALL, Recorder, Rig, Site
from tests.chains.test_chains import T0
from weft.base.effects import Persist, Tell
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.now import Now
from weft.base.records import CoreRecord, LostRecord, Record, Stream, StreamRecord
from weft.cores.chains import memory
from weft.cores.chains.core import Chains
from weft.cores.chains.memory import Done, Waits
from weft.cores.chains.messages import BatchPassed, ChainsSettings, PassBatch, Placed, PlanFilters, PressureChanged
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.wire import carried, clients, hop, samples
from weft.wire.samples import Row, SampleBatch, Series

A, B = b"A" * 16, b"B" * 16
MID = (A, ERA, 7)


def letter(sequence: int = 7, **said: Any) -> StreamRecord:
    """Mail of a child, as the carrier shows it to the screen."""
    mail = Mail(
        **{
            "origin": A,
            "era": ERA,
            "sequence": sequence,
            "type": "t",
            "frames": (b"one", b"two"),
            "to": ("PARENTSOF",),
            "via": (A,),
            "at": WALL,
            **said,
        }
    )
    return to_record(mail, INBOX, WALL + 1)


def node(*filters: dict[str, Any], level: str = "collector", era: int = ERA, **settings: Any) -> tuple[Rig, Site]:
    """One node with these filters on `in`."""
    rig = Rig()
    rig.parents = {"B": None}
    site = rig.sites["B"] = Site(rig, "B", era, **settings)
    site.core.command(Placed(level, "" if level == "root" else "C"), rig.now)
    plan(rig, site, *filters)
    return rig, site


def parse_all(*filters: dict[str, Any]) -> tuple[FilterSpec, ...]:
    specs, wrong = parse_filters([{"dir": "in", "types": ["t"], **table} for table in filters])
    assert [] == wrong
    return tuple(specs)


def plan(rig: Rig, site: Site, *filters: dict[str, Any]) -> None:
    site.core.command(PlanFilters(parse_all(*filters)), rig.now)
    site.core.effects()


def kept(site: Site) -> list[Record]:
    """The records of all Persists, and that they stand in front of everything else."""
    effects = site.core.effects()
    first = [number for number, effect in enumerate(effects) if isinstance(effect, Persist)]
    assert first in ([], [0])
    return [record for effect in effects if isinstance(effect, Persist) for record in effect.records]


def done(*mid: Any) -> CoreRecord:
    return memory.to_record(Done(*(mid or MID)))


FORWARD = {"name": "f", "kind": "forward", "place": 4_000_000_000}
JOURNAL = {"name": "j", "kind": "journal", "place": 4_000_000_000}
JOURNAL_BEHIND = {"name": "j", "kind": "journal", "place": 4_000_000_001}


# The screen


@pytest.mark.proves("CHN-033")
def test_what_nobody_holds_is_not_kept() -> None:
    rig, site = node()
    assert [] == list(site.core.screen(letter(), rig.now))
    reader = rig.reg("B", "r", 1, {})
    assert [] == list(site.core.screen(letter(8), rig.now))
    assert 1 == len([event for event in rig.events if event[0] == "rec"])
    assert (2, 2, 0) == flow(site)
    assert {} == reader.seen


def flow(site: Site, direction: str = "in", kind: str = "t") -> tuple[int, int, int]:
    counted = site.core.roster.chain(direction, kind).flow
    return counted.accepted, counted.delivered, counted.in_flight


@pytest.mark.proves("CHN-033")
@pytest.mark.proves("CHN-068", part="forward keeps the identity, one deeper")
def test_forwarding_makes_the_same_message_one_deeper() -> None:
    rig, site = node(FORWARD)
    (record,) = site.core.screen(letter(depth=2, exp=WALL * 2, fmt="json", frames=(b"{}",)), rig.now)
    assert isinstance(record, StreamRecord)
    expected = Mail(
        origin=A,
        era=ERA,
        sequence=7,
        type="t",
        frames=(b"{}",),
        to=("PARENTSOF",),
        via=(A,),
        depth=3,
        at=WALL,
        fmt="json",
        exp=WALL * 2,
    )
    assert (OUTBOX, expected) == (record.stream, of_record(record))
    assert ([], 1) == (kept(site), site.core.context.counters.forwarded)


@pytest.mark.proves("RTE-004", "RTE-005")
@pytest.mark.parametrize(
    "said, why",
    [
        ({"depth": 16}, "loop"),
        ({"exp": WALL}, "expired"),
        ({"to": ("PARENTSOF", None, 1)}, "ttl"),
        ({"via": (A,) * 64}, "ttl"),
    ],
)
def test_what_may_go_no_further_is_not_forwarded(said: dict[str, Any], why: str) -> None:
    rig, site = node(FORWARD)
    assert [] == list(site.core.screen(letter(**said), rig.now))
    assert {why: 1} == site.core.context.counters.not_forwarded
    assert (1, 1, 0) == flow(site)


def test_a_ttl_goes_on_with_the_message() -> None:
    rig, site = node(FORWARD)
    (record,) = site.core.screen(letter(to=("PARENTSOF", "B", 2)), rig.now)
    assert isinstance(record, StreamRecord)
    assert ("PARENTSOF", None, 2) == of_record(record).to


@pytest.mark.proves("CHN-036")
@pytest.mark.proves("CHN-068", part="journal, at the root only")
@pytest.mark.parametrize("is_alone", [False, True])
def test_the_root_journals_what_arrives_and_a_node_below_it_does_not(is_alone: bool) -> None:
    rig, site = node(*(JOURNAL,) if is_alone else (JOURNAL, FORWARD), level="root")
    if not is_alone:
        rig.reg("B", "after", 1, {})
    (record,) = site.core.screen(letter(depth=1), rig.now)
    attributes = {"fmt": "raw", "way": [A], "depth": 1, "frames": [3, 3]}
    expected = StreamRecord(Stream.MESSAGES, A, ERA, 7, WALL, rig.now.wall, "t", b"onetwo", attributes)
    assert expected == record
    assert (0 if is_alone else 1) == len(rig.events), "the walk goes on behind it"
    assert ((1, 1, 0), 1) == (flow(site), site.core.counters.links["j"].offered)
    rig, site = node(JOURNAL)
    assert [] == list(site.core.screen(letter(), rig.now))


@pytest.mark.proves("CHN-036")
def test_what_a_root_has_journaled_can_go_up_when_it_is_the_root_no_longer() -> None:
    """Its way was text where a hop has names of nodes: a later root refused it, and everything behind it, for ever."""
    rig, site = node(JOURNAL, level="root")
    (record,) = site.core.screen(letter(depth=1), rig.now)
    assert isinstance(record, StreamRecord)
    item, frames = carried.to_item(record, B)
    heard = hop.decode(hop.encode(hop.Hop(1, 1, [item], frames)))
    assert isinstance(heard, hop.Hop)
    back = carried.to_record(heard.m[0], heard.frames, 0)
    assert isinstance(back, StreamRecord)
    assert ((B,), [A]) == (heard.m[0].via, back.attributes["way"])


@pytest.mark.proves("CHN-060")
def test_filters_in_front_of_a_link_decide_what_it_sees() -> None:
    rig, site = node(
        {"name": "m", "kind": "match", "place": 1, "where": {"a": {"gt": 1}}},
        {"name": "e", "kind": "edit", "edits": [["remove", "a"]]},
        {**FORWARD, "where": {"b": 1}},
    )
    reader = rig.reg("B", "r", 1, {"at": 2_000})
    bodies = [b'[{"a":1},{"a":2,"b":1},{"a":3,"b":2}]', b'{"a":0}', b'{"a":9,"b":0}']
    made: list[Record] = []
    for number, body in enumerate(bodies, 1):
        made += site.core.screen(letter(number, frames=(body,), fmt="json"), rig.now)
    assert ['[{"b":1},{"b":2}]', '{"b":0}'] == [event[5] for event in rig.events]
    assert [(1, (b'[{"b":1},{"b":2}]',))] == [
        (record.sequence, of_record(record).frames) for record in made if isinstance(record, StreamRecord)
    ]
    assert ((3, 2, 0), {"deleted": 1}) == (flow(site), site.core.roster.chain("in", "t").flow.ended)
    assert not reader.is_gone


@pytest.mark.proves("CHN-033")
def test_what_waits_is_kept_as_it_came_and_done_when_it_has_ended() -> None:
    rig, site = node({"name": "e", "kind": "edit", "edits": [["set", "x", 1]]})
    rig.reg("B", "h", 1, {"access": "rw"})
    kept(site)
    record = letter(frames=(b"{}",), fmt="json")
    assert [record] == list(site.core.screen(record, rig.now)), "a change that was not handed back may be lost"
    assert [] == kept(site)
    assert (1, 2) == (len(site.core.inbox), site.core.inbox.bytes)
    site.core.engine.delete(site.sessions["h"], 1, clients.GiveUp(id=1), rig.now)
    (effect,) = site.core.effects()
    assert Persist((done(),), 1_000_000_000) == effect
    assert (0, 0) == (len(site.core.inbox), site.core.inbox.bytes)


@pytest.mark.proves("CHN-033")
def test_consumed_and_produced_stand_in_one_record_of_the_journal() -> None:
    rig, site = node(FORWARD)
    rig.reg("B", "h", 1, {"access": "rw", "at": 1})
    site.core.screen(letter(), rig.now)
    site.core.effects()
    site.core.engine.hand_back(site.sessions["h"], 1, clients.NextItem(id=1, n=1), (b"new",), rig.now)
    (effect,) = site.core.effects()
    assert isinstance(effect, Persist)
    produced, consumed = effect.records
    assert (0, done(), OUTBOX) == (effect.within_ns, consumed, getattr(produced, "stream", None))


def test_what_came_without_a_promise_is_not_kept() -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw"})
    record = letter()
    record.attributes["mem"] = True
    kept(site)
    assert [] == list(site.core.screen(record, rig.now))
    site.core.engine.hand_back(site.sessions["h"], 1, clients.NextItem(id=1), (), rig.now)
    assert ([], (1, 1, 0)) == (kept(site), flow(site))


def test_what_is_there_already_does_not_come_in_twice() -> None:
    rig, site = node()
    session = rig.reg("B", "h", 1, {"access": "rw"})
    site.core.screen(letter(), rig.now)
    assert [] == list(site.core.screen(letter(), rig.now))
    assert (1, 1) == (len(session.offers), site.core.context.counters.duplicates)


@pytest.mark.proves("CHN-033")
def test_a_message_to_oneself_is_durable_before_its_sender_hears_of_it() -> None:
    rig, site = node(level="root")
    rig.reg("B", "h", 1, {"access": "rw"})
    kept(site)
    for keep in ("memory", "disk"):
        item = clients.SendItem(tag=len(keep), type="t", to=["PARENTSOF"], keep=keep)
        site.core.engine.accept(site.session("s"), item, (b"x",), rig.now)
    (record,) = kept(site)
    assert isinstance(record, StreamRecord)
    assert (INBOX, 2, [site.session("s").id, 4]) == (record.stream, record.sequence, record.attributes["by"])


@pytest.mark.proves("CHN-040")
def test_an_inbox_that_is_full_says_so_and_when_it_is_not_any_more() -> None:
    rig, site = node(inbox_bytes=20)
    rig.reg("B", "h", 1, {"access": "rw"})
    for number in range(1, 5):
        site.core.screen(letter(number), rig.now)
    for number in range(1, 5):
        rig.next("B", "h", 1, number)
    assert [PressureChanged(True), PressureChanged(False)] == [
        event for event in site.told if isinstance(event, PressureChanged)
    ]


# Restart


def restarted(old: Site, entries: Iterable[Record], *filters: dict[str, Any], era: int = ERA + 1) -> tuple[Rig, Site]:
    rig, site = node(*filters, era=era)
    site.core.restore(list(enumerate(entries, 1)), rig.now)
    return rig, site


@pytest.mark.proves("CHN-034")
def test_what_a_collector_had_forwarded_while_a_reader_had_it_was_lost_when_it_became_the_root() -> None:
    """It comes home from the outbox, one deeper, and the reader has not confirmed it: it is journaled, once."""
    rig, site = node(FORWARD, JOURNAL_BEHIND)
    rig.reg("B", "c", 1, {"confirm": True})
    journal = list(site.core.screen(letter(), rig.now))
    (forwarded,) = [one for one in journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]
    home = msgspec.structs.replace(forwarded, stream=INBOX)

    rig, site = node(FORWARD, JOURNAL_BEHIND, level="root", era=ERA + 1)
    site.core.restore(list(enumerate(journal, 1)), rig.now)
    (made,) = site.core.screen(home, rig.now)
    assert isinstance(made, StreamRecord)
    assert (Stream.MESSAGES, *MID) == (made.stream, made.origin, made.era, made.sequence)
    assert [] == list(site.core.screen(home, rig.now)), "it came home before"
    assert [] == list(site.core.screen(letter(), rig.now)), "a child that says it again says nothing new"


@pytest.mark.proves("CHN-034")
@pytest.mark.parametrize("is_condensed", [False, True])
def test_what_had_not_ended_comes_again_from_the_top_marked(is_condensed: bool) -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw"})
    journal: list[Record] = []
    for number in (1, 2, 3):
        journal += site.core.screen(letter(number), rig.now)
    rig.next("B", "h", 1, 2)
    journal += site.journal
    rig, site = restarted(site, site.core.condense() if is_condensed else journal, FORWARD)
    site.session("h")
    assert (2, rig.now.mono) == (len(site.core.inbox), site.core.deadline())
    rig.reg("B", "h", 1, {"access": "rw", "at": 1})
    site.core.wake(rig.now)
    assert [(1, 1, True), (1, 2, True)] == site.sessions["h"].offers
    rig.next("B", "h", 1, 1)
    assert [(OUTBOX, 1), (0, 0)] == [
        (getattr(record, "stream", 0), getattr(record, "sequence", 0)) for record in site.journal
    ]
    assert done(A, ERA, 1) == site.journal[1]
    assert None is site.core._again_at


@pytest.mark.proves("CHN-019", "CHN-034")
@pytest.mark.parametrize("is_condensed", [False, True])
def test_a_confirming_client_gets_again_what_it_had_not_confirmed_when_the_node_ended(is_condensed: bool) -> None:
    rig, site = node()
    rig.reg("B", "c", 1, {"confirm": True})
    journal: list[Record] = []
    for number in (1, 2):
        journal += site.core.screen(letter(number), rig.now)
    assert memory.to_record(Waits(A, ERA, 1, "c", True)) == journal[1]
    rig.conf("B", "c", 1, 1)
    journal += site.journal
    rig, site = restarted(site, site.core.condense() if is_condensed else journal)
    rig.reg("B", "seen", 1, {})
    rig.advance(599_999)
    assert ["seen"] == [event[2] for event in rig.events]
    session = rig.reg("B", "c", 1, {"confirm": True})
    assert [(1, 1, True)] == session.offers
    rig.conf("B", "c", 1, 1)
    assert (done(A, ERA, 2), 0) == (site.journal[-1], len(site.core.inbox))


@pytest.mark.proves("CHN-016", "CHN-034")
def test_a_message_that_is_to_wait_for_its_client_waits_again_after_a_restart() -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw", "fail": "wait"})
    journal = list(site.core.screen(letter(), rig.now))
    rig, site = restarted(site, journal)
    rig.reg("B", "after", 1, {})
    rig.advance(59_999)
    assert [] == rig.events
    session = rig.reg("B", "h", 1, {"access": "rw", "fail": "wait", "at": "before-all"})
    assert [(1, 1, True)] == session.offers
    rig.next("B", "h", 1, 1)
    assert ["h", "after"] == [event[2] for event in rig.events]
    assert (1, 1, 0) == flow(site)
    rig, site = restarted(site, journal)
    rig.advance(60_000)
    assert ({"lost": 1}, [done()]) == (site.core.roster.chain("in", "t").flow.ended, site.journal)


@pytest.mark.proves("CHN-034")
def test_what_arrives_before_the_node_looks_at_its_inbox_goes_down_behind_what_is_in_it() -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw"})
    journal = list(site.core.screen(letter(1), rig.now))
    rig, site = restarted(site, journal)
    session = rig.reg("B", "h", 1, {"access": "rw"})
    site.core.screen(letter(2), rig.now)
    site.core.wake(rig.now)
    assert [(1, 1, True), (1, 2, False)] == session.offers


@pytest.mark.proves("CHN-019", "CHN-034")
def test_a_confirming_client_may_be_back_before_the_node_looks_at_its_inbox() -> None:
    rig, site = node()
    rig.reg("B", "c", 1, {"confirm": True})
    journal = list(site.core.screen(letter(1), rig.now))
    rig, site = restarted(site, journal)
    rig.reg("B", "h", 1, {"access": "rw", "at": 1})
    session = rig.reg("B", "c", 1, {"confirm": True})
    site.core.wake(rig.now)
    assert ([(1, 1, True)], 0) == (session.offers, len(site.core.waiting))
    rig.next("B", "h", 1, 1)
    rig.conf("B", "c", 1, 1)
    assert ([(1, 1, True)], 0) == (session.offers, len(site.core.inbox)), "it is offered once, whoever is in front"


def test_a_record_that_a_snapshot_has_already_changes_nothing() -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw", "fail": "wait"})
    journal = list(site.core.screen(letter(), rig.now))
    snapshot = list(site.core.condense())
    _, site = restarted(site, [*snapshot, *journal, *journal])
    assert (1, 6) == (len(site.core.inbox), site.core.inbox.bytes)
    assert [record for record in snapshot if record.kind == 3] == list(site.core.condense())


@pytest.mark.proves("CHN-042")
@pytest.mark.parametrize("is_condensed", [False, True])
def test_a_tag_is_known_after_a_restart(is_condensed: bool) -> None:
    rig, site = node()
    rig.reg("B", "h", 1, {"access": "rw"})
    rig.send("B", "s", 1, "up")
    rig.send("B", "s", 2, "here", ["DIRECT"])
    rig.send("B", "s", 3, "nowhere", ["MULTICAST"])
    rig, site = restarted(site, site.core.condense() if is_condensed else site.journal)
    for tag, to in ((1, ["PARENTSOF"]), (2, ["DIRECT"]), (3, ["PARENTSOF"])):
        rig.send("B", "s", tag, "again", to)
    assert ["spooled", "local", "spooled"] == [event[5] for event in rig.events if event[0] == "status"]
    assert [1] == [record.sequence for record in site.journal if isinstance(record, StreamRecord)]


# Records on their way to the root


class Reader(Recorder):
    """Keeps whole parcels."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "B", "tap")
        self.parcels: list[Parcel] = []

    def copy(self, reg: int, parcel: Parcel) -> None:
        self.parcels.append(parcel)


def tapped(rig: Rig, kind: str = "weft.*", at: int = 1_000_000, direction: str = "in") -> Reader:
    reader = rig.sites["B"].sessions["tap"] = Reader(rig)
    rig.reg("B", "tap", 1, {"type": kind, "at": at, "dir": direction})
    return reader


def batch_of(*values: float) -> SampleBatch:
    series = (Series("cpu", "CPU", "basic", {}), Series("mem", "MEMORY", "basic", {}))
    return SampleBatch(T0, series, [Row(number % 2, number, value) for number, value in enumerate(values)])


def sampled(*values: float) -> StreamRecord:
    attributes = {"n": len(values), "via": [A]}
    return StreamRecord(
        Stream.SAMPLES, A, ERA, 11, WALL, WALL, "weft.metric", samples.encode(batch_of(*values)), attributes
    )


@pytest.mark.proves("CHN-071")
def test_records_that_nobody_looks_at_are_the_very_same() -> None:
    rig, site = node(FORWARD)
    rig.reg("B", "r", 1, {"type": "*", "dir": "out"})
    for stream in Stream:
        plan(rig, site, {**FORWARD, "types": ["*"]})
        record = StreamRecord(stream, A, ERA, 1, WALL, WALL, "x", b"not even a batch", {})
        (same,) = site.core.screen(record, rig.now)
        assert record is same


@pytest.mark.proves("CHN-014")
def test_readers_of_samples_get_the_body_as_it_travels() -> None:
    rig, site = node()
    reader = tapped(rig)
    record = sampled(1, 2, 3)
    (same,) = site.core.screen(record, rig.now)
    (parcel,) = reader.parcels
    assert same is record
    assert ("weft.metric", A, ERA, 11, "msgpack", (A,), WALL) == (
        parcel.type, parcel.origin, parcel.era, parcel.sequence, parcel.fmt, parcel.via, parcel.at,
    )  # fmt: skip
    assert parcel.frames[0] is record.payload


@pytest.mark.proves("CHN-060")
def test_samples_that_a_filter_takes_out_are_announced_by_their_numbers() -> None:
    rig, site = node({"name": "m", "kind": "match", "types": ["weft.metric"], "where": {"value": {"gt": 0}}})
    reader = tapped(rig)
    made = site.core.screen(sampled(0, 1, 2, 0, 0, 3, 0), rig.now)
    shown = [
        (first_of(record), record.last, [row.value for row in samples.decode(record.payload).rows])
        if isinstance(record, StreamRecord)
        else (first_of(record), last_of(record), getattr(record, "why", ""))
        for record in made
    ]
    expected = [(11, 11, "filtered"), (12, 13, [1, 2]), (14, 15, "filtered"), (16, 16, [3]), (17, 17, "filtered")]
    assert expected == shown
    assert [[A], [A]] == [record.attributes["via"] for record in made if isinstance(record, StreamRecord)]
    assert [1, 2, 3] == [row.value for row in samples.decode(reader.parcels[0].frames[0]).rows]
    counters = site.core.counters
    assert (7, 3, 4) == (counters.accepted, counters.delivered, counters.dropped)
    (all_gone,) = site.core.screen(sampled(0, 0), rig.now)
    assert LostRecord(Stream.SAMPLES, A, ERA, 11, 12, "filtered") == all_gone
    assert 1 == len(reader.parcels)


def first_of(record: Record) -> int:
    return (
        record.sequence if isinstance(record, StreamRecord) else record.first if isinstance(record, LostRecord) else 0
    )


def last_of(record: Record) -> int:
    return record.last if isinstance(record, StreamRecord | LostRecord) else 0


def test_a_batch_that_no_filter_can_read_stays_as_it_is() -> None:
    rig, site = node({"name": "m", "kind": "match", "types": ["weft.metric"], "where": {"value": 1}})
    record = StreamRecord(Stream.SAMPLES, A, ERA, 1, WALL, WALL, "weft.metric", b"\xc1", {"n": 1})
    (same,) = site.core.screen(record, rig.now)
    assert record is same


def test_a_batch_that_a_filter_must_not_let_pass_unjudged_is_announced_as_a_whole() -> None:
    table = {"name": "t", "kind": "threshold", "types": ["weft.metric"], "field": "labels.n", "above": 0}
    rig, site = node({**table, "on_error": "fail"})
    batch = SampleBatch(T0, (Series("cpu", "CPU", "basic", {"n": "x"}),), [Row(0, 0, 1), Row(0, 1, 2)])
    record = StreamRecord(Stream.SAMPLES, A, ERA, 1, WALL, WALL, "weft.metric", samples.encode(batch), {"n": 2})
    assert [LostRecord(Stream.SAMPLES, A, ERA, 1, 2, "filtered")] == list(site.core.screen(record, rig.now))
    assert (2, 2) == (site.core.counters.accepted, site.core.counters.refused)


@pytest.mark.proves("CHN-060")
def test_events_are_filtered_one_by_one() -> None:
    rig, site = node(
        {"name": "m", "kind": "match", "place": 1, "types": ["weft.event"], "where": {"level": "warning"}},
        {"name": "e", "kind": "edit", "types": ["weft.event"], "edits": [["remove", "secret"]]},
    )
    reader = tapped(rig)
    made: list[Record] = []
    for number, body in enumerate((b'{"level":"warning","secret":1}', b'{"level":"info"}', b'{"level":"warning"}'), 1):
        record = StreamRecord(Stream.EVENTS, A, ERA, number, WALL, WALL, "x", body, {"fmt": "json"})
        made += site.core.screen(record, rig.now)
    assert [b'{"level":"warning"}'] * 2 == [parcel.frames[0] for parcel in reader.parcels]
    assert LostRecord(Stream.EVENTS, A, ERA, 2, 2, "filtered") == made[1]
    assert [(1, b'{"level":"warning"}'), (3, b'{"level":"warning"}')] == [
        (record.sequence, record.payload) for record in made if isinstance(record, StreamRecord)
    ]
    assert (3, 2, 0) == flow(site, "in", "weft.event")


@pytest.mark.proves("CHN-014")
def test_readers_of_samples_on_out_get_what_is_left_of_the_batch_at_their_place() -> None:
    rig, site = node()
    table = {"name": "m", "kind": "match", "types": ["weft.metric"], "dir": "out", "where": {"value": {"gt": 0}}}
    plan(rig, site, {**table, "place": 5})
    first = tapped(rig, "weft.metric", 1, "out")
    second = site.sessions["late"] = Reader(rig)
    second.name = "late"
    rig.reg("B", "late", 1, {"type": "weft.metric", "dir": "out"})
    site.core.command(PassBatch("out", "weft.metric", batch_of(0, 1, 2)), rig.now)
    (event,) = [e.event for e in site.core.effects() if isinstance(e, Tell) and isinstance(e.event, BatchPassed)]
    shown = [[row.value for row in samples.decode(reader.parcels[0].frames[0]).rows] for reader in (first, second)]
    assert ([[0, 1, 2], [1, 2]], [1, 2]) == (shown, [row.value for row in event.batch.rows])
    parcel = second.parcels[0]
    assert (site.id, 0, "msgpack", T0 * 1_000_000) == (parcel.origin, parcel.sequence, parcel.fmt, parcel.at)
    site.core.command(PassBatch("out", "weft.metric", batch_of(0, 0)), rig.now)
    assert (2, 1) == (len(first.parcels), len(second.parcels)), "what is empty is shown to nobody"


@pytest.mark.proves("CHN-062")
def test_filters_know_whose_samples_they_thin_out() -> None:
    kept_by: list[list[float]] = []
    for name in ("B", "C"):
        core = Chains((), ChainsSettings(name=name), name.encode() * 16, ERA)
        table = {"name": "s", "kind": "sample", "types": ["weft.metric"], "dir": "out", "rate": 0.5}
        specs, wrong = parse_filters([table])
        assert [] == wrong
        core.command(PlanFilters(tuple(specs)), Now(1, WALL))
        core.command(PassBatch("out", "weft.metric", batch_of(*range(200))), Now(1, WALL))
        events = [effect.event for effect in core.effects() if isinstance(effect, Tell)]
        kept_by.append([row.value for event in events if isinstance(event, BatchPassed) for row in event.batch.rows])
    assert kept_by[0] != kept_by[1]
    assert all(60 < len(kept) < 140 for kept in kept_by)
