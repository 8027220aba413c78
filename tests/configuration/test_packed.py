"""Pairs of a snapshot that travel many in one message, between nodes that both know that (CFG-043, CFG-096)."""

import msgspec
import pytest

from tests.configuration.rig import FULL, Machine, World
from tests.configuration.test_digests import CHAINS, OF_BOTH, A, B, events, follower
from tests.configuration.test_serving import CHILD, ENVELOPE, Parent
from weft.base.chance import Chance
from weft.base.effects import Persist, Send, Source
from weft.base.errors import PeerError
from weft.base.records import CoreRecord
from weft.cores.configuration import limits, replica
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.memory import Begun, Last, Part, from_record
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent, SnapshotDiffers
from weft.cores.configuration.states import State
from weft.wire import replication
from weft.wire.envelope import Asked
from weft.wire.replication import ICanHaz, KThxBai, KvPack, KvSync, chain_of, pack

Patch = pytest.MonkeyPatch
PAIRS = [KvSync(A, 1, b"1"), KvSync(B, 2, b"2")]


def filled(count: int) -> World:
    world = World()
    world.root()
    world.write(*((f"/CONFIG/web/{n:05}", str(n)) for n in range(count)))
    return world


def packs_to(machine: Machine) -> list[KvPack]:
    return machine.messages(KvPack)


def parts_of(machine: Machine) -> list[Part]:
    records = [record for _, record in machine.disk if isinstance(record, CoreRecord)]
    return [memory for memory in map(from_record, records) if isinstance(memory, Part)]


@pytest.mark.proves("CFG-043")
def test_a_child_that_accepts_packed_pairs_gets_them_in_few_messages_and_is_equal() -> None:
    world = filled(600)
    root, child = world.machines["root"], world.collector("c")
    world.settle()
    world.check()
    assert [256, 256, 88] == [len(each.pairs) for each in packs_to(root)]
    assert [] == [each for each in root.messages(KvSync) if not each.key.startswith("/.chains/")]
    assert (600, ["start"]) == (len(child.known), child.resyncs)
    assert root.core.shown_digest == child.core.shown_digest != b""
    assert (0, 0) == (child.core.counters.unproved, child.core.counters.differed)


def test_a_small_snapshot_is_sent_as_to_any_child() -> None:
    world = filled(63)
    world.sensor("s", topics=FULL)
    world.settle()
    assert [] == packs_to(world.machines["root"])
    assert 63 == len(world.machines["s"].known)


def test_a_child_that_does_not_know_of_packed_pairs_gets_each_alone(monkeypatch: Patch) -> None:
    monkeypatch.setattr(replica, "ICanHaz", lambda subtree, **words: ICanHaz(subtree, wants_digest=True))
    world = filled(100)
    world.collector("c")
    world.settle()
    world.check()
    assert [] == packs_to(world.machines["root"])
    assert (100, ["start"]) == (len(world.machines["c"].known), world.machines["c"].resyncs)


def test_a_parent_that_does_not_know_of_them_sends_each_alone(monkeypatch: Patch) -> None:
    monkeypatch.setattr(limits, "PACKED_FROM", 1 << 30)
    world = World()
    world.root()
    world.machines["root"].core.serving._packed_from = 1 << 30
    world.write(*((f"/CONFIG/web/{n:05}", "1") for n in range(100)))
    world.collector("c")
    world.settle()
    world.check()
    assert [] == packs_to(world.machines["root"])
    assert 100 == len(world.machines["c"].known)


@pytest.mark.proves("CFG-048")
def test_packed_pairs_are_journaled_as_they_came_and_read_back_equal() -> None:
    world = filled(600)
    child = world.collector("c")
    world.settle()
    written = [part for part in parts_of(child) if part.pairs]
    assert [each.pairs for each in packs_to(world.machines["root"])] == [part.pairs for part in written]
    digest = child.core.shown_digest
    child.crash()
    child.start()
    assert (digest, 600) == (child.core.store.tally.digest, len(child.core.store.pairs))
    child.condense()
    child.crash()
    assert digest == child.start().core.store.tally.digest


