"""Orders, work and events of the drain core."""

import msgspec

from weft.cores.drain import limits


class DrainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When a segment is closed: as soon as one of these limits is reached (LAK-003)."""

    rows_max: int = limits.ROWS_MAX
    bytes_max: int = limits.BYTES_MAX
    age_s: float = limits.AGE_S
    """Seconds after its first row; a quarter of it once the segment has `limits.FULL_ROWS`."""
    idle_s: float = limits.IDLE_S
    """Seconds without input."""


class InspectLake(msgspec.Struct, frozen=True, gc=False):
    """Work: clean up after a crash and find the last segment of each stream; answered by LakeFound or LakeRefused."""

    known: tuple[tuple[int, int, int], ...] = ()
    """Up to which number of each stream it is known what is in segments of this node's journal: stream, number, lsn."""
    start: int = 0
    """The start of this node that may have written segments behind that."""


class WriteSegment(msgspec.Struct, frozen=True, gc=False):
    """Work: publish the records of a stream between two lsn as a segment; answered by SegmentWritten or SegmentFailed.

    The work may be repeated: if the segment is there already, it counts as written. If another program has taken the
    number, the segment gets the first free one behind it.
    """

    stream: int
    number: int
    first_lsn: int
    last_lsn: int
    prior: str
    """Digest of the preceding manifest (LAK-010)."""
    start: int = 0
    """The start of the node that writes it."""


class StreamTip(msgspec.Struct, frozen=True, gc=False):
    """How much of one stream the lake has from this drain."""

    stream: int
    number: int
    """Number of the last segment; 0: none."""
    lsn: int
    """Last lsn of this node's journal that is in a segment up to there."""
    prior: str
    """Digest of its manifest."""
    other: int = 0
    """Number of a segment that another program has written since; 0: none."""


class LakeFound(msgspec.Struct, frozen=True, gc=False):
    """Order: the lake was inspected and has this much; a stream that is not named has no segment."""

    tips: tuple[StreamTip, ...]


class LakeRefused(msgspec.Struct, frozen=True, gc=False):
    """Order: the lake could not be inspected."""

    why: str
    """`full` or `failed`."""
    detail: str


class SegmentWritten(msgspec.Struct, frozen=True, gc=False):
    """Order: the segment exists durably."""

    stream: int
    number: int
    """Higher than ordered if another program has taken that number."""
    last_lsn: int
    rows: int
    bytes: int
    """Size of its Parquet file."""
    digest: str
    """Digest of its manifest; the next segment names it as `prior`."""


class SegmentFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: the segment was not written; nothing of it is left on the device."""

    stream: int
    number: int
    why: str
    """`full`: no space on the lake's device; `failed`: any other reason."""
    detail: str = ""


class BeginBehind(msgspec.Struct, frozen=True, gc=False):
    """Order, before the lake is found: the records up to this lsn are for another root to drain."""

    lsn: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: write all noted records and close; `DrainClosed` follows within ten seconds."""


class SegmentPublished(msgspec.Struct, frozen=True, gc=False):
    """Event: a segment exists."""

    stream: int
    number: int
    rows: int
    bytes: int
    last_lsn: int


class LakeFull(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake's device is full; the journal keeps the records, within its budget."""

    detail: str


class LakeFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake cannot be written; the journal keeps the records, within its budget."""

    detail: str


class SecondWriter(msgspec.Struct, frozen=True, gc=False):
    """Event: another program writes segments under this node's name; told once per start."""

    stream: int
    number: int
    """A number that it has taken."""


class LakeBack(msgspec.Struct, frozen=True, gc=False):
    """Event: the lake can be written again."""


class DrainClosed(msgspec.Struct, frozen=True, gc=False):
    """Event: everything heard before the stop is in the lake, or ten seconds are over."""

    is_whole: bool
    """Whether everything is in the lake; if not, the rest stays in the journal."""
