"""Copies the segments of a lake into a local directory, for programs that cannot read an object store (PIP-105).

A copy continues after its last manifest, and the next manifest must follow that one in the hash chain. Every file is
compared with its manifest before it is written. The copy is registered at the lake as a consumer, so retention there
waits for it. In the copy, a segment is deleted as soon as the copy's own consumers have committed it.
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
"""The consumer's name of a copy, unless another one is given."""


class Fetched(NamedTuple):
    """What was copied of one drain of a stream."""

    stream: str
    drain: str
    segments: int
    rows: int
    bytes: int


def fetch(lake: Layout, copy: Layout, name: str = CONSUMER) -> Iterator[Fetched]:
    """Copy what is new, drain by drain, oldest segment first; yields one `Fetched` per drain that had new segments.

    Raises OSError; SegmentFault if a file or the chain does not match the manifests; UserError `no-lake` if there is no
    lake, `other-lake` if the directory holds a lake that is not a copy of this one.
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
        found, tip = _copy_new(follower, copy, files)
        reached[drain] = (tip.number + 1, 0)
        if found.segments:
            yield found
        sweep(copy, drain, Keep(), time.time_ns(), files)
    if reached:
        consumers.commit(lake, name, stream, Source(copy, stream).offset(reached), time.time_ns())


def _take_identity(lake: Layout, copy: Layout, files: LocalFiles) -> None:
    """Give a new copy the identity of the lake. UserError if an old copy has another one."""
    try:
        identity = lake.lake_json.read_bytes()
    except FileNotFoundError:
        raise UserError("no-lake", f"{lake.root} is not a lake", "the path of [lake] in the root's own file") from None
    if not copy.lake_json.exists():
        files.put(copy.lake_json, identity)
    ours, theirs = (msgspec.json.decode(line, type=LakeJson).lake for line in (copy.lake_json.read_bytes(), identity))
    if ours != theirs:
        raise UserError(
            "other-lake", f"{copy.root} is a lake of its own, or a copy of another one", "copy into an empty directory"
        )


def _copy_new(follower: Follower, copy: Layout, files: LocalFiles) -> tuple[Fetched, Tip]:
    """Copy the new segments of a drain; returns what was copied, and the last segment that the copy now has."""
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