def test_of_packed_pairs_only_those_are_journaled_that_are_new() -> None:
    world = filled(600)
    child = world.collector("c")
    world.settle()
    child.crash()
    world.write(("/CONFIG/web/00007", "other"), ("/CONFIG/web/zzz", "new"))
    before = len(child.disk)
    child.start()
    world.settle()
    world.check()
    child.disk = child.disk[before:]
    assert {"/CONFIG/web/00007", "/CONFIG/web/zzz"} == {pair.key for part in parts_of(child) for pair in part.pairs}


@pytest.mark.proves("CFG-031", "CFG-048")
def test_a_crash_between_packed_pairs_and_their_end_leaves_what_was_there() -> None:
    world = filled(600)
    child = world.collector("c")
    world.settle()
    child.crash()
    world.write(*((f"/CONFIG/web/{n:05}", "other") for n in range(600)))
    child.start()
    heard = 0
    for line in world.lines():
        while line.owner is child and line.down and heard < 2:
            heard += isinstance(replication.decode_answer(line.down[0]), KvPack) if line.channel == "ask" else 0
            world.deliver(line)
    child.condense()
    child.crash()
    assert "7" == child.start().core.store.value("/CONFIG/web/00007").decode()
    world.settle()
    world.check()
    assert "other" == child.known["/CONFIG/web/00007"].decode()


def test_a_snapshot_under_way_is_condensed_with_its_packed_parts() -> None:
    child = follower()
    effects = child.hear(pack(PAIRS))
    kept = [(1, record) for effect in effects if isinstance(effect, Persist) for record in effect.records]
    condensed = list(child.core.condense())
    assert [Begun(), Part(PAIRS)] == [from_record(record) for record in condensed[-2:]]
    restored = Configuration(ConfigurationSettings(), b"s" * 16, Chance("states"))
    restored.restore(kept, child.now)
    assert condensed == list(restored.condense())
    child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert 1 == sum(
        from_record(record) == Part(PAIRS, lasts=[(chain_of(A), Last(B, 2))]) for record in child.core.condense()
    )


@pytest.mark.proves("FLD-002")
def test_packed_pairs_are_proved_by_the_end() -> None:
    child = follower()
    child.hear(pack(PAIRS[:1]))
    effects = child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert [SnapshotDiffers(2, 1, 1)] == events(effects, SnapshotDiffers)
    assert ICanHaz("/", wants_digest=True, takes_packs=True) in [
        each.message for each in child.wake(1) if isinstance(each, Send)
    ]
    child.hear(CHAINS)
    child.hear(pack(PAIRS))
    child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert (State.RUN, OF_BOTH, 2) == (child.core.state, child.core.shown_digest, child.core.store.number)


def test_packed_and_single_pairs_of_topics_that_overlap_count_once() -> None:
    child = follower()
    child.order(FollowParent("p:27500", ("/CONFIG/", "/CONFIG/web/"), False))
    child.hear(pack(PAIRS))
    child.hear(KThxBai("/CONFIG/", 2, 2, OF_BOTH))
    child.hear(pack(PAIRS))
    child.hear(KThxBai("/CONFIG/web/", 2, 2, OF_BOTH))
    assert State.RUN is child.core.state
    assert (2, OF_BOTH, 28) == (child.core.store.tally.count, child.core.store.tally.digest, child.core.store.bytes)


@pytest.mark.parametrize("key", ["/CONFIG/db/x", "/CONFIG/web0"])
def test_packed_pairs_of_which_one_was_not_asked_for_are_refused_whole(key: str) -> None:
    child = follower()
    child.order(FollowParent("p:27500", ("/CONFIG/web/",), False))
    pairs = sorted([*PAIRS, KvSync(key, 3, b"3")], key=lambda pair: pair.key)
    with pytest.raises(PeerError):
        child.hear(pack(pairs))
    child.hear(pack(PAIRS))
    child.hear(KThxBai("/CONFIG/web/", 2, 2, OF_BOTH))
    assert (State.RUN, [A, B]) == (child.core.state, child.core.store.keys())
    assert {"not-asked": 1} == child.core.counters.refused


def test_a_replica_that_keeps_nothing_journals_no_packed_pairs() -> None:
    world = filled(100)
    sensor = world.sensor("s", is_kept=False)
    world.settle()
    assert (100, []) == (len(sensor.known), sensor.disk)


