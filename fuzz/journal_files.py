"""Files of a journal: any bytes get a verdict, whose batches can be read and whose gaps lie within (JRN-020)."""

from collections.abc import Iterable
from zlib import crc32

from fuzz.house.running import run
from fuzz.house.vectors import payloads
from weft.base.records import CoreRecord
from weft.wire import journal, segments

NODE = bytes(range(16))


def one(data: bytes) -> None:
    """As the last file and as one in the middle, with its checksums as they are and made right."""
    for mended in (data, _mended(data)):
        for is_last in (True, False):
            _judged(mended, is_last=is_last)


def _judged(data: bytes, *, is_last: bool) -> None:
    found = segments.judge(data, None, is_last=is_last)
    end = segments.HEADER_BYTES
    for batch in found.batches:
        assert end <= batch.offset < batch.end <= len(data), batch
        assert segments.split(data, batch.body.start, batch.end, batch.records) is not None, batch
        end = batch.end
    lsns = [lsn for batch in found.batches for lsn in range(batch.lsn, batch.end_lsn)][:1_000]
    assert sorted(set(lsns)) == lsns, "a number stands twice"
    for gap in found.gaps:
        assert 0 <= gap.offset <= gap.to <= segments.padded(len(data)), gap
        assert gap.end_lsn is None or gap.first_lsn <= gap.end_lsn, gap
    if found.header is not None:
        segments.find_end(data, 0, found.header.salt)


def _mended(data: bytes) -> bytes:
    """The same file with right checksums of the header and of each head that stands where one may."""
    if len(data) < segments.HEADER_BYTES:
        return data
    made = bytearray(data)
    salt = crc32(made[:60])
    made[60:64] = salt.to_bytes(4)
    at = segments.HEADER_BYTES
    while at + journal.HEAD_BYTES <= len(made):
        size = int.from_bytes(made[at : at + 4])
        body = made[at + journal.HEAD_BYTES : at + journal.HEAD_BYTES + size]
        if len(body) == size:
            made[at + 4 : at + 8] = crc32(body).to_bytes(4)
        made[at + 28 : at + 32] = crc32(made[at : at + 28], salt).to_bytes(4)
        at += journal.HEAD_BYTES + segments.padded(size)
    return bytes(made)


def seeds() -> Iterable[bytes]:
    """The files of the vectors, and one with three batches, a mark and a seal."""
    yield from payloads("journal")
    made = bytearray(segments.encode_header(segments.SEGMENT, NODE, 1, 1_795_227_299, 0))
    salt, prev, lsn = crc32(made[:60]), 0, 1
    for count in (1, 3, 2):
        body, _ = journal.encode_body([CoreRecord("store", 1, b"x" * n) for n in range(count)])
        prev = segments.close_batch(body, segments.Place(lsn, count, prev), salt)
        lsn, made = lsn + count, made + body
    yield bytes(made + segments.encode_mark(lsn, prev, salt))
    yield bytes(made + segments.encode_seal([[1, NODE, 1, 1, 3, 3, 64]], lsn, prev, salt)[0])


if __name__ == "__main__":
    run(one)
