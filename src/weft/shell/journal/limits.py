"""Every number of the journal, with its unit and its reason."""

from typing import Final

import msgspec

from weft.base.now import SECOND
from weft.wire.journal import BODY_BYTES_MAX

MIB: Final = 1 << 20
HOUR_NS: Final = 3_600 * SECOND

SEGMENT_BYTES_MAX: Final = 16 * MIB  # JRN-011: the unit that is given up, and that one recovery reads completely
SEGMENT_BYTES_MIN: Final = 64 << 10
SEGMENTS_OF_BUDGET: Final = (
    16  # a full spool gives up a sixteenth, and two snapshots fit in behind each other (JRN-041)
)
SEGMENT_AGE_NS_MAX: Final = HOUR_NS  # JRN-011
FOOTER_ENTRIES_MAX: Final = 50_000  # a footer of about 2 MiB; with many alternating origins it would exceed a batch
REST_NS: Final = 5 * SECOND  # JRN-010: after so long without a write the last batch is marked as durable
LATE_BYTES_MAX: Final = 4 * MIB  # buffered for the next wall: both together must fit into one batch
RECORD_BYTES: Final = 512  # estimated size of a record besides its content
BALLAST_BYTES_MAX: Final = 4 * MIB  # JRN-030
FREE_BYTES_MIN: Final = 64 * MIB  # JRN-031: with less on the file system it counts as full
FREE_CHECK_BYTES: Final = MIB  # written between two checks of the free space; a check takes 2 us
TIGHT_PERCENT: Final = 90  # JRN-031: of the budget; above it the oldest records should be given up
SNAPSHOT_SEGMENTS: Final = 4  # JRN-040: due after so many, all of which a start has to read
SNAPSHOT_AGE_NS: Final = 600 * SECOND  # JRN-040: or after this time, if there were changes
SNAPSHOT_RETRY_NS: Final = 60 * SECOND  # pause after a snapshot that found no space
SNAPSHOT_RELIEF_NS: Final = 2 * SECOND  # pause without space, while released segments only wait for two snapshots
SNAPSHOT_BATCH_RECORDS: Final = 1_000  # JRN-040
SNAPSHOT_BATCH_BYTES: Final = MIB  # of one batch of a snapshot, below the 16 MiB that a batch may have
SNAPSHOTS_KEPT: Final = 2  # JRN-040
RELEASED_AGE_NS: Final = 7 * 24 * HOUR_NS  # JRN-041: released segments are kept so long,
RELEASED_PERCENT: Final = 50  # while less than this share of the budget is used
SCRUB_BYTES_PER_S: Final = 1_000_000  # JRN-013
SCRUB_NS: Final = 24 * HOUR_NS  # JRN-013: the time in which every segment is read again once
DAMAGED_BYTES_MAX: Final = 64 * MIB  # copies of damaged files must not fill the disk
INDEX_BYTES: Final = 256 << 10  # of a segment between two entries of its index: a read skips at most so much
READ_BYTES: Final = 256 << 10  # per read of a file
TAIL_BYTES: Final = 64 << 10  # first read at the end of a file, in search of a seal; holds a footer of 1,500 origins
HEAP_BYTES: Final = 512 << 10  # freed once: glibc then keeps the memory of a turn of 1,000 records for the next one
HEADS_BYTES: Final = 4 << 10  # per read where only the heads of batches are wanted

assert FOOTER_ENTRIES_MAX * 160 < BODY_BYTES_MAX, "a footer is one batch"
assert SNAPSHOT_BATCH_BYTES * 2 < BODY_BYTES_MAX
assert SNAPSHOT_SEGMENTS * (SNAPSHOTS_KEPT + 1) < SEGMENTS_OF_BUDGET, "else nothing can be forgotten before it is full"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one journal; `for_budget` derives them from the disk space that it may use."""

    budget_bytes: int
    segment_bytes: int = SEGMENT_BYTES_MAX
    segment_age_ns: int = SEGMENT_AGE_NS_MAX
    ballast_bytes: int = BALLAST_BYTES_MAX
    free_bytes_min: int = FREE_BYTES_MIN
    snapshot_segments: int = SNAPSHOT_SEGMENTS
    released_age_ns: int = RELEASED_AGE_NS

    @property
    def tight_bytes(self) -> int:
        """Bytes in use from which on the oldest records should be given up."""
        return self.budget_bytes * TIGHT_PERCENT // 100


def for_budget(budget_bytes: int) -> Limits:
    """The limits of a journal that may use `budget_bytes`: segments and ballast are at most a sixteenth of it.

    >>> for_budget(64 << 20).segment_bytes == 4 << 20, for_budget(1 << 30).segment_bytes == 16 << 20
    (True, True)
    """
    part = max(SEGMENT_BYTES_MIN, budget_bytes // SEGMENTS_OF_BUDGET)
    return Limits(
        budget_bytes=budget_bytes,
        segment_bytes=min(SEGMENT_BYTES_MAX, part),
        ballast_bytes=min(BALLAST_BYTES_MAX, part),
    )
