"""Two programs write into a lake under one name: a node, and a copy of its disk that runs elsewhere."""

import errno
import fcntl
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.lake.records import ERA, NODE_A, NODE_B, RECEIVED, batch, chain_of, lost, rows_of
from tests.lake.root import Kinds, Root
from tests.lake.test_retention import AT_ONCE, NOW
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import CoreRecord, Entry, Record, Stream, StreamRecord
from weft.cli.drain import drain
from weft.cores.carrier.messages import ReadVectors
from weft.cores.drain.core import Cursor, Drain
from weft.cores.drain.messages import (
    DrainClosed,
    InspectLake,
    LakeRefused,
    SecondWriter,
    SegmentFailed,
    SegmentWritten,
    Stop,
    StreamTip,
    WriteSegment,
)
from weft.lake import layout, stubs
from weft.lake.consumers import commit
from weft.lake.files import LocalFiles
from weft.lake.layout import STREAMS as ALL_STREAMS
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, Link, SegmentFault
from weft.lake.reader import Source
from weft.lake.retention import sweep
from weft.lake.segments import Place, Segment, append_segment, find_tip, start_of
from weft.shell.recorder import Recorder

DRAIN = NODE_B.hex()
STEPS = 120
COPY = 1_000
"""What is between the eras of a node and those of a copy of its disk."""
RECORDS = 60
ALL = ("samples", "events", "store", "configuration")
SHARED = {"store": None, "configuration": 1}
"""Streams whose numbers do not tell starts apart, and the era of their records."""
Row = tuple[str, int | None, int, bytes]
Act = Callable[["Writer", Random], None]


class Away(Recorder):
    """Does not reach its lake."""

    def outcome(self, work: InspectLake | WriteSegment | ReadVectors) -> object:
        return LakeRefused("failed", "it is not mounted")


class Writer:
    """A node that drains, and all that its journal has taken."""

    def __init__(self, home: Path, lake: Path, start: int, kinds: Kinds = (Drain, Recorder)) -> None:
        self.home, self.lake, self.start, self.kinds = home, lake, start, kinds
        self.era = start
        """The era of the records that it takes. They come from elsewhere, so that it outlives starts of this node."""
        self.root = Root(home, lake, start, kinds)
        self.last = dict.fromkeys(ALL, 0)
        self.taken: set[Row] = set()
        self.image: tuple[set[Row], dict[str, int]] = (set(), {})

    def append(self, chance: Random) -> None:
        """Some records of one stream."""
        stream, rows = chance.choice(ALL), chance.randrange(1, 5)
        first = self.last[stream] + 1
        self.last[stream] += rows
        numbers = range(first, first + rows)
        era, payload = SHARED.get(stream, self.era), f"by {self.era}".encode()
        kind = Stream[stream.upper()]
        records: list[Record] = [
            StreamRecord(kind, NODE_A, era, number, RECEIVED, RECEIVED, "some/key", payload, {}) for number in numbers
        ]
        self.root.append(*([batch(NODE_A, first, rows, self.era)] if stream == "samples" else records))
        self.taken |= {(stream, era, number, b"" if stream == "samples" else payload) for number in numbers}

    def copied(self, home: Path, *, is_away: bool = False) -> "Writer":
        """A copy of its disk, which is started elsewhere, and has taken what this one has.

        `is_away`: its first start does not reach the lake.
        """
        copy(self.home, home)
        twin = Writer(home, self.lake, self.start + COPY, (self.kinds[0], Away) if is_away else self.kinds)
        twin.kinds = self.kinds
        twin.last |= {stream: self.last[stream] for stream in SHARED}
        twin.taken |= self.taken
        return twin

    def start_again(self, chance: Random) -> None:
        """It is killed, perhaps before its cursor is written, and started on the same disk."""
        if chance.random() < 0.5:
            self.root.keep()
        self.root.close()
        self.start += 1
        self.root = Root(self.home, self.lake, self.start, self.kinds)

    def start_without_lake(self, chance: Random) -> None:
        """It is killed, starts while its lake cannot be reached, takes something, and is killed again."""
        self.root.close()
        self.start += 1
        self.root = Root(self.home, self.lake, self.start, (self.kinds[0], Away))
        self.append(chance)
        self.start_again(chance)

    def keep_image(self, _: Random) -> None:
        """A backup is made of its disk."""
        copy(self.home, self.home / "image")
        self.image = set(self.taken), {stream: self.last[stream] for stream in SHARED}

    def put_back(self, chance: Random) -> None:
        """The backup is put in the place of its disk: what it has taken since is there only if it was drained."""
        if self.image[0]:
            self.root.close()
            shutil.rmtree(self.home / "journal")
            copy(self.home / "image", self.home)
            self.era = self.start = self.start + 1
            self.taken, self.last = set(self.image[0]), dict.fromkeys(ALL, 0) | self.image[1]
            self.root = Root(self.home, self.lake, self.start, self.kinds)

    def stop(self) -> None:
        """An orderly stop, which writes everything."""
        self.root.step(SECOND)
        self.root.core.command(Stop(), self.root.now)
        self.root.step(0)
        assert DrainClosed(is_whole=True) in self.root.told
        self.root.close()


