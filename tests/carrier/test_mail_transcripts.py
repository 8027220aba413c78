"""The hop transcripts of the specification for mail: what the chains of each node are asked."""

import pytest

from tests.carrier.rig import Machine, World
from tests.carrier.test_screen import forward, sequences
from tests.carrier.test_transcripts import numbers_of
from weft.base.effects import Effect, Persist
from weft.base.mail import OUTBOX, of_record
from weft.base.records import StreamRecord
from weft.cores.carrier.messages import AssignParent, Hello, HoldBack, Hop, SpoolDropped, Welcome
from weft.wire.carried import is_mail

Identity = tuple[bytes, int, int]


def line(*, goes_on: bool = False) -> tuple[World, Machine, Machine, Machine]:
    """A below B below C, which is the root; B forwards if it `goes_on`."""
    world = World()
    c = world.root("c")
    b = world.collector("b", "c")
    a = world.sensor("a", "b")
    if goes_on:
        b.judge = forward
    world.settle()
    for machine in (a, b, c):
        machine.said.clear()
    return world, a, b, c


def arrived(machine: Machine) -> list[Identity]:
    """The identities in its inbox, in order."""
    return [of_record(record).mid for record in machine.inbox()]


def hops_of(machine: Machine) -> list[Hop]:
    return [message for message in machine.said if isinstance(message, Hop)]


@pytest.mark.proves("CHN-032", "CHN-038")
@pytest.mark.parametrize("quiet_s", [0, 7_200])
def test_1_a_lost_hack(quiet_s: int) -> None:
    lost_hack(quiet_s)


def lost_hack(quiet_s: int = 0) -> None:
    """A sends 1 to 3, B keeps them, the hack is lost and the link drops. B's chain has run three times."""
    world, a, b, _ = line()
    for _ in range(3):
        a.post()
    for _ in range(3):
        world.deliver()
    world.cut("a")
    assert ([1, 2, 3], 0) == (sequences(b.screened), a.core.counters.held)
    a.said.clear()
    world.advance(quiet_s)
    world.heal("a")
    world.advance(20)
    assert 3 == b.heard_to_say(Welcome)[-1].upto
    assert {(1, 4)} == {(hello.first, hello.next) for hello in a.said if isinstance(hello, Hello)}
    assert [] == hops_of(a)
    assert [1, 2, 3] == sequences(b.screened) == sequences(b.inbox())
    assert (3, 0) == (a.core.counters.safe, a.core.counters.spool_records)


@pytest.mark.proves("CHN-032")
def test_2_a_gap() -> None:
    gap()


def gap() -> None:
    """B gets 1, 2 and 4."""
    world, a, b, _ = line()
    for _ in range(4):
        a.post()
    world.lose(2)
    a.said.clear()
    world.settle()
    assert [3, 4] == numbers_of(hops_of(a))
    assert [1, 2, 3, 4] == sequences(b.screened) == sequences(b.inbox())


@pytest.mark.proves("CHN-033", "JRN-001")
def test_3_a_crash_before_the_sync() -> None:
    crash_before_sync()


def crash_before_sync() -> None:
    """B, a root, receives 1 to 3 and dies before it has made them durable: all three come again."""
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b")
    world.settle()
    b.dies_before = lambda effect: isinstance(effect, Persist)
    for _ in range(3):
        a.post()
    world.settle()
    assert (False, []) == (b.is_up, b.inbox())
    b.start()
    a.said.clear()
    world.advance(20)
    assert 0 == b.heard_to_say(Welcome)[-1].upto
    assert [1, 2, 3] == numbers_of(hops_of(a))
    assert [1, 2, 3] == sequences(b.inbox())


@pytest.mark.proves("CHN-033")
@pytest.mark.parametrize("snapshot", [False, True])
def test_4_a_crash_between_in_and_out(snapshot: bool) -> None:
    crash_between_in_and_out(snapshot=snapshot)


