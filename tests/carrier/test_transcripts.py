"""The hop transcripts of the specification, with whole cores and real bytes."""

import pytest

from tests.carrier.rig import Machine, World, joined, spans
from weft.base.now import SECOND
from weft.base.records import Stream
from weft.cores.carrier.messages import (
    AssignParent,
    ChildJoined,
    Hack,
    Hello,
    Hop,
    ParentJoined,
    ParentLost,
    RolledBack,
    SpoolDropped,
    Welcome,
)
from weft.cores.carrier.states import State


def pair() -> tuple[World, Machine, Machine]:
    """A sensor `a` and its parent `b`, joined."""
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b")
    a.names_era = False
    world.settle()
    assert State.OPEN is a.core.state
    a.said.clear()
    b.said.clear()
    return world, a, b


def numbers_of(hops: list[Hop]) -> list[int]:
    return [number for sent in hops for number, _, _ in sent.numbered()]


def held_by(machine: Machine) -> list[int]:
    return [record.sequence for record in machine.samples()]


@pytest.mark.proves("CHN-032", "CHN-038")
@pytest.mark.parametrize("quiet_s", [0, 7_200])
def test_1_a_lost_hack(quiet_s: int) -> None:
    lost_hack(quiet_s)


def lost_hack(quiet_s: int = 0) -> None:
    """A sends 1 to 3, B keeps them, the hack is lost and the link drops. `quiet_s` of no link in between."""
    world, a, b = pair()
    for _ in range(3):
        a.make()
    for _ in range(3):
        world.deliver()
    assert [1, 2, 3] == held_by(b)
    world.cut("a")
    assert 0 == a.core.counters.held
    a.said.clear()
    if quiet_s:
        world.advance(quiet_s)
    world.heal("a")
    world.advance(20)
    assert [3] == [welcome.upto for welcome in b.heard_to_say(Welcome)[-1:]]
    hellos = [message for message in a.said if isinstance(message, Hello)]
    assert {(1, 4)} == {(hello.first, hello.next) for hello in hellos}
    assert [] == [message for message in a.said if isinstance(message, Hop)]
    assert [1, 2, 3] == held_by(b)
    assert (3, 0) == (a.core.counters.safe, a.core.counters.spool_records)


@pytest.mark.proves("CHN-032")
def test_2_a_gap() -> None:
    gap()


def gap() -> None:
    """B gets 1, 2 and 4."""
    world, a, b = pair()
    for _ in range(4):
        a.make()
    assert [3] == numbers_of(world.lose(2))
    a.said.clear()
    world.settle()
    assert [3, 4] == numbers_of([message for message in a.said if isinstance(message, Hop)])
    hacks = b.heard_to_say(Hack)
    assert [(1, False), (2, False), (2, True), (4, False)] == [(h.upto, h.back) for h in hacks]
    assert [1, 2, 3, 4] == held_by(b)
    assert 1 == b.core.counters.ahead


@pytest.mark.proves("CHN-033", "JRN-001")
def test_3_a_crash_before_the_sync() -> None:
    crash_before_sync()


def crash_before_sync() -> None:
    """B receives 1 to 3 and dies before it has made them durable."""
    world, a, b = pair()
    b.dies_before = lambda effect: type(effect).__name__ == "Persist"
    for _ in range(3):
        a.make()
    world.settle()
    assert (False, []) == (b.is_up, held_by(b))
    world.advance(1)
    b.start()
    a.said.clear()
    world.advance(20)
    assert [0] == [welcome.upto for welcome in b.heard_to_say(Welcome)[-1:]]
    assert [1, 2, 3] == numbers_of([message for message in a.said if isinstance(message, Hop)])
    assert [1, 2, 3] == held_by(b)


@pytest.mark.proves("CHN-032", "CHN-036")
def test_5_a_rolled_back_disk() -> None:
    rolled_back_disk()


