"""Writes the segments that the drain core orders, in a thread (LAK-001, LAK-005).

The thread reads the journal, builds the segment with Arrow, writes it as Parquet with five syncs, and reports the outcome
as an order for the core. PyArrow is imported with the first segment, so that a node without segments does not load it.
"""

import errno
import queue
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from weft.base.errors import NO_ROOM, StorageFailed, WeftError
from weft.base.records import Entry
from weft.cores.carrier.messages import InLake, LakeUnread, ReadVectors
from weft.cores.drain.messages import (
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    StreamTip,
    WriteSegment,
)
from weft.lake.files import Files
from weft.lake.layout import STREAMS, Layout, stream_name
from weft.lake.manifest import Link, SegmentFault, verify
from weft.lake.objects import files_of, lake_path
from weft.lake.retention import Keep

if TYPE_CHECKING:
    from weft.lake.body import Mask
    from weft.lake.others import Others
    from weft.lake.segments import Place, Segment

READ_BYTES: Final = 4 << 20  # of the journal at a time: what the thread has in memory beside the columns
PATIENCE_S: Final = 2.0  # seconds in which records have to become readable
PATIENCE_STEP_S: Final = 0.02
OTHERS_MAX: Final = 1_000  # segments behind the cursor that a start asks who has written them
LOCK_S: Final = 5.0  # seconds to wait for another program that writes under this node's name
SWEEP_S: Final = 60.0  # seconds between two searches for segments that can be deleted

Read = Callable[[int, int], tuple[list[Entry], int]]
"""Journal.read: entries behind an lsn, about so many bytes, and the lsn up to which they reach."""


