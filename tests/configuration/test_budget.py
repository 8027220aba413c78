"""A root refuses writes above its budget; a replica takes what its root has taken (FLD-032)."""

import pytest

from tests.configuration.rig import World
from weft.cores.configuration.answering import Content, Stream
from weft.cores.configuration.messages import OrderRefused, Written
from weft.wire.replication import KThxBai, KvSync

A, B, C = "/CONFIG/web/a", "/CONFIG/web/b", "/CONFIG/db/c"


@pytest.mark.proves("FLD-032")
def test_a_write_beyond_the_memory_is_refused_as_too_large_and_is_neither_kept_nor_published() -> None:
    world = World()
    root = world.root()
    budget = root.core.budget
    assert isinstance(world.write((A, "1" * 100)), Written)
    budget.give((root.core.store.cost + 413 + 20) * 100 // 55 + 1)
    kept = len(root.stream_records())
    refused = world.write((B, "1" * 21))
    assert isinstance(refused, OrderRefused)
    assert (6, kept, {"pairs": 1}) == (refused.code, len(root.stream_records()), dict(budget.refused))
    assert isinstance(world.write((B, "1" * 20)), Written)
    assert isinstance(world.write((A, "2" * 100)), Written)
    assert isinstance(world.write((A, "")), Written)
    assert isinstance(world.write((C, "1" * 90)), Written)


@pytest.mark.proves("FLD-032")
def test_a_replica_with_less_memory_has_what_its_root_has() -> None:
    world = World()
    root = world.root()
    copy = world.collector("c1")
    copy.core.budget.give(100)
    world.settle()
    world.write((A, "1" * 1_000), (B, "2"))
    world.settle()
    assert root.pairs == copy.pairs
    assert copy.core.budget.held > 100


@pytest.mark.proves("FLD-032")
def test_the_history_lets_go_of_its_oldest_writes() -> None:
    world = World()
    root = world.root()
    root.core.budget.give(5 * 3 * 438)
    for number in range(6):
        root.core.root.history.add((number + 1, "", 0, "/a/b", b"", b"x" * 10))
    assert [4, 5, 6] == [write[0] for write in root.core.root.history.writes]


@pytest.mark.proves("SEC-041")
def test_a_portion_of_a_snapshot_is_bounded_in_bytes_too() -> None:
    pairs = [KvSync(f"/a/{number}", number, b"x" * (1 << 20)) for number in range(1, 11)]
    stream = Stream(b"peer", (), Content(pairs, KThxBai("/a/", 10)))
    said: list[object] = []
    assert 4 == stream.step(said, 1)