def rolled_back_disk() -> None:
    """A's disk is put back to where 40 to 49 lay in the outbox; they have arrived long ago."""
    world, a, b = pair()
    for _ in range(39):
        a.make()
    world.advance(2)
    a.parent = ""
    world.cut("a")
    for _ in range(10):
        a.make()
    image = list(a.disk)
    world.heal("a")
    world.advance(20)
    assert list(range(1, 50)) == held_by(b)
    a.crash()
    a.disk = image
    a.parent = "b"
    era_before = a.era
    a.start()
    assert a.era > era_before
    for _ in range(3):
        a.make()
    a.said.clear()
    world.advance(20)
    assert list(range(1, 14)) == numbers_of([message for message in a.said if isinstance(message, Hop)])
    assert 10 == b.core.counters.known
    assert {(a.node, era_before): [(1, 49)], (a.node, a.era): [(1, 3)]} == {
        origin: joined(pieces) for origin, pieces in spans(b.samples()).items()
    }


@pytest.mark.proves("CHN-032")
def test_6_a_lost_disk() -> None:
    lost_disk()


def lost_disk() -> None:
    """A starts empty with its node id restored: numbers from 1, and none is taken for a duplicate."""
    world, a, b = pair()
    for _ in range(5):
        a.make()
    world.advance(2)
    era_before = a.era
    a.crash()
    a.disk, a.next_lsn = [], 1
    a.start()
    for _ in range(4):
        a.make()
    world.advance(20)
    assert {(a.node, era_before): [(1, 5)], (a.node, a.era): [(1, 4)]} == {
        origin: joined(pieces) for origin, pieces in spans(b.samples()).items()
    }
    assert (0, 0) == (b.core.counters.known, b.core.counters.repeated)


@pytest.mark.proves("CHN-035", "CHN-036", "RTE-007", "MEA-024", "MEA-027")
def test_7_another_parent() -> None:
    world = World()
    root = world.root()
    p1, p2 = world.collector("p1"), world.collector("p2")
    a = world.sensor("a", "p1")
    a.names_era = False
    world.settle()
    for _ in range(4):
        a.make()
    world.advance(2)
    world.cut("p1")
    a.make()
    a.make()
    world.settle()
    assert [5, 6] == held_by(p1)
    world.cut("a")
    a.make()
    assert (4, 6) == (a.core.counters.safe, a.core.counters.held)
    world.heal("a")
    a.said.clear()
    a.order(AssignParent("p2", "p2"))
    world.settle()
    (hello,) = [message for message in a.said if isinstance(message, Hello)]
    assert (5, 8, (p1.node, 6)) == (hello.first, hello.next, hello.had)
    assert [5, 6, 7] == numbers_of([message for message in a.said if isinstance(message, Hop)])
    world.heal("p1")
    world.advance(20)
    assert {(a.node, a.era): [(1, 7)]} == {origin: joined(p) for origin, p in spans(root.samples()).items()}
    assert 2 == root.core.counters.known
    assert (7, 0) == (a.core.counters.safe, a.core.counters.spool_records)
    assert [] == p2.events(RolledBack)


@pytest.mark.proves("CHN-038")
def test_a_child_that_comes_back_is_not_taken_for_a_rolled_back_disk() -> None:
    world = World()
    root = world.root()
    p1, p2 = world.collector("p1"), world.collector("p2")
    a = world.sensor("a", "p1")
    for name in ("p1", "p2", "p1"):
        a.order(AssignParent(name, name))
        world.advance(1)
        a.make()
        world.advance(3)
    assert [] == p1.events(RolledBack) + p2.events(RolledBack) + root.events(RolledBack)
    assert {(a.node, a.era): [(1, 3)]} == {origin: joined(p) for origin, p in spans(root.samples()).items()}


