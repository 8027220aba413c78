"""The journal as an outbox: windows, batches, what is read back, what is given up."""

from typing import Any

import pytest

from tests.carrier.rig import Machine, World, joined, spans
from weft.base.effects import Perform, Persist, Source
from weft.base.errors import OurFault
from weft.base.mail import OUTBOX, to_record
from weft.base.records import CoreRecord, LostRecord, Record, StreamRecord
from weft.base.spool import DropOldest, Journaled, RecordsFetched, Released
from weft.cores.carrier import limits
from weft.cores.carrier.messages import AssignParent, Hack, Hello, Hop, MailReached, ParentLost, Refuse, SpoolDropped
from weft.cores.carrier.states import State
from weft.wire import hop


def pair(**settings: Any) -> tuple[World, Machine, Machine]:
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b", **settings)
    a.names_era = False
    world.settle()
    a.said.clear()
    return world, a, b


def all_there(a: Machine, b: Machine, upto: int) -> None:
    """Everything arrived once, in order."""
    assert {(a.node, a.era): [(1, upto)]} == {origin: joined(p) for origin, p in spans(b.samples()).items()}


@pytest.mark.proves("CLI-008")
def test_batches_hold_at_most_64_messages_and_256_kib() -> None:
    world, a, b = pair()
    world.cut("a")
    for size in (*[10] * 150, *[100_000] * 6, 900_000, 300_000, 10):
        a.make(size=size)
    a.said.clear()
    world.heal("a")
    world.advance(20)
    batches = a.heard_to_say(Hop)
    sizes = [sum(len(frame) for frame in batch.frames) for batch in batches]
    lengths = [len(batch.m) for batch in batches]
    assert max(lengths) <= 64
    assert all(size <= 256 << 10 or length == 1 for size, length in zip(sizes, lengths, strict=True))
    assert (159, 8) == (sum(lengths), len(batches))
    all_there(a, b, 159)


@pytest.mark.proves("CLI-004")
def test_a_long_way_travelled_does_not_burst_the_header() -> None:
    world, a, b = pair()
    world.cut("a")
    via = [bytes([n]) * 16 for n in range(63)]
    records = [StreamRecord(1, b"o" * 16, 1, n, 0, 0, "", b"x", {"via": via}) for n in range(1, 101)]
    a.write(*records)
    world.heal("a")
    world.advance(20)
    assert 100 == len(b.samples())
    assert [] == [record for record in b.samples() if "via" in record.attributes], "at a root a way ends"


@pytest.mark.proves("CHN-032")
def test_the_window_bounds_messages_and_bytes_in_flight() -> None:
    world, a, b = pair()
    for _ in range(1_300):
        a.make()
    assert 1_000 == a.core.outbox.in_flight()
    world.settle()
    all_there(a, b, 1_300)
    for _ in range(100):
        a.make(size=200_000)
    assert 8 << 20 >= 200_100 * a.core.outbox.in_flight() > 7 << 20
    world.settle()
    all_there(a, b, 1_400)


@pytest.mark.proves("CHN-032")
def test_after_a_restart_what_is_not_safe_is_numbered_anew_and_read_from_disk() -> None:
    world, a, b = pair()
    for _ in range(10):
        a.make()
    world.advance(3)
    world.cut("a")
    for _ in range(5):
        a.make()
    a.crash()
    before = a.era
    a.start()
    world.heal("a")
    a.said.clear()
    world.advance(20)
    hellos = [message for message in a.said if isinstance(message, Hello)]
    assert {(1, 1, a.era)} == {(hello.first, hello.next, hello.era) for hello in hellos}
    numbers = [number for sent in a.said if isinstance(sent, Hop) for number, _, _ in sent.numbered()]
    assert list(range(1, 6)) == numbers
    assert {(a.node, before): [(1, 15)]} == {origin: joined(p) for origin, p in spans(b.samples()).items()}


def test_more_than_memory_holds_is_read_back_in_pieces() -> None:
    world, a, b = pair(memory_bytes=50_000)
    world.cut("a")
    for _ in range(3_000):
        a.make(size=2_000)
    assert a.core.outbox._bytes < 60_000
    world.heal("a")
    world.advance(20)
    all_there(a, b, 3_000)
    assert a.fetches >= 3
    for _ in range(10):
        a.make()
        world.advance(1)
    all_there(a, b, 3_010)
    assert a.fetches == a.core.counters.fetches < 10, "what is made now goes up from memory"


