"""What may go, goes; what is unread, stays; what is gone, stays provable."""

from pathlib import Path
from random import Random

import pytest

from tests.lake.crash_disk import CrashDisk, Crashed
from tests.lake.records import DRAIN, NODE_A, batch, files_in, rows_in
from weft.base.vectors import VersionVector
from weft.cores.drain.messages import InspectLake, SegmentFailed, SegmentWritten, WriteSegment
from weft.lake import layout, stubs
from weft.lake.consumers import commit
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, SegmentFault
from weft.lake.reader import Source
from weft.lake.retention import Keep, bytes_kept, pack, sweep
from weft.lake.segments import append_segment, clean, find_tip
from weft.lake.vectors import vector_at
from weft.shell.recorder import Recorder

NOW = 1 << 62  # long after any file of this test was made
AT_ONCE = Keep(age_ns=0)


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    lake = Layout(tmp_path / "lake")
    for i in range(6):
        append_segment(lake, "samples", DRAIN, [(i + 1, batch(NODE_A, 1 + 10 * i, 10))])
    return lake


def committed(lake: Layout, name: str, number: int) -> None:
    source = Source(lake, "samples")
    commit(lake, name, "samples", source.offset({DRAIN: (number, 0)}), 1)


def with_rows(lake: Layout) -> list[int]:
    return [number for number in range(1, 7) if lake.parquet("samples", DRAIN, number).exists()]


@pytest.mark.proves("LAK-016")
def test_nothing_goes_while_nobody_is_registered(lake: Layout) -> None:
    assert (0, 0) == sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    assert [1, 2, 3, 4, 5, 6] == with_rows(lake)


@pytest.mark.proves("LAK-016")
def test_the_slowest_consumer_decides(lake: Layout) -> None:
    committed(lake, "fast", 6)
    committed(lake, "slow", 3)
    before = bytes_kept(lake, DRAIN)
    swept = sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    assert [3, 4, 5, 6] == with_rows(lake)
    assert (2, before - swept.bytes) == (swept.segments, bytes_kept(lake, DRAIN))
    assert (0, 0) == sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())


@pytest.mark.proves("LAK-016")
def test_what_is_young_stays(lake: Layout) -> None:
    committed(lake, "me", 6)
    made_at = lake.manifest("samples", DRAIN, 1).stat().st_mtime_ns
    assert 0 == sweep(lake, DRAIN, Keep(age_ns=10), made_at + 9, LocalFiles()).segments
    assert 1 <= sweep(lake, DRAIN, Keep(age_ns=10), made_at + 10, LocalFiles()).segments


@pytest.mark.proves("LAK-017")
def test_what_is_gone_stays_provable(lake: Layout) -> None:
    source = Source(lake, "samples")
    end = source.latest()
    whole = source.offset(end)
    committed(lake, "me", 7)
    sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    assert [6] == with_rows(lake), "the newest stays: numbers go on from it"
    after = Source(lake, "samples")
    after.prove(whole)
    assert {DRAIN: (6, 0)} == after.earliest()
    assert [(1, True), (5, True), (6, False)] == [
        (m.number, m.gone) for m in after.manifests({DRAIN: (1, 0)}, end) if m.number in (1, 5, 6)
    ]
    (rows,) = [rows_in(lake, m) for m in after.manifests({DRAIN: (6, 0)}, end)]
    assert 10 == len(rows)
    with pytest.raises(SegmentFault) as fault:
        after.slices({DRAIN: (4, 0)}, end)
    assert ("segment-gone", 4) == (fault.value.code, fault.value.number)
    assert "31-40" in fault.value.why


@pytest.mark.proves("LAK-017")
def test_a_forged_stub_is_seen(lake: Layout) -> None:
    committed(lake, "me", 3)
    sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    path = lake.manifest("samples", DRAIN, 1)
    path.write_bytes(path.read_bytes().replace(b"[1,10]", b"[1,11]"))
    with pytest.raises(SegmentFault) as fault:
        list(Source(lake, "samples").manifests({DRAIN: (1, 0)}, {DRAIN: (2, 0)}))
    assert "segment-changed" == fault.value.code


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "SEGMENTS_PER_DIRECTORY", 4)
    monkeypatch.setattr(stubs, "SEGMENTS_PER_DIRECTORY", 4)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "SEGMENTS_PER_DIRECTORY", 2)
    monkeypatch.setattr(stubs, "SEGMENTS_PER_DIRECTORY", 2)