class Recorder:
    """Performs `InspectLake`, `ReadVectors` and `WriteSegment`; calls `deliver` with outcomes in its own thread."""

    def __init__(
        self,
        lake: Path | str,
        node_id: bytes,
        read: Read,
        deliver: Callable[[Any], None],
        files: Files | None = None,
    ) -> None:
        self.lake, self.drain = Layout(lake_path(lake)), node_id.hex()
        self._read, self._deliver = read, deliver
        self.mask: Mask | None = None
        """Masks secrets (LAK-014); None: nothing is masked."""
        self.load: Callable[[], None] | None = None
        """Loads PyArrow before a segment is written; None: it is imported when it is needed."""
        self.keep = Keep()
        """How long segments stay after all consumers have read them, and how many bytes stay without a consumer (LAK-016)."""
        self._files: Files = files or files_of(self.lake.root)
        self._others: dict[str, Others] = {}
        """By stream: what a copy of this node's disk has written under its name."""
        self._bytes = 0
        self._swept_at: float | None = None
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: Thread | None = None
        self._is_closing = False

    def perform(self, work: InspectLake | WriteSegment | ReadVectors) -> None:
        """Queue work for the thread, in order; never waits."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="weft-recorder", daemon=True)
            self._thread.start()
        self._work.put(work)

    def close(self, patience_s: float = 10.0) -> None:
        """End the thread after the segment that it is writing; StorageFailed if that takes too long.

        The next start of the node asks the lake how far it has come. If a segment were still being written then, the
        lake would hold its records twice.
        """
        if self._thread is None:
            return
        self._is_closing = True
        self._work.put(None)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            raise StorageFailed(f"a segment of {self.lake.root} is not written after {patience_s:g} s")
        self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self._is_closing:
            self._deliver(self.outcome(work))

    def outcome(self, work: InspectLake | WriteSegment | ReadVectors) -> Any:
        """Do the work now; returns the outcome, as an order for the core. Errors of the disk and the lake are outcomes."""
        if isinstance(work, InspectLake):
            return self._guarded(lambda: self._inspect(work), LakeRefused)
        if isinstance(work, ReadVectors):
            return self._guarded(self._read_vectors, lambda _why, text: LakeUnread(text))
        return self._guarded(
            lambda: self._write(work), lambda why, text: SegmentFailed(work.stream, work.number, why, text)
        )

    def _guarded(self, act: Callable[[], Any], refuse: Callable[[str, str], Any]) -> Any:
        try:
            return act()
        except OSError as error:
            return refuse("full" if error.errno in NO_ROOM else "failed", str(error))
        except (WeftError, MemoryError) as error:
            return refuse("failed", str(error))

    def _inspect(self, work: InspectLake) -> LakeFound:
        """Clean up, and report how far each stream is written (LAK-007)."""
        from uuid import uuid4

        from weft.lake import segments

        segments.open_lake(self.lake, uuid4().hex, time.time_ns(), self._files)
        tips = []
        for stream, name in enumerate(STREAMS, 1):
            if self.lake.drain(name, self.drain).is_dir():
                with self._files.alone_in(self.lake.drain(name, self.drain), LOCK_S):
                    segments.clean(self.lake, name, self.drain, self._files)
                    tips.append(self._tip(stream, work))
        return LakeFound(tuple(tip for tip in tips if tip.number))

    def _tip(self, stream: int, work: InspectLake) -> StreamTip:
        """How far a stream is written. Behind the number that is known, a copy of this node's disk may have written."""
        from weft.lake import segments, stubs

        name = stream_name(stream)
        known, lsn = next(((number, lsn) for each, number, lsn in work.known if each == stream), (0, 0))
        tip, other = segments.find_tip(self.lake, name, self.drain), 0
        if tip.number < known:
            lsn = min(tip.lsn, lsn)
        for number in range(tip.number, max(known, tip.number - OTHERS_MAX), -1):
            try:
                link = stubs.link_at(self.lake, name, self.drain, number)
            except SegmentFault:  # what stands before a gap is drained again: the tables count it once
                break
            if not work.start or self._start_of(name, number) == work.start:
                lsn = link.manifest.lsn[1]
                break
            self._note_other(name, link)
            other = number
        return StreamTip(stream, tip.number, lsn, tip.prior, other)

    def _read_vectors(self) -> InLake:
        """The version vectors of the segments of this drain, by stream."""
        from weft.lake import segments, vectors

        read = []
        for number, stream in enumerate(STREAMS, 1):
            tip = segments.find_tip(self.lake, stream, self.drain)
            if tip.number:
                read.append((number, vectors.vector_at(self.lake, stream, self.drain, tip.number).encode()))
        return InLake(tuple(read))

    def _write(self, work: WriteSegment) -> SegmentWritten:
        from weft.lake import vectors

        if self.load is not None:
            self.load()
        self._make_room()
        place, (found, digest) = self._published(work)
        vectors.publish(self.lake, place, self._files)
        self._bytes += found.bytes
        return SegmentWritten(work.stream, found.number, work.last_lsn, found.rows, found.bytes, digest)

    def _published(self, work: WriteSegment) -> "tuple[Place, Link]":
        """Publish a segment behind everything that stands there under this node's name; returns its place."""
        from weft.lake import segments

        place = segments.Place(stream_name(work.stream), self.drain, work.number, work.prior)
        ends_at = time.monotonic() + PATIENCE_S
        self._files.make_directories(self.lake.drain(place.stream, self.drain))
        while True:
            try:
                with self._files.alone_in(self.lake.drain(place.stream, self.drain), LOCK_S):
                    return self._published_alone(place, work)
            except FileExistsError:  # an object store has no locks: another program is putting its segment there
                if time.monotonic() > ends_at:
                    why = "another program has begun a segment here and does not finish it; the next start deletes it"
                    raise FileExistsError(errno.EEXIST, why, str(self.lake.drain(place.stream, self.drain))) from None
            time.sleep(PATIENCE_STEP_S)

    def _published_alone(self, place: "Place", work: WriteSegment) -> "tuple[Place, Link]":
        from weft.lake import stubs

        while (line := stubs.find_manifest(self.lake, *place[:3])) is not None:
            link = verify(line, place.drain, place.number, place.prior)
            is_same = link.manifest.lsn == (work.first_lsn, work.last_lsn)
            if is_same and self._start_of(place.stream, place.number) == work.start:
                self._files.sync_directory(self.lake.block(*place[:3]))  # an earlier attempt succeeded after all
                return place, link
            self._note_other(place.stream, link)
            place = place.behind(link)
        return place, self._publish(self._gathered(place, work))

    def _start_of(self, stream: str, number: int) -> int:
        from weft.lake import segments

        if self.load is not None:
            self.load()
        return segments.start_of(self.lake, stream, self.drain, number)

    def _note_other(self, stream: str, link: Link) -> None:
        from weft.lake.others import Others

        self._others.setdefault(stream, Others()).add(link.manifest)

    def _make_room(self) -> None:
        """Once a minute, delete what all consumers have read; a lake full of unread data counts as full (LAK-016)."""
        from weft.lake import retention

        now = time.monotonic()
        if self._swept_at is None:
            self._bytes = retention.bytes_kept(self.lake, self.drain)
        if self._swept_at is None or now - self._swept_at >= SWEEP_S or self._bytes > self.keep.bytes_max:
            self._swept_at = now
            self._bytes -= retention.sweep(self.lake, self.drain, self.keep, time.time_ns(), self._files).bytes
            if self._bytes > self.keep.bytes_max and not retention.has_consumers(self.lake):
                why = f"{self._bytes} bytes wait in {self.lake.root} and no consumer is registered to read them"
                raise OSError(errno.ENOSPC, why)

    def _gathered(self, place: "Place", work: WriteSegment) -> "Segment":
        """The journal's records between two lsn, without those that others have written."""
        from weft.lake import segments

        segment, others = segments.Segment(place, self.mask, work.start), self._others.get(place.stream)
        segment.span(work.first_lsn, work.last_lsn)
        after, ends_at = work.first_lsn - 1, time.monotonic() + PATIENCE_S
        while after < work.last_lsn:
            entries, upto = self._read(after, READ_BYTES)
            wanted = (entry for entry in entries if entry[0] <= work.last_lsn)
            segment.take(entry for entry in wanted if others is None or not others.have(entry[1]))
            if upto <= after:
                if time.monotonic() > ends_at:
                    raise OSError(errno.EAGAIN, f"the journal ends at {after}, before {work.last_lsn}")
                time.sleep(PATIENCE_STEP_S)
            after = max(after, upto)
        return segment

    def _publish(self, segment: "Segment") -> Link:
        try:
            return segment.publish(self.lake, self._files)
        except FileExistsError:
            raise  # another program writes under this drain's name: the file there is not deleted
        except OSError:
            segment.discard(self.lake, self._files)
            raise
