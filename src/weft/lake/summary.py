"""Summarizes a lake in numbers. Reads manifests only and opens no Parquet file."""

from collections.abc import Iterator

import msgspec

from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import Manifest
from weft.lake.reader import Source


class StreamSummary(msgspec.Struct, kw_only=True):
    """The totals of all segments of one drain of a stream."""

    stream: str
    drain: str
    segments: int = 0
    gone: int = 0
    """Segments deleted by retention; their ranges are still known."""
    rows: int = 0
    bytes: int = 0
    """Bytes of the Parquet files that still exist."""
    lost: int = 0
    """Numbers announced lost."""
    last_received: int | None = None
    """When the newest row was received, wall-clock nanoseconds."""


def manifests_of(lake: Layout, stream: str, first: int = 1) -> Iterator[Manifest]:
    """Manifests and stubs of a stream from a number on, drain by drain, each verified.

    SegmentFault for a broken chain.
    """
    source = Source(lake, stream)
    end = source.latest()
    yield from source.manifests(dict.fromkeys(end, (first, 0)), end)


def summarize(lake: Layout, stream: str) -> list[StreamSummary]:
    """One summary per drain of a stream. SegmentFault for a broken chain."""
    found: dict[str, StreamSummary] = {}
    for manifest in manifests_of(lake, stream):
        summary = found.setdefault(manifest.drain, StreamSummary(stream=stream, drain=manifest.drain))
        summary.segments += 1
        summary.rows += manifest.rows
        summary.lost += sum(ranges.count for _, ranges in manifest.lost_vector())
        summary.last_received = max(summary.last_received or 0, manifest.last_received or 0) or None
        if manifest.gone:
            summary.gone += 1
        else:
            summary.bytes += manifest.bytes
    return list(found.values())


def streams_of(lake: Layout) -> list[str]:
    """The streams that have at least one drain."""
    return [stream for stream in STREAMS if lake.drains(stream).is_dir()]
