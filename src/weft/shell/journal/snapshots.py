"""Writes a snapshot: the condensed state of the cores, from which a start is quick (JRN-040).

A snapshot is a file like a segment, named after the first record that it does *not* cover. It is used only once it is
complete, renamed to its final name, durable and read back. The one before it is kept as well, so that a corrupt newest
snapshot costs only a longer start.
"""

from collections.abc import Iterable
from pathlib import Path

from weft.base.records import CoreRecord
from weft.shell.files import File, Files, append_whole, remove
from weft.shell.journal.limits import SNAPSHOT_BATCH_BYTES, SNAPSHOT_BATCH_RECORDS
from weft.shell.journal.segment import SNAPSHOT_SUFFIX, Segment, name_of
from weft.shell.journal.survey import TMP_SUFFIX
from weft.wire.journal import encode_body
from weft.wire.segments import SNAPSHOT, Header, Place, close_batch, decode_header, encode_header, encode_seal


class SnapshotWriter:
    """One snapshot being written. Call `add` any number of times, then `finish`. Raises OSError."""

    def __init__(self, files: Files, directory: Path, header: Header) -> None:
        self._files = files
        self._path = directory / name_of(header.first_lsn, SNAPSHOT_SUFFIX)
        self._partial = self._path.with_name(self._path.name + TMP_SUFFIX)
        data = encode_header(SNAPSHOT, header.node, header.first_lsn, header.created_ns, header.prev)
        self._header = decode_header(data)
        self._lsn, self._chain = header.first_lsn, header.prev
        self._contents: list[tuple[str, int]] = []
        self._waiting: list[CoreRecord] = []
        self._waiting_bytes = 0
        remove(files, self._partial)
        self._file: File | None = files.create(self._partial)
        append_whole(files, self._file, data)

    def add(self, records: Iterable[CoreRecord]) -> None:
        """Add records; those of one core must come together."""
        for record in records:
            is_other = not self._contents or self._contents[-1][0] != record.core
            if is_other or len(self._waiting) >= SNAPSHOT_BATCH_RECORDS or self._waiting_bytes >= SNAPSHOT_BATCH_BYTES:
                self._write()
            if is_other:
                self._contents.append((record.core, 0))
            self._waiting.append(record)
            self._waiting_bytes += len(record.data)

    def _write(self) -> None:
        if not self._waiting:
            return
        count = len(self._waiting)
        body, _ = encode_body(self._waiting)
        crc = close_batch(body, Place(self._lsn, count, self._chain), self._header.salt)
        self._append(body)
        self._lsn, self._chain = self._lsn + count, crc
        core, before = self._contents[-1]
        self._contents[-1] = core, before + count
        self._waiting, self._waiting_bytes = [], 0

    def _append(self, data: bytes | bytearray) -> None:
        assert self._file is not None, "nothing can be added to a finished snapshot"
        append_whole(self._files, self._file, data)

    def finish(self) -> Segment | None:
        """Seal, sync, rename, sync the directory, and read back.

        None if what is read back is not what was written.
        """
        self._write()
        seal, _ = encode_seal(self._contents, self._lsn, self._chain, self._header.salt)
        self._append(seal)
        assert self._file is not None, "checked by the append above"
        self._files.sync(self._file)
        self._close()
        self._files.rename(self._partial, self._path)
        self._files.sync_directory(self._path.parent)
        snapshot = Segment.load(self._files, self._path, self._header.node)
        return snapshot if snapshot.is_complete(self._files) else None

    def abandon(self) -> None:
        """Give up, and remove the unfinished file."""
        self._close()
        remove(self._files, self._partial)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            self._files.close(file)