def copy(home: Path, other: Path) -> None:
    """A copy of a journal and of the note beside it, without its lock."""
    shutil.rmtree(other / "journal", ignore_errors=True)
    shutil.copytree(home / "journal", other / "journal", ignore=lambda _, names: [n for n in names if "lock" in n])
    shutil.copy(home / "journal.newest", other)


def step(writer: Writer, chance: Random) -> None:
    writer.root.step(chance.choice((0, 100 * MILLISECOND, SECOND)))


STEADY: list[Act] = [Writer.append, Writer.append, Writer.append, step, step]
HURT: list[Act] = [*STEADY, *STEADY, Writer.start_again, Writer.start_without_lake]
ROLLED: list[Act] = [*HURT, Writer.keep_image, Writer.put_back]


def rows_in(lake: Path) -> Counter[Row]:
    """How often each row is in the lake."""
    return Counter(
        (stream, row["era"], row["sequence"], b"" if stream == "samples" else row["raw"])
        for stream in ALL
        for row in rows_of(Layout(lake), stream, DRAIN)
    )


def faults(home: Path, seed: int, acts: list[Act], kinds: Kinds = (Drain, Recorder)) -> set[str]:
    """What is wrong with the lake after the lives of a node and of a copy of its disk: `lost`, `doubled`."""
    chance = Random(f"second writer/{seed}")
    one = Writer(home / "one", home / "lake", ERA, kinds)
    for _ in range(chance.randrange(4, 20)):
        chance.choice(STEADY)(one, chance)
    both = set(one.taken)
    two = one.copied(home / "two", is_away=acts is not STEADY and chance.random() < 0.5)
    for _ in range(STEPS):
        chance.choice(acts)(chance.choice((one, two)), chance)
    for writer in (one, two):
        writer.stop()
    held = rows_in(home / "lake")
    is_steady = acts is STEADY
    most = {row: 2 if row[0] in SHARED or not is_steady else 1 for row in both}
    doubled = {row for row, count in held.items() if count > most.get(row, 1)}
    found = {"lost": (one.taken | two.taken) - held.keys(), "doubled": doubled if acts is not ROLLED else set()}
    return {name for name, rows in found.items() if rows}


@pytest.mark.proves("LAK-005", "LAK-007", part="of two programs that write under one name")
@pytest.mark.parametrize("acts", [STEADY, HURT, ROLLED], ids=["steady", "killed", "put back"])
@pytest.mark.varies("seed", range(2), range(24), prove=range(2, 24))
def test_each_writes_behind_the_other_and_nothing_is_lost(tmp_path: Path, seed: int, acts: list[Act]) -> None:
    """What both had when the disk was copied may be there twice if one of them is killed; the tables count it once."""
    assert set() == faults(tmp_path, seed, acts)


class Trusting(Recorder):
    """Takes the lake's last segment for its own."""

    def _tip(self, stream: int, work: InspectLake) -> StreamTip:
        found = super()._tip(stream, work)
        tip = find_tip(self.lake, ALL_STREAMS[stream - 1], self.drain)
        return StreamTip(stream, tip.number, tip.lsn, tip.prior, found.other)


class Forgetful(Recorder):
    """Does not mind what the other one has written already."""

    def _note_other(self, stream: str, link: Link) -> None:
        pass


class Boundless(Drain):
    """Believes that the lake has what its journal never had."""

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        super().restore(entries, now)
        self._end = 1 << 60


class Endless(Drain):
    """A start that has not found the lake leaves no word of where the one before it ended."""

    def _keep(self, cursor: Cursor, within_ns: int = 0) -> None:
        super()._keep(msgspec.structs.replace(cursor, end=0), within_ns)


class Nameless(Drain):
    """Does not say in its journal which start it is."""

    def _cursor_record(self) -> CoreRecord:
        self._cursor = msgspec.structs.replace(self._cursor, start=1)
        return super()._cursor_record()


