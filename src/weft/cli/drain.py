"""`weft drain`: bring the journal of a node that does not run into a lake."""

import sys
import time
from collections import deque
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from weft.base.effects import Perform, Tell
from weft.base.errors import StorageFailed, UserError
from weft.base.now import Now
from weft.base.spool import FetchRecords, RecordsFetched
from weft.cores.drain.core import Drain
from weft.cores.drain.messages import DrainSettings, LakeRefused, SegmentFailed, SegmentPublished, Stop
from weft.lake.layout import stream_name
from weft.shell.files import Files
from weft.shell.journal.reader import JournalReader
from weft.shell.journal.start import lock_directory
from weft.shell.recorder import Recorder
from weft.wire.segments import HEADER_BYTES, decode_header

PATIENT: DrainSettings = DrainSettings(age_s=60, idle_s=60)
"""Segments are cut by size only, since nobody waits for the first rows."""


def drain(journal: Path, /, *, lake: Path, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Bring the records of a stopped node's journal into a lake: what it could not send before it died.

    `weft drain /mnt/old-disk/weft/s7/journal --lake ./lake`. Repeating it adds only new records. Records that had also
    arrived by the network are duplicates, which silver tables remove. The journal is not changed. Values that the node's
    `[lake] secrets` hides are hidden, if its state directory is there.

    Args:
        journal: the `journal` directory of a node's state.
        lake: the lake's directory, or s3://bucket/prefix; a new one is made.
        json: the segments as a JSON array.
    """
    from weft.shell.masking import mask_beside

    files = Files()
    reader = JournalReader(journal)
    lock = lock_directory(files, journal)
    try:
        draining = Draining(reader, lake, node_of(journal))
        draining.recorder.mask = mask_beside(journal)
        published = draining.run()
    finally:
        files.close(lock)
    if json:
        sys.stdout.write(msgspec.json.encode(published).decode() + "\n")
        return
    for segment in published:
        print(f"{stream_name(segment.stream)} {segment.number}: {segment.rows:,} rows, {segment.bytes:,} bytes")
    print(f"{sum(segment.rows for segment in published):,} rows of {journal} are in {draining.recorder.lake.root}")


def node_of(journal: Path) -> bytes:
    """The node that owns the journal; UserError `no-journal` if no file names it."""
    for path in sorted(journal.glob("*.seg")):
        with path.open("rb") as file:
            return decode_header(file.read(HEADER_BYTES)).node
    raise UserError("no-journal", f"there is no journal in {journal}", "the `journal` directory of a node's state")


class Draining:
    """The drain core over a journal at rest; all work is done at once, in order."""

    def __init__(self, reader: JournalReader, lake: Path, node: bytes) -> None:
        self.reader, self.core = reader, Drain(PATIENT)
        self.core.restore(chain(reader.snapshot_entries(), reader.entries()), _now())
        self.recorder = Recorder(lake, node, reader.read, print)
        self.published: list[SegmentPublished] = []
        self._work: deque[Any] = deque()

    def run(self) -> list[SegmentPublished]:
        """Drain everything, and return what was published; StorageFailed if the lake refuses: what was published before stays."""
        self.core.wake(_now())
        self._take()
        self._finish_work()
        self.core.command(Stop(), _now())
        self._take()
        self._finish_work()
        return self.published

    def _finish_work(self) -> None:
        while self._work:
            self.core.command(self._done(self._work.popleft()), _now())
            self._take()

    def _done(self, work: Any) -> Any:
        if isinstance(work, FetchRecords):
            entries, upto = self.reader.read(work.after, work.bytes_max)
            return RecordsFetched(work.holder, work.after, upto, tuple(entries))
        outcome = self.recorder.outcome(work)
        if isinstance(outcome, LakeRefused | SegmentFailed):
            raise StorageFailed(f"the lake is {outcome.why}: {outcome.detail}")
        return outcome

    def _take(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Perform):
                self._work.append(effect.work)
            elif isinstance(effect, Tell) and isinstance(effect.event, SegmentPublished):
                self.published.append(effect.event)


def _now() -> Now:
    return Now(time.monotonic_ns(), time.time_ns())
