"""The journal of a running node: a record is never lost once `write` has returned (JRN-001).

A turn is one batch, one append and one `fdatasync`. At most one batch is written and not yet synced, so that recovery
can tell a torn tail from damage (JRN-003). A batch that cannot be written completely is cut off again, so nothing
incomplete stands before the next one. A failed sync is never repeated, because the kernel may have dropped the pages
that it could not write: the journal then writes nothing more (JRN-005, JRN-032).

Records stand in segments. A segment is sealed when it is full or an hour old, and deleted when all readers have
released its records and the older of two snapshots covers it (JRN-041). So a corrupt newest snapshot costs a longer
start, and no data.

One thread calls the methods that change the journal. `read`, `oldest_spans` and `scrub` may be called by any thread at
the same time: they see durable records only, through tuples that are replaced and never changed.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, Self, TypeVar

import msgspec

from weft.base.errors import OurFault, StorageFailed
from weft.base.now import SECOND
from weft.base.records import CoreRecord, DamageRecord, Entry, LostRecord, Record, SafeRecord
from weft.base.spool import Span
from weft.shell.files import File, Files, remove
from weft.shell.journal.damage import DamageLog, DamageNote, Identity, identity_of
from weft.shell.journal.errors import StorageFull, failure, is_no_room
from weft.shell.journal.limits import (
    FREE_CHECK_BYTES,
    HEAP_BYTES,
    LATE_BYTES_MAX,
    RECORD_BYTES,
    RELEASED_PERCENT,
    REST_NS,
    SCRUB_BYTES_PER_S,
    SCRUB_NS,
    SNAPSHOT_AGE_NS,
    SNAPSHOT_RELIEF_NS,
    SNAPSHOT_RETRY_NS,
    SNAPSHOTS_KEPT,
    Limits,
    for_budget,
)
from weft.shell.journal.recovery import Recovery, recover
from weft.shell.journal.room import Room
from weft.shell.journal.segment import Segment
from weft.shell.journal.shelf import Shelf
from weft.shell.journal.snapshots import SnapshotWriter
from weft.shell.journal.start import lock_directory, prepare_directory
from weft.shell.journal.states import TABLE, On, State
from weft.shell.journal.writer import Broken, Writer, in_batches
from weft.wire.segments import SNAPSHOT, Header

P = ParamSpec("P")
T = TypeVar("T")

KEEPERS: Final = (CoreRecord, LostRecord, SafeRecord, DamageRecord)
"""Records that are written even to a full disk, in the space of the ballast: with them the node can free space, or keep
a promise (JRN-030)."""


class JournalStats(msgspec.Struct, kw_only=True):
    """What the journal has done since this start; plain counters (OBS-004)."""

    turns: int = 0
    records: int = 0
    bytes_written: int = 0
    snapshots: int = 0
    forgotten: int = 0
    """Deleted segments."""
    cut_back: int = 0
    """Short or refused writes that were cut off again."""
    torn_bytes: int = 0
    """Bytes of a torn tail, cut off at this start."""
    damaged: int = 0
    """Losses that no person has accepted yet."""
    refused: int = 0
    """Turns refused because there was no space."""


class Journal:
    """The journal of a node, made by `open`. The docstring of the module says what it promises."""

    def __init__(self, directory: Path, node: bytes, files: Files, limits: Limits) -> None:
        self.directory, self.limits = directory, limits
        self.state = State.OPEN
        self.stats = JournalStats()
        self.damage: DamageLog
        self.released = 0
        """The highest lsn that `forget` was called with: up to it all readers have released the records."""
        self._files, self._node = files, node
        self._lock: File | None = None
        self.shelf = Shelf(files)
        self._writer = Writer(files, directory, node, limits, self.shelf.add)
        self._room = Room(files, directory, limits)
        self._snapshots: tuple[Segment, ...] = ()
        self._stale: list[Path] = []
        """Incomplete or damaged snapshots, which are removed when there is a new one."""
        self._other_bytes = 0
        """Bytes of the files that this start has found, without those that it has removed."""
        self._buffer: list[Record] = []
        self._buffer_bytes = 0
        self._wall = 0
        self._written_at = 0
        self._snapshot_at = 0
        self._has_snapshot_room = True
        self._unchecked_bytes = 0
        self._untold: dict[Identity, DamageNote] = {}
        """Damage that `take_damage` has returned and that is not recorded yet."""
        self._scrubbed = 0
        self._scrub_at = 0

    # Starting and stopping.

    @classmethod
    def open(
        cls, directory: Path, node_id: bytes, files: Files, wall_ns: int, budget_bytes: int | Limits
    ) -> tuple[Self, Recovery]:
        """Open the journal in `directory`, recover it, and return it with a report of what was found.

        `budget_bytes` is the disk space that it may use; a `Limits` sets every limit separately.

        UserError `lease-held` if another process has it open, `storage-failed` if files are missing, foreign or have a
        damaged header (JRN-024). StorageFailed names the mount that cannot be written (JRN-033).
        """
        limits = budget_bytes if isinstance(budget_bytes, Limits) else for_budget(budget_bytes)
        journal = cls(directory, node_id, files, limits)
        try:
            prepare_directory(files, directory)
            journal._lock = lock_directory(files, directory)
            recovery = journal._recover()
            journal._begin(recovery, wall_ns)
        except OSError as error:
            journal._let_go()
            raise failure(error, files, directory) from error
        except BaseException:
            journal._let_go()
            raise
        return journal, recovery

    def _recover(self) -> Recovery:
        try:
            return recover(self._files, self.directory, self._node)
        except OSError as error:
            if not is_no_room(error):
                raise
            self._room.drop_ballast()  # even overwriting needs space on some file systems
            return recover(self._files, self.directory, self._node)

    def _begin(self, recovery: Recovery, wall_ns: int) -> None:
        bytearray(HEAP_BYTES)
        survey, writer = recovery.survey, self._writer
        self.shelf.segments, self._snapshots = tuple(survey.segments), tuple(survey.snapshots)
        self._stale, self.damage = survey.ignored, recovery.damage
        self._other_bytes = sum(file.size for file in (*survey.segments, *survey.snapshots))
        self._wall = self._written_at = self._snapshot_at = self._scrub_at = wall_ns
        self._unchecked_bytes = FREE_CHECK_BYTES
        newest = self._snapshots[-1] if self._snapshots else None
        before = survey.segments[-1].chain if survey.segments else newest.header.prev if newest else 0
        writer.next_lsn, writer.chain = recovery.next_lsn, before or 0
        self.stats.torn_bytes = sum(note.cut_bytes for note in recovery.notes)
        self._begin_writing(wall_ns)
        if recovery.damages:
            self._record_damage(recovery.damages, wall_ns)
        self.stats.damaged = len(self.damage.open)

    def _begin_writing(self, wall_ns: int) -> None:
        """Begin a segment and write the ballast. Without space it is FULL, and begins when there is some."""
        try:
            try:
                self._attempt(lambda: self._writer.begin(wall_ns))
            except StorageFull:
                self._attempt(lambda: self._writer.begin(wall_ns))
            if self.state is State.OPEN and (not self._attempt(self._room.keep_ballast) or self._is_scarce()):
                self._on(On.NO_ROOM)
        except StorageFull:
            return

    def _record_damage(self, notes: Sequence[DamageNote], wall_ns: int) -> None:
        """Copy the damaged files, then write a record of each damage, then its note: in this order (see `damage`).

        Without space for the records, `take_damage` reports the damage again later.
        """
        damaged = {note.file for note in notes}
        for segment in self.shelf.segments:
            if segment.path.name in damaged:
                self._try(partial(self.damage.keep_copy, segment))
        with suppress(StorageFull):
            self.write([note.record for note in notes], wall_ns)
            self._try(partial(self.damage.add, notes))

    def close(self, wall_ns: int) -> None:
        """Flush the buffer, mark everything as durable, and close. It is closed even if this raises StorageFailed."""
        if self.state is State.CLOSED:
            return
        try:
            if self._buffer and self.state is not State.FAILED:
                self.flush(wall_ns)
            if self.state is State.OPEN:
                self._try(self._writer.mark)
        finally:
            self._on(On.STOPPED)
            self._let_go()

    def _let_go(self) -> None:
        self._writer.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            self._files.close(lock)

    # Writing.

    @property
    def next_lsn(self) -> int:
        """The lsn of the record that would be written or buffered next."""
        return self._writer.next_lsn + len(self._buffer)

    @property
    def durable_lsn(self) -> int:
        """The last lsn that is durable."""
        return self._writer.next_lsn - 1

    @property
    def bytes_used(self) -> int:
        """Bytes of segments and snapshots; the ballast and the copies of damaged files are not counted."""
        return self._other_bytes + self._writer.total_bytes

    @property
    def is_tight(self) -> bool:
        """Whether the oldest records have to be given up: 90 % of the budget are used (JRN-031)."""
        return self.bytes_used >= self.limits.tight_bytes

    def write(self, records: Sequence[Record], wall_ns: int, *, promised: bool = False) -> int:
        """Make the records of one turn, and everything in the buffer, durable together; returns their first lsn.

        After a crash all of them are there, or none (JRN-002); of a turn over 16 MiB, perhaps only the first ones. `promised`:
        they have numbers already, so they are written even to a full disk, in the space of the ballast (JRN-030). After
        StorageFull nothing more was written. After StorageFailed nobody knows what is there; send nothing more (JRN-032).
        """
        first_lsn = self.next_lsn
        turn = [*self._buffer, *records] if self._buffer else records
        if not turn:
            return first_lsn
        if self.state is not State.OPEN:
            self._refuse(is_kept=promised or _are_keepers(turn))
        self._wall = wall_ns
        in_batches(turn, partial(self._write_batch, wall_ns, promised))
        return first_lsn

    def _write_batch(self, wall_ns: int, promised: bool, batch: Sequence[Record]) -> None:  # noqa: FBT001  # by `write`
        """Write the next records of a turn; those of the buffer are the first, and leave it."""
        try:
            written = self._writer.write(batch, wall_ns)
        except OSError as error:
            was_open, refusal = self.state is State.OPEN, self._failed(error)
            is_full = isinstance(refusal, StorageFull)
            self.stats.refused += is_full
            if not (is_full and was_open and (promised or _are_keepers(batch))):
                raise refusal from error
            written = self._attempt(self._writer.write, batch, wall_ns)  # in the space of the ballast
        self._buffer = self._buffer[len(batch) :]
        self._buffer_bytes = sum(map(_weight, self._buffer))
        self._written(batch, written, wall_ns)

    def buffer(self, records: Sequence[Record], *, promised: bool = False) -> int:
        """Accept records that become durable with the next `write` or `flush`; returns their first lsn.

        `promised` as in `write`: the buffer keeps them while there is no space. A buffer that would make the next turn
        too large is flushed at once, if there is space.
        """
        first_lsn = self.next_lsn
        self._refuse(is_kept=promised or _are_keepers(records))
        self._buffer += records
        self._buffer_bytes += sum(map(_weight, records))
        if self._buffer_bytes > LATE_BYTES_MAX:
            self._try(partial(self.flush, self._wall))
        return first_lsn

    def flush(self, wall_ns: int) -> None:
        """Make the buffer durable."""
        self.write((), wall_ns)

    def _refuse(self, *, is_kept: bool) -> None:
        """Raise, before anything is written, if the present state allows no such records."""
        if self.state is State.FAILED:
            raise StorageFailed(f"{self.directory} has failed; nothing is written any more until a restart")
        if self.state is State.CLOSED:
            raise OurFault("a closed journal is written to")
        if self.state is State.FULL and not is_kept:
            self.stats.refused += 1
            raise StorageFull(f"{self.directory} has no room")

    def _written(self, records: Sequence[Record], written: int, wall_ns: int) -> None:
        stats = self.stats
        stats.turns += 1
        stats.records += len(records)
        stats.bytes_written += written
        self._written_at = wall_ns
        self._unchecked_bytes += written
        if self._untold:
            self._note_recorded(records)
        self._on(On.WRITTEN)
        if self.state is State.FULL:
            self._try(self._seek_room)
        elif self.bytes_used > self.limits.budget_bytes or self._is_scarce():
            self._on(On.NO_ROOM)

    def _is_scarce(self) -> bool:
        if self._unchecked_bytes < FREE_CHECK_BYTES:
            return False
        self._unchecked_bytes = 0
        return self._attempt(self._room.is_scarce)

    def rest(self, wall_ns: int, *, flushes: bool = True) -> None:
        """Periodic work without a write; call it about once a second.

        It flushes the buffer, unless the caller does so in time (`flushes`), writes a mark after 5 s without a write
        (JRN-010), seals a segment after an hour (JRN-011), and looks whether there is space again. Without space, the
        rest is tried at the next call. May raise StorageFailed.
        """
        if self.state in (State.FAILED, State.CLOSED):
            return
        self._wall = wall_ns
        self._unchecked_bytes = FREE_CHECK_BYTES
        if self.damage.open:
            self._try(self.damage.reload)
            self.stats.damaged = len(self.damage.open)
        if self.state is State.FULL:
            self._try(self._seek_room)
        elif self._is_scarce():
            self._on(On.NO_ROOM)
        if self._buffer and flushes:
            self._try(partial(self.flush, wall_ns))
        if abs(wall_ns - self._written_at) >= REST_NS:
            self._try(self._writer.mark)
        if self._writer.is_full(0, wall_ns):
            self._try(self._writer.seal)
        if self._writer.segment is None:
            self._try(lambda: self._writer.begin(wall_ns))

    # Errors of the disk, and the state (states.TABLE).

    def _attempt(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call to the disk. An error changes the state, and is raised as StorageFull or StorageFailed."""
        try:
            return action(*args, **kwargs)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StorageFailed:
        """Change the state as an error of the disk demands; the StorageFull or StorageFailed to raise."""
        self.stats.cut_back = self._writer.cut_back
        is_full = is_no_room(error) and not isinstance(error, Broken)
        refusal = failure(error, self._files, self.directory)
        self._on(On.NO_ROOM if is_full else On.BROKEN)
        return refusal if is_full else StorageFailed(str(refusal))

    def _try(self, action: Callable[[], T]) -> T | None:
        """Run a call that may be left out: if there is no space, it returns None, and only the state shows it."""
        try:
            return self._attempt(action)
        except StorageFull:
            return None

    def _on(self, answer: On) -> None:
        cell = TABLE[self.state, answer]
        self.state = cell.then
        if cell.do:
            getattr(self, cell.do)()

    def drop_ballast(self) -> None:
        """The disk is full: delete the ballast."""
        self._try(self._room.drop_ballast)

    def _seek_room(self) -> None:
        """In FULL: if there is space again, rewrite the ballast and become OPEN."""
        if self.bytes_used <= self.limits.budget_bytes and self._room.take_ballast():
            self._on(On.ROOM)

    # Reading, from any thread.

    def read(self, after: int, bytes_max: int) -> tuple[list[Entry], int]:
        """The records after lsn `after`, about `bytes_max` bytes of them, and the lsn up to which they are complete.

        Returns durable records only, in order, each verified (JRN-013). Records that cannot be read are missing from
        the result, and `take_damage` reports them. The cost depends only on the size of the result. StorageFailed if
        the disk fails.
        """
        try:
            return self.shelf.read(after, bytes_max)
        except OSError as error:
            raise failure(error, self._files, self.directory, "read") from error

    def oldest_spans(self) -> tuple[int, tuple[Span, ...]]:
        """What a full spool gives up first: the last lsn of the oldest segment that is needed, and the numbers in it.

        That is the lowest closed segment that some reader has not released; (0, ()) if there is none.
        """
        try:
            return self.shelf.oldest_spans(self.released)
        except OSError as error:
            raise failure(error, self._files, self.directory, "read") from error

    def scrub(self, wall_ns: int) -> bool:
        """Read and verify one closed segment if one is due: each once a day, at most 1 MB/s (JRN-013).

        Call it about once a second, from any thread; returns whether it read one. `take_damage` reports what it finds.
        """
        if self._scrub_at - SCRUB_NS <= wall_ns < self._scrub_at:
            return False
        closed = self.shelf.segments[:-1]
        due = next((segment for segment in closed if segment.first_lsn > self._scrubbed), None)
        self._scrubbed = due.first_lsn if due else 0
        if due is None:
            self._scrub_at = wall_ns + SECOND
            return False
        self._scrub_at = wall_ns + max(due.size * SECOND // SCRUB_BYTES_PER_S, SCRUB_NS // (len(closed) + 1))
        try:
            due.verify(self._files)
        except FileNotFoundError:
            return False  # deleted meanwhile
        except OSError as error:
            raise failure(error, self._files, self.directory, "read") from error
        return True

    def take_damage(self) -> tuple[DamageNote, ...]:
        """Damage found by reading since the last call (JRN-022).

        The damaged files have been copied. The caller writes each as a `DamageRecord`, and reports it. Once that record
        is durable, a note is written beside the journal, and keeps the node degraded until a person accepts the loss.
        """
        found = []
        for segment in self.shelf.segments:
            notes = [note for note in self.damage.new(segment) if note.identity not in self._untold]
            if notes:
                self._try(partial(self.damage.keep_copy, segment))
                self._untold |= {note.identity: note for note in notes}
                found += notes
        return tuple(found)

    def _note_recorded(self, records: Sequence[Record]) -> None:
        for record in records:
            note = self._untold.pop(identity_of(record), None) if isinstance(record, DamageRecord) else None
            if note is not None:
                self._try(partial(self.damage.add, [note]))
        self.stats.damaged = len(self.damage.open)

    # Condensing and forgetting.

    def is_snapshot_due(self, wall_ns: int) -> bool:
        """Whether four segments have begun since the last snapshot, or ten minutes have passed with changes (JRN-040).

        On a full disk one is also due when a released segment waits for nothing but snapshots. After an attempt that
        found no space, the next one is a minute later at the earliest.
        """
        covered = self._snapshots[-1].first_lsn if self._snapshots else 1
        waited_ns = abs(wall_ns - self._snapshot_at)
        if self.state in (State.FAILED, State.CLOSED):
            return False
        if self.state is State.FULL:
            if waited_ns < (SNAPSHOT_RELIEF_NS if self._has_snapshot_room else SNAPSHOT_RETRY_NS):
                return False
            if self.may_shrink:
                return True  # even without changes: a segment goes only when two snapshots cover it
        if self.next_lsn == covered:
            return False
        begun = len(self.shelf.segments) - bisect_right(
            self.shelf.segments, covered, key=lambda segment: segment.first_lsn
        )
        return begun >= self.limits.snapshot_segments or waited_ns >= SNAPSHOT_AGE_NS

    @property
    def is_covered(self) -> bool:
        """Whether the newest snapshot covers all records; another one would be the same."""
        return bool(self._snapshots) and self._snapshots[-1].first_lsn == self.next_lsn

    def snapshot(self, records: Iterable[CoreRecord], wall_ns: int) -> None:
        """Write a snapshot of the cores' condensed state; a start then replays only later records (JRN-040).

        It is used only after it has been read back; then all but the two newest are removed. Nothing is written if the
        newest one covers everything. After StorageFull there is no new one, and the one before stays in use.
        """
        if self._buffer:
            self.flush(wall_ns)
        self._refuse(is_kept=True)
        self._snapshot_at = wall_ns
        if self.is_covered:
            return
        header = Header(SNAPSHOT, self._node, self.next_lsn, max(0, wall_ns), self._writer.chain, 0)
        self._has_snapshot_room = False
        snapshot = self._attempt(lambda: self._write_snapshot(records, header))
        self._has_snapshot_room = True
        self.stats.snapshots += 1
        self._snapshots = (*self._snapshots, snapshot)
        self._other_bytes += snapshot.size
        self._attempt(self._drop_snapshots)

    def _write_snapshot(self, records: Iterable[CoreRecord], header: Header) -> Segment:
        writer = SnapshotWriter(self._files, self.directory, header)
        try:
            writer.add(records)
            snapshot = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        if snapshot is None:
            raise Broken(errno.EIO, "a snapshot was read back otherwise than it was written", str(self.directory))
        return snapshot

    def _drop_snapshots(self) -> None:
        gone, self._snapshots = self._snapshots[:-SNAPSHOTS_KEPT], self._snapshots[-SNAPSHOTS_KEPT:]
        stale, self._stale = self._stale, []
        for path in (*stale, *(snapshot.path for snapshot in gone)):
            remove(self._files, path)
        self._other_bytes -= sum(snapshot.size for snapshot in gone)
        if gone or stale:
            self._files.sync_directory(self.directory)

    def forget(self, upto: int) -> None:
        """Delete segments, lowest first, whose records up to `upto` nobody needs, as far as that is safe.

        A segment is safe to delete if the older of two snapshots covers it (JRN-041). While at least half of the budget is
        free and the disk is not full, released segments are kept for seven days. Cheap when there is nothing to do. May
        raise StorageFailed.
        """
        self.released = max(self.released, upto)
        if self.state in (State.FAILED, State.CLOSED):
            return
        segments = self.shelf.segments
        count = 0
        while count < len(segments) - 1 and self._may_forget(segments[count], segments[count + 1]):
            self._other_bytes -= segments[count].size
            count += 1
        if count:
            self.shelf.segments = segments[count:]
            self.stats.forgotten += count
            self._attempt(lambda: self._remove(segments[:count]))
            if self.state is State.FULL:
                self._try(self._seek_room)

    @property
    def may_shrink(self) -> bool:
        """Whether a closed segment is released, and stays only until snapshots cover it or it is old enough."""
        segments = self.shelf.segments
        return len(segments) > 1 and segments[0].last_lsn <= self.released

    def _may_forget(self, segment: Segment, following: Segment) -> bool:
        if segment.last_lsn > self.released or len(self._snapshots) < SNAPSHOTS_KEPT:
            return False
        if segment.end.lsn > self._snapshots[0].first_lsn:
            return False
        age_ns = self._wall - following.header.created_ns
        is_half_empty = self.bytes_used * 100 <= self.limits.budget_bytes * RELEASED_PERCENT
        has_room = is_half_empty and self.state is not State.FULL
        return not has_room or age_ns >= self.limits.released_age_ns

    def _remove(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            remove(self._files, segment.path)
        self._files.sync_directory(self.directory)


def _weight(record: Record) -> int:
    """Estimated bytes of a record."""
    return RECORD_BYTES + len(getattr(record, "payload", b"") or getattr(record, "data", b""))


def _are_keepers(records: Iterable[Record]) -> bool:
    return all(isinstance(record, KEEPERS) for record in records)