def crash_between_in_and_out(*, snapshot: bool = False) -> None:
    """B has forwarded 1 and 2, and dies when 3 is to go out: the parent gets each identity once."""
    world, a, b, c = line(goes_on=True)

    def forwards_3(effect: Effect) -> bool:
        records = effect.records if isinstance(effect, Persist) else ()
        return any(isinstance(r, StreamRecord) and r.stream == OUTBOX and r.sequence == 3 for r in records)

    b.dies_before = forwards_3
    for _ in range(4):
        a.post()
    world.advance(1)
    assert (False, [1, 2]) == (b.is_up, sequences(c.inbox()))
    b.start()
    if snapshot:
        b.condense()
        b.crash()
        b.start()
    world.advance(20)
    assert [(a.node, a.era, number) for number in range(1, 5)] == arrived(c)
    assert [4, 4] == [a.core.counters.safe, c.core.counters.accepted]
    assert [0, 0] == [machine.core.counters.spool_records for machine in (a, b)]


@pytest.mark.proves("CHN-003", "CHN-032", "CHN-035")
@pytest.mark.parametrize("is_back_at_once", [True, False])
def test_5_a_rolled_back_disk(is_back_at_once: bool) -> None:
    rolled_back_disk(is_back_at_once=is_back_at_once)


def rolled_back_disk(*, is_back_at_once: bool = True) -> None:
    """A's disk is put back to where 40 to 49 lay in the outbox; they have arrived long ago."""
    world, a, b, _ = line()
    for _ in range(39):
        a.post()
    world.advance(2)
    world.cut("a")
    for _ in range(10):
        a.post()
    image = list(a.disk)
    world.heal("a")
    world.advance(20)
    assert list(range(1, 50)) == sequences(b.screened)
    if not is_back_at_once:
        world.advance(120)
        b.crash()
        b.start()
        b.condense()
        b.crash()
        b.start()
    a.crash()
    a.disk = image
    era_before = a.era
    a.start()
    for _ in range(3):
        a.post()
    a.said.clear()
    world.advance(20)
    assert list(range(1, 14)) == numbers_of(hops_of(a))
    assert 10 == b.core.counters.known
    expected = [(a.node, era_before, number) for number in range(1, 50)]
    assert expected + [(a.node, a.era, number) for number in (1, 2, 3)] == arrived(b)
    assert sequences(b.screened) == sequences(b.inbox())


@pytest.mark.proves("CHN-032", "CHN-035")
def test_6_a_lost_disk() -> None:
    lost_disk()


def lost_disk() -> None:
    """A starts empty with its node id restored: numbers and sequences from 1, and none is taken for a duplicate."""
    world, a, b, _ = line()
    for _ in range(5):
        a.post()
    world.advance(2)
    era_before = a.era
    a.crash()
    a.disk, a.next_lsn = [], 1
    a.start()
    for _ in range(4):
        a.post()
    world.advance(20)
    expected = [(a.node, era_before, number) for number in range(1, 6)]
    assert expected + [(a.node, a.era, number) for number in range(1, 5)] == arrived(b)
    assert (0, 0) == (b.core.counters.known, b.core.counters.repeated)


def fork() -> tuple[World, Machine, Machine, Machine, Machine]:
    """A below P1, beside it P2, both below the root, which both forward to."""
    world = World()
    root = world.root()
    p1, p2 = world.collector("p1"), world.collector("p2")
    p1.judge = p2.judge = forward
    a = world.sensor("a", "p1")
    world.settle()
    return world, a, p1, p2, root


def held_by_p1_alone() -> tuple[World, Machine, Machine, Machine, Machine]:
    """The fork; P1, which is cut off from the root, has acknowledged 1 and 2 of A, so they are not safe."""
    world, a, p1, p2, root = fork()
    world.cut("p1")
    a.post()
    a.post()
    world.advance(1)
    assert [1, 2] == sequences(p1.outbox())
    return world, a, p1, p2, root


@pytest.mark.proves("CHN-035", "RTE-007")
def test_7_another_parent() -> None:
    another_parent()


