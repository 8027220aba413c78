"""The files of a journal as bytes: headers, batches, marks, seals, footers, and what to make of damaged ones.

A file is a header of 64 bytes and batches. A batch is a head of 32 bytes and a body of records; heads are salted
with the header's own checksum, so a stale block of another file never looks valid, and each names the checksum of
the body before it, so batches form a chain. A *mark* is an empty batch that says: everything before is durable.
A *seal* ends a file; its body, the footer, lists what the file holds.

`judge` is the whole of recovery's reasoning (JRN-020). At most one batch is ever written and not yet synced
(JRN-003); therefore an invalid batch at the end of the last file is a torn tail, which is normal and cut, and an
invalid batch with a valid one behind it is damage, which is never silent and never hides what follows.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from weft.base.errors import PeerError
from weft.base.identity import NODE_ID_BYTES
from weft.wire.journal import BODY_BYTES_MAX, HEAD_BYTES, LENGTH_BYTES, Run

Data = bytes | bytearray | memoryview

SEGMENT: Final = b"WEFTJRN1"
SNAPSHOT: Final = b"WEFTSNP1"
HEADER_BYTES: Final = 64
STEP: Final = 8  # batches begin at multiples of it
MARK: Final = 1
SEAL: Final = 2
SCAN_SHARE_MAX: Final = 4  # a search reads at most this many times the file: crafted heads cannot make it quadratic

_HEADER: Final = Struct(">8s16sQQI16xI")
_HEAD: Final = Struct(">IIQIIII")
_U32: Final = Struct(">I")
_NOTHING: Final = bytes(16)


class Header(NamedTuple):
    """The first 64 bytes of a file."""

    magic: bytes
    node: bytes
    first_lsn: int
    created_ns: int
    """Wall clock; information only."""
    prev: int
    """Checksum of the last body of the file before; 0 if there is none."""
    salt: int
    """Checksum of the header, from which all checksums of heads are started."""


class Batch(NamedTuple):
    """The head of one batch, and where it stands in its file."""

    offset: int
    size: int
    """Bytes of the body."""
    crc: int
    lsn: int
    records: int
    """How many; marks and seals have none."""
    prev: int
    flags: int

    @property
    def body(self) -> slice:
        """Where its body stands in the file."""
        return slice(self.offset + HEAD_BYTES, self.offset + HEAD_BYTES + self.size)

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + HEAD_BYTES + self.size

    @property
    def end_lsn(self) -> int:
        """The lsn of the record behind it."""
        return self.lsn + self.records


class FooterEntry(NamedTuple):
    """A run of consecutive numbers of one origin in one stream, as a seal lists them."""

    stream: int
    origin: bytes | str
    era: int | None
    first: int
    last: int
    records: int
    """How many hold these numbers."""
    offset: int
    """Where the batch of the first one begins."""


class Verdict(Enum):
    """What a file is found to be."""

    CLEAN = "clean"
    TORN = "torn"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    BAD_HEADER = "bad-header"


class Gap(NamedTuple):
    """Bytes `offset` to before `to` cannot be read; records `first_lsn` to before `end_lsn` are missing."""

    offset: int
    to: int
    first_lsn: int
    end_lsn: int | None
    """None: up to the first record of the file that follows."""
    why: str
    """`checksum`, `missing` (numbers do not follow), `chain` (of another history), `count`, `padding`, `after-seal`."""


class Judgement(NamedTuple):
    """What `judge` makes of a file."""

    verdict: Verdict
    header: Header | None = None
    batches: tuple[Batch, ...] = ()
    """The readable ones with records, in order."""
    gaps: tuple[Gap, ...] = ()
    cut_at: int = 0
    """Where the readable part ends."""
    next_lsn: int = 0
    chain: int | None = None
    """Checksum of the last body, which the header of the next file names; None if that body cannot be read."""
    seal: Batch | None = None


# Writing.


def encode_header(magic: bytes, node: bytes, first_lsn: int, created_ns: int, prev: int) -> bytes:
    """The 64 bytes that a file begins with."""
    data = _HEADER.pack(magic, node, first_lsn, created_ns, prev, 0)[:60]
    return data + _U32.pack(crc32(data))


class Place(NamedTuple):
    """Where a batch stands in its file: what its head says besides lengths and checksums."""

    lsn: int
    records: int
    prev: int
    flags: int = 0


def close_batch(buffer: bytearray, place: Place, salt: int) -> int:
    """Make a batch of a body behind room for its head (`wire.journal.encode_body`): write the head, pad to a step.

    Returns the body's checksum, which the next head names.
    """
    with memoryview(buffer) as view:
        crc = crc32(view[HEAD_BYTES:])
    _HEAD.pack_into(buffer, 0, len(buffer) - HEAD_BYTES, crc, *place, 0)
    _U32.pack_into(buffer, 28, crc32(buffer[:28], salt))
    buffer += bytes(-len(buffer) % STEP)
    return crc


def encode_mark(lsn: int, prev: int, salt: int) -> bytearray:
    """An empty batch: everything before it is known durable (JRN-010)."""
    buffer = bytearray(HEAD_BYTES)
    close_batch(buffer, Place(lsn, 0, prev, MARK), salt)
    return buffer


def encode_seal(footer: Sequence[Any], lsn: int, prev: int, salt: int) -> tuple[bytearray, int]:
    """The end of a file, with its footer; and the footer's checksum (JRN-011)."""
    buffer = bytearray(HEAD_BYTES) + msgspec.msgpack.encode(footer)
    crc = close_batch(buffer, Place(lsn, 0, prev, SEAL), salt)
    return buffer, crc