@pytest.mark.prove("many lives")
@pytest.mark.parametrize(
    ("acts", "kinds", "fault"),
    [
        (HURT, (Drain, Trusting), "lost"),
        (STEADY, (Drain, Forgetful), "doubled"),
        (ROLLED, (Boundless, Recorder), "lost"),
        (HURT, (Nameless, Recorder), "doubled"),
        (HURT, (Endless, Recorder), "lost"),
    ],
)
def test_a_planted_bug_is_seen(tmp_path: Path, acts: list[Act], kinds: Kinds, fault: str) -> None:
    assert any(fault in faults(tmp_path / str(seed), seed, acts, kinds) for seed in range(24))


def test_the_operator_is_told_of_a_second_writer_once(tmp_path: Path) -> None:
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA)
    one.root.append(batch(NODE_A, 1, 1))
    one.root.step(SECOND)
    two = one.copied(tmp_path / "two")
    for first in (2, 3):
        two.root.append(batch(NODE_A, first, 1, ERA + COPY))
        two.root.step(SECOND)
        one.root.append(batch(NODE_A, first, 1))
        one.root.step(SECOND)
    assert [SecondWriter(Stream.SAMPLES, 2)] == [each for each in one.root.told if isinstance(each, SecondWriter)]
    for writer in (one, two):
        writer.stop()
    assert [1, 1, 1, 1, 1] == [manifest.rows for manifest in chain_of(Layout(tmp_path / "lake"), "samples", DRAIN)]


def test_losses_that_both_had_are_named_once(tmp_path: Path) -> None:
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA)
    one.root.append(lost(5, 9))
    two = one.copied(tmp_path / "two")
    two.stop()
    one.root.append(batch(NODE_A, 10, 1))
    one.stop()
    chain = chain_of(Layout(tmp_path / "lake"), "samples", DRAIN)
    assert [(5, 9)] == [each[2:4] for manifest in chain for each in manifest.lost]
    assert [0, 1] == [manifest.rows for manifest in chain]


class Unlocked(LocalFiles):
    @contextmanager
    def alone_in(self, directory: Path, patience_s: float | None = None) -> Iterator[None]:
        """Forgotten."""
        yield


def raced(lake: Path, make: Callable[[], LocalFiles]) -> list[int]:
    """The numbers in the lake after two programs have written their records at the same time."""

    def write(era: int) -> None:
        entries: list[Entry] = [(lsn, batch(NODE_A, lsn, 1, era)) for lsn in range(1, RECORDS + 1)]
        writer = Recorder(
            lake, NODE_B, lambda after, _: (entries[after : after + 1], min(after + 1, RECORDS)), print, make()
        )
        writer.outcome(InspectLake())
        number, prior = 1, NO_PRIOR
        for lsn in range(1, RECORDS + 1):
            done = writer.outcome(WriteSegment(1, number, lsn, lsn, prior, era))
            if isinstance(done, SegmentWritten):
                number, prior = done.number + 1, done.digest

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (ERA, ERA + 1)))
    return sorted(row["sequence"] for row in rows_of(Layout(lake), "samples", DRAIN))


@pytest.mark.proves("LAK-005", part="of two programs that write at the same instant")
def test_two_that_write_at_the_same_instant_wait_for_each_other(tmp_path: Path) -> None:
    assert sorted([*range(1, RECORDS + 1)] * 2) == raced(tmp_path, LocalFiles)


@pytest.mark.prove("a race")
def test_without_the_lock_one_replaces_what_the_other_has_published(tmp_path: Path) -> None:
    def is_wrong(lake: Path) -> bool:
        try:
            return raced(lake, Unlocked) != sorted([*range(1, RECORDS + 1)] * 2)
        except (AssertionError, OSError, SegmentFault):
            return True

    assert any(is_wrong(tmp_path / str(attempt)) for attempt in range(10))


@pytest.mark.parametrize(("number", "is_refused"), [(errno.ENOLCK, False), (errno.EBADF, False), (errno.EIO, True)])
def test_a_file_system_without_locks_is_written_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_refused: bool
) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError(number, "no")

    writer = Recorder(tmp_path, NODE_B, lambda _after, _most: ([(1, batch(NODE_A, 1, 1))], 1), print)
    writer.outcome(InspectLake())
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert isinstance(writer.outcome(WriteSegment(1, 1, 1, 1, NO_PRIOR)), SegmentFailed) is is_refused


