"""The numbers of the drain core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

ROWS_MAX: Final = 100_000  # of a segment: 1 MiB of Parquet, 0.15 s to write
ROWS_MOST: Final = 250_000  # what a reader's task may be asked to hold
BYTES_MAX: Final = 32 << 20  # of a segment, uncompressed
AGE_S: Final = 1.0  # after the first row: freshness of the lake under steady input
FULL_ROWS: Final = 2_000  # a file worth its name: with so many rows a segment waits a part of its age only
FULL_SHARE: Final = 0.25  # that part: four segments a second at most, and at low rates one, as before
AGE_S_LEAST: Final = 0.2  # below, files grow faster than readers like
AGE_S_MOST: Final = 60.0  # above, a restart drains too much again
IDLE_S: Final = 0.3  # without input: nothing more will come soon, so do not wait
SPAN_BYTES_MAX: Final = 32 << 20  # of journal between a segment's first and last record: what writing it reads again

WAITING_ROWS_MAX: Final = 500_000  # noted and not yet in a segment; beyond, the cursor waits in the journal (LAK-015)
WAITING_BYTES_MAX: Final = 64 << 20
FETCH_BYTES: Final = 4 << 20  # of journal per look behind; a turn stays below 50 ms
FETCH_AGAIN_NS: Final = 50 * MILLISECOND  # records that are told of but not readable yet become so with the next sync

ROW_BYTES: Final = 160  # of a sample row in memory, about
RETRY_NS: Final = 1 * SECOND  # the lake's device is full: first retry
RETRY_NS_MOST: Final = 60 * SECOND  # then twice as long each time, up to this; also after a failure
CURSOR_WITHIN_NS: Final = 200 * MILLISECOND  # the cursor is a shortcut (the manifest wins), so it waits for no sync
CLOSE_NS: Final = 10 * SECOND  # for the last segments when the node stops

assert ROWS_MAX <= ROWS_MOST, "a reader must be able to hold a default segment"
assert WAITING_ROWS_MAX >= 2 * ROWS_MOST, "the next segment is gathered while one is written"
assert WAITING_BYTES_MAX >= 2 * BYTES_MAX, "same, in bytes"
assert FULL_ROWS * 8 <= ROWS_MAX, "freshness decides before size does"
assert RETRY_NS <= RETRY_NS_MOST, "waiting grows"
