"""What planning asks of the file system, counted, and what a task holds (PIP-005, PIP-007)."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import utime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_weft.options import parse_options
from pyspark_weft.rows import BATCH_BYTES, Reading, pack
from pyspark_weft.source import StreamReader
from tests.lake.records import DRAIN, NODE_A, batch, other
from weft.base.records import Stream
from weft.lake.layout import Layout
from weft.lake.reader import Slice, Source
from weft.lake.schemas import SEGMENTS
from weft.lake.segments import Place, find_tip, write_segment

LISTED = ("os.listdir", "os.scandir")
FAR = 1_000_000
"""So many segments the lake has had: their directories are full, and only the newest are there to be asked for."""
AGES_AGO = 1_000_000_000

_watching: list[Counter[str]] = []


def _heed(event: str, _: tuple[Any, ...]) -> None:
    for seen in _watching:
        if event == "open" or event in LISTED:
            seen[event] += 1


sys.addaudithook(_heed)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Files opened and directories listed meanwhile."""
    seen: Counter[str] = Counter()
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


def written(lake: Layout, count: int) -> None:
    """So many segments more behind the newest, of one row each; the first of all is number FAR."""
    for _ in range(count):
        tip = find_tip(lake, "samples", DRAIN)
        number = max(FAR, tip.number + 1)
        row = 1 + number - FAR
        write_segment(lake, Place("samples", DRAIN, number, tip.prior), [(row, batch(NODE_A, row, 1))])


@pytest.fixture
def far(tmp_path: Path) -> Layout:
    """A lake that began a million segments ago, and has not got another drain lately."""
    lake = Layout(tmp_path / "lake")
    written(lake, 2)
    utime(lake.drains("samples"), (AGES_AGO, AGES_AGO))
    return lake


@pytest.mark.proves("PIP-005")
@pytest.mark.parametrize("more", [0, 1, 40])
def test_a_plan_opens_each_new_manifest_and_asks_once_for_the_next(far: Layout, more: int) -> None:
    reader = StreamReader(parse_options({"lake": str(far.root), "stream": "samples"}))
    source = reader.source
    start = source.advance({DRAIN: (FAR + 1, 0)})
    written(far, more)
    with counted() as seen:
        reached = source.advance(start)
    assert {DRAIN: (FAR + 2 + more, 0)} == reached
    assert Counter({"open": more + 2}) == seen, "a manifest each, the one that is not there, and its packed directory"
    with counted() as seen:
        assert reached == source.latest()
        source.slices(start, reached)
    assert not seen, "manifests are kept; the end is found by name"


@pytest.mark.proves("PIP-005")
def test_a_new_drain_is_found_by_one_listing_when_the_directory_has_changed(far: Layout) -> None:
    source = Source(far, "samples")
    source.advance({DRAIN: (FAR + 1, 0)})
    other_drain = "07" * 16
    write_segment(far, Place("samples", other_drain, 1), [(1, batch(NODE_A, 100, 1))])
    utime(far.drains("samples"), (AGES_AGO + 1, AGES_AGO + 1))
    with counted() as seen:
        assert (2, 0) == source.advance({DRAIN: (FAR + 2, 0)})[other_drain]
    assert 3 == seen["os.listdir"] + seen["os.scandir"], "the drains, and the new one's newest directory, once"
    with counted() as seen:
        source.advance({DRAIN: (FAR + 2, 0), other_drain: (2, 0)})
    assert not seen.keys() & set(LISTED)


# What a task holds.


def slices_of(lake: Layout, stream: str) -> list[Slice]:
    source = Source(lake, stream)
    return source.slices(source.earliest(), source.latest())


def peak(lake: Layout, stream: str, slices: list[Slice]) -> int:
    """Most bytes that Arrow holds whenever a task hands over a batch."""
    reading = Reading(SEGMENTS[stream], include_errors=True, verify=False)
    before = most = int(pa.total_allocated_bytes())
    for _ in reading.batches(slices):
        most = max(most, int(pa.total_allocated_bytes()))
    return most - before


@pytest.mark.prove("wide rows")
@pytest.mark.proves("PIP-007")
def test_a_task_over_many_segments_of_wide_rows_holds_no_more_than_two_batches(tmp_path: Path) -> None:
    lake, wide = Layout(tmp_path / "lake"), b'"' + b"x" * (1 << 20) + b'"'
    count = 3 * BATCH_BYTES // len(wide)
    tip = find_tip(lake, "messages", DRAIN)
    for number in range(1, count + 1):
        record = other(Stream.MESSAGES, number, wide, fmt="json")
        tip = tip.after(write_segment(lake, Place("messages", DRAIN, number, tip.prior), [(number, record)]))
    slices = slices_of(lake, "messages")
    assert count == len(slices)
    assert 2 * BATCH_BYTES + 4 * len(wide) > peak(lake, "messages", slices) > BATCH_BYTES / 2
    (left, right) = pack(slices, 2)
    assert abs(len(left) - len(right)) <= 1
