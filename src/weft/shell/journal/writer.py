"""Writes the current segment: batches, marks, its seal, and then the next segment.

After every call either what was asked for is durable, or nothing of it is in the file (OSError; the file was cut back).
If neither can be promised, it raises `Broken`, and the writer is never used again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from weft.base.records import Record
from weft.shell.files import File, Files, append_whole, remove
from weft.shell.journal.errors import is_no_room
from weft.shell.journal.limits import FOOTER_ENTRIES_MAX, Limits
from weft.shell.journal.segment import End, Segment, name_of
from weft.shell.journal.witness import prepare_newest, swap_newest
from weft.wire.journal import BatchTooLarge, encode_body
from weft.wire.segments import (
    SEGMENT,
    Footer,
    Place,
    close_batch,
    decode_header,
    encode_header,
    encode_mark,
    read_head,
)


class Broken(OSError):
    """The content of the disk is unknown after this failure; whatever the error number, nothing is tried again."""


class Writer:
    """Appends to one segment after another. `next_lsn` and `chain` say where the journal continues."""

    def __init__(
        self, files: Files, directory: Path, node: bytes, limits: Limits, on_begin: Callable[[Segment], None]
    ) -> None:
        self._files, self._directory, self._node, self._limits = files, directory, node, limits
        self.next_lsn = 1
        self.chain = 0
        self.segment: Segment | None = None
        """The open one; None after a seal that no new segment could follow yet."""
        self.is_marked = True
        """Whether nothing stands behind the last mark, or nothing at all."""
        self.total_bytes = 0
        """Of all segments that it has written."""
        self.cut_back = 0
        self._on_begin = on_begin
        self._file: File | None = None
        self._footer = Footer()

    def begin(self, wall_ns: int) -> Segment:
        """Begin a segment: header, name and note become durable in this order, before any batch (JRN-012)."""
        path = self._directory / name_of(self.next_lsn)
        header = encode_header(SEGMENT, self._node, self.next_lsn, max(0, wall_ns), self.chain)
        try:
            file = self._files.create(path)
            try:
                append_whole(self._files, file, header)
                self._sync(file)
                self._files.sync_directory(self._directory)
                prepare_newest(self._files, self._directory, header)
                self._swap_newest()
            except OSError:
                self._files.close(file)
                raise
        except OSError as error:
            self._undo_begin(path, error)
            raise
        self._file, self._footer, self.is_marked = file, Footer(), True
        self.segment = Segment(path, decode_header(header, self._node), len(header))
        self.total_bytes += len(header)
        self._on_begin(self.segment)
        return self.segment

    def _swap_newest(self) -> None:
        try:
            swap_newest(self._files, self._directory)
        except OSError as error:  # it is unknown which segment the note names now
            raise Broken(error.errno, error.strerror, str(self._directory)) from error

    def _undo_begin(self, path: Path, error: OSError) -> None:
        if isinstance(error, Broken) or not is_no_room(error):
            return  # nothing is written any more, and the next start removes the file
        try:
            remove(self._files, path)
        except OSError as failed:
            raise Broken(failed.errno, failed.strerror, str(path)) from error

    def write(self, records: Sequence[Record], wall_ns: int) -> int:
        """Make the records of one turn durable with one append and one sync (JRN-001); returns the bytes written."""
        body, runs = encode_body(records)
        if self.segment is not None and self.is_full(len(body), wall_ns):
            self.seal()
        segment = self.segment or self.begin(wall_ns)
        crc = close_batch(body, Place(self.next_lsn, len(records), self.chain), segment.header.salt)
        offset = segment.size
        self._put(segment, body)
        self._footer.note(runs, offset)
        segment.note(self.next_lsn, offset)
        self._advance(segment, len(records), crc, is_marked=False)
        return len(body)

    def is_full(self, more_bytes: int, wall_ns: int) -> bool:
        """Whether the open segment should be sealed before `more_bytes` are added to it (JRN-011)."""
        segment = self.segment
        if segment is None:
            return False
        is_due = (
            segment.size + more_bytes > self._limits.segment_bytes
            or abs(wall_ns - segment.header.created_ns) >= self._limits.segment_age_ns
            or len(self._footer.entries) >= FOOTER_ENTRIES_MAX
        )
        return is_due and segment.end.lsn > segment.first_lsn

    def mark(self) -> None:
        """Write a mark: everything before it is durable (JRN-010)."""
        if self.segment is not None and not self.is_marked:
            self._put(self.segment, encode_mark(self.next_lsn, self.chain, self.segment.header.salt))
            self._advance(self.segment, 0, 0, is_marked=True)

    def seal(self) -> None:
        """Close the open segment with its footer; the next write begins another (JRN-011)."""
        segment = self.segment
        assert segment is not None, "only an open segment is sealed"
        seal, crc = self._footer.encode(self.next_lsn, self.chain, segment.header.salt)
        offset = segment.size
        self._put(segment, seal)
        segment.seal = read_head(seal, 0, segment.header.salt, offset)
        self._advance(segment, 0, crc, is_marked=True)
        self.close()
        self.segment = None

    def close(self) -> None:
        """Close the open file; writes nothing."""
        file, self._file = self._file, None
        if file is not None:
            self._files.close(file)

    def _advance(self, segment: Segment, count: int, crc: int, *, is_marked: bool) -> None:
        self.next_lsn += count
        self.chain = segment.chain = crc
        self.is_marked = is_marked
        segment.end = End(self.next_lsn, segment.size)

    def _put(self, segment: Segment, data: bytearray) -> None:
        file = self._file
        assert file is not None, "an open segment has an open file"
        try:
            append_whole(self._files, file, data)
        except OSError as error:
            if is_no_room(error):
                self._cut_back(file, segment.size)
            raise
        self._sync(file)
        segment.size += len(data)
        self.total_bytes += len(data)

    def _cut_back(self, file: File, size: int) -> None:
        """Remove what a short or refused append has left, durably, before anything else is written (JRN-005)."""
        self.cut_back += 1
        try:
            self._files.truncate(file, size)
        except OSError as error:
            raise Broken(error.errno, error.strerror, str(file.path)) from error
        self._sync(file)

    def _sync(self, file: File) -> None:
        try:
            self._files.sync(file)
        except OSError as error:
            raise Broken(error.errno, error.strerror, str(file.path)) from error


def in_batches(turn: Sequence[Record], write: Callable[[Sequence[Record]], None]) -> None:
    """Write the records of a turn in order: in one batch, or in several if they are too large for one."""
    parts = [turn]
    while parts:
        part = parts.pop()
        try:
            write(part)
        except BatchTooLarge:
            if len(part) == 1:
                raise
            half = len(part) // 2
            parts += (part[half:], part[:half])