def test_a_gap_in_the_chain_ends_the_search_for_ones_own_segments(tmp_path: Path) -> None:
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA)
    for first in (1, 2, 3):
        one.root.append(batch(NODE_A, first, 1))
        one.root.step(SECOND)
    lake = Layout(tmp_path / "lake")
    lake.manifest("samples", DRAIN, 2).unlink()
    stranger = Recorder(tmp_path / "lake", NODE_B, lambda after, _most: ([], after), print)
    found = stranger.outcome(InspectLake(known=((1, 1, 1),), start=1))
    assert [(3, 1)] == [(tip.number, tip.lsn) for tip in found.tips if tip.stream == Stream.SAMPLES]
    one.root.close()


def test_numbers_whose_manifests_are_packed_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has filled a directory, and all that is in it was read and deleted, while this node was idle."""
    for module in (layout, stubs):
        monkeypatch.setattr(module, "SEGMENTS_PER_DIRECTORY", 4)
    lake = Layout(tmp_path)
    entries: list[Entry] = [(lsn, batch(NODE_A, lsn, 1)) for lsn in (1, 2)]
    writer = Recorder(tmp_path, NODE_B, lambda after, _: (entries[after : after + 1], after + 1), print)
    writer.outcome(InspectLake())
    first = writer.outcome(WriteSegment(1, 1, 1, 1, NO_PRIOR, ERA))
    for lsn in range(2, 13):
        append_segment(lake, "samples", DRAIN, [(lsn, batch(NODE_A, 100 + lsn, 1, ERA + COPY))])
    commit(lake, "bronze", "samples", Source(lake, "samples").offset({DRAIN: (12, 0)}), 1)
    sweep(lake, DRAIN, AT_ONCE, NOW, LocalFiles())
    assert not lake.manifest("samples", DRAIN, 2).exists()
    done = writer.outcome(WriteSegment(1, 2, 2, 2, first.digest, ERA))
    assert 13 == done.number
    tip = writer.outcome(InspectLake(known=((1, 1, 1),), start=ERA)).tips[0]
    assert (13, 2) == (tip.number, tip.lsn)


def test_the_file_names_the_start_and_the_manifest_is_as_before(tmp_path: Path) -> None:
    """So versions that knew no starts can read it."""
    lake, lines = Layout(tmp_path), set()
    for number, start in ((1, 0), (2, ERA)):
        segment = Segment(Place("samples", DRAIN, number), start=start)
        segment.take([(1, batch(NODE_A, 1, 1))])
        segment.publish(lake, LocalFiles())
        assert start == start_of(lake, "samples", DRAIN, number)
        lines.add(tuple(msgspec.json.decode(lake.manifest("samples", DRAIN, number).read_bytes())))
    assert 1 == len(lines)
    lake.parquet("samples", DRAIN, 2).write_bytes(b"no file")
    assert 0 == start_of(lake, "samples", DRAIN, 2)
    assert 0 == start_of(lake, "samples", DRAIN, 3)


@pytest.mark.proves("LAK-018", part="of a copy of a disk, beside the node that runs")
@pytest.mark.varies("seed", range(2), range(12), prove=range(2, 12))
def test_what_a_killed_copy_has_is_drained_by_hand_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    chance = Random(f"by hand/{seed}")
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA)
    for _ in range(10):
        chance.choice(STEADY)(one, chance)
    two = one.copied(tmp_path / "two")
    for _ in range(40):
        chance.choice(STEADY)(chance.choice((one, two)), chance)
    two.root.close()
    for _ in range(2):
        drain(two.home / "journal", lake=two.lake, json=True)
        one.append(chance)
    one.stop()
    assert "[]" == capsys.readouterr().out.splitlines()[1]
    held = rows_in(one.lake)
    assert held.keys() == one.taken | two.taken
    assert {row for row, count in held.items() if count > 1} <= {row for row in held if row[0] in SHARED}


def test_who_holds_the_lock_for_ever_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.shell.recorder.LOCK_S", 0.0)
    writer = Recorder(tmp_path, NODE_B, lambda _after, _most: ([(1, batch(NODE_A, 1, 1))], 1), print)
    writer.outcome(InspectLake())
    work, place = WriteSegment(1, 1, 1, 1, NO_PRIOR), Layout(tmp_path).drain("samples", DRAIN)
    LocalFiles().make_directories(place)
    with LocalFiles().alone_in(place):
        refused = writer.outcome(work)
        assert isinstance(refused, SegmentFailed)
        assert "another program holds its lock" in refused.detail
        assert isinstance(writer.outcome(InspectLake()), LakeRefused)
    assert isinstance(writer.outcome(work), SegmentWritten)
