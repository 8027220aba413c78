"""What is kept in place of what has arrived: the seam between the carrier and the chains."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.carrier.rig import Machine, Root, World
from weft.base.effects import Effect, Persist
from weft.base.mail import INBOX, OUTBOX, of_record
from weft.base.records import CoreRecord, LostRecord, Record, Stream, StreamRecord
from weft.base.spool import Released
from weft.cores.carrier import limits
from weft.cores.carrier.memory import Met, Received, SeenKept, from_record
from weft.cores.carrier.messages import AssignParent


def forward(record: StreamRecord) -> Iterable[Record]:
    """Mail goes on, one cause deeper; it leaves nothing here."""
    if record.stream != INBOX:
        return (record,)
    deeper = record.attributes | {"depth": record.attributes.get("depth", 0) + 1}
    return (msgspec.structs.replace(record, stream=OUTBOX, attributes=deeper),)


def end(record: StreamRecord) -> Iterable[Record]:
    """Everything ends here."""
    return ()


def chain() -> tuple[World, Machine, Machine, Machine]:
    """Sensor `a` below collector `b` below root `c`."""
    world = World()
    c, b = world.root("c"), world.collector("b", "c")
    a = world.sensor("a", "b")
    a.names_era = b.names_era = False
    world.settle()
    return world, c, b, a


def sequences(records: Iterable[StreamRecord]) -> list[int]:
    return [record.sequence for record in records]


@pytest.mark.proves("CHN-033", "RTE-004")
def test_mail_reaches_the_parent_s_inbox_in_one_persist_with_the_news_that_it_is_held() -> None:
    world, c, b, a = chain()
    b.said.clear()
    sent = [a.post(frames=(b"one", b"two")), a.post(fmt="json")]
    world.advance(3)
    assert [1, 2] == sequences(b.inbox())
    arrived = [of_record(record) for record in b.inbox()]
    assert [msgspec.structs.replace(mail, via=(a.node,)) for mail in sent] == arrived
    assert [] == c.inbox()
    assert (2, 0) == (a.core.counters.safe, a.core.counters.spool_records)
    assert [] == a.outbox()


@pytest.mark.proves("CHN-033", "CHN-035")
def test_what_the_screen_keeps_stands_with_held_and_the_identity_in_one_persist() -> None:
    world, _, b, a = chain()
    b.judge = forward
    persisted: list[Persist] = []
    honest = b._persist

    def watched(persist: Persist) -> list[Effect]:
        persisted.append(persist)
        return honest(persist)

    b._persist = watched  # type: ignore[method-assign]  # a disk that is watched
    a.post()
    world.settle()
    (first, *_) = [each for each in persisted if any(isinstance(r, StreamRecord) for r in each.records)]
    kinds = [type(from_record(r)) if isinstance(r, CoreRecord) else type(r) for r in first.records]
    assert [StreamRecord, Received, Met] == kinds


@pytest.mark.proves("CHN-033", "RTE-004", "RTE-005")
def test_forwarded_mail_keeps_its_identity_over_two_hops() -> None:
    world, c, b, a = chain()
    b.judge = forward
    for _ in range(3):
        a.post()
    world.advance(5)
    assert [1, 2, 3] == sequences(c.inbox()) == sequences(b.screened)
    assert {((a.node, b.node), 1, a.node, a.era)} == {
        (of_record(r).via, of_record(r).depth, r.origin, r.era) for r in c.inbox()
    }
    assert [] == b.inbox()
    assert [3, 3] == [machine.core.counters.safe for machine in (a, b)]


@pytest.mark.proves("CHN-033", "MEA-024")
def test_mail_that_ends_is_safe_as_soon_as_what_came_before_it_is() -> None:
    world, c, b, a = chain()
    world.cut("b")
    a.make()
    a.post()
    a.post()
    world.advance(3)
    assert [1, 2] == sequences(b.inbox())
    assert 0 == a.core.counters.safe, "the sample before it is not at the root"
    world.heal("b")
    world.advance(10)
    assert (3, 0) == (a.core.counters.safe, a.core.counters.spool_records)
    world.cut("b")
    a.post()
    world.advance(3)
    assert 4 == a.core.counters.safe, "nothing of it has to go further"
    assert [1] == sequences(c.samples())


@pytest.mark.proves("CHN-033", "MEA-024")
@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_screened_away_neither_holds_back_nor_hurries_what_is_safe(restarts: bool) -> None:
    world, c, b, a = chain()
    b.judge = lambda record: () if record.sequence % 2 else (record,)
    world.cut("b")
    for _ in range(6):
        a.make()
        world.advance(0.2)
    world.advance(2)
    assert 1 == a.core.outbox.safe, "only the first has nothing before it that has to reach the root"
    if restarts:
        b.condense()
        b.crash()
        b.start()
        world.advance(2)
    assert (1, 6) == (a.core.outbox.safe, a.core.outbox.held)
    world.heal("b")
    world.advance(20)
    assert [2, 4, 6] == sequences(c.samples())
    assert 6 == a.core.outbox.safe
    assert [6, 3] == [machine.core.counters.safe for machine in (a, b)]


def thin(record: StreamRecord) -> Iterable[Record]:
    """Of a batch of four rows only the second and third pass."""
    if record.stream != Stream.SAMPLES:
        return (record,)
    first = record.sequence
    return (
        LostRecord(record.stream, record.origin, record.era, first, first, "filtered"),
        msgspec.structs.replace(record, sequence=first + 1, attributes=record.attributes | {"n": 2}),
        LostRecord(record.stream, record.origin, record.era, first + 3, first + 3, "filtered"),
    )


@pytest.mark.proves("CHN-033", "CHN-035", "MEA-027")
@pytest.mark.parametrize("life", ["goes on", "starts again", "starts from a snapshot"])
@pytest.mark.parametrize("judge", [thin, end])
def test_a_root_knows_what_it_has_screened_away_when_it_comes_by_another_way(judge: Any, life: str) -> None:
    world = World()
    root = world.root()
    p1, p2 = world.collector("p1"), world.collector("p2")
    a = world.sensor("a", "p1")
    a.names_era = False
    root.judge = judge
    world.settle()
    world.cut("p1")
    a.make(rows=4)
    world.advance(1)
    assert [1] == sequences(p1.samples())
    a.order(AssignParent("p2", "p2"))
    world.advance(4)
    kept = root.archive()[:]
    assert 1 == len(root.screened)
    if life == "starts from a snapshot":
        root.condense()
    if life != "goes on":
        root.crash()
        root.start()
    world.heal("p1")
    world.advance(20)
    assert [] == p1.samples() + p2.samples()
    assert (1, 1) == (len(root.screened), root.core.counters.known)
    carried = [record for record in root.archive() if not isinstance(record, CoreRecord)]
    assert [record for record in kept if not isinstance(record, CoreRecord)] == carried


@pytest.mark.proves("CHN-033", "MEA-027")
@pytest.mark.parametrize(("judge", "count"), [(forward, 0), (thin, 1), (end, 1)])
def test_only_what_is_not_kept_costs_a_root_a_note(judge: Any, count: int) -> None:
    world = World()
    root = world.root()
    root.judge = judge
    a = world.sensor("a")
    a.names_era = False
    world.settle()
    a.make(rows=4)
    world.advance(1)
    memories = [from_record(record) for record in root.archive() if isinstance(record, CoreRecord)]
    assert count == len([memory for memory in memories if isinstance(memory, SeenKept)])


def test_a_payload_that_a_filter_has_changed_has_its_numbers_still() -> None:
    world = World()
    root = world.root()
    root.judge = lambda record: (msgspec.structs.replace(record, payload=b"changed"),)
    a = world.sensor("a")
    a.names_era = False
    world.settle()
    a.make(rows=4)
    world.advance(1)
    assert [b"changed"] == [record.payload for record in root.samples()]
    memories = [from_record(record) for record in root.archive() if isinstance(record, CoreRecord)]
    assert [] == [memory for memory in memories if isinstance(memory, SeenKept)]


@pytest.mark.proves("CHN-039")
@pytest.mark.parametrize("level", ["root", "collector"])
def test_a_journal_with_nothing_but_arriving_mail_is_let_go(level: str) -> None:
    world, c, b, a = chain()
    receiver, sender = (c, b) if level == "root" else (b, a)
    world.advance(2)
    receiver.told.clear()
    for _ in range(limits.RELEASE_STEP):
        sender.post()
    world.advance(5)
    released = max(event.upto for event in receiver.events(Released))
    last = max(lsn for lsn, record in receiver.disk if isinstance(record, StreamRecord))
    assert released >= last - 1_000
    assert released > 1_000 // 2


def test_losses_and_era_links_are_not_for_the_screen() -> None:
    world, c, b, a = chain()
    b.judge = end
    a.names_era = True
    a.make()
    a.write(LostRecord(Stream.LOGS, a.node, a.era, 1, 2, "x"))
    world.advance(5)
    assert [Stream.SAMPLES] == [record.stream for record in b.screened]
    assert 2 == len([record for record in c.archive() if not isinstance(record, CoreRecord)])


@pytest.mark.proves("CHN-035")
def test_mail_that_comes_by_two_ways_is_screened_once_at_every_node() -> None:
    world = World()
    root = world.root()
    p1, p2 = world.collector("p1"), world.collector("p2")
    p1.judge = p2.judge = forward
    a = world.sensor("a", "p1")
    world.settle()
    world.cut("p1")
    a.post()
    a.post()
    world.deliver()
    world.deliver()
    world.cut("a")
    assert ([1, 2], 0) == (sequences(p1.outbox()), a.core.counters.held)
    world.heal("a")
    a.crash()
    a.parent = "p2"
    a.start()
    world.advance(5)
    assert [1, 2] == sequences(p2.screened)
    world.heal("p1")
    world.advance(20)
    assert [1, 2] == sequences(root.screened) == sequences(root.inbox())
    assert (2, 2) == (root.core.counters.known, root.core.counters.accepted)
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in (a, p1, p2)]


def to_lake(record: StreamRecord) -> Iterable[Record]:
    """A root keeps mail as a record of its lake, under the same identity."""
    return (msgspec.structs.replace(record, stream=Stream.MESSAGES),) if record.stream == INBOX else (record,)


@pytest.mark.proves("CHN-035", part="what a root between has kept of mail, and the mail itself, come to the next root")
@pytest.mark.parametrize("life", ["goes on", "starts again", "starts from a snapshot"])
@pytest.mark.parametrize("first", ["record", "mail"])
def test_mail_that_a_former_root_had_kept_stands_in_the_lake_once(first: str, life: str) -> None:
    world = World()
    root = world.root()
    root.judge = to_lake
    b, former = world.collector("b"), world.collector("former")
    b.judge = forward
    a = world.sensor("a", "b")
    world.settle()
    world.cut("b")
    world.cut("former")
    a.post()
    world.advance(1)
    (mail,) = b.outbox()
    former.write(msgspec.structs.replace(mail, stream=Stream.MESSAGES))
    world.heal("former" if first == "record" else "b")
    world.advance(20)
    assert [1] == sequences(root.samples())
    if life == "starts from a snapshot":
        root.condense()
    if life != "goes on":
        root.crash()
        root.start()
    world.heal("b" if first == "record" else "former")
    world.advance(20)
    assert [1] == sequences(root.samples())
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in (a, b, former)]


@pytest.mark.proves("CHN-041")
def test_expired_mail_is_counted_where_it_would_have_left_and_where_it_would_have_arrived() -> None:
    world, _, b, a = chain()
    world.cut("a")
    a.post(exp=world.now.wall + 5_000_000_000)
    a.post()
    world.advance(6)
    world.heal("a")
    world.advance(10)
    assert [2] == sequences(b.inbox())
    assert (1, 1) == (a.core.counters.refused["mail-expired"], b.core.counters.expired)
    assert (2, 0) == (a.core.counters.safe, a.core.counters.spool_records)


@pytest.mark.proves("CHN-041")
def test_mail_that_expires_on_the_wire_is_not_delivered() -> None:
    world, _, b, a = chain()
    a.post(exp=world.now.wall + 1_000_000_000)
    world.sleep(2)
    world.advance(3)
    assert ([], 1) == (b.screened, b.core.counters.expired)


@pytest.mark.proves("RTE-004")
def test_mail_that_was_here_before_is_refused_for_good_at_a_root_too() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    a.post(origin=b"x" * 16, via=(root.node,))
    a.post(origin=root.node)
    a.post(origin=b"x" * 16, depth=17)
    a.post()
    world.advance(3)
    assert [4] == sequences(root.screened)
    assert (3, 3) == (root.core.counters.refused["loop"], a.core.counters.refused["mail-loop"])
    assert [] == [record for record in a.archive() if isinstance(record, LostRecord)]


def test_mail_that_cannot_leave_is_counted_and_holds_nothing_up() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    a.post(to=("PARENTSOF", None, 0))
    a.post()
    world.advance(3)
    assert [2] == sequences(root.inbox())
    assert (1, 0) == (a.core.counters.refused["mail-ttl"], a.core.counters.uncarriable)
    assert [] == [record for record in a.archive() if isinstance(record, LostRecord)]
    assert 0 == a.core.counters.spool_records


@pytest.mark.proves("CLI-004")
def test_mail_of_many_frames_and_long_words_does_not_burst_a_multipart() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    world.cut("a")
    for _ in range(100):
        a.post(
            frames=(b"x",) * 16,
            type="t" * 64,
            fmt="f" * 256,
            to=("K" * 32, "n" * 64, 255),
            via=tuple(bytes([n]) * 16 for n in range(60)),
            exp=1 << 62,
        )
    world.heal("a")
    world.advance(20)
    assert list(range(1, 101)) == sequences(root.inbox())


def test_a_root_that_is_asked_for_everything_it_has_does_not_name_its_inbox() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    a.post()
    a.make()
    world.advance(3)
    assert isinstance(root, Root)
    assert {Stream.SAMPLES} == {stream for stream, _, _ in root.core.parent.seen._ranges}
