"""Following a lake: offsets, chains, holes, new drains, limits; without Spark."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.records import DRAIN, ERA, NODE_A, NODE_B, RECEIVED, batch, lost, rows_of
from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake import vectors
from weft.lake.consumers import commit, consumers, register, remove
from weft.lake.files import LocalFiles
from weft.lake.layout import STREAMS, Layout, is_drain, is_name, local_path
from weft.lake.manifest import SegmentFault, origin_of
from weft.lake.offsets import At, Offset, offset_of, parse
from weft.lake.reader import Limits, Slice, Source, files_between, position
from weft.lake.segments import Place, append_segment
from weft.lake.vectors import publish, vector_at

OTHER = "00000000000000000000000000000007"
E7 = next(
    entry["text"]
    for entry in map(json.loads, (Path(__file__).parents[1] / "vectors" / "pipeline.jsonl").read_text().splitlines())
    if entry["id"] == "offset"
)


def add(lake: Layout, first: int, rows: int, drain: str = DRAIN, node: bytes = NODE_A) -> None:
    append_segment(
        lake, "samples", drain, [(first, batch(node, first, rows))] if rows else [(first, lost(first, first))]
    )


def taken(slices: list[Slice]) -> list[tuple[str, int, int, int]]:
    return [(piece.drain[-1], piece.number, piece.first, piece.last) for piece in slices]


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lake")


# Offsets.


@pytest.mark.proves("PIP-004")
def test_offset_vector_of_the_specification() -> None:
    offset = parse(E7)
    assert ({DRAIN: (131, 0)}, 2, "368fd874726dc4f6944662a8fb4b8a66") == (offset.at, offset.o, offset.vec)
    assert E7 == offset.text()
    vector = VersionVector(
        [(origin_of(NODE_A.hex(), ERA), [(1, 1000), (1004, 1010)]), (origin_of(NODE_B.hex(), ERA + 5), [(1, 300)])]
    )
    made = offset_of({DRAIN: (131, 0)}, vector)
    assert (offset.o, offset.vec) == (made.o, made.vec)
    assert {f"{NODE_A.hex()}/{ERA}": "1-1000,1004-1010", f"{NODE_B.hex()}/{ERA + 5}": "1-300"} == made.vector


@pytest.mark.proves("PIP-004")
def test_an_offset_of_ten_thousand_origins_and_four_drains_is_short() -> None:
    many = VersionVector((origin_of(f"{i:032x}", ERA), [(1, 9)]) for i in range(10_000))
    offset = offset_of({f"{i:032x}": (70_000 + i, 99_999) for i in range(4)}, many)
    assert len(offset.text()) <= 400
    assert {} == offset.vector


@pytest.mark.proves("PIP-002")
@pytest.mark.parametrize(
    "text",
    ['{"at":{},"o":0,"v":2,"vec":""}', '{"at":{"x":[1,0]},"o":0,"v":1,"vec":""}', "{", "[]", "yesterday", '{"v":1}']
    + [json.dumps({"at": {DRAIN: place}, "o": 0, "v": 1, "vec": ""}) for place in ([0, 0], [1, -1], [1])],
)
def test_what_is_no_offset_is_refused(lake: Layout, text: str) -> None:
    with pytest.raises(UserError) as refused:
        position(Source(lake, "samples"), text)
    assert "bad-offset" == refused.value.code


# Following.


def test_an_empty_lake_has_nothing(lake: Layout) -> None:
    source = Source(lake, "samples")
    assert {} == source.earliest() == source.latest() == source.advance({})
    assert [] == source.slices({}, {})
    assert Offset(v=1, o=0, vec=VersionVector().digest(), at={}) == source.offset({})


@pytest.mark.proves("PIP-006")
def test_new_segments_and_new_drains_are_found_without_a_restart(lake: Layout) -> None:
    source = Source(lake, "samples")
    add(lake, 1, 5)
    first = source.advance({})
    assert {DRAIN: (2, 0)} == first
    add(lake, 6, 5)
    add(lake, 1, 3, OTHER, NODE_B)
    second = source.advance(first)
    assert {DRAIN: (3, 0), OTHER: (2, 0)} == second
    assert [("7", 1, 0, 3), ("7", 2, 0, 5)] == taken(source.slices(first, second))
    assert second == source.advance(second)


@pytest.mark.proves("PIP-004")
def test_a_hole_that_another_segment_fills_later_is_not_skipped(lake: Layout) -> None:
    add(lake, 1, 4)
    add(lake, 7, 3)
    source = Source(lake, "samples")
    at = source.advance({})
    assert {f"{NODE_A.hex()}/{ERA}": "1-4,7-9"} == source.offset(at).vector
    add(lake, 5, 2)
    after = source.advance(at)
    assert [("7", 3, 0, 2)] == taken(source.slices(at, after))
    assert {f"{NODE_A.hex()}/{ERA}": "1-9"} == source.offset(after).vector


@pytest.mark.proves("PIP-006")
def test_limits_cut_within_segments_and_drains_take_turns(lake: Layout) -> None:
    for i in range(3):
        add(lake, 1 + 10 * i, 10)
        add(lake, 1 + 10 * i, 10, OTHER, NODE_B)
    source = Source(lake, "samples")
    at = source.advance({}, Limits(25, None))
    assert {DRAIN: (2, 0), OTHER: (2, 5)} == at
    assert {DRAIN: (2, 0), OTHER: (2, 0)} == source.advance({}, Limits(None, 2))
    rest = source.slices(at, source.advance(at))
    assert 60 - 25 == sum(piece.last - piece.first for piece in rest)
    assert not rest[0].is_whole


@pytest.mark.proves("LAK-040", part="a batch takes whole segments")
def test_whole_segments_only_and_at_least_one(lake: Layout) -> None:
    for i in range(3):
        add(lake, 1 + 10 * i, 10)
    source = Source(lake, "samples")
    assert {DRAIN: (3, 0)} == source.advance({}, Limits(25, None, is_whole=True))
    assert {DRAIN: (3, 0)} == source.advance({}, Limits(20, None, is_whole=True))
    assert {DRAIN: (2, 0)} == source.advance({}, Limits(1, None, is_whole=True)), "however long the first is"
    assert {DRAIN: (4, 0)} == source.advance({DRAIN: (3, 4)}, Limits(5, None, is_whole=True)), "or what is left of it"


@given(data=st.data(), most=st.integers(1, 40), segments=st.integers(1, 5))
def test_steps_of_any_size_take_every_row_once(
    data: st.DataObject, most: int, segments: int, tmp_path_factory: Any
) -> None:
    lake = Layout(tmp_path_factory.getbasetemp() / "steps")
    if not lake.root.exists():
        for first, count in ((1, 9), (10, 0), (11, 30), (41, 1), (42, 17)):
            add(lake, first, count)
        add(lake, 1, 23, OTHER, NODE_B)
    source = Source(lake, "samples")
    at: At = {}
    rows: list[tuple[str, int, int]] = []
    vector = VersionVector()
    while (reached := source.advance(at, Limits(most, segments))) != at:
        step = source.slices(at, reached)
        assert sum(piece.last - piece.first for piece in step) <= most
        rows += [(piece.drain, piece.number, row) for piece in step for row in range(piece.first, piece.last)]
        before, vector = vector, source.vector(reached).copy()
        assert not before - vector
        fresh = Source(lake, "samples")
        fresh.prove(source.offset(reached))
        assert step == fresh.slices(at, reached)
        at = reached
        if data.draw(st.booleans()):
            source = fresh
            source.forget(at)
    assert 80 == len(rows) == len(set(rows))
    assert vector == source.vector(source.latest())


@pytest.mark.proves("PIP-006")
def test_a_fixed_end_is_reached_and_not_passed(lake: Layout) -> None:
    add(lake, 1, 10)
    add(lake, 11, 10)
    source = Source(lake, "samples")
    until = source.latest()
    add(lake, 21, 10)
    add(lake, 1, 10, OTHER, NODE_B)
    half = source.advance({}, Limits(15, None), until)
    assert {DRAIN: (2, 5)} == half
    assert until == source.advance(half, Limits(15, None), until)
    assert until == source.advance(until, Limits(15, None), until)


# Where to begin.


@pytest.mark.proves("PIP-002")
def test_start(lake: Layout) -> None:
    for first in (1, 11, 21):
        add(lake, first, 10)
    source = Source(lake, "samples")
    assert {DRAIN: (1, 0)} == position(source, "earliest")
    assert {DRAIN: (4, 0)} == position(source, "latest")
    assert {DRAIN: (2, 3)} == position(source, source.offset({DRAIN: (2, 3)}).text())
    assert {DRAIN: (2, 0)} == source.since(RECEIVED + 11)
    assert {DRAIN: (4, 0)} == position(source, "2099-01-01T00:00:00Z")
    assert {DRAIN: (1, 0)} == position(source, "2001-01-01")


@pytest.mark.proves("PIP-004")
def test_an_offset_of_another_lake_is_refused(lake: Layout, tmp_path: Path) -> None:
    twin = Layout(tmp_path / "twin")
    add(lake, 1, 10)
    add(twin, 2, 10)
    with pytest.raises(SegmentFault) as fault:
        Source(twin, "samples").prove(Source(lake, "samples").offset({DRAIN: (2, 0)}))
    assert "offset-mismatch" == fault.value.code
    with pytest.raises(SegmentFault) as fault:
        Source(lake, "samples").prove(offset_of({OTHER: (2, 0)}, VersionVector()))
    assert "segment-gone" == fault.value.code


# Damage.


def corrupt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.proves("PIP-008", "LAK-010")
@pytest.mark.parametrize(
    "number, damage, code",
    [
        (2, Path.unlink, "segment-gone"),
        (2, corrupt, "segment-changed"),
        (1, corrupt, "segment-changed"),
        (3, corrupt, "segment-changed"),
    ],
)
def test_a_damaged_chain_is_seen_and_never_skipped(lake: Layout, number: int, damage: Any, code: str) -> None:
    for first in (1, 11, 21):
        add(lake, first, 10)
    damage(lake.manifest("samples", DRAIN, number))
    with pytest.raises(SegmentFault) as fault:
        Source(lake, "samples").advance({})
    assert (code, DRAIN) == (fault.value.code, fault.value.drain)


@pytest.mark.proves("LAK-010")
def test_two_swapped_segments_are_seen(lake: Layout) -> None:
    for first in (1, 11, 21):
        add(lake, first, 10)
    one, two = lake.manifest("samples", DRAIN, 1), lake.manifest("samples", DRAIN, 2)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    with pytest.raises(SegmentFault) as fault:
        Source(lake, "samples").advance({})
    assert "segment-changed" == fault.value.code


@pytest.mark.proves("LAK-010")
def test_a_segment_from_another_history_is_seen(lake: Layout, tmp_path: Path) -> None:
    twin = Layout(tmp_path / "twin")
    for first in (1, 11):
        add(lake, first, 10)
        add(twin, first + 1, 10)
    for find in (lake.manifest, lake.parquet):
        path = find("samples", DRAIN, 2)
        path.write_bytes((twin.root / path.relative_to(lake.root)).read_bytes())
    with pytest.raises(SegmentFault) as fault:
        Source(lake, "samples").advance({})
    assert ("segment-changed", 2) == (fault.value.code, fault.value.number)


def test_a_fault_survives_its_way_between_processes() -> None:
    import pickle

    fault = SegmentFault("segment-gone", DRAIN, 7, "its file is missing")
    again = pickle.loads(pickle.dumps(fault))
    assert (fault.code, fault.drain, fault.number, str(fault)) == (again.code, again.drain, again.number, str(again))


# Vectors.


@pytest.mark.proves("LAK-022")
def test_published_vectors_are_shortcuts_and_nothing_more(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EVERY", 4)
    for i in range(10):
        add(lake, 1 + 3 * i, 2)
        publish(lake, Place("samples", DRAIN, i + 1), LocalFiles())
    block = lake.block("samples", DRAIN, 1)
    assert ["0000000000000004.wv", "0000000000000008.wv"] == sorted(path.name for path in block.glob("*.wv"))
    expected = VersionVector([(origin_of(NODE_A.hex(), ERA), [(1 + 3 * i, 2 + 3 * i) for i in range(9)])])
    assert expected == vector_at(lake, "samples", DRAIN, 9)
    lake.vector("samples", DRAIN, 8).write_bytes(b"not what was written")
    lake.vector("samples", DRAIN, 4).unlink()
    assert expected == vector_at(lake, "samples", DRAIN, 9)


@pytest.mark.proves("LAK-022")
def test_behind_a_published_vector_only_the_newer_manifests_are_read(
    lake: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EVERY", 4)
    for i in range(6):
        add(lake, 1 + 3 * i, 2)
        publish(lake, Place("samples", DRAIN, i + 1), LocalFiles())
    whole = vector_at(lake, "samples", DRAIN, 6)
    for number in range(1, 5):
        lake.manifest("samples", DRAIN, number).unlink()
    assert whole == vector_at(lake, "samples", DRAIN, 6)


@pytest.mark.prove("ten thousand origins")
@pytest.mark.proves("LAK-022")
def test_the_vector_of_ten_thousand_origins_is_small(lake: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(7)
    nodes = [chance.randbytes(16) for _ in range(10_000)]
    entries = [(lsn, batch(node, 1 + lsn, 1, ERA + lsn)) for lsn, node in enumerate(nodes, 1)]
    append_segment(lake, "samples", DRAIN, entries)
    monkeypatch.setattr(vectors, "EVERY", 1)
    publish(lake, Place("samples", DRAIN, 1), LocalFiles())
    assert lake.vector("samples", DRAIN, 1).stat().st_size <= 400_000
    assert 10_000 == len(vector_at(lake, "samples", DRAIN, 1))


# Files for others.


def test_file_list_between_two_instants(lake: Layout) -> None:
    for first in (1, 11, 21):
        add(lake, first, 10)
    assert [2] == [piece.number for piece in files_between(lake, "samples", RECEIVED + 11, RECEIVED + 21)]
    assert [1, 2, 3] == [piece.number for piece in files_between(lake, "samples")]


def test_manifests_between_two_positions(lake: Layout) -> None:
    for first in (1, 11, 21):
        add(lake, first, 10)
    source = Source(lake, "samples")
    assert [2, 3] == [m.number for m in source.manifests({DRAIN: (2, 0)}, {DRAIN: (4, 0)})]


# Names and paths.


@pytest.mark.proves("LAK-030")
def test_layout_of_a_lake() -> None:
    lake = Layout("file:///data/my%20lake")
    home = Path("/data/my lake")
    assert home / "lake.json" == lake.lake_json
    assert home / "tables/silver/samples" == lake.table("silver", "samples")
    assert home / "tables" == lake.tables()
    assert home / "checkpoints/samples" == lake.checkpoint("samples")
    assert home / "checkpoints/samples/weft/coverage/7.wv" == lake.coverage("samples", 7)
    assert home / "checkpoints/samples/weft/id" == lake.checkpoint_id("samples")
    assert home / "_weft/lease/samples.json" == lake.lease("samples")
    assert home / "_weft/consumers/me.samples.json" == lake.consumer("me", "samples")
    assert home / "_weft/runs" == lake.runs()
    assert home / f"drain/logs/{DRAIN}/packed-0000000000000fff.jsonl" == lake.packed("logs", DRAIN, 4095)


def test_names_that_would_leave_the_lake_are_none() -> None:
    assert [False] * 5 == [is_name(name) for name in ("", "..", "a/b", ".hidden", "ä")]
    assert [False] * 4 == [is_drain(name) for name in ("", DRAIN[:-1], DRAIN.upper(), f"{DRAIN}/")]
    assert "samples" == STREAMS[0]


def test_a_lake_elsewhere_is_a_clear_refusal() -> None:
    assert Path("relative/lake") == local_path("relative/lake")
    with pytest.raises(UserError) as refused:
        local_path("s3://bucket/lake")
    assert "lake-unreachable" == refused.value.code


# Consumers.


@pytest.mark.proves("PIP-009", "LAK-016")
def test_consumers_are_registered_committed_and_removed(lake: Layout) -> None:
    add(lake, 1, 10)
    source = Source(lake, "samples")
    start, end = source.offset({DRAIN: (1, 0)}), source.offset({DRAIN: (2, 0)})
    register(lake, "me", "samples", start, 5)
    commit(lake, "me", "samples", end, 6)
    register(lake, "me", "samples", start, 7)  # a second start does not go back
    commit(lake, "you", "logs", Offset(v=1, o=0, vec="", at={}), 8)
    assert [("me", end.at, 6)] == [(c.name, c.offset.at, c.committed) for c in consumers(lake, "samples")]
    assert ["me", "you"] == [c.name for c in consumers(lake)]
    assert 1 == remove(lake, "me")
    assert ["you"] == [c.name for c in consumers(lake)]


def test_rows_are_those_of_the_slices(lake: Layout) -> None:
    add(lake, 1, 10)
    assert list(range(1, 11)) == [row["sequence"] for row in rows_of(lake, "samples")]