class Footer:
    """Collects what a file holds, as its seal will list it: runs of consecutive numbers per origin and stream."""

    __slots__ = ("_newest", "entries")

    def __init__(self) -> None:
        self.entries: list[Run] = []
        self._newest: dict[tuple[int, bytes | str, int | None], Run] = {}

    def note(self, runs: Iterable[Run], offset: int) -> None:
        """Take in the runs of the batch that begins at `offset`; they are the footer's from then on."""
        for run in runs:
            source = run.stream, run.origin, run.era
            known = self._newest.get(source)
            if known is None or not known.first <= run.first <= known.last + 1:
                run.offset = offset
                self._newest[source] = run
                self.entries.append(run)
                continue
            known.records += run.records
            known.last = max(known.last, run.last)

    def encode(self, lsn: int, prev: int, salt: int) -> tuple[bytearray, int]:
        """The seal of the file, and its checksum."""
        return encode_seal(self.entries, lsn, prev, salt)


# Reading.


def decode_header(data: Data, node: bytes | None = None) -> Header:
    """The header of a file; PeerError `bad-header` or, of another node, `foreign`."""
    if len(data) < HEADER_BYTES:
        raise PeerError("bad-header", f"only {len(data)} bytes", bytes(data))
    magic, owner, first_lsn, created_ns, prev, salt = _HEADER.unpack_from(data)
    if magic not in (SEGMENT, SNAPSHOT) or crc32(data[:60]) != salt or first_lsn == 0:
        raise PeerError("bad-header", "checksum, or not a file of a journal", bytes(data[:HEADER_BYTES]))
    if node is not None and owner != node:
        raise PeerError("foreign", f"a file of node {owner.hex()}", bytes(data[:HEADER_BYTES]))
    return Header(magic, owner, first_lsn, created_ns, prev, salt)


def read_head(data: Data, at: int, salt: int, offset: int = 0) -> Batch | None:
    """The head at `at` of these bytes, which begin at `offset` of their file; None if there is no valid one."""
    if at + HEAD_BYTES > len(data):
        return None
    size, crc, lsn, records, prev, flags, check = _HEAD.unpack_from(data, at)
    if size > BODY_BYTES_MAX or crc32(data[at : at + 28], salt) != check:
        return None
    return Batch(offset + at, size, crc, lsn, records, prev, flags)


