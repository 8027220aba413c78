"""The segments of one journal in order, to be read from any thread while one thread writes.

The list is a tuple that is replaced, never changed, and each segment publishes how far it can be read after the sync;
so a reader needs no lock, and what it sees is durable. A segment may be forgotten while somebody reads it: the open
file stays readable, and the next look finds the segments that are left.
"""

from bisect import bisect_right
from collections.abc import Iterator

from weft.base.records import Entry
from weft.base.spool import Span
from weft.shell.files import Files
from weft.shell.journal import spans
from weft.shell.journal.segment import Segment


class Shelf:
    """Reads the records in the segments."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.segments: tuple[Segment, ...] = ()

    @property
    def first_lsn(self) -> int:
        """The lowest lsn that is still there."""
        return self.segments[0].first_lsn if self.segments else 1

    @property
    def end_lsn(self) -> int:
        """The lsn after the last record."""
        return self.segments[-1].end.lsn if self.segments else 1

    def add(self, segment: Segment) -> None:
        self.segments = (*self.segments, segment)

    def behind(self, lsn: int) -> tuple[Segment, ...]:
        """The segments that may hold records after `lsn`."""
        segments = self.segments
        index = bisect_right(segments, lsn + 1, key=lambda segment: segment.first_lsn) - 1
        return segments[max(0, index) :]

    def read(self, after: int, bytes_max: int) -> tuple[list[Entry], int]:
        """Records after the lsn `after`: about `bytes_max` bytes, at least one record; and the lsn up to which it has read.

        The cost depends only on what is returned. Records that cannot be read are absent. OSError from the disk.
        """
        entries: list[Entry] = []
        upto = after
        for segment in self.behind(after):
            if segment.last_lsn <= upto:
                continue
            try:
                found, reached, taken = segment.read(self._files, upto, bytes_max)
            except FileNotFoundError:
                if segment in self.segments:
                    raise
                continue  # deleted meanwhile: nobody needs its records
            entries += found
            bytes_max -= taken
            upto = reached
            if bytes_max <= 0:
                break
        return entries, upto

    def entries(self, since: int = 1) -> Iterator[Entry]:
        """All records from `since` on, with a `DamageRecord` in the place of what cannot be read."""
        for segment in self.behind(since - 1):
            yield from segment.entries(self._files, since)

    def oldest_spans(self, released: int) -> tuple[int, tuple[Span, ...]]:
        """The last lsn of the lowest closed segment that some reader still needs, and its numbers; else (0, ())."""
        for segment in self.segments[:-1]:
            if segment.last_lsn > released:
                return segment.last_lsn, spans.held(self._files, segment)
        return 0, ()