def test_a_backlog_is_caught_up_with_while_more_is_made() -> None:
    world, a, b = pair(memory_bytes=50_000)
    world.cut("a")
    for _ in range(100):
        a.make(size=1_000)
    a.may_fetch = False
    world.heal("a")
    world.advance(10)
    assert 40 < len(b.samples()) < 60
    for _ in range(20):
        a.make(size=1_000)
    before = a.read(a.orders[0])
    for _ in range(20):
        a.make(size=1_000)
    a.orders.clear()
    a.order(before)
    world.settle()
    all_there(a, b, 140)
    assert (1, 0) == (a.core.counters.fetches, b.core.counters.known), "what came meanwhile was in memory, once"
    a.make()
    world.settle()
    all_there(a, b, 141)


def test_a_journal_that_has_nothing_new_is_asked_ever_more_slowly() -> None:
    world, a, b = pair(memory_bytes=5_000)
    world.cut("a")
    for _ in range(100):
        a.make()
    world.heal("a")
    a.reads_nothing = True
    world.advance(60)
    assert 10 <= a.fetches <= 25
    a.reads_nothing = False
    world.advance(6)
    all_there(a, b, 100)


def test_numbers_of_records_that_cannot_be_read_any_more_keep_their_place() -> None:
    world = World()
    root, _, p2 = world.root(), world.collector("p1"), world.collector("p2")
    a = world.sensor("a", "p1")
    a.names_era = False
    world.settle()
    world.cut("p1")
    made = [a.make() for _ in range(10)]
    world.settle()
    assert 10 == a.core.counters.held
    a.disk = [(lsn, record) for lsn, record in a.disk if record not in (made[2], made[3], made[8])]
    a.order(AssignParent("p2", "p2"))
    a.make()
    world.advance(20)
    assert [1, 2, 5, 6, 7, 8, 10, 11] == [record.sequence for record in root.samples()]
    assert (3, 11, 11) == (p2.core.counters.expired, a.core.counters.safe, a.core.outbox.given)


def test_what_no_hop_can_carry_is_announced_and_blocks_nothing() -> None:
    world, a, b = pair()
    a.make()
    a.make(rows=7, size=(1 << 20) + 1)
    a.make()
    world.settle()
    assert [LostRecord(1, a.node, a.era, 2, 8, "too-big")] == b.lost()
    assert [1, 9] == [record.sequence for record in b.samples()]
    assert 1 == a.core.counters.uncarriable


def refuse_second(b: Machine) -> None:
    """The parent turns hop number 2 away for good."""
    keep = b.core.parent._keep

    def turn_away(link: Any, number: int, *rest: Any) -> None:
        if number == 2 and link.node.startswith(b"a"):
            b.core.parent._turn_away(link, number, "denied", rest[-1])
        else:
            keep(link, number, *rest)

    b.core.parent._keep = turn_away  # type: ignore[method-assign,assignment]  # a parent with a taste


def test_what_a_parent_refuses_for_good_is_announced_as_lost() -> None:
    world, a, b = pair()
    refuse_second(b)
    for _ in range(3):
        a.make(rows=5)
    world.settle()
    assert [1, 11] == [record.sequence for record in b.samples()]
    assert [LostRecord(1, a.node, a.era, 6, 10, "denied")] == b.lost()
    assert (1, 4) == (a.core.counters.refused_above, a.core.counters.held)


@pytest.mark.proves("MEA-024")
def test_the_journal_may_forget_what_is_safe_and_nothing_else() -> None:
    world = World()
    root, _ = world.root(), world.collector("c")
    a = world.sensor("a", "c")
    a.names_era = False
    world.settle()
    for _ in range(4):
        a.make()
    world.advance(2)
    safe_lsn = a.events(Released)[-1].upto
    world.cut("c")
    for _ in range(4):
        a.make()
    world.advance(5)
    assert (8, 4) == (a.core.counters.held, a.core.counters.safe)
    assert safe_lsn <= a.events(Released)[-1].upto < a.disk[-1][0]
    assert [5, 6, 7, 8] == [record.sequence for record in a.samples()]
    world.heal("c")
    world.advance(20)
    assert [] == a.samples()
    assert 8 == len(root.samples())


def test_the_safe_cursor_is_written_seldom_and_lazily() -> None:
    world, a, b = pair()
    persisted: list[tuple[Record, ...]] = []

    def watch(effect: Any) -> bool:
        if type(effect).__name__ == "Persist" and isinstance(effect.records[0], CoreRecord):
            assert effect.within_ns >= 200_000_000
            persisted.append(effect.records)
        return False

    a.dies_before = watch
    for _ in range(200):
        a.make()
        world.advance(0.05)
    assert 10 <= len(persisted) <= 21
    assert b.core.counters.accepted == 200


