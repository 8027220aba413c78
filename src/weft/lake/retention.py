"""When segments may be deleted, and what remains of them (LAK-016, LAK-017).

A segment is deleted when every registered consumer of its stream has committed it *and* it is old enough. Its Parquet
file is deleted first, then a *stub* replaces its manifest, so that its ranges, losses and chain stay verifiable for
ever. Stubs of a full directory are packed into one file. Without a registered consumer nothing is deleted: data that
nobody has read is kept, and a lake that exceeds its limit is full.
"""

from pathlib import Path
from typing import Final, NamedTuple

from weft.lake.consumers import consumers
from weft.lake.files import Files
from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import Manifest, decode
from weft.lake.reader import Follower
from weft.lake.stubs import first_of_block, last_of_block, link_at, packed_path, read_manifest, stub_of

HOUR_NS: Final = 3_600_000_000_000
KEEP_NS: Final = 48 * HOUR_NS  # time in which data that is already read can still be read again
KEEP_BYTES: Final = 20 << 30  # of one drain; beyond this, without a registered consumer, the lake is full
AT_ONCE: Final = 1_000  # segments per sweep and stream, so that the recorder can write between sweeps


class Keep(NamedTuple):
    """How long segments are kept, and how many bytes."""

    age_ns: int = KEEP_NS
    bytes_max: int = KEEP_BYTES


class Swept(NamedTuple):
    """The result of a sweep."""

    segments: int
    bytes: int


def sweep(lake: Layout, drain: str, keep: Keep, wall_ns: int, files: Files) -> Swept:
    """Delete the segments of a drain that all consumers have committed and that are old enough, oldest first.

    At most `AT_ONCE` per stream. Raises OSError, SegmentFault.
    """
    segments = size = 0
    for stream in STREAMS:
        for number in _committed(lake, stream, drain)[:AT_ONCE]:
            manifest = link_at(lake, stream, drain, number).manifest
            if wall_ns - lake.manifest(stream, drain, number).stat().st_mtime_ns < keep.age_ns:
                break
            delete(lake, manifest, files)
            segments, size = segments + 1, size + manifest.bytes
    return Swept(segments, size)


def delete(lake: Layout, manifest: Manifest, files: Files) -> None:
    """Delete the rows of one segment and leave a stub. If the directory then holds stubs only, pack it."""
    place = manifest.stream, manifest.drain, manifest.number
    files.remove(lake.parquet(*place))
    digest = link_at(lake, *place).digest
    files.put(lake.manifest(*place), stub_of(manifest, digest).line())
    if manifest.number == last_of_block(manifest.number):
        pack(lake, manifest.stream, manifest.drain, manifest.number, files)


def pack(lake: Layout, stream: str, drain: str, last: int, files: Files) -> None:
    """Merge the stubs of a directory that holds nothing else into one file, then remove them one by one."""
    numbers = range(first_of_block(last), last + 1)
    lines = [read_manifest(lake, stream, drain, number) for number in numbers]
    assert all(decode(line, drain, number).manifest.gone for line, number in zip(lines, numbers, strict=True))
    files.put(packed_path(lake, stream, drain, last), b"".join(lines))
    for number in numbers:
        files.remove(lake.manifest(stream, drain, number))


def bytes_kept(lake: Layout, drain: str) -> int:
    """Bytes of all Parquet files of a drain, summed without opening a file."""
    return sum(_bytes_in(block) for stream in STREAMS for block in _directories(lake.drain(stream, drain)))


def has_consumers(lake: Layout) -> bool:
    """Whether a consumer is registered."""
    return bool(consumers(lake))


def _committed(lake: Layout, stream: str, drain: str) -> range:
    """The numbers that every consumer of the stream has committed and that still have rows; empty without consumers."""
    positions = [consumer.offset.at.get(drain, (1, 0))[0] for consumer in consumers(lake, stream)]
    if not positions or not lake.drain(stream, drain).is_dir():
        return range(0)
    follower = Follower(lake, stream, drain)
    # the newest segment stays, because numbering continues from it
    return range(follower.first_kept(), min([*positions, follower.tip]))


def _directories(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []


def _bytes_in(block: Path) -> int:
    return sum(path.stat().st_size for path in block.iterdir() if path.name.endswith(".parquet"))