def is_whole(data: Data, batch: Batch, offset: int = 0) -> bool:
    """Whether the body of `batch` is all there and has the right checksum; the bytes begin at `offset`."""
    start = batch.offset + HEAD_BYTES - offset
    body = data[start : start + batch.size]
    return len(body) == batch.size and crc32(body) == batch.crc


def padded(size: int) -> int:
    """`size` made a multiple of the step at which batches begin."""
    return size + -size % STEP


def split(data: Data, start: int, end: int, records: int) -> list[slice] | None:
    """Where the `records` records of a body at `start` to before `end` stand; None if they do not fill it exactly."""
    places: list[slice] = []
    place, unpack = places.append, _U32.unpack_from
    for _ in range(records):
        if start + LENGTH_BYTES > end:
            return None
        start += LENGTH_BYTES
        after = start + unpack(data, start - LENGTH_BYTES)[0]
        if after == start or after > end:
            return None
        place(slice(start, after))
        start = after
    return places if start == end else None


def find_end(data: bytes, offset: int, salt: int) -> Batch | None:
    """The seal or mark with which a file ends, if these last bytes of it, from `offset` on, hold it whole.

    So the end of a file, and by a seal all that it holds, is known without reading it (JRN-011).
    """
    place = len(data) - HEAD_BYTES
    while place >= 0:
        batch = read_head(data, place, salt, offset)
        if batch is not None and padded(batch.end) == offset + len(data) and is_whole(data, batch, offset):
            return batch if batch.flags & (MARK | SEAL) else None
        flags_at = data.rfind(_SEAL_FLAGS, 0, place + 24)
        place = flags_at - 24 if flags_at >= 24 else -1
    return None


_SEAL_FLAGS: Final = _U32.pack(SEAL)


def decode_footer(body: Data) -> list[FooterEntry]:
    """What a seal lists; PeerError `malformed`."""
    try:
        rows = _decode_footer(body)
        return [FooterEntry(row[0], _decode_origin(row[1]), *row[2:]) for row in rows]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("malformed", f"a footer: {error}", bytes(body[:256])) from error


