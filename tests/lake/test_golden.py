"""Segments of every version that was ever written are read by every later program (LAK-021).

`--generate` adds the files of a new version; those that are there are never written again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyspark_weft.options import parse_options
from pyspark_weft.source import BatchReader
from tests.lake.records import DRAIN, NODE_A, batch, chain_of, mixed, other, rows_of
from weft.base.records import Record, Stream
from weft.lake import schemas
from weft.lake.layout import Layout
from weft.lake.segments import append_segment

GOLDEN = Path(__file__).parent / "golden"
CONTENT: dict[str, list[list[Record]]] = {
    "samples": [mixed(), [batch(NODE_A, 42, 2, cfg=8, volatile=True, step=-40)]],
    "events": [[other(Stream.EVENTS, 1, b"\x82\xa1a\x01\xa1b\xc4\x01\xff", level="root")]],
}


def write(lake: Layout) -> None:
    for stream, segments in CONTENT.items():
        for records in segments:
            append_segment(lake, stream, DRAIN, list(enumerate(records, 1)))


def read(lake: Layout, stream: str) -> Iterator[dict[str, Any]]:
    reader = BatchReader(parse_options({"lake": str(lake.root), "stream": stream, "verify": "true"}))
    for part in reader.partitions():
        for piece in reader.read(part):
            assert piece.schema.equals(schemas.SEGMENTS[stream].arrow())
            yield from piece.to_pylist()


def test_there_are_files_of_this_version(pytestconfig: pytest.Config) -> None:
    here = Layout(GOLDEN / str(schemas.VERSION))
    if pytestconfig.getoption("generate") and not here.root.exists():
        write(here)
    assert here.root.is_dir(), "a new version of the schemas: pytest tests/lake/test_golden.py --generate"


@pytest.mark.proves("LAK-021", "LAK-010")
@pytest.mark.parametrize("version", range(1, schemas.VERSION + 1))
@pytest.mark.parametrize("stream", CONTENT)
def test_files_of_every_version_are_read(version: int, stream: str, tmp_path: Path) -> None:
    golden, fresh = Layout(GOLDEN / str(version)), Layout(tmp_path)
    write(fresh)
    # reprs, since equal text is what is meant: a row holds bytes, and maps in an order
    assert [repr(row) for row in read(fresh, stream)] == [repr(row) for row in read(golden, stream)]
    assert [version] * len(CONTENT[stream]) == [m.schema for m in chain_of(golden, stream)]
    assert [(m.rows, m.ranges, m.lost, m.lsn) for m in chain_of(fresh, stream)] == [
        (m.rows, m.ranges, m.lost, m.lsn) for m in chain_of(golden, stream)
    ]
    assert len(rows_of(golden, stream)) == sum(m.rows for m in chain_of(fresh, stream))