@pytest.mark.proves("LAK-008", "LAK-017")
def test_a_full_directory_of_stubs_is_packed(small_blocks: None, tmp_path: Path) -> None:
    lake = Layout(tmp_path / "lake")
    for i in range(10):
        append_segment(lake, "samples", DRAIN, [(i + 1, batch(NODE_A, 1 + 10 * i, 10))])
    source = Source(lake, "samples")
    whole, vector = source.offset(source.latest()), vector_at(lake, "samples", DRAIN, 10)
    committed(lake, "me", 10)
    sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    home = f"drain/samples/{DRAIN}"
    assert [f"{home}/packed-0000000000000003.jsonl", f"{home}/packed-0000000000000007.jsonl"] == [
        name for name in files_in(lake.root) if "packed" in name
    ]
    assert not list(lake.block("samples", DRAIN, 1).iterdir())
    assert 0 == clean(lake, "samples", DRAIN, LocalFiles())
    Source(lake, "samples").prove(whole)
    assert vector == vector_at(lake, "samples", DRAIN, 10)
    assert list(range(1, 11)) == [m.number for m in source.manifests({}, source.latest())]
    assert 10 == find_tip(lake, "samples", DRAIN).number
    append_segment(lake, "samples", DRAIN, [(11, batch(NODE_A, 101, 10))])
    fresh = Source(lake, "samples")
    assert {DRAIN: (12, 0)} == fresh.advance({DRAIN: (2, 0)})
    assert VersionVector() == fresh.vector({DRAIN: (1, 0)})


def test_a_directory_with_rows_is_not_packed(lake: Layout) -> None:
    with pytest.raises(AssertionError):
        pack(lake, "samples", DRAIN, 6, LocalFiles())


@pytest.mark.proves("LAK-017")
def test_power_fails_while_deleting(tiny_blocks: None, tmp_path: Path) -> None:
    for crash_at in range(1, 32):
        root = tmp_path / str(crash_at)
        root.mkdir()
        lake, disk = Layout(root), CrashDisk(root)
        writer = Recorder(
            root,
            bytes.fromhex(DRAIN),
            lambda after, _: ([(after + 1, batch(NODE_A, after + 1, 1))], after + 1),
            print,
            disk,
        )
        writer.outcome(InspectLake())
        prior = NO_PRIOR
        for number in range(1, 5):
            done = writer.outcome(WriteSegment(1, number, number, number, prior))
            assert isinstance(done, SegmentWritten)
            prior = done.digest
        source = Source(lake, "samples")
        whole = source.offset(source.latest())
        offset = source.offset({DRAIN: (4, 0)})
        disk.crash_at = disk.calls + crash_at
        commit(lake, "me", "samples", offset, 1)
        try:
            sweep(lake, DRAIN, AT_ONCE, NOW, disk)
        except Crashed:
            disk.crash_at = None
            disk.pull_the_plug(Random(crash_at))
        disk.crash_at = None
        commit(lake, "me", "samples", offset, 1)
        sweep(lake, DRAIN, AT_ONCE, NOW, disk)
        Source(lake, "samples").prove(whole)
        assert [4] == with_rows(lake)


@pytest.mark.proves("LAK-016")
def test_a_lake_that_nobody_reads_is_full_at_its_limit_and_goes_on_when_it_is_read(tmp_path: Path) -> None:
    writer = Recorder(
        tmp_path, bytes.fromhex(DRAIN), lambda after, _: ([(after + 1, batch(NODE_A, after + 1, 1))], after + 1), print
    )
    writer.outcome(InspectLake())
    writer.keep = Keep(age_ns=0, bytes_max=1)
    first = writer.outcome(WriteSegment(1, 1, 1, 1, NO_PRIOR))
    assert isinstance(first, SegmentWritten)
    refused = writer.outcome(WriteSegment(1, 2, 2, 2, first.digest))
    assert isinstance(refused, SegmentFailed)
    assert ("full", True) == (refused.why, "no consumer is registered" in refused.detail)
    lake = Layout(tmp_path)
    commit(lake, "me", "samples", Source(lake, "samples").offset({DRAIN: (1, 0)}), 1)
    assert isinstance(writer.outcome(WriteSegment(1, 2, 2, 2, first.digest)), SegmentWritten)