def test_a_node_that_nobody_needs_lets_its_journal_forget() -> None:
    world = World()
    root = world.root()
    for _ in range(limits.RELEASE_STEP + 5):
        root.make()
    world.advance(1)
    assert root.events(Released)[-1].upto >= 1_000


@pytest.mark.proves("CHN-039", "MEA-025", "CHN-032")
def test_numbers_in_flight_keep_their_place_when_their_records_are_given_up() -> None:
    world, a, b = pair()
    for _ in range(10):
        a.make(rows=2)
    for _ in range(3):
        world.deliver()
    world.lose(*range(len(world.wire)))
    assert 10 == a.core.outbox.in_flight()
    a.order(DropOldest(7, ()))
    world.settle()
    (event,) = a.events(SpoolDropped)
    assert [(1, 14)] == [(span.first, span.last) for span in event.spans]
    world.advance(30)
    arrived = [(record.sequence, record.last) for record in b.samples()]
    assert [(1, 6), (15, 20)] == joined(arrived)
    assert [LostRecord(1, a.node, a.era, 1, 14, "spool-full")] == b.lost()
    assert (0, State.OPEN) == (a.core.counters.spool_records, a.core.state)


@pytest.mark.proves("CHN-039", part="it says what it dropped below the wall of the announcement")
def test_a_drop_is_told_when_its_announcement_is_durable_and_not_before() -> None:
    world, a, _ = pair()
    world.cut_off(a)
    a.make(rows=2)
    a.dies_before = lambda effect: isinstance(effect, Persist) and any(type(r) is LostRecord for r in effect.records)
    a.order(DropOldest(7, ()))
    world.settle()
    assert (False, []) == (a.is_up, a.events(SpoolDropped))


def test_a_drop_behind_what_is_safe_gives_up_nothing() -> None:
    world, a, b = pair()
    for _ in range(5):
        a.make()
    world.advance(2)
    a.order(DropOldest(3, ()))
    world.settle()
    assert [] == a.events(SpoolDropped) + b.lost()
    assert 0 == a.core.counters.dropped


def test_two_drops_at_once_are_one() -> None:
    world, a, b = pair()
    world.cut("a")
    for _ in range(10):
        a.make()
    a.order(DropOldest(3, ()))
    a.order(DropOldest(6, ()))
    world.settle()
    assert 6 == sum(span.last - span.first + 1 for e in a.events(SpoolDropped) for span in e.spans)
    world.heal("a")
    world.advance(20)
    assert list(range(7, 11)) == [record.sequence for record in b.samples()]


def test_a_drop_gives_up_no_more_than_it_could_read() -> None:
    world, a, _ = pair()
    world.cut("a")
    for _ in range(10):
        a.make()
    a.order(DropOldest(1_000, ()))
    world.settle()
    (event,) = a.events(SpoolDropped)
    assert [(1, 10)] == [(span.first, span.last) for span in event.spans]


def test_orders_that_make_no_sense_are_our_own_fault() -> None:
    world = World()
    root = world.root()
    for order in (AssignParent("x:1", "x"), DropOldest(3, ()), object()):
        with pytest.raises(OurFault):
            root.core.command(order, world.now)


def test_answers_to_questions_of_yesterday_are_ignored() -> None:
    world, a, b = pair()
    a.order(RecordsFetched("carrier", 77, 99, ((78, a.make()),)))
    world.settle()
    assert 1 == len(b.samples())


def test_gaps_between_lsn_are_records_of_others() -> None:
    world, a, b = pair()
    a.make()
    a.next_lsn += 50
    a.make()
    world.settle()
    all_there(a, b, 2)
    assert 0 == a.fetches


def test_a_stranger_on_the_parent_s_side_is_not_the_parent() -> None:
    world, a, b = pair()
    a.order(AssignParent("b2", "b2"))
    assert State.GREETING is a.core.state
    a.core.receive(Refuse("denied"), Source("up", b""), world.now)
    a.do()
    assert State.GREETING is a.core.state
    assert [] == [e for e in a.core.effects() if isinstance(e, Perform)]
    assert 0 == len(b.samples())


def test_journaled_records_of_other_cores_do_not_disturb() -> None:
    world, a, b = pair()
    a.order(Journaled(a.next_lsn, (CoreRecord("drain", 1, b""), CoreRecord("carrier", 1, b"\x93\x00\x00\x00"))))
    a.next_lsn += 2
    a.make()
    world.settle()
    all_there(a, b, 1)


