"""Copies segments of a lake into another place, so that whoever needs a directory has one (PIP-105).

A copy goes on where it ended: behind its last manifest, which is the digest that the next one must follow. Every file is
compared with its manifest before it counts. The copy is registered at the lake as a consumer, so retention there waits
for it; its own segments go when its own consumers have read them.
"""

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from weft.base.errors import UserError
from weft.lake import consumers
from weft.lake.files import LocalFiles
from weft.lake.layout import STREAMS, LakeJson, Layout
from weft.lake.manifest import Manifest, SegmentFault
from weft.lake.offsets import At
from weft.lake.reader import Follower, Source
from weft.lake.retention import Keep, sweep
from weft.lake.segments import Tip, clean, find_tip

CONSUMER: Final = "copy"
"""The name under which a copy is registered, unless it has another one."""


class Fetched(NamedTuple):
    """What one drain of a stream has brought."""

    stream: str
    drain: str
    segments: int
    rows: int
    bytes: int


def fetch(lake: Layout, copy: Layout, name: str = CONSUMER) -> Iterator[Fetched]:
    """Copy what is new, drain by drain, oldest first; tells of each drain that had something.

    Raises OSError, SegmentFault for a file or chain that is not as its manifest says, UserError `other-lake`.
    """
    files = LocalFiles()
    files.make_directories(copy.root)
    with files.alone_in(copy.root):
        _take_identity(lake, copy, files)
        for stream in STREAMS:
            yield from _stream(lake, copy, stream, name)


def _stream(lake: Layout, copy: Layout, stream: str, name: str) -> Iterator[Fetched]:
    files, reached = LocalFiles(), At()
    for drain, follower in Source(lake, stream).drains().items():
        clean(copy, stream, drain, files)
        found, tip = _fetched(follower, copy, files)
        reached[drain] = (tip.number + 1, 0)
        if found.segments:
            yield found
        sweep(copy, drain, Keep(), time.time_ns(), files)
    if reached:
        consumers.commit(lake, name, stream, Source(copy, stream).offset(reached), time.time_ns())


def _take_identity(lake: Layout, copy: Layout, files: LocalFiles) -> None:
    """A copy is the same lake under another path."""
    try:
        identity = lake.lake_json.read_bytes()
    except FileNotFoundError:
        raise UserError("no-lake", f"{lake.root} is not a lake", "what [lake] path of the root says") from None
    if not copy.lake_json.exists():
        files.put(copy.lake_json, identity)
    ours, theirs = (msgspec.json.decode(line, type=LakeJson).lake for line in (copy.lake_json.read_bytes(), identity))
    if ours != theirs:
        raise UserError(
            "other-lake", f"{copy.root} is a lake of its own, or a copy of another one", "an empty directory"
        )


def _fetched(follower: Follower, copy: Layout, files: LocalFiles) -> tuple[Fetched, Tip]:
    """What was new of a drain, and the last segment that the copy has of it now."""
    stream, drain = follower.stream, follower.drain
    tip = find_tip(copy, stream, drain)
    segments = rows = size = 0
    while (manifest := follower.manifest(tip.number + 1)) is not None:
        if manifest.prior != tip.prior:
            raise SegmentFault("segment-changed", drain, manifest.number, "does not follow what the copy holds")
        line = manifest.line()
        files.make_directories(copy.block(stream, drain, manifest.number))
        if not (manifest.gone or manifest.skipped):
            files.put(copy.parquet(stream, drain, manifest.number), _bytes(follower.lake, manifest))
            segments, rows, size = segments + 1, rows + manifest.rows, size + manifest.bytes
        files.put(copy.manifest(stream, drain, manifest.number), line)
        tip = Tip(manifest.number, manifest.lsn[1], follower.digest(manifest.number))
        follower.forget(manifest.number)
    return Fetched(stream, drain, segments, rows, size), tip


def _bytes(lake: Layout, manifest: Manifest) -> bytes:
    try:
        data = lake.parquet(manifest.stream, manifest.drain, manifest.number).read_bytes()
    except FileNotFoundError:
        raise SegmentFault("segment-gone", manifest.drain, manifest.number, "its file is missing") from None
    if not manifest.describes(data):
        raise SegmentFault(
            "segment-changed", manifest.drain, manifest.number, "its bytes are not those of its manifest"
        )
    return data
