"""Which rows of a stream stand in segments and not yet in a table (PIP-102).

The version of the table that is read says up to which batch it goes; the checkpoint says where that batch ended and which
numbers were covered behind it. What lies between there and the last segment is *pending*. It is planned with the driver's
own `intake_between` and `Coverage.advance`, as if one more batch took all of it. So a commit that lands in between changes
nothing: the segments belong to the version that was opened first.

Nothing is written. Of a lake that has no table yet and no checkpoint, everything that is drained is pending.
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
"""Rows of one stream that are read besides a table, as many as a batch of the driver may have; about 400 MB in memory."""
SEGMENTS_MAX: Final = 2_048
"""Segments of one stream: to open one costs 0.7 ms, whatever it holds."""
BYTES_MAX: Final = 64 << 20
"""Bytes of those segments, as they are on disk: payloads may be long."""


class Moved(Exception):
    """The driver has gone on, and what it knew behind the batch of this version is deleted: open the table anew."""


class Unknown(Exception):
    """Nobody can say which segments the table holds. The text says why."""


class Pending(NamedTuple):
    """What a table does not have yet."""

    slices: tuple[Slice, ...]
    repeated: VersionVector
    """Numbers that silver or quarantine covers already: rows with them are duplicates."""
    late: VersionVector
    """Numbers that had been announced lost before they came."""
    is_disjoint: bool
    """No row repeats another, unless an error row stands for several numbers."""
    left: int
    """Segments beyond the limits, which are not read."""
    newest: int | None
    """When the newest row of table and pending rows was received, wall-clock nanoseconds; None: there is none."""

    @property
    def rows(self) -> int:
        """As received: duplicates and bad rows included."""
        return sum(piece.last - piece.first for piece in self.slices)


class Stream:
    """One stream of a lake, as it was when it was first asked for: all tables of it are completed up to the same segment."""

    def __init__(self, layout: Layout, stream: str) -> None:
        self.layout, self.stream = layout, stream
        self.source = Source(layout, stream)
        self.checkpoint = Checkpoint(layout, stream, is_dense=False)  # holes are not looked for here
        self.end = self.source.latest()

    def record(self) -> Record | None:
        """Who the job is; None if none has run."""
        path = self.layout.checkpoint_id(self.stream)
        with _readable():
            return read_record(path) if path.exists() else None

    def pending(self, batch: int | None, offset: Callable[[], str | None]) -> Pending:
        """What lies behind a batch.

        `batch` is the last one that the table has of the job of `record`, None before its first; `offset` finds what the
        table's log says of where it ended.

        `Moved`, `Unknown`; SegmentFault if a segment is gone or altered: the driver refuses it, too.
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
        """As far as the limits allow."""
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
        """What the driver knew behind a batch."""
        record = self.record()
        if record is None:
            return Coverage(is_dense=False)
        number = record.base - 1 if batch is None else batch
        try:
            return self.checkpoint.coverage(number)
        except FileNotFoundError:
            return self._later(number, offset())

    def _later(self, number: int, offset: str | None) -> Coverage:
        """The state behind the next batch that is kept, if none of those in between has brought a row."""
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
        """Of each drain the last segment that is read, in whole or in part."""
        stamps = []
        for drain, (number, row) in reached.items():
            last = number if row else number - 1
            manifest = self.source.drains()[drain].manifest(last) if last >= 1 else None
            stamps.append((manifest.last_received or 0) if manifest else 0)
        return max(stamps, default=0) or None


@contextmanager
def _readable() -> Iterator[None]:
    """A checkpoint that holds something else than a driver writes is one that says nothing."""
    try:
        yield
    except (MsgspecError, ValueError) as error:
        raise Unknown(f"its checkpoint cannot be read: {error}") from None
