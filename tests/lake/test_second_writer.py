"""Two programs write into a lake under one name: a node, and a copy of its disk that runs elsewhere."""

import errno
import fcntl
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.lake.records import ERA, NODE_A, NODE_B, RECEIVED, batch, chain_of, lost, rows_of
from tests.lake.root import Root
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import Entry, Record, Stream, StreamRecord
from weft.cores.drain.messages import (
    DrainClosed,
    InspectLake,
    SecondWriter,
    SegmentFailed,
    SegmentWritten,
    Stop,
    WriteSegment,
)
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, Link, SegmentFault
from weft.lake.segments import Place
from weft.shell.recorder import Recorder

DRAIN = NODE_B.hex()
STEPS = 40
RECORDS = 60
ALL = ("samples", "events", "store")


class Writer:
    """A node that drains, and all that its journal has taken."""

    def __init__(self, home: Path, lake: Path, era: int, kind: type[Recorder]) -> None:
        self.home, self.lake, self.era, self.kind = home, lake, era, kind
        self.root = Root(home, lake, kind)
        self.last = dict.fromkeys(ALL, 0)
        self.taken: Counter[tuple[Any, ...]] = Counter()

    def append(self, chance: Random) -> None:
        """Records of this start in one stream, or entries of the store: their numbers know no start."""
        stream, rows = chance.choice(ALL), chance.randrange(1, 5)
        first = self.last[stream] + 1
        self.last[stream] += rows
        payload = f"by {self.era}".encode()
        numbers = range(first, first + rows)
        records: list[Record]
        if stream == "samples":
            records = [batch(NODE_A, first, rows, self.era)]
        else:
            era = None if stream == "store" else self.era
            kind = Stream.STORE if stream == "store" else Stream.EVENTS
            records = [
                StreamRecord(kind, NODE_A, era, number, RECEIVED, RECEIVED, "some/key", payload, {})
                for number in numbers
            ]
        who = None if stream == "store" else self.era
        self.taken.update((stream, who, number, b"" if stream == "samples" else payload) for number in numbers)
        self.root.append(*records)

    def copied(self, home: Path) -> "Writer":
        """A copy of its disk, which is started as a later start; it has taken what the first one has."""
        shutil.copytree(
            self.home / "journal", home / "journal", ignore=lambda _, names: [n for n in names if "lock" in n]
        )
        twin = Writer(home, self.lake, self.era + 1, self.kind)
        twin.last["store"] = self.last["store"]
        twin.taken.update(self.taken)
        return twin

    def start_again(self) -> None:
        """It is killed, and started on the same disk."""
        self.root.close()
        self.root = Root(self.home, self.lake, self.kind)

    def stop(self) -> None:
        """An orderly stop, which writes everything."""
        self.root.step(SECOND)
        self.root.core.command(Stop(), self.root.now)
        self.root.step(0)
        assert DrainClosed(is_whole=True) in self.root.told
        self.root.close()


def played(home: Path, seed: int, kind: type[Recorder]) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """What two such writers have taken, each record once, and what is in the lake."""
    chance = Random(f"second writer/{seed}")
    one = Writer(home / "one", home / "lake", ERA, kind)
    for _ in range(chance.randrange(4, 20)):
        one.append(chance)
        one.root.step(chance.choice((0, 0, 200 * MILLISECOND)))
    two = one.copied(home / "two")
    acts: list[Callable[[Writer], Any]] = [lambda it: it.append(chance)] * 5
    acts += [lambda it: it.root.step(chance.choice((100 * MILLISECOND, SECOND)))] * 3
    acts += [Writer.start_again]
    for _ in range(STEPS):
        chance.choice(acts)(chance.choice((one, two)))
    for writer in (one, two):
        writer.stop()
    lake = Layout(home / "lake")
    held = Counter(
        (stream, row["era"], row["sequence"], b"" if stream == "samples" else row["raw"])
        for stream in ALL
        for row in rows_of(lake, stream, DRAIN)
    )
    return one.taken | two.taken, held


def faults(taken: Counter[tuple[Any, ...]], held: Counter[tuple[Any, ...]]) -> set[str]:
    """`lost`, `doubled`, `unknown`. What has no start may be there from both writers."""
    found = {"unknown": held.keys() - taken.keys(), "lost": taken.keys() - held.keys()}
    found["doubled"] = {key for key, count in held.items() if count > (2 if key[1] is None else 1)}
    return {name for name, keys in found.items() if keys}


@pytest.mark.proves("LAK-005", "LAK-007", part="of two programs that write under one name")
@pytest.mark.varies("seed", range(4), range(24), prove=range(4, 24))
def test_each_writes_behind_the_other_and_nothing_is_lost_or_doubled(tmp_path: Path, seed: int) -> None:
    assert set() == faults(*played(tmp_path, seed, Recorder))


class Trusting(Recorder):
    """Takes the lake's last segment for its own."""

    def _own_lsn(self, stream: str, tip: Any, known: int, known_lsn: int) -> int:
        return int(tip.lsn)


class Careless(Recorder):
    """Takes a segment for its own that has the same lsn."""

    def _is_ours(self, place: Place, link: Link) -> bool:
        return True


class Forgetful(Recorder):
    """Does not mind what the other one has written already."""

    def _note_other(self, stream: str, link: Link) -> None:
        pass


@pytest.mark.prove("many lives")
@pytest.mark.parametrize(("bug", "fault"), [(Trusting, "lost"), (Careless, "lost"), (Forgetful, "doubled")])
def test_a_planted_bug_is_seen(tmp_path: Path, bug: type[Recorder], fault: str) -> None:
    assert any(fault in faults(*played(tmp_path / str(seed), seed, bug)) for seed in range(24))


def test_the_operator_is_told_of_a_second_writer_once(tmp_path: Path) -> None:
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA, Recorder)
    one.root.append(batch(NODE_A, 1, 1))
    one.root.step(SECOND)
    two = one.copied(tmp_path / "two")
    for first in (2, 3):
        two.root.append(batch(NODE_A, first, 1, ERA + 1))
        two.root.step(SECOND)
        one.root.append(batch(NODE_A, first, 1))
        one.root.step(SECOND)
    assert [SecondWriter(Stream.SAMPLES, 2)] == [each for each in one.root.told if isinstance(each, SecondWriter)]
    for writer in (one, two):
        writer.stop()
    assert [1, 1, 1, 1, 1] == [manifest.rows for manifest in chain_of(Layout(tmp_path / "lake"), "samples", DRAIN)]


def test_losses_that_both_had_are_named_once(tmp_path: Path) -> None:
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA, Recorder)
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
    def alone_in(self, directory: Path) -> Iterator[None]:
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
            done = writer.outcome(WriteSegment(1, number, lsn, lsn, prior))
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
    one = Writer(tmp_path / "one", tmp_path / "lake", ERA, Recorder)
    for first in (1, 2, 3):
        one.root.append(batch(NODE_A, first, 1))
        one.root.step(SECOND)
    lake = Layout(tmp_path / "lake")
    lake.manifest("samples", DRAIN, 2).unlink()
    stranger = Recorder(tmp_path / "lake", NODE_B, lambda after, _most: ([], after), print)
    found = stranger.outcome(InspectLake(known=((1, 1, 1),)))
    assert [(3, 1)] == [(tip.number, tip.lsn) for tip in found.tips if tip.stream == Stream.SAMPLES]
    one.root.close()
