"""The drain core in a little world: a journal that forgets, a lake that fails, power cuts, and an auditor.

Time is a number. Work takes a while, is done or refused by chance, and its outcome may be lost in a crash though it
was done. What the journal is allowed to forget, it forgets at once: a cursor that runs ahead loses records here.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, NamedTuple

from weft.base.effects import Perform, Persist, Tell
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import CoreRecord, Entry, EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.base.spool import FetchRecords, Journaled, RecordsFetched, Released
from weft.cores.drain.core import Drain
from weft.cores.drain.messages import (
    DrainClosed,
    DrainSettings,
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    Stop,
    StreamTip,
    WriteSegment,
)

SETTINGS = DrainSettings(rows_max=400, bytes_max=1 << 20, age_s=1.0, idle_s=0.3)
LEAST_NS = 2 * MILLISECOND
MOST_NS = 400 * MILLISECOND


class Written(NamedTuple):
    """A segment of the model lake."""

    number: int
    first_lsn: int
    last_lsn: int
    lsns: tuple[int, ...]
    digest: str


class Violated(AssertionError):
    """The auditor has found a broken promise."""


def a_record(chance: Random, lsn: int) -> Record:
    """What stands in a journal: mostly samples, now and then something else."""
    kind = chance.random()
    if kind < 0.7:
        return StreamRecord(1, b"n" * 16, 1, lsn, lsn, lsn, "weft.metric", b"p" * 200, {"n": chance.randrange(1, 100)})
    if kind < 0.8:
        stream = chance.choice((3, 4, 6, 7))
        origin, era = ("n1", None) if stream == Stream.STORE else (b"n" * 16, 1)
        return StreamRecord(stream, origin, era, lsn, lsn, lsn, "k", b"p" * 20, {})
    if kind < 0.85:
        return LostRecord(1, b"n" * 16, 1, lsn, lsn, "spool-full")
    if kind < 0.9:
        return EraRecord(4, b"n" * 16, 2, 1, lsn)
    return CoreRecord("measurement", 1, b"")


class World:
    """One node with a drain, driven by a seed."""

    def __init__(self, seed: int | str, make: Callable[[], Drain] = lambda: Drain(SETTINGS)) -> None:
        self.chance, self.make = Random(seed), make
        self.mono = 0
        self.journal: dict[int, Record] = {}
        self.next_lsn = 1
        self.forgotten = 0
        self.lake: dict[int, list[Written]] = {}
        self.refuse: str | None = None
        """Why the lake refuses everything at present."""
        self.told: list[Any] = []
        self.snapshot: tuple[CoreRecord, ...] = ()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._life = 0
        self._unsynced: list[int] = []
        self.core = make()
        self.start()

    # The node.

    def start(self) -> None:
        """A start: what the journal has kept is given back."""
        self._life += 1
        self._events.clear()
        self.core = self.make()
        self.core.restore([(1, record) for record in self.snapshot], self.now)
        self.core.restore(sorted(self.journal.items()), self.now)
        self.core.wake(self.now)
        self._act()

    def crash(self) -> None:
        """Power fails: work that is under way may be done all the same; records not synced are gone."""
        for _, _, act in sorted(self._events):
            if self.chance.random() < 0.5:
                life, self._life = self._life, -1  # its outcome reaches nobody
                act()
                self._life = life
        keep = self.chance.randrange(len(self._unsynced) + 1)
        for lsn in self._unsynced[keep:]:
            del self.journal[lsn]
        self.next_lsn = max([self.forgotten, *self.journal, self._unsynced[keep - 1] if keep else 0]) + 1
        self._unsynced.clear()
        self.mono += self.chance.randrange(SECOND)
        self.start()

    @property
    def now(self) -> Now:
        return Now(self.mono, 10**18 + self.mono)

    def append(self, records: list[Record]) -> None:
        """A Persist of some core: durable before anything else leaves."""
        first = self.next_lsn
        for record in records:
            self.journal[self.next_lsn] = record
            self.next_lsn += 1
        self._unsynced.clear()
        if any(isinstance(record, StreamRecord | LostRecord | EraRecord) for record in records):
            self.core.command(Journaled(first, tuple(records)), self.now)
        self._act()

    def grow(self, records: int) -> None:
        self.append([a_record(self.chance, self.next_lsn + i) for i in range(records)])

    def condense(self) -> None:
        self.snapshot = tuple(self.core.condense())

    def stop(self) -> None:
        self.core.command(Stop(), self.now)
        self._act()

    def run(self, span_ns: int) -> None:
        """Let time pass, with whatever comes due in it."""
        end = self.mono + span_ns
        while True:
            due = self.core.deadline()
            due = end + 1 if due is None else max(due, self.mono)
            if self._events and self._events[0][0] <= min(due, end):
                self.mono = max(self.mono, self._events[0][0])
                heappop(self._events)[2]()
            elif due <= end:
                self.mono = due
                self.core.wake(self.now)
                self._act()
            else:
                break
        self.mono = end

    # The shell.

    def _act(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Persist):
                assert effect.within_ns > 0
                for record in effect.records:
                    self.journal[self.next_lsn] = record
                    self._unsynced.append(self.next_lsn)
                    self.next_lsn += 1
            elif isinstance(effect, Perform):
                self._perform(effect.work)
            elif isinstance(effect, Tell):
                self.told.append(effect.event)
                if isinstance(effect.event, Released):
                    self._forget(effect.event.upto)

    def _forget(self, upto: int) -> None:
        if upto > self.next_lsn - 1:
            raise Violated(f"releases {upto}, the journal ends at {self.next_lsn - 1}")
        for lsn in [lsn for lsn in self.journal if lsn <= upto]:
            record = self.journal[lsn]
            if not isinstance(record, CoreRecord):
                del self.journal[lsn]
        self.forgotten = max(self.forgotten, upto)

    def _perform(self, work: Any) -> None:
        acts: dict[Any, Callable[[Any], Any]] = {
            InspectLake: self._inspect,
            WriteSegment: self._write,
            FetchRecords: self._fetch,
        }
        life = self._life
        act = acts[type(work)]

        def do() -> None:
            outcome = act(work)
            if life == self._life:
                self.core.command(outcome, self.now)
                self._act()

        when = self.mono + self.chance.randrange(LEAST_NS, MOST_NS)
        heappush(self._events, (when, next(self._order), do))

    def _inspect(self, work: InspectLake) -> Any:
        if self.refuse:
            return LakeRefused(self.refuse, "refused")
        last = {stream: segments[-1] for stream, segments in self.lake.items() if segments}
        return LakeFound(tuple(StreamTip(stream, s.number, s.last_lsn, s.digest) for stream, s in last.items()))

    def _fetch(self, work: FetchRecords) -> RecordsFetched:
        entries: list[Entry] = [entry for entry in sorted(self.journal.items()) if entry[0] > work.after][:40]
        upto = entries[-1][0] if len(entries) == 40 else max(work.after, self.next_lsn - 1)
        return RecordsFetched(work.holder, work.after, upto, tuple(entries))

    def _write(self, work: WriteSegment) -> Any:
        if self.refuse or self.chance.random() < 0.05:
            return SegmentFailed(work.stream, work.number, self.refuse or self.chance.choice(("full", "failed")))
        segments = self.lake.setdefault(work.stream, [])
        digest = f"{work.number:032x}"
        if len(segments) >= work.number:
            found = segments[work.number - 1]
            if (found.first_lsn, found.last_lsn) != (work.first_lsn, work.last_lsn):
                raise Violated(f"segment {work.number} of stream {work.stream} is written again with other records")
            return SegmentWritten(work.stream, work.number, work.last_lsn, 1, 1, digest)
        if len(segments) != work.number - 1:
            raise Violated(f"segment {work.number} follows {len(segments)}")
        lsns = tuple(
            lsn
            for lsn, record in sorted(self.journal.items())
            if work.first_lsn <= lsn <= work.last_lsn and getattr(record, "stream", 0) == work.stream
        )
        segments.append(Written(work.number, work.first_lsn, work.last_lsn, lsns, digest))
        return SegmentWritten(work.stream, work.number, work.last_lsn, 1, 1, digest)

    # The auditor.

    def audit(self, expected: dict[int, set[int]]) -> None:
        """Every lsn of every stream in exactly one segment, in order."""
        for stream, wanted in expected.items():
            found = [lsn for segment in self.lake.get(stream, []) for lsn in segment.lsns]
            if found != sorted(wanted):
                missing, more = sorted(wanted - set(found))[:5], sorted(set(found) - wanted)[:5]
                raise Violated(f"stream {stream}: missing {missing}, too many {more}, {len(found)} of {len(wanted)}")

    def is_closed(self) -> bool:
        return any(isinstance(event, DrainClosed) for event in self.told)


def played(seed: int | str, make: Callable[[], Drain] = lambda: Drain(SETTINGS), steps: int = 60) -> World:
    """A life with growth, trouble, snapshots and crashes; then peace, and the audit."""
    world = World(seed, make)
    chance = Random(f"script/{seed}")
    expected: dict[int, set[int]] = {}

    def grow(records: int) -> None:
        first = world.next_lsn
        world.grow(records)
        for lsn in range(first, first + records):
            record = world.journal.get(lsn)
            if isinstance(record, StreamRecord | LostRecord | EraRecord):
                expected.setdefault(record.stream, set()).add(lsn)

    for _ in range(steps):
        world.run(chance.randrange(800 * MILLISECOND))
        what = chance.random()
        if what < 0.6:
            grow(chance.randrange(1, 30))
        elif what < 0.7:
            world.crash()
        elif what < 0.8:
            world.refuse = chance.choice((None, "full", "failed"))
        elif what < 0.9:
            world.condense()
    world.refuse = None
    world.run(4_000 * SECOND)  # a lake that fails by chance is tried again once a minute
    world.audit(expected)
    return world
