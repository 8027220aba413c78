"""Checks that the segments of a lake match their manifests: the chain, the files, and on request every byte."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from weft.lake.layout import Layout
from weft.lake.manifest import Manifest, SegmentFault
from weft.lake.reader import Source
from weft.lake.segments import METADATA_KEY, manifest_in_file


class Found(NamedTuple):
    """One segment that was checked, and the fault that was found in it, if any."""

    stream: str
    drain: str
    number: int
    rows: int
    fault: str | None = None
    """`segment-gone`, `segment-changed` or `segment-unreadable`; None if the segment is intact."""
    why: str = ""
    bytes: int = 0
    """Size of the file if all of it was read and is intact; else 0."""


def audit(lake: Layout, stream: str, *, deep: bool = False) -> Iterator[Found]:
    """Check every segment of a stream, drain by drain.

    A broken chain ends the audit of that drain, because nothing after the break can be proved. Without `deep`, a file
    is only compared in size; with it, every file is read: its hash, its rows, and the manifest inside.
    """
    source = Source(lake, stream)
    for drain, (end, _) in source.latest().items():
        number = 0
        try:
            for manifest in source.manifests({drain: (1, 0)}, {drain: (end, 0)}):
                number = manifest.number
                yield _looked_at(lake, manifest, deep=deep)
        except SegmentFault as fault:
            yield Found(stream, drain, number + 1, 0, fault.code, fault.why)


def _looked_at(lake: Layout, manifest: Manifest, *, deep: bool) -> Found:
    found = Found(manifest.stream, manifest.drain, manifest.number, manifest.rows)
    if manifest.gone or manifest.skipped:
        return found
    path = lake.parquet(manifest.stream, manifest.drain, manifest.number)
    try:
        size = path.stat().st_size
        if size != manifest.bytes:
            return found._replace(fault="segment-changed", why=f"{size} bytes, {manifest.bytes} by its manifest")
        return _read(found, manifest, path.read_bytes()) if deep else found
    except FileNotFoundError:
        return found._replace(fault="segment-gone", why="its file is missing")
    except OSError as error:
        return found._replace(fault="segment-unreadable", why=str(error.strerror or error))


def _read(found: Found, manifest: Manifest, data: bytes) -> Found:
    if not manifest.describes(data):
        return found._replace(fault="segment-changed", why="its bytes are not those of its manifest")
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    if metadata.num_rows != manifest.rows:
        return found._replace(fault="segment-changed", why=f"{metadata.num_rows} rows, {manifest.rows} by its manifest")
    inside = (metadata.metadata or {}).get(METADATA_KEY)
    if inside is None or msgspec.json.decode(inside) != msgspec.json.decode(manifest_in_file(manifest)):
        return found._replace(
            fault="segment-changed", why="the manifest inside the file differs from the one beside it"
        )
    return found._replace(bytes=len(data))
