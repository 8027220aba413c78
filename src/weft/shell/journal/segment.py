"""One file of a journal on disk: where it ends, and reading from the middle of it.

A reader that asks for the records after an lsn must not pay for those before it. So a segment keeps a sparse index: one
(lsn, offset) per 256 KiB. The writer adds entries as it writes; for a file that a start has found, the index grows as
the file is read. From the nearest entry on, a walk reads only the heads of batches, up to the first record that is
wanted; the bodies that it returns are verified at every read (JRN-013). If a batch does not continue the one before it,
the whole file is judged (JRN-020): its gaps are remembered, and later walks skip them.

One thread writes, any number of threads read. Readers see what is before `end`, which the writer assigns after a sync.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from weft.base.errors import OurFault, PeerError
from weft.base.records import DamageRecord, Entry, Record
from weft.shell.files import File, Files, read_whole
from weft.shell.journal.limits import HEADS_BYTES, INDEX_BYTES, READ_BYTES, TAIL_BYTES
from weft.wire.journal import HEAD_BYTES, decode_record
from weft.wire.segments import (
    HEADER_BYTES,
    SEAL,
    Batch,
    FooterEntry,
    Gap,
    Header,
    Judgement,
    Verdict,
    decode_footer,
    decode_header,
    find_end,
    is_whole,
    judge,
    padded,
    read_head,
    split,
)

LSN_MAX: Final = 1 << 64
SEGMENT_SUFFIX: Final = ".seg"
SNAPSHOT_SUFFIX: Final = ".snap"


class Misfit(Exception):  # never leaves this module: whoever catches it has the file judged
    """A batch that does not continue the one before it."""


class End(NamedTuple):
    """Where the readable part of a file ends."""

    lsn: int
    """The lsn of the next record."""
    offset: int


def name_of(first_lsn: int, suffix: str = SEGMENT_SUFFIX) -> str:
    """The name of the file whose first record has this lsn."""
    return f"{first_lsn:016x}{suffix}"


class Segment:
    """A `.seg` or `.snap` file with a valid header."""

    def __init__(self, path: Path, header: Header, size: int) -> None:
        self.path, self.header = path, header
        self.end = End(header.first_lsn, HEADER_BYTES)
        self.size = size
        """Bytes of the file."""
        self.chain: int | None = header.prev
        """Checksum of the last body, which the next file names; None if that body cannot be read."""
        self.seal: Batch | None = None
        self.last_batch_at = HEADER_BYTES
        """Where the last readable batch with records begins, once the file has been judged."""
        self.gaps: tuple[Gap, ...] = ()
        self._joint: tuple[Gap, ...] = ()
        self._index: list[tuple[int, int]] = [(header.first_lsn, HEADER_BYTES)]
        self._noting = Lock()

    @classmethod
    def load(cls, files: Files, path: Path, node: bytes | None) -> "Segment":
        """Read the header of a file on disk; PeerError `bad-header` or `foreign` (of another node)."""
        file = files.open(path)
        try:
            return cls(path, decode_header(files.read(file, 0, HEADER_BYTES), node), files.size(file))
        finally:
            files.close(file)

    @property
    def first_lsn(self) -> int:
        return self.header.first_lsn

    @property
    def last_lsn(self) -> int:
        """The lsn of its last record; if it has none, one less than its first lsn."""
        return self.end.lsn - 1

    def note(self, lsn: int, offset: int) -> None:
        """Add the start of a batch to the index, unless it is within 256 KiB of the last entry."""
        if offset - self._index[-1][1] >= INDEX_BYTES:
            with self._noting:
                if offset - self._index[-1][1] >= INDEX_BYTES:
                    self._index.append((lsn, offset))

    def near(self, lsn: int) -> tuple[int, int]:
        """The start of an indexed batch at or before `lsn`."""
        with self._noting:
            return self._index[max(0, bisect_right(self._index, (lsn, LSN_MAX)) - 1)]

    # Finding the end and the gaps.

    def settle(self, files: Files, next_lsn: int) -> None:
        """Find the end of a file that another one follows, whose first record is `next_lsn`.

        The last bytes of the file suffice, unless they are damaged.
        """
        file = files.open(self.path)
        try:
            start = max(HEADER_BYTES, self.size - TAIL_BYTES)
            last = find_end(files.read(file, start, self.size - start), start, self.header.salt)
            if last is None or last.offset == HEADER_BYTES:  # a file whose only batch is its seal may be one gap
                self._walk_to_end(files, file, LSN_MAX)
            else:
                self._end_with(last)
        except Misfit:
            self.inspect(files, is_last=False, next_lsn=next_lsn)
        finally:
            files.close(file)

    def extend(self, files: Files) -> None:
        """Find the end again of a file that is being written to; a batch that is not complete yet is left out."""
        file = files.open(self.path)
        try:
            self.size = files.size(file)
            self._walk_to_end(files, file, 0)
        except Misfit:
            self.inspect(files, is_last=True)
        finally:
            files.close(file)

    def _walk_to_end(self, files: Files, file: File, wanted: int) -> None:
        walk = Walk(self, files, file, self.near(LSN_MAX), End(LSN_MAX, self.size))
        while walk.next(wanted) is not None:
            pass
        if walk.batch is not None:
            self._end_with(walk.batch)

    def _end_with(self, last: Batch) -> None:
        self.chain, self.seal = last.crc, last if last.flags & SEAL else None
        self.end = End(last.end_lsn, padded(last.end))

    def inspect(self, files: Files, *, is_last: bool, next_lsn: int | None = None) -> Judgement:
        """Read and judge the whole file, and remember its gaps."""
        return self.adopt(judge(read_whole(files, self.path), self.header.node, is_last=is_last), next_lsn)

    def adopt(self, judgement: Judgement, next_lsn: int | None) -> Judgement:
        """Take gaps and end from a judgement; a gap at the end reaches to the beginning of the next file."""
        judgement = _closed(judgement, next_lsn)
        if _is_leftover(judgement, next_lsn):
            judgement = judgement._replace(verdict=Verdict.TORN, gaps=())
        self._know(judgement)
        if judgement.batches:
            self.last_batch_at = judgement.batches[-1].offset
        self.seal, self.chain = judgement.seal, judgement.chain
        gaps = (End(gap.end_lsn or 0, gap.to) for gap in judgement.gaps)
        self.end = max((End(judgement.next_lsn, judgement.cut_at), *gaps))
        return judgement

    def judge_again(self, files: Files, end: End) -> None:
        """Judge a file again, up to `end`, since it did not read as expected; it may be written to meanwhile."""
        data = read_whole(files, self.path)[: end.offset]
        self._know(_closed(judge(data, self.header.node, is_last=False), end.lsn))

    def _know(self, judgement: Judgement) -> None:
        if judgement.header is None:
            raise OurFault(f"{self.path} lost its header while it was open")
        for batch in judgement.batches:
            self.note(batch.lsn, batch.offset)
        self.gaps = (*self._joint, *judgement.gaps)

    def torn_off(self) -> None:
        """Add a gap: the file does not name the checksum of the file before it, although its numbers continue."""
        if not self._joint:
            self._joint = (Gap(HEADER_BYTES, HEADER_BYTES, self.first_lsn, self.first_lsn, "chain"),)
            self.gaps = (*self._joint, *self.gaps)

    def footer(self, files: Files) -> list[FooterEntry] | None:
        """The entries of its seal; None if it is not sealed."""
        if self.seal is None:
            return None
        file = files.open(self.path)
        try:
            return decode_footer(files.read(file, self.seal.body.start, self.seal.size))
        finally:
            files.close(file)

    # Reading.

    def read(self, files: Files, after: int, bytes_max: int) -> tuple[list[Entry], int, int]:
        """The records after lsn `after`, the lsn up to which they are complete, and how many bytes they have.

        Stops after about `bytes_max` bytes. Records in gaps are left out; one that cannot be decoded becomes a
        `DamageRecord`.
        """
        end = self.end
        for _ in range(2):
            try:
                return self._read(files, after, bytes_max, end)
            except Misfit:
                self.judge_again(files, end)
        raise OurFault(f"{self.path} does not read as it was judged")

    def verify(self, files: Files) -> bool:
        """Read and verify the whole file (JRN-013); False if its gaps are not those that were known."""
        known, end = self.gaps, self.end
        file = files.open(self.path)
        try:
            walk = Walk(self, files, file, (self.first_lsn, HEADER_BYTES), end)
            while (batch := walk.next(0)) is not None:
                walk.count(batch)
        except Misfit:
            self.judge_again(files, end)
        finally:
            files.close(file)
        return self.gaps == known

    def is_complete(self, files: Files) -> bool:
        """Whether a file that nobody writes to is valid from header to seal; if it is, its end is set."""
        file = files.open(self.path)
        try:
            walk = Walk(self, files, file, (self.first_lsn, HEADER_BYTES), End(LSN_MAX, self.size))
            while (batch := walk.next(0)) is not None:
                walk.count(batch)
        except Misfit:
            return False
        finally:
            files.close(file)
        if walk.batch is None or not walk.batch.flags & SEAL:
            return False
        self._end_with(walk.batch)
        return True

    def _read(self, files: Files, after: int, bytes_max: int, end: End) -> tuple[list[Entry], int, int]:
        file = files.open(self.path)
        try:
            return self._gather(Walk(self, files, file, self.near(after + 1), end), after, bytes_max, end)
        finally:
            files.close(file)

    def _gather(self, walk: "Walk", after: int, bytes_max: int, end: End) -> tuple[list[Entry], int, int]:
        entries: list[Entry] = []
        taken, name = 0, self.path.name
        while (batch := walk.next(after + 1)) is not None:
            lsn = max(after + 1, batch.lsn)
            for data in walk.records(batch, lsn):
                if taken >= bytes_max:
                    return entries, lsn - 1, taken
                entries.append((lsn, understood(data, lsn, name)))
                taken += len(data)
                lsn += 1
        return entries, end.lsn - 1, taken

    def entries(self, files: Files, since: int = 1) -> Iterator[Entry]:
        """All records from `since` on, read piece by piece; each gap is returned as a `DamageRecord` (JRN-022)."""
        after = max(since, self.first_lsn) - 1
        last = self.last_lsn
        yield from ((since, record) for lsn, record in self.damages(upto=after) if since < record.end_lsn)
        while after < last:
            found, upto, _ = self.read(files, after, READ_BYTES)
            damages = self.damages(after, upto)
            yield from sorted((*damages, *found), key=lambda entry: entry[0]) if damages else found
            after = upto

    def damages(self, after: int = 0, upto: int = LSN_MAX) -> list[tuple[int, DamageRecord]]:
        """The gaps that begin after `after` and not after `upto`, with their first lsn, in order."""
        return [
            (gap.first_lsn, DamageRecord(gap.first_lsn, gap.end_lsn or gap.first_lsn, self.path.name, gap.why))
            for gap in self.gaps
            if after < gap.first_lsn <= upto
        ]


def _closed(judgement: Judgement, next_lsn: int | None) -> Judgement:
    """The judgement, in which a gap at the end of the file ends where the next file begins."""
    *gaps, tail = judgement.gaps or (None,)
    if tail is None or tail.end_lsn is not None:
        return judgement
    tail = tail._replace(end_lsn=max(judgement.next_lsn, next_lsn or 0))
    return judgement._replace(gaps=(*gaps, tail))


def _is_leftover(judgement: Judgement, next_lsn: int | None) -> bool:
    """Whether all that cannot be read stands after the last record: the next file continues from there."""
    tail = judgement.gaps[0] if len(judgement.gaps) == 1 else None
    return tail is not None and tail.why == "checksum" and tail.first_lsn == tail.end_lsn == next_lsn


def understood(data: bytes, lsn: int, name: str) -> Record:
    """Decode a record whose checksum is right; a `DamageRecord` if it cannot be decoded all the same."""
    try:
        return decode_record(data)
    except PeerError:
        return DamageRecord(lsn, lsn + 1, name, "malformed")


class Walk:
    """Goes through a segment batch by batch, and reads only what is needed."""

    def __init__(self, segment: Segment, files: Files, file: File, start: tuple[int, int], end: End) -> None:
        self._segment, self._files, self._file, self._end = segment, files, file, end
        self.lsn, self.offset = start
        self.chain = segment.header.prev if self.offset == HEADER_BYTES else None
        self.batch: Batch | None = None
        self._gaps = [gap for gap in segment.gaps if gap.to >= self.offset]
        self._data = b""
        self._base = 0

    def next(self, wanted: int) -> Batch | None:
        """The next batch with a record of lsn `wanted` or later, its body verified; None at the end.

        Of other batches only the heads are read, and known gaps are skipped. Misfit if a batch does not continue
        the one before it, or its body is damaged.
        """
        while self.offset < self._end.offset:
            if self._gaps and self._gaps[0].offset <= self.offset:
                self._leap(self._gaps.pop(0))
                continue
            batch = self._head(wanted)
            is_wanted = batch.records > 0 and batch.end_lsn > wanted
            if is_wanted or batch.flags & SEAL:
                self._need(batch.offset, HEAD_BYTES + batch.size, READ_BYTES)
                if not is_whole(self._data, batch, self._base):
                    raise Misfit
            self._segment.note(batch.lsn, batch.offset)
            self.lsn, self.offset, self.chain, self.batch = batch.end_lsn, padded(batch.end), batch.crc, batch
            if is_wanted:
                return batch
        return None

    def count(self, batch: Batch) -> list[slice]:
        """Where the records of the batch lie that `next` has just returned; Misfit if they do not fill it."""
        start = batch.body.start - self._base
        places = split(self._data, start, start + batch.size, batch.records)
        if places is None:
            raise Misfit
        return places

    def records(self, batch: Batch, wanted: int) -> Iterator[bytes]:
        """The records from lsn `wanted` on in the batch that `next` has just returned.

        Misfit if they do not fill it.
        """
        return map(self._data.__getitem__, self.count(batch)[wanted - batch.lsn :])

    def _head(self, wanted: int) -> Batch:
        self._need(self.offset, HEAD_BYTES, READ_BYTES if self.lsn >= wanted else HEADS_BYTES)
        batch = read_head(self._data, self.offset - self._base, self._segment.header.salt, self._base)
        if batch is None or batch.lsn != self.lsn or batch.end > self._end.offset:
            raise Misfit
        if self.chain is not None and batch.prev != self.chain:
            raise Misfit
        return batch

    def _leap(self, gap: Gap) -> None:
        self.lsn, self.offset, self.chain = gap.end_lsn or self.lsn, max(self.offset, gap.to), None

    def _need(self, offset: int, count: int, ahead: int) -> None:
        if not self._base <= offset <= offset + count <= self._base + len(self._data):
            count = min(max(count, ahead), self._end.offset - offset)
            self._data, self._base = self._files.read(self._file, offset, count), offset
