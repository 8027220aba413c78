"""Whatever the instant at which the power fails: nothing is drained twice, nothing is skipped (LAK-005, LAK-007)."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.lake.crash_disk import CrashDisk, Crashed
from tests.lake.records import NODE_A, batch, files_in, lost, other, rows_of
from weft.base.records import Entry, Record, Stream
from weft.base.vectors import VersionVector
from weft.cores.carrier.messages import InLake, LakeUnread, ReadVectors
from weft.cores.drain.messages import (
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    WriteSegment,
)
from weft.lake.files import Files, LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, SegmentFault
from weft.lake.segments import Place, Segment, append_segment, clean, find_tip, open_lake
from weft.shell.recorder import Recorder

NODE = bytes.fromhex("6f1c2a345b6d4e7f8091a2b3c4d5e6f7")
JOURNAL: list[Record] = [
    batch(NODE_A, 1, 3),
    other(Stream.LOGS, 1),
    batch(NODE_A, 4, 2),
    lost(6, 7),
    other(Stream.LOGS, 2),
    batch(NODE_A, 8, 4),
]
CUTS = [(1, 1, 3), (3, 2, 5), (1, 4, 6)]
"""Stream, first and last lsn of the segments to be written."""


def read(after: int, bytes_max: int) -> tuple[list[Entry], int]:
    return list(enumerate(JOURNAL, 1))[after : after + 2], min(after + 2, len(JOURNAL))


def recorder(root: Path, files: Files | None = None) -> Recorder:
    return Recorder(root, NODE, read, lambda _: None, files)


def drain_all(writer: Recorder) -> None:
    """What the core would order, from what the lake says: the cuts that are not there yet."""
    found = writer.outcome(InspectLake())
    assert isinstance(found, LakeFound), found
    tips = {tip.stream: (tip.number, tip.lsn, tip.prior) for tip in found.tips}
    for stream, first, last in CUTS:
        number, lsn, prior = tips.get(stream, (0, 0, NO_PRIOR))
        if first > lsn:
            done = writer.outcome(WriteSegment(stream, number + 1, first, last, prior))
            assert isinstance(done, SegmentWritten), done
            tips[stream] = (done.number, done.last_lsn, done.digest)


def check(root: Path) -> None:
    lake = Layout(root)
    sequences = [row["sequence"] for row in rows_of(lake, "samples")]
    assert [1, 2, 3, 4, 5, 8, 9, 10, 11] == sequences
    assert [1, 2] == [row["sequence"] for row in rows_of(lake, "logs")]
    assert [] == [name for name in files_in(root) if name.endswith(".tmp")]
    assert 7 == len(files_in(root))


def calls_of_a_whole_run(root: Path) -> list[str]:
    root.mkdir(exist_ok=True)
    disk = CrashDisk(root)
    drain_all(recorder(root, disk))
    check(root)
    return disk.trace


@pytest.mark.proves("LAK-005")
def test_order_of_publication(tmp_path: Path) -> None:
    home = f"drain/samples/{NODE.hex()}/00000000"
    name = f"{home}/0000000000000001"
    trace = calls_of_a_whole_run(tmp_path)
    start = trace.index(f"write {name}.parquet.tmp")
    expected = [
        f"write {name}.parquet.tmp",
        f"sync {name}.parquet.tmp",
        f"rename {name}.parquet",
        f"sync_directory {home}",
        f"write {name}.json.tmp",
        f"sync {name}.json.tmp",
        f"rename {name}.json",
        f"sync_directory {home}",
    ]
    assert expected == trace[start : start + len(expected)]
    assert f"make_directory {home}" in trace[:start]


@pytest.mark.proves("LAK-005", "LAK-007")
@pytest.mark.varies("seed", [0], range(3), prove=[1, 2])
def test_power_fails_before_each_call_and_at_each_the_lake_becomes_whole(tmp_path: Path, seed: int) -> None:
    calls = len(calls_of_a_whole_run(tmp_path / "whole"))
    for crash_at in range(1, calls + 1):
        root = tmp_path / str(crash_at)
        root.mkdir()
        disk = CrashDisk(root, crash_at)
        with pytest.raises(Crashed):
            drain_all(recorder(root, disk))
        disk.crash_at = None
        disk.pull_the_plug(Random(f"{crash_at}/{seed}"))
        drain_all(recorder(root, disk))
        check(root)


@pytest.mark.proves("LAK-007")
def test_power_fails_again_while_cleaning_up(tmp_path: Path) -> None:
    for second in range(1, 12):
        root = tmp_path / str(second)
        root.mkdir()
        disk = CrashDisk(root, 20)
        with pytest.raises(Crashed):
            drain_all(recorder(root, disk))
        disk.pull_the_plug(Random(second))
        disk.crash_at = disk.calls + second
        with pytest.raises(Crashed):
            drain_all(recorder(root, disk))
        disk.crash_at = None
        disk.pull_the_plug(Random(-second))
        drain_all(recorder(root, disk))
        check(root)


class NoDirectorySync(CrashDisk):
    def sync_directory(self, path: Path) -> None:
        """Forgotten."""


class NoSync(CrashDisk):
    def sync(self, path: Path) -> None:
        """Forgotten."""


class ManifestFirst(CrashDisk):
    """Puts the manifest before the Parquet file: holds the latter back until the former is there."""

    def __init__(self, root: Path, crash_at: int | None = None) -> None:
        super().__init__(root, crash_at)
        self._held: list[Callable[[], None]] = []

    def rename(self, old: Path, new: Path) -> None:
        if new.suffix == ".parquet":
            self._held.append(lambda: super(ManifestFirst, self).rename(old, new))
            return
        super().rename(old, new)
        super().sync_directory(new.parent)
        for act in self._held:
            act()
        self._held.clear()


@pytest.mark.prove("many crashes")
@pytest.mark.parametrize("bug", [NoDirectorySync, NoSync, ManifestFirst])
def test_a_planted_bug_of_publication_is_seen(tmp_path: Path, bug: type[CrashDisk]) -> None:
    """After SegmentWritten the journal forgets; so what was said to be written must be there after any crash."""
    caught = 0
    for seed in range(40):
        root = tmp_path / str(seed)
        root.mkdir()
        disk = bug(root, 12 + seed)
        writer = recorder(root, disk)
        promised: list[SegmentWritten] = []
        try:
            writer.outcome(InspectLake())
            prior = NO_PRIOR
            for number, (_, first, last) in enumerate([CUTS[0], CUTS[2]], 1):
                done = writer.outcome(WriteSegment(1, number, first, last, prior))
                assert isinstance(done, SegmentWritten), done
                promised.append(done)
                prior = done.digest
        except Crashed:
            pass
        disk.crash_at = None
        disk.pull_the_plug(Random(seed))
        caught += not is_kept(root, promised)
    assert caught > 0


def is_kept(root: Path, promised: list[SegmentWritten]) -> bool:
    """Whether what was promised is there, and every manifest has its rows."""
    try:
        rows = rows_of(Layout(root), "samples", NODE.hex())
    except (AssertionError, OSError, SegmentFault):
        return False
    return len(rows) >= sum(segment.rows for segment in promised)


def test_the_same_crashes_harm_nothing_without_a_bug(tmp_path: Path) -> None:
    for seed in range(40):
        root = tmp_path / str(seed)
        root.mkdir()
        disk = CrashDisk(root, 12 + seed)
        promised: list[SegmentWritten] = []
        try:
            writer = recorder(root, disk)
            writer.outcome(InspectLake())
            done = writer.outcome(WriteSegment(1, 1, 1, 3, NO_PRIOR))
            assert isinstance(done, SegmentWritten), done
            promised.append(done)
            writer.outcome(WriteSegment(1, 2, 4, 6, done.digest))
        except Crashed:
            pass
        disk.crash_at = None
        disk.pull_the_plug(Random(seed))
        assert is_kept(root, promised)


class Refusing(LocalFiles):
    """Refuses one call after so many."""

    def __init__(self, calls: int, number: int) -> None:
        self.calls, self.number = calls, number

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self.calls -= 1
        if self.calls == 0:
            super().write(path, bytes(data)[:10])
            raise OSError(self.number, "refused")
        super().write(path, data)

    def sync_directory(self, path: Path) -> None:
        self.calls -= 1
        if self.calls == 0:
            raise OSError(self.number, "refused")
        super().sync_directory(path)


@pytest.mark.proves("LAK-015")
@pytest.mark.parametrize("number, why", [(28, "full"), (5, "failed"), (30, "failed")])
@pytest.mark.parametrize("calls", range(1, 9))
def test_a_refused_segment_leaves_nothing_and_can_be_written_again(
    tmp_path: Path, calls: int, number: int, why: str
) -> None:
    writer = recorder(tmp_path, Refusing(calls, number))
    assert isinstance(recorder(tmp_path).outcome(InspectLake()), LakeFound)
    order = WriteSegment(1, 1, 1, 3, NO_PRIOR)
    failed = writer.outcome(order)
    assert isinstance(failed, SegmentFailed), failed
    assert (1, 1, why) == (failed.stream, failed.number, failed.why)
    assert [] == [name for name in files_in(tmp_path) if name.endswith(".tmp")]
    done = writer.outcome(order)
    assert isinstance(done, SegmentWritten)
    assert [1, 2, 3, 4, 5] == [row["sequence"] for row in rows_of(Layout(tmp_path), "samples", NODE.hex())]


@pytest.mark.proves("LAK-007")
def test_a_segment_whose_success_was_not_heard_is_not_written_again(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    writer.outcome(InspectLake())
    order = WriteSegment(1, 1, 1, 3, NO_PRIOR)
    first, before = writer.outcome(order), files_in(tmp_path)
    stamps = [(tmp_path / name).stat().st_mtime_ns for name in before]
    assert first == writer.outcome(order)
    assert stamps == [(tmp_path / name).stat().st_mtime_ns for name in before]


@pytest.mark.proves("LAK-007")
def test_litter_is_swept_and_existing_segments_are_not(tmp_path: Path) -> None:
    lake, drain = Layout(tmp_path), NODE.hex()
    append_segment(lake, "samples", drain, [(1, JOURNAL[0])])
    before = files_in(tmp_path)
    block = lake.block("samples", drain, 1)
    for name in ("0000000000000002.parquet", "0000000000000002.json.tmp", "0000000000000001.parquet.tmp"):
        (block / name).write_bytes(b"litter")
    assert 3 == clean(lake, "samples", drain, LocalFiles())
    assert before == files_in(tmp_path)
    assert (1, 1) == find_tip(lake, "samples", drain)[:2]


def test_an_unreachable_lake_is_refused_and_not_raised(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file", "utf-8")
    refused = recorder(tmp_path / "lake").outcome(InspectLake())
    assert isinstance(refused, LakeRefused)
    assert "failed" == refused.why


def test_a_damaged_last_manifest_is_refused(tmp_path: Path) -> None:
    lake = Layout(tmp_path)
    append_segment(lake, "samples", NODE.hex(), [(1, JOURNAL[0])])
    path = lake.manifest("samples", NODE.hex(), 1)
    path.write_bytes(path.read_bytes()[:-5])
    assert isinstance(recorder(tmp_path).outcome(InspectLake()), LakeRefused)
    assert isinstance(recorder(tmp_path).outcome(ReadVectors()), LakeUnread)


@pytest.mark.proves("LAK-010")
def test_records_that_the_journal_lost_do_not_move_the_segment(tmp_path: Path) -> None:
    segment = Segment(Place("samples", NODE.hex(), 1))
    segment.span(10, 20)
    segment.take([(12, JOURNAL[0])])
    assert (10, 20) == segment.publish(Layout(tmp_path), LocalFiles()).manifest.lsn


class Crowd(LocalFiles):
    """Lets nobody rename before all who come have written, or until it is plain that they don't."""

    def __init__(self, many: int) -> None:
        self.written = threading.Barrier(many, timeout=0.2)

    def sync(self, path: Path) -> None:
        super().sync(path)
        with suppress(threading.BrokenBarrierError):
            self.written.wait()


def test_many_that_found_a_lake_at_once_found_one(tmp_path: Path) -> None:
    many = 4
    lake, files = Layout(tmp_path / "lake"), Crowd(many)
    with ThreadPoolExecutor(many) as threads:
        told = list(threads.map(lambda number: open_lake(lake, f"{number:032x}", number, files), range(many)))
    assert 1 == len({each.lake for each in told})
    assert told[0] == open_lake(lake, "ff" * 16, 9)


def test_the_vectors_of_a_drain_name_each_number_in_its_segments(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    assert InLake(()) == writer.outcome(ReadVectors()), "a new lake"
    drain_all(writer)
    read = writer.outcome(ReadVectors())
    assert isinstance(read, InLake), read
    found = {
        stream: [numbers for _, ranges in VersionVector.decode(data) for numbers in ranges]
        for stream, data in read.vectors
    }
    assert {1: [(1, 5), (8, 11)], 3: [(1, 2)]} == found