def another_parent() -> None:
    """P1 has 5 and 6, which A does not know; A moves to P2. Both forward, and the root gets 5, 6 and 7 once each."""
    world, a, p1, p2, root = fork()
    for _ in range(4):
        a.post()
    world.advance(2)
    world.cut("p1")
    for _ in range(2):
        a.post()
    for _ in range(2):
        world.deliver()
    world.cut("a")
    a.post()
    assert ([1, 2, 3, 4, 5, 6], 4) == (sequences(p1.screened), a.core.counters.held)
    world.heal("a")
    a.said.clear()
    a.order(AssignParent("p2", "p2"))
    world.settle()
    (hello,) = [message for message in a.said if isinstance(message, Hello)]
    assert (5, 8) == (hello.first, hello.next)
    assert [5, 6, 7] == numbers_of(hops_of(a)) == sequences(p2.screened)
    world.heal("p1")
    world.advance(20)
    assert [(a.node, a.era, number) for number in range(1, 8)] == arrived(root)
    assert (2, 7) == (root.core.counters.known, len(root.screened))
    assert (7, 0) == (a.core.counters.safe, a.core.counters.spool_records)


@pytest.mark.proves("CHN-031", "RTE-007")
def test_7_what_only_one_parent_has_goes_to_the_next_too_and_counts_once() -> None:
    acknowledged_elsewhere()


def acknowledged_elsewhere() -> None:
    """P2 gets 1 and 2 again, in order, and the root has each once."""
    world, a, p1, p2, root = held_by_p1_alone()
    a.make()
    world.advance(1)
    world.cut("a")
    a.post()
    world.heal("a")
    a.order(AssignParent("p2", "p2"))
    world.advance(3)
    assert [1, 2, 3] == [record.sequence for record in p2.screened if is_mail(record)]
    world.heal("p1")
    world.advance(20)
    assert [(a.node, a.era, number) for number in (1, 2, 3)] == arrived(root)
    assert [1] == sequences(root.samples())
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in (a, p1, p2)]


@pytest.mark.proves("CHN-031", "RTE-007")
def test_7_what_a_parent_took_with_it_for_ever_arrives_by_the_next() -> None:
    gone_for_ever()


def gone_for_ever() -> None:
    """P1 dies for good; the root gets 1 and 2 through P2."""
    world, a, p1, p2, root = held_by_p1_alone()
    p1.crash()
    a.order(AssignParent("p2", "p2"))
    world.advance(20)
    assert [(a.node, a.era, number) for number in (1, 2)] == arrived(root)
    assert [0, 0] == [machine.core.counters.spool_records for machine in (a, p2)]


@pytest.mark.proves("CHN-038", "RTE-007")
def test_7_a_parent_that_went_back_gets_what_it_had_and_what_came_since() -> None:
    world, a, p1, p2, root = fork()
    world.cut("p1", "p2")
    image, lsn = list(p1.disk), p1.next_lsn
    a.make()
    a.post()
    world.advance(1)
    a.order(AssignParent("p2", "p2"))
    world.advance(1)
    a.post()
    world.advance(1)
    p1.crash()
    p1.disk, p1.next_lsn = image, lsn
    p1.start()
    p1.screened.clear()
    a.order(AssignParent("p1", "p1"))
    world.advance(3)
    assert [1, 2] == [record.sequence for record in p1.screened if is_mail(record)]
    assert [1, 2] == [record.sequence for record in p2.screened if is_mail(record)]
    world.heal("p1", "p2")
    world.advance(20)
    assert sorted((a.node, a.era, number) for number in (1, 2)) == sorted(arrived(root))
    assert 0 == a.core.counters.spool_records


@pytest.mark.proves("CHN-031", "RTE-007")
def test_7_what_a_parent_lost_with_its_disk_goes_to_the_one_that_replaces_it_or_to_another() -> None:
    a_parent_replaced("p1")
    a_parent_replaced("p2")


