"""Finds the rows of a stream that are in segments but not yet in a table (PIP-102).

The log of the table names its last batch; the checkpoint has the offset and the coverage after that batch. Everything
from there to the last segment is *pending*. It is planned by the driver's own functions, `intake_between` and
`Coverage.advance`, as if it were the next batch. A commit that happens meanwhile makes no difference, because the version
of the table is chosen first and kept.

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
"""Rows of one stream that are read besides a table: as many as a batch of the driver, about 400 MB in memory."""
SEGMENTS_MAX: Final = 2_048
"""Segments of one stream that are read; opening one takes 0.7 ms, whatever its size."""
BYTES_MAX: Final = 64 << 20
"""Bytes of those segments on disk; payloads may be long."""


class Moved(Exception):
    """The driver has gone on and has deleted its state after the batch of this version: open the table again."""


class Unknown(Exception):
    """Pending rows of a table cannot be determined. The text says why."""


class Pending(NamedTuple):
    """The rows that a table does not have yet."""

    slices: tuple[Slice, ...]
    repeated: VersionVector
    """Numbers already in silver or quarantine: rows with them are duplicates."""
    late: VersionVector
    """Numbers that were announced lost before they arrived."""
    is_disjoint: bool
    """True: no row repeats a number, unless an error row stands for several."""
    left: int
    """How many segments are beyond the limits and are not read."""
    newest: int | None
    """When the newest row, of the table or pending, was received, wall-clock nanoseconds; None without a row."""

    @property
    def rows(self) -> int:
        """Number of rows as received, including duplicates and bad rows."""
        return sum(piece.last - piece.first for piece in self.slices)


class Stream:
    """One stream of a lake. Pending rows of all its tables end at the same segment: the last one when this object was made."""

    def __init__(self, layout: Layout, stream: str) -> None:
        self.layout, self.stream = layout, stream
        self.source = Source(layout, stream)
        self.checkpoint = Checkpoint(layout, stream, is_dense=False)  # so that no time is spent on finding holes
        self.end = self.source.latest()

    def record(self) -> Record | None:
        """The record of the job; None if no job has run."""
        path = self.layout.checkpoint_id(self.stream)
        with _readable():
            return read_record(path) if path.exists() else None

    def pending(self, batch: int | None, offset: Callable[[], str | None]) -> Pending:
        """The pending rows after a batch.

        `batch` is the last one that the table has from the job of `record`, None before its first; `offset` looks up in
        the table's log where that batch ended. Raises Moved, Unknown, and SegmentFault if a segment is gone or changed,
        which the driver would refuse too.
        """
        with _readable():
            coverage = self._state_after(batch, offset)
        start = parse(coverage.offset).at if coverage.offset else self._start()
        reached = self._reached(start)
        intake = intake_between(self.source, start, reached)
        plan = coverage.advance(intake, 0)
        return Pending(
            intake.slices, plan.repeated, plan.late, intake.is_disjoint, self._left(reached), self._newest(reached)
        )

    def _reached(self, start: At) -> At:
        """How far the limits allow to read."""
        segments = SEGMENTS_MAX
        while True:
            reached = self.source.advance(start, Limits(ROWS_MAX, segments), self.end)
            size = sum(piece.bytes for piece in self.source.slices(start, reached))
            if size <= BYTES_MAX or segments == 1:
                return reached
            segments //= 2

    def _start(self) -> At:
        return position(self.source, self.checkpoint.start())

    def _state_after(self, batch: int | None, offset: Callable[[], str | None]) -> Coverage:
        """The driver's coverage after a batch."""
        record = self.record()
        if record is None:
            return Coverage(is_dense=False)
        number = record.base - 1 if batch is None else batch
        try:
            return self.checkpoint.coverage(number)
        except FileNotFoundError:
            return self._later_state(number, offset())

    def _later_state(self, number: int, offset: str | None) -> Coverage:
        """The oldest saved state after a batch whose own state is deleted, if no batch in between has brought a row."""
        home = self.layout.coverage(self.stream, max(number, 0)).parent
        saved = sorted(int(path.stem) for path in home.glob("*.wv"))
        later = next((batch for batch in saved if batch > number), None)
        if later is None or offset is None:
            raise Unknown("its checkpoint is older than the table, or incomplete: weft lake run says what to do")
        coverage = self.checkpoint.coverage(later)
        if self.source.slices(parse(offset).at, parse(coverage.offset).at):
            raise Moved
        return coverage

    def _left(self, reached: At) -> int:
        """How many segments are after a position."""
        return sum(tip - reached.get(drain, (1, 0))[0] for drain, (tip, _) in self.end.items())

    def _newest(self, reached: At) -> int | None:
        """When the newest row up to a position was received, from the last segment of each drain."""
        stamps = []
        for drain, (number, row) in reached.items():
            last = number if row else number - 1
            manifest = self.source.drains()[drain].manifest(last) if last >= 1 else None
            stamps.append((manifest.last_received or 0) if manifest else 0)
        return max(stamps, default=0) or None


@contextmanager
def _readable() -> Iterator[None]:
    """Within this block, a file of the checkpoint that cannot be decoded raises Unknown."""
    try:
        yield
    except (MsgspecError, ValueError) as error:
        raise Unknown(f"its checkpoint cannot be read: {error}") from None
