"""Version vectors of a drain: published every 256 segments, rebuilt from there for any other number (LAK-022).

`N.wv` holds WV1, compressed, of everything received in segments 1..N. It is a shortcut: what it says follows from
the manifests, so a missing one is no fault, and the one before it serves.
"""

from contextlib import suppress
from typing import Final

from weft.base.errors import PeerError
from weft.base.vectors import VersionVector
from weft.lake.files import Files, put
from weft.lake.layout import Layout
from weft.lake.manifest import decode
from weft.lake.segments import Place
from weft.lake.stubs import read_manifest

EVERY: Final = 256  # segments: what a restarting reader has to read at most, 1 MB of manifests
_BYTES_MAX: Final = 256 << 20  # uncompressed; 10,000,000 ranges of an origin (section 9)


def publish(lake: Layout, place: Place, files: Files) -> None:
    """After every 256th segment, write its vector beside it. A failure is no harm: the next one is built without it."""
    if place.number % EVERY:
        return
    import zstandard

    vector = vector_at(lake, place.stream, place.drain, place.number)
    packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(vector.encode())
    with suppress(OSError):
        put(files, lake.vector(place.stream, place.drain, place.number), packed)


def vector_at(lake: Layout, stream: str, drain: str, number: int) -> VersionVector:
    """What segments 1..number of a drain hold: the nearest published vector, and the manifests behind it.

    SegmentFault if a manifest is missing or damaged.
    """
    start, vector = _nearest(lake, stream, drain, number)
    for step in range(start + 1, number + 1):
        add_manifest(vector, lake, stream, drain, step)
    return vector


def add_manifest(vector: VersionVector, lake: Layout, stream: str, drain: str, number: int) -> None:
    """Add what one segment holds."""
    vector.update(decode(read_manifest(lake, stream, drain, number), drain, number).manifest.vector())


def _nearest(lake: Layout, stream: str, drain: str, number: int) -> tuple[int, VersionVector]:
    for candidate in range(number - number % EVERY, 0, -EVERY):
        found = _read(lake, stream, drain, candidate)
        if found is not None:
            return candidate, found
    return 0, VersionVector()


def _read(lake: Layout, stream: str, drain: str, number: int) -> VersionVector | None:
    """The published vector of a number; None if it is not there, or not what was written."""
    import zstandard

    try:
        packed = lake.vector(stream, drain, number).read_bytes()
        if not 0 <= zstandard.frame_content_size(packed) <= _BYTES_MAX:
            return None
        return VersionVector.decode(zstandard.ZstdDecompressor().decompress(packed))
    except (FileNotFoundError, zstandard.ZstdError, PeerError):
        return None