def a_parent_replaced(after: str) -> None:
    """P1 gets an empty disk; A is welcomed by it, and goes on at `after`."""
    world, a, p1, p2, root = held_by_p1_alone()
    p1.crash()
    p1.disk, p1.next_lsn, p1.node = [], 1, b"another".ljust(16)
    p1.start()
    world.advance(8)
    a.order(AssignParent(after, after))
    world.advance(3)
    a.post()
    world.heal("p1")
    world.advance(20)
    assert [(a.node, a.era, number) for number in (1, 2, 3)] == sorted(arrived(root))
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in (a, p1, p2)]


@pytest.mark.proves("CHN-031", "RTE-007")
def test_7_what_a_parent_lost_with_an_older_disk_goes_to_another() -> None:
    world, a, p1, p2, root = fork()
    world.cut("p1")
    image, lsn = list(p1.disk), p1.next_lsn
    a.post()
    a.post()
    world.advance(1)
    p1.crash()
    p1.disk, p1.next_lsn = image, lsn
    p1.start()
    p1.order(HoldBack(is_full=True))
    world.advance(3)
    a.order(AssignParent("p2", "p2"))
    world.advance(3)
    assert [1, 2] == [record.sequence for record in p2.screened if is_mail(record)]
    assert [(a.node, a.era, number) for number in (1, 2)] == sorted(arrived(root))


@pytest.mark.proves("CHN-031", "CHN-032")
def test_8_a_night() -> None:
    """The parent is away for 8 h; nothing is lost, nothing is doubled, and the order is kept."""
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b", memory_bytes=20_000)
    world.advance(1)
    b.crash()
    for _ in range(2_880):
        a.post(frames=(b"x" * 50,))
        world.advance(10)
    b.start()
    world.advance(60)
    assert list(range(1, 2_881)) == sequences(b.inbox()) == sequences(b.screened)
    assert a.fetches >= 1
    assert (0, 0) == (a.core.counters.refused_above, a.core.counters.spool_records)


@pytest.mark.proves("CHN-039")
def test_8_a_night_with_a_small_spool() -> None:
    small_spool()


def small_spool() -> None:
    """A full spool gives up no mail that was promised, and nothing for which it would have to."""
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b")
    world.advance(1)
    a.post()
    world.advance(1)
    b.crash()
    a.make()
    count = 1
    for _ in range(600):
        count += 1
        a.post(frames=(b"x" * 900,))
        world.advance(7)
        if a.spool_bytes() > 100_000:
            a.drop_oldest()
            world.settle()
    b.start()
    world.advance(60)
    assert [] == dropped(a) + b.lost()
    assert list(range(1, count + 1)) == sequences(b.inbox())
    assert 0 == a.core.counters.spool_records


@pytest.mark.proves("CHN-039")
def test_mail_that_a_parent_has_is_not_called_lost_when_its_record_is_dropped() -> None:
    world, a, b, _ = line()
    world.cut("b")
    a.make()
    a.post()
    world.advance(1)
    assert [1] == sequences(b.inbox())
    world.cut("a")
    a.drop_oldest(share=1)
    world.advance(1)
    assert [(1, 1, 1)] == dropped(a)


@pytest.mark.proves("CHN-039", "CHN-030")
def test_where_mail_stands_that_no_parent_has_nothing_is_given_up_and_it_is_looked_for_once() -> None:
    world, a, b, _ = line()
    world.advance(1)
    world.cut("a")
    a.make()
    a.post()
    a.drop_oldest(share=1)
    world.advance(1)
    a.may_fetch = False
    a.drop_oldest(share=1)
    assert ([], 0) == (dropped(a), len(a.orders))
    a.may_fetch = True
    world.cut("b")
    world.heal("a")
    world.advance(10)
    assert [1] == sequences(b.inbox())
    world.cut("a")
    a.drop_oldest(share=1)
    world.advance(1)
    assert [(1, 1, 1)] == dropped(a), "a parent has it"


def dropped(machine: Machine) -> list[tuple[int, int, int]]:
    """What it has said to be lost: streams and numbers."""
    return [(span.stream, span.first, span.last) for event in machine.events(SpoolDropped) for span in event.spans]
