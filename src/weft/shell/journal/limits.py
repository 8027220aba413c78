"""Every number of the journal, with its unit and its reason."""

from typing import Final

import msgspec

from weft.base.now import SECOND
from weft.wire.journal import BODY_BYTES_MAX

MIB: Final = 1 << 20
HOUR_NS: Final = 3_600 * SECOND

SEGMENT_BYTES_MAX: Final = 16 * MIB  # JRN-011: what is given up at once, and what one recovery reads whole
SEGMENT_BYTES_MIN: Final = 64 << 10
SEGMENTS_OF_BUDGET: Final = (
    16  # a full spool gives up a sixteenth, and two snapshots fit in behind each other (JRN-041)
)
SEGMENT_AGE_NS_MAX: Final = HOUR_NS  # JRN-011
FOOTER_ENTRIES_MAX: Final = 50_000  # a footer of about 2 MiB; origins that come by turns would fill more than a batch
REST_NS: Final = 5 * SECOND  # JRN-010: this long without a write, and the last batch is marked as durable
BUFFER_NS_MAX: Final = SECOND // 5  # JRN-001: records without a wall wait at most this long for the next one
LATE_BYTES_MAX: Final = 4 * MIB  # of what waits for the next wall: with that wall it must fit into one batch
RECORD_BYTES: Final = 512  # of a record beside its content, where that is only estimated
BALLAST_BYTES_MAX: Final = 4 * MIB  # JRN-030
FREE_BYTES_MIN: Final = 64 * MIB  # JRN-031: less than this on the file system counts as full
FREE_CHECK_BYTES: Final = MIB  # written between two looks at the free space; one look is 2 us
TIGHT_PERCENT: Final = 90  # JRN-031: of the budget; from here on the oldest should be given up
SNAPSHOT_SEGMENTS: Final = 4  # JRN-040: due after so many, which a start then reads
SNAPSHOT_AGE_NS: Final = 600 * SECOND  # JRN-040: or after so long, with changes
SNAPSHOT_RETRY_NS: Final = 60 * SECOND  # a snapshot that found no room is not tried again before
SNAPSHOT_RELIEF_NS: Final = 2 * SECOND  # without room, where old segments wait for nothing but two of them
SNAPSHOT_BATCH_RECORDS: Final = 1_000  # JRN-040
SNAPSHOT_BATCH_BYTES: Final = MIB  # one batch of a snapshot, below the 16 MiB that a batch may have
SNAPSHOTS_KEPT: Final = 2  # JRN-040
RELEASED_AGE_NS: Final = 7 * 24 * HOUR_NS  # JRN-041: segments that nobody needs are kept so long,
RELEASED_PERCENT: Final = 50  # as long as less than this of the budget is used
SCRUB_BYTES_PER_S: Final = 1_000_000  # JRN-013
SCRUB_NS: Final = 24 * HOUR_NS  # JRN-013: everything is read again once in this time
DAMAGED_BYTES_MAX: Final = 64 * MIB  # copies of damaged files; evidence must not fill the disk
INDEX_BYTES: Final = 256 << 10  # of a segment between two entries of its index: what a read may have to skip
READ_BYTES: Final = 256 << 10  # read from a file at once
TAIL_BYTES: Final = 64 << 10  # first look for a seal at the end of a file; a footer of 1,500 origins fits in
HEADS_BYTES: Final = 4 << 10  # read at once when only heads are wanted

assert FOOTER_ENTRIES_MAX * 160 < BODY_BYTES_MAX, "a footer is one batch"
assert SNAPSHOT_BATCH_BYTES * 2 < BODY_BYTES_MAX
assert SNAPSHOT_SEGMENTS * (SNAPSHOTS_KEPT + 1) < SEGMENTS_OF_BUDGET, "else nothing can be forgotten before it is full"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one journal may use; `for_budget` says how it follows from the bytes that it is allowed."""

    budget_bytes: int
    segment_bytes: int = SEGMENT_BYTES_MAX
    segment_age_ns: int = SEGMENT_AGE_NS_MAX
    ballast_bytes: int = BALLAST_BYTES_MAX
    free_bytes_min: int = FREE_BYTES_MIN
    snapshot_segments: int = SNAPSHOT_SEGMENTS
    released_age_ns: int = RELEASED_AGE_NS

    @property
    def tight_bytes(self) -> int:
        """From here on the oldest should be given up."""
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
