"""Foreign logs: any lines of any file are samples or reasons, and a file that is packed wrongly ends in a fault (PIP-095..098)."""

import gzip
import io
import math
import zlib
from collections.abc import Iterable
from datetime import UTC

from fuzz.house.choices import Choices
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import payloads
from weft.base.errors import UserError
from weft.lake.importing.dcamp import DcampParser
from weft.lake.importing.delimited import CsvParser, Reading
from weft.lake.importing.found import Found, Many, Nothing, Parser, Refused, Sample
from weft.lake.importing.lines import blocks
from weft.lake.importing.openmetrics import OpenMetricsParser
from weft.lake.importing.running import sniffed
from weft.lake.schemas import LONG_MAX

LATEST = 1_900_000_000 * 10**9
READINGS = (
    Reading(UTC, LATEST),
    Reading(UTC, LATEST, at_ns=10**18),
    Reading(UTC, LATEST, wide="at"),
    Reading(UTC, LATEST, named={"value": "temp"}),
)
REASONS = frozenset(
    [
        "too-long",
        "undecodable",
        "missing-field",
        "bad-number",
        "bad-type",
        "out-of-range",
        "no-time",
        "torn",
        "unknown-series",
        "too-many",
    ]
)


def one(data: bytes) -> None:
    """The first byte picks how tables are read."""
    reading, text = Choices(data).pick(READINGS), data[1:]
    for parser in (DcampParser(LATEST), CsvParser(reading), OpenMetricsParser(reading)):
        _read(parser, text)
    _unpacked(text)


def _read(parser: Parser, text: bytes) -> None:
    for block in blocks(io.BytesIO(text).read):
        sniffed(block)
        for line in block.lines:
            try:
                found = parser.read(line)
            except UserError as error:
                assert isinstance(parser, CsvParser), line
                assert error.code in ("no-column", "too-wide", "too-long"), error
                return
            _looked_at(found)


def _looked_at(found: Found) -> None:
    for row in found.rows if isinstance(found, Many) else (found,):
        outcomes.add((type(row).__name__, row.reason if isinstance(row, Refused) else ""))
        if isinstance(row, Refused):
            assert row.reason in REASONS, row
        elif isinstance(row, Sample):
            assert abs(row.at_ns) <= LONG_MAX, row
            assert math.isfinite(row.value), row
            assert type(row.value) is float or abs(row.value) <= LONG_MAX + 1, row
        else:
            assert isinstance(row, Nothing), row


def _unpacked(text: bytes) -> None:
    """As gzip, and as gzip that is damaged somewhere."""
    packed = bytearray(gzip.compress(text, 1, mtime=0))
    if text:
        packed[zlib.crc32(text) % len(packed)] ^= text[0]
    with gzip.GzipFile(fileobj=io.BytesIO(bytes(packed))) as file:
        found = list(blocks(file.read))
    assert all(not block.fault for block in found[:-1]), found


def seeds() -> Iterable[bytes]:
    """The files of the examples, and tables."""
    yield from (b"\0" + data for data in payloads("pipeline", of="dcamp"))
    yield b"\0at,source,config-name,detail,type,value,base,rack\n2026-11-21T01:43:10Z,n7,cpu,CPU,percent,95133,217439,7\n"
    yield b'\2at,cpu,mem\n1795226590369,0.25,\n1795226590370,"1,5",9\n'
    yield b"\3at;temp;config-seqid\n1795226590.5;1e5;7\n\n1795226590.5;nan;x\n"
    yield (
        b'\1# TYPE http_requests counter\nhttp_requests_total{instance="n7",code="200"} 1027 1795226590.369 # {t="x"} 1\n'
        b'up 1\nweft{weft_part="base",weft_name="cpu",weft_labels="{\\"a\\":\\"b\\"}"} 3 1795226590.369\n'
        b'# TYPE h histogram\nh_bucket{le="+Inf"} 3 1795226590369\n'
    )


if __name__ == "__main__":
    run(one)