def test_everything_said_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused multipart would be sent again for ever: none of ours may be refused."""
    refused: list[str] = []
    world, a, b = pair()
    monkeypatch.setattr(b.core.parent, "garbled", lambda peer, now: refused.append("down"))
    for size in (0, 1, 1 << 20, 250_000, 12_000):
        for _ in range(3):
            a.make(rows=1_000, size=size)
    world.advance(10)
    assert [] == refused
    all_there(a, b, 15_000)
    assert all(hop.decode(hop.encode(message)) == message for message in a.said + b.said)
    assert isinstance(b.said[-1], (Hack, hop.Beat))


def held_above_not_safe() -> tuple[World, Machine, Machine, Machine, Machine]:
    """Sensor `a` below `p1`, who holds six messages of it and is cut off from the root; `p2` is another way up."""
    world = World()
    root, p1, p2 = world.root(), world.collector("p1"), world.collector("p2")
    a = world.sensor("a", "p1")
    a.names_era = False
    world.settle()
    world.cut("p1")
    for _ in range(6):
        a.make()
    world.settle()
    assert (6, 0) == (a.core.counters.held, a.core.counters.safe)
    return world, root, p1, p2, a


@pytest.mark.proves("RTE-007")
def test_a_parent_that_is_found_again_goes_on_where_it_was() -> None:
    world, root, p1, p2, a = held_above_not_safe()
    a.may_fetch = False
    for name in ("p2", "p1"):
        a.order(AssignParent(name, name))
        world.settle()
    a.make()
    a.may_fetch = True
    world.heal("p1")
    world.advance(20)
    all_there(a, root, 7)
    assert (0, 7, 0) == (p2.core.counters.received, p1.core.counters.accepted, p1.core.counters.repeated)
    assert (0, 7) == (root.core.counters.known, a.core.outbox.given)


@pytest.mark.proves("RTE-007")
def test_what_was_read_for_another_parent_is_not_taken_for_what_this_one_needs() -> None:
    world, root, _, p2, a = held_above_not_safe()
    a.may_fetch = False
    a.order(AssignParent("p2", "p2"))
    world.settle()
    assert 1 == len(a.orders)
    root.crash()
    a.order(AssignParent("p1", "p1"))
    world.settle()
    for _ in range(3):
        a.make()
    a.order(a.read(a.orders.popleft()))
    a.may_fetch = True
    root.start()
    world.heal("p1")
    world.advance(20)
    all_there(a, root, 9)
    assert (0, 9, 0) == (p2.core.counters.received, a.core.outbox.given, root.core.counters.known)


@pytest.mark.proves("CHN-039")
def test_numbers_that_were_given_up_before_they_were_read_again_keep_their_place() -> None:
    world, root, _, p2, a = held_above_not_safe()
    a.reads_nothing = True
    a.order(AssignParent("p2", "p2"))
    world.settle()
    a.reads_nothing = False
    fourth = [lsn for lsn, record in a.disk if isinstance(record, StreamRecord)][3]
    a.order(DropOldest(fourth, ()))
    world.settle()
    a.told.clear()
    world.advance(20)
    assert [5, 6] == [record.sequence for record in root.samples()]
    assert (4, State.OPEN) == (p2.core.counters.expired, a.core.state)
    assert [] == a.events(ParentLost)


@pytest.mark.proves("MEA-025")
def test_what_became_safe_meanwhile_is_not_announced_as_lost() -> None:
    world, a, b = pair()
    for _ in range(6):
        a.make()
    while [1, 2, 3, 4, 5, 6] != [record.sequence for record in b.samples()]:
        world.deliver()
    a.may_fetch = False
    a.order(DropOldest(a.disk[-1][0], ()))
    for _ in range(4):
        world.deliver()
    assert 4 == a.core.counters.safe
    a.may_fetch = True
    a.order(a.read(a.orders.popleft()))
    (event,) = a.events(SpoolDropped)
    assert [(5, 6)] == [(span.first, span.last) for span in event.spans]


@pytest.mark.parametrize(("is_restarted", "told"), [(False, [MailReached(7, 1)]), (True, [])])
def test_mail_of_an_earlier_start_answers_no_ticket_of_this_one(is_restarted: bool, told: list[MailReached]) -> None:
    world = World()
    world.root()
    a = world.sensor("a")
    world.settle()
    world.cut("a")
    record = to_record(a.mail(), OUTBOX, world.now.wall)
    record.attributes["ticket"] = 7
    a.write(record)
    if is_restarted:
        a.crash()
        a.start()
    world.heal("a")
    world.advance(20)
    assert (told, 1) == (a.events(MailReached), a.core.counters.safe)


def test_a_multipart_has_no_more_frames_than_a_peer_takes() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    world.cut("a")
    for count in (1, *[16] * 16):
        a.post(frames=(b"x",) * count)
    world.heal("a")
    world.advance(20)
    assert 17 == len(root.inbox())
    assert 241 == max(len(said.frames) for said in a.said if isinstance(said, Hop))