@pytest.mark.proves("CFG-043")
def test_messages_of_packed_pairs_stay_below_their_limits_in_pairs_and_bytes() -> None:
    world = filled(100)
    large = [(f"/CONFIG/web/v{n}", "x" * limits.VALUE_BYTES_MAX) for n in range(3)]
    for write in large:
        world.write(write)
    world.write(*((f"/CONFIG/web/m{n:02}", "x" * 10_000) for n in range(20)))
    child = world.collector("c", topics=FULL)
    world.settle()
    world.check()
    packs = packs_to(world.machines["root"])
    sizes = [(len(each.pairs), sum(len(pair.key) + len(pair.value) for pair in each.pairs)) for each in packs]
    assert all(count == 1 or size <= limits.PACK_BYTES for count, size in sizes)
    assert 3 == sum(size > 1 << 20 for _, size in sizes)
    assert 123 == sum(count for count, _ in sizes) == len(child.known)


@pytest.mark.proves("CFG-043", "FLD-001")
def test_packed_pairs_that_a_full_queue_refuses_are_sent_again(monkeypatch: Patch) -> None:
    monkeypatch.setattr(limits, "PACK_PAIRS", 4)
    parent = Parent()
    for n in range(100):
        parent.write(f"/x/y/{n:02}", str(n))
    asked = Asked(ENVELOPE, ICanHaz("/x/", wants_digest=True, takes_packs=True))
    parent.core.receive(asked, Source("serve", CHILD), parent.now)
    said, taken, ended = parent.answers(parent.effects()), list[str](), False
    parent.write("/x/y/07", "later")
    for _ in range(60):
        for message in said[:3]:
            if isinstance(message, KThxBai):
                ended = True
            else:
                taken += [pair.key for pair in message.pairs]
        parent.leave(3)
        parent.mono += limits.PORTION_NS
        said = parent.turn()
    assert ended
    assert [f"/x/y/{n:02}" for n in range(100)] == taken
    assert (1, 100) == (parent.core.counters.served, parent.core.counters.pairs_served)
    assert parent.core.counters.choked > 0


def test_a_portion_of_packed_pairs_counts_as_a_full_one() -> None:
    parent = Parent()
    for n in range(100):
        parent.write(f"/x/y/{n:02}", "x" * 60_000)
    asked = Asked(ENVELOPE, ICanHaz("/x/", takes_packs=True))
    parent.core.receive(asked, Source("serve", CHILD), parent.now)
    said = parent.answers(parent.effects())
    assert 18 == len(said), "a portion has little more than its bytes"
    assert 1 << 20 < sum(len(each.body) for each in said) < (1 << 20) + 61_000


def test_a_part_with_packed_pairs_is_one_that_an_older_version_reads() -> None:
    """Before, a part had tuples of key, number and value, and all of its fields."""

    class Older(msgspec.Struct, array_like=True):
        pairs: list[tuple[str, int, bytes]]
        gone: list[str] = []

    child = follower()
    records = [each for effect in child.hear(pack(PAIRS)) if isinstance(effect, Persist) for each in effect.records]
    record = records[-1]
    assert isinstance(record, CoreRecord)
    part = msgspec.msgpack.decode(record.data, type=Older)
    assert ([(A, 1, b"1"), (B, 2, b"2")], []) == (part.pairs, part.gone)
    assert Part(PAIRS) == from_record(CoreRecord("configuration", 5, msgspec.msgpack.encode(part)))


@pytest.mark.proves("CFG-048")
def test_a_large_store_is_condensed_in_bounded_parts_and_read_back_equal() -> None:
    world = filled(5_000)
    world.write(*((f"/CONFIG/big/{n:02}", "x" * 100_000) for n in range(20)))
    root = world.machines["root"]
    before = root.pairs
    root.condense()
    sizes = [sum(len(pair.value) for pair in part.pairs) for part in parts_of(root)]
    assert max(sizes) < limits.PART_BYTES + 100_000
    assert max(len(part.pairs) for part in parts_of(root)) <= limits.PART_PAIRS
    assert 5_020 == sum(len(part.pairs) for part in parts_of(root))
    root.crash()
    assert before == root.start().pairs