def decode_contents(body: Data) -> list[tuple[str, int]]:
    """What the seal of a snapshot lists: cores, and how many records each; PeerError `malformed`."""
    try:
        return _decode_contents(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("malformed", f"the contents of a snapshot: {error}", bytes(body[:256])) from error


_Row = tuple[int, msgspec.Raw, int | None, int, int, int, int]
_decode_footer: Final = msgspec.msgpack.Decoder(list[_Row]).decode
_decode_contents: Final = msgspec.msgpack.Decoder(list[tuple[str, int]]).decode
_decode_node: Final = msgspec.msgpack.Decoder(bytes).decode
_decode_name: Final = msgspec.msgpack.Decoder(str).decode
_BIN8: Final = 0xC4


def _decode_origin(raw: msgspec.Raw) -> bytes | str:
    is_node = memoryview(raw)[0] == _BIN8
    origin: bytes | str = _decode_node(raw) if is_node else _decode_name(raw)
    if is_node and len(origin) != NODE_ID_BYTES:
        raise msgspec.ValidationError("an origin is 16 bytes, or text")
    return origin


# Judging.


def judge(data: bytes, node: bytes | None, *, is_last: bool) -> Judgement:
    """What a whole file is, which of its batches can be read, and what is missing (JRN-020); never raises.

    `is_last` says that no file of the journal follows: only there can a tail be torn. Linear in the file's length.
    """
    try:
        header = decode_header(data, node)
    except PeerError as error:
        return Judgement(Verdict.FOREIGN if error.code == "foreign" else Verdict.BAD_HEADER)
    return _Judge(data, header, is_last=is_last).judgement()


class _Judge:
    """One walk through one file."""

    def __init__(self, data: bytes, header: Header, *, is_last: bool) -> None:
        self.data, self.header, self.is_last = data, header, is_last
        self.at = HEADER_BYTES
        self.lsn = header.first_lsn
        self.chain: int | None = header.prev
        """Checksum of the body before; None behind a gap, where it is not known."""
        self.batches: list[Batch] = []
        self.gaps: list[Gap] = []
        self.seal: Batch | None = None
        self.is_torn = False
        self.patience = SCAN_SHARE_MAX * len(data)

    def judgement(self) -> Judgement:
        while self.seal is None and self.at < len(self.data):
            batch = self._valid_at(self.at)
            if batch is not None:
                self._take(batch)
            elif self._is_blank(self.at) or not self._leap():
                break
        self._look_behind()
        verdict = Verdict.DAMAGED if self.gaps else Verdict.TORN if self.is_torn else Verdict.CLEAN
        batches, gaps = tuple(self.batches), tuple(self.gaps)
        return Judgement(verdict, self.header, batches, gaps, self.at, self.lsn, self.chain, self.seal)

    def _look_behind(self) -> None:
        """Judge the bytes behind the last batch: a torn tail, or damage behind the seal."""
        if self.seal is not None:
            if not self._is_blank(self.at):
                self.gaps.append(Gap(self.at, len(self.data), self.lsn, self.lsn, "after-seal"))
        elif self.is_last and self.gaps and self.gaps[-1].why == "padding" and self.gaps[-1].to == self.at:
            self.gaps.pop()  # the crash came while the padding of the last batch was written; its body is whole
            self.is_torn = True

    def _valid_at(self, at: int) -> Batch | None:
        batch = read_head(self.data, at, self.header.salt)
        return batch if batch is not None and batch.lsn >= self.lsn and is_whole(self.data, batch) else None

    def _take(self, batch: Batch) -> None:
        """Accept a batch with valid checksums; note a gap if its numbers or its chain do not continue those before it."""
        if batch.lsn > self.lsn:
            self.gaps.append(Gap(batch.offset, batch.offset, self.lsn, batch.lsn, "missing"))
        elif self.chain is not None and batch.prev != self.chain:
            self.gaps.append(Gap(batch.offset, batch.offset, batch.lsn, batch.lsn, "chain"))
        self.at = padded(batch.end)
        if batch.records:
            if split(self.data, batch.body.start, batch.end, batch.records) is None:
                self.gaps.append(Gap(batch.offset, self.at, batch.lsn, batch.end_lsn, "count"))
            else:
                self.batches.append(batch)
        if any(self.data[batch.end : self.at]):
            self.gaps.append(Gap(batch.end, self.at, batch.end_lsn, batch.end_lsn, "padding"))
        self.lsn, self.chain = batch.end_lsn, batch.crc
        if batch.flags & SEAL:
            self.seal = batch

    def _leap(self) -> bool:
        """Find the next valid batch behind what cannot be read; False if there is none, and the file ends here."""
        found = self._search(self.at + STEP)
        if found is not None:
            self.gaps.append(Gap(self.at, found.offset, self.lsn, found.lsn, "checksum"))
            self.at, self.lsn, self.chain = found.offset, found.lsn, None
            return True
        self.is_torn = self.is_last
        if not self.is_last:
            self.gaps.append(Gap(self.at, len(self.data), self.lsn, None, "checksum"))
        return False

    def _search(self, at: int) -> Batch | None:
        for place in _places(self.data, at):
            head = read_head(self.data, place, self.header.salt)
            if head is not None and head.lsn >= self.lsn:
                self.patience -= head.size
                if self.patience < 0:
                    return None
                if is_whole(self.data, head):
                    return head
        return None

    def _is_blank(self, at: int) -> bool:
        return self.data.count(0, at) >= len(self.data) - at


def _places(data: Data, at: int) -> Iterator[int]:
    """The steps at which a head might stand: its length at most 16 MiB, its flags small."""
    for place in range(at, len(data) - HEAD_BYTES + 1, STEP):
        if data[place] <= 1 and data[place + 24] == data[place + 26] == 0:
            yield place
