"""What the drain core hears and says."""

import msgspec

from weft.cores.drain import limits


class DrainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When a segment is cut: at whichever of these comes first (LAK-003)."""

    rows_max: int = limits.ROWS_MAX
    bytes_max: int = limits.BYTES_MAX
    age_s: float = limits.AGE_S
    """After its first row; a quarter of it once the segment has `limits.FULL_ROWS`."""
    idle_s: float = limits.IDLE_S
    """Without input."""


class InspectLake(msgspec.Struct, frozen=True, gc=False):
    """Work: clean up behind a crash and find the last segment of each stream; answered by LakeFound or LakeRefused."""


class WriteSegment(msgspec.Struct, frozen=True, gc=False):
    """Work: publish the records of a stream between two lsn as a segment; answered by SegmentWritten or SegmentFailed.

    What is already published under that number with those lsn counts as written, so the work may be repeated.
    """

    stream: int
    number: int
    first_lsn: int
    last_lsn: int
    prior: str
    """Digest of the manifest before it (LAK-010)."""


class StreamTip(msgspec.Struct, frozen=True, gc=False):
    """How far the lake has one stream of this drain."""

    stream: int
    number: int
    """Of the last segment; 0: none."""
    lsn: int
    """Last lsn in it."""
    prior: str
    """Its manifest's digest."""


class LakeFound(msgspec.Struct, frozen=True, gc=False):
    """Order: the lake is there, and has this much; a stream that is not named has no segment."""

    tips: tuple[StreamTip, ...]


class LakeRefused(msgspec.Struct, frozen=True, gc=False):
    """Order: the lake could not be looked at."""

    why: str
    """`full` or `failed`."""
    detail: str


class SegmentWritten(msgspec.Struct, frozen=True, gc=False):
    """Order: the segment exists, durably."""

    stream: int
    number: int
    last_lsn: int
    rows: int
    bytes: int
    """Of its Parquet file."""
    digest: str
    """Of its manifest: `prior` of the next."""


class SegmentFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: the segment does not exist; nothing of it is left."""

    stream: int
    number: int
    why: str
    """`full`: no space on the lake's device; `failed`: everything else."""
    detail: str = ""


class BeginBehind(msgspec.Struct, frozen=True, gc=False):
    """Order, before the lake is found: what stands in the journal up to this lsn is another root's to drain."""

    lsn: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: write what has been heard, and close; `DrainClosed` follows within ten seconds."""


class SegmentPublished(msgspec.Struct, frozen=True, gc=False):
    """Event: a segment exists."""

    stream: int
    number: int
    rows: int
    bytes: int
    last_lsn: int


class LakeFull(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake's device is full; the journal keeps everything within its budget."""

    detail: str


class LakeFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake cannot be written; the journal keeps everything within its budget."""

    detail: str


class LakeBack(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake can be written again."""


class DrainClosed(msgspec.Struct, frozen=True, gc=False):
    """Event: all that was heard before the order to stop is in the lake, or ten seconds are over."""

    is_whole: bool
    """Whether nothing was left behind; what was stays in the journal."""
