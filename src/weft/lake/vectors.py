"""Version vectors of a drain: one is published every 256 segments, and the others are computed from it (LAK-022).

`N.wv` holds, compressed, the WV1 form of everything received in segments 1..N. It only saves time: if one is missing,
it is computed from the one before it and the manifests.
"""

from contextlib import suppress
from typing import Final

from weft.base.errors import PeerError
from weft.base.vectors import VersionVector
from weft.lake.files import Files
from weft.lake.layout import Layout
from weft.lake.segments import Place
from weft.lake.stubs import link_at

EVERY: Final = 256  # segments; a reader that restarts reads at most this many manifests, 1 MB
_BYTES_MAX: Final = 256 << 20  # uncompressed; room for 10,000,000 ranges of an origin


def publish(lake: Layout, place: Place, files: Files) -> None:
    """After every 256th segment, write its vector beside it. If that fails, readers use the one before it."""
    if place.number % EVERY:
        return
    import zstandard

    vector = vector_at(lake, place.stream, place.drain, place.number)
    packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(vector.encode())
    with suppress(OSError):
        files.put(lake.vector(place.stream, place.drain, place.number), packed)


def vector_at(lake: Layout, stream: str, drain: str, number: int) -> VersionVector:
    """The vector of segments 1..number of a drain: the nearest published one plus the manifests after it.

    SegmentFault if a manifest is missing or damaged.
    """
    start, vector = _nearest(lake, stream, drain, number)
    for step in range(start + 1, number + 1):
        add_manifest(vector, lake, stream, drain, step)
    return vector


def add_manifest(vector: VersionVector, lake: Layout, stream: str, drain: str, number: int) -> None:
    """Add what one segment holds to a vector."""
    vector.update(link_at(lake, stream, drain, number).manifest.vector())


def _nearest(lake: Layout, stream: str, drain: str, number: int) -> tuple[int, VersionVector]:
    for candidate in range(number - number % EVERY, 0, -EVERY):
        found = _read(lake, stream, drain, candidate)
        if found is not None:
            return candidate, found
    return 0, VersionVector()


def _read(lake: Layout, stream: str, drain: str, number: int) -> VersionVector | None:
    """The published vector of a number; None if it is missing or damaged."""
    import zstandard

    try:
        packed = lake.vector(stream, drain, number).read_bytes()
        if not 0 <= zstandard.frame_content_size(packed) <= _BYTES_MAX:
            return None
        return VersionVector.decode(zstandard.ZstdDecompressor().decompress(packed))
    except (FileNotFoundError, zstandard.ZstdError, PeerError):
        return None
