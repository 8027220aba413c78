"""Finds the rows of a stream that are in segments but not yet in a table (PIP-102).

The opened version of the table names its last batch; the checkpoint has the offset and the coverage after that batch.
Everything from there to the last segment is *pending*. It is planned with the driver's own `intake_between` and
`Coverage.advance`, as one more batch. A commit that happens meanwhile changes nothing: the segments belong to the
version that was opened first.

Nothing is written. In a lake without tables and checkpoint, everything drained is pending.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec import MsgspecError

from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.offsets import At, parse
from weft.lake.reader import Limits, Slice, Source, position
from weft.pipeline.checkpoint import Checkpoint, Record, read_record
from weft.pipeline.coverage import Coverage
from weft.pipeline.intake import intake_between

ROWS_MAX: Final = 1_000_000
"""Rows of one stream that are read besides a table, as many as a driver's batch may have; about 400 MB in memory."""
SEGMENTS_MAX: Final = 2_048
"""Segments of one stream; opening one costs 0.7 ms, whatever its size."""
BYTES_MAX: Final = 64 << 20
"""Bytes of those segments on disk, because payloads may be long."""


class Moved(Exception):
    """The driver has advanced, and its state after the batch of this version is deleted: open the table again."""


class Unknown(Exception):
    """It cannot be determined which segments the table holds. The text says why."""


class Pending(NamedTuple):
    """The rows that a table does not have yet."""

    slices: tuple[Slice, ...]
    repeated: VersionVector
    """Numbers already in silver or quarantine: rows with them are duplicates."""
    late: VersionVector
    """Numbers that were announced lost before they arrived."""
    is_disjoint: bool
    """True: no row repeats another, unless an error row represents several numbers."""
    left: int
    """Number of segments beyond the limits, which are not read."""
    newest: int | None
    """When the newest row of table and pending rows was received, wall-clock nanoseconds; None if there is no row."""

    @property
    def rows(self) -> int:
        """Number of rows as received, including duplicates and bad rows."""
        return sum(piece.last - piece.first for piece in self.slices)


class Stream:
    """One stream of a lake. All its tables are completed up to the same segment: the last one at the first use."""

    def __init__(self, layout: Layout, stream: str) -> None:
        self.layout, self.stream = layout, stream
        self.source = Source(layout, stream)
        self.checkpoint = Checkpoint(layout, stream, is_dense=False)  # holes are not searched for here
        self.end = self.source.latest()

    def record(self) -> Record | None:
        """The record of the job; None if no job has run."""
        path = self.layout.checkpoint_id(self.stream)
        with _readable():
            return read_record(path) if path.exists() else None

    def pending(self, batch: int | None, offset: Callable[[], str | None]) -> Pending:
        """The pending rows after a batch.

        `batch` is the last one that the table has from the job of `record`, None before its first; `offset` looks up in
        the table's log where it ended. Raises `Moved`, `Unknown`, and SegmentFault if a segment is gone or altered: the
        driver would refuse it too.
        """
        with _readable():
            coverage = self._behind(batch, offset)
        start = parse(coverage.offset).at if coverage.offset else self._start()
        reached = self._reached(start)
        intake = intake_between(self.source, start, reached)
        plan = coverage.advance(intake, 0)
        return Pending(
            intake.slices, plan.repeated, plan.late, intake.is_disjoint, self._beyond(reached), self._newest(reached)
        )

    def _reached(self, start: At) -> At:
        """The position that the limits allow."""
        segments = SEGMENTS_MAX
        while True:
            reached = self.source.advance(start, Limits(ROWS_MAX, segments), self.end)
            size = sum(piece.bytes for piece in self.source.slices(start, reached))
            if size <= BYTES_MAX or segments == 1:
                return reached
            segments //= 2

    def _start(self) -> At:
        return position(self.source, self.checkpoint.start())

    def _behind(self, batch: int | None, offset: Callable[[], str | None]) -> Coverage:
        """The driver's coverage after a batch."""
        record = self.record()
        if record is None:
            return Coverage(is_dense=False)
        number = record.base - 1 if batch is None else batch
        try:
            return self.checkpoint.coverage(number)
        except FileNotFoundError:
            return self._later(number, offset())

    def _later(self, number: int, offset: str | None) -> Coverage:
        """The state after the next batch that is kept, provided no batch in between has brought a row."""
        home = self.layout.coverage(self.stream, max(number, 0)).parent
        kept = sorted(int(path.stem) for path in home.glob("*.wv"))
        later = next((one for one in kept if one > number), None)
        if later is None or offset is None:
            raise Unknown("its checkpoint is older than the table, or not whole: weft lake check")
        coverage = self.checkpoint.coverage(later)
        if self.source.slices(parse(offset).at, parse(coverage.offset).at):
            raise Moved
        return coverage

    def _beyond(self, reached: At) -> int:
        return sum(tip - reached.get(drain, (1, 0))[0] for drain, (tip, _) in self.end.items())

    def _newest(self, reached: At) -> int | None:
        """The last segment of each drain that is read, in whole or in part."""
        stamps = []
        for drain, (number, row) in reached.items():
            last = number if row else number - 1
            manifest = self.source.drains()[drain].manifest(last) if last >= 1 else None
            stamps.append((manifest.last_received or 0) if manifest else 0)
        return max(stamps, default=0) or None


@contextmanager
def _readable() -> Iterator[None]:
    """The record, or None: a checkpoint with content that a driver never writes counts as missing."""
    try:
        yield
    except (MsgspecError, ValueError) as error:
        raise Unknown(f"its checkpoint cannot be read: {error}") from None