@pytest.mark.proves("CHN-038")
def test_a_parent_whose_disk_went_back_says_how_much_it_lost() -> None:
    world, a, b = pair()
    for _ in range(5):
        a.make()
    world.advance(2)
    image, lsn = list(b.disk), b.next_lsn
    for _ in range(3):
        a.make()
    world.advance(2)
    world.cut("a")
    a.make()
    b.crash()
    b.disk, b.next_lsn = image, lsn
    b.start()
    world.heal("a")
    world.advance(20)
    assert [RolledBack(a.node, "a", a.era, 3, 3)] == b.events(RolledBack)
    assert {(a.node, a.era): [(1, 5), (9, 9)]} == {origin: joined(p) for origin, p in spans(b.samples()).items()}


@pytest.mark.proves("MEA-024")
def test_a_collector_that_lost_its_disk_costs_nothing() -> None:
    collector_loses_disk()


def collector_loses_disk() -> None:
    """What the collector held was not safe yet, so the sensor still has it."""
    world = World()
    root, c = world.root(), world.collector("c")
    a = world.sensor("a", "c")
    world.settle()
    world.cut("c")
    for _ in range(5):
        a.make()
    world.advance(3)
    held, safe = a.core.counters.held, a.core.counters.safe
    c.crash()
    c.disk, c.next_lsn = [], 1
    world.heal("c")
    c.start()
    world.advance(20)
    assert {(a.node, a.era): [(1, 5)]} == {origin: joined(p) for origin, p in spans(root.samples()).items()}
    assert (6, 0) == (held, safe)
    (rolled_back,) = c.events(RolledBack)
    assert (6, 0) == (rolled_back.behind, rolled_back.lost)


@pytest.mark.prove("a night")
@pytest.mark.proves("CHN-031", "CHN-032", "MEA-024")
def test_8_a_night(*, soak: bool) -> None:
    """The parent is away for 8 h; nothing is lost, nothing is doubled, and the order is kept."""
    period = 0.1 if soak else 1
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b", memory_bytes=200_000)
    a.names_era = False
    world.advance(1)
    count = 0
    b.crash()
    for _ in range(round(8 * 3_600 / period)):
        count += 1
        a.make(rows=10, size=300)
        world.advance(period)
    assert State.GREETING is a.core.state
    assert 1 == len(a.events(ParentLost))
    assert count == a.core.counters.spool_records
    assert a.core.counters.oldest_at < world.now.wall - 7 * 3_600 * SECOND
    b.start()
    world.advance(60)
    assert {(a.node, a.era): [(1, 10 * count)]} == {origin: joined(p) for origin, p in spans(b.samples()).items()}
    assert count == len(b.samples())
    assert [2, 2] == [len(a.events(ParentJoined)), len(b.events(ChildJoined))]
    assert a.fetches >= 3
    assert (0, 0, 0) == (b.core.counters.known, b.core.counters.repeated, a.core.counters.spool_records)


@pytest.mark.prove("a night")
@pytest.mark.proves("CHN-039", "MEA-025")
def test_8_a_night_with_a_small_spool() -> None:
    small_spool()


def small_spool() -> None:
    """What is missing at the end is exactly what was announced as lost."""
    world = World()
    b = world.root("b")
    a = world.sensor("a", "b")
    world.advance(1)
    b.crash()
    count = 0
    for _ in range(4_000):
        count += 3
        a.make(rows=3, size=900)
        world.advance(7)
        if a.spool_bytes() > 1 << 20:
            a.drop_oldest()
            world.settle()
    b.start()
    world.advance(60)
    (arrived,) = [joined(p) for p in spans(b.samples()).values()]
    lost = joined(sorted({(record.first, record.last) for record in b.lost()}))
    assert {(Stream.SAMPLES, a.node, a.era, "spool-full")} == {(r.stream, r.origin, r.era, r.why) for r in b.lost()}
    assert [(1, count)] == joined(sorted(lost + arrived))
    dropped = [span for event in a.events(SpoolDropped) for span in event.spans]
    assert lost == joined([(span.first, span.last) for span in dropped])
    assert 1 == len([record for record in b.archive() if type(record).__name__ == "EraRecord"])
