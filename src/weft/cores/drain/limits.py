"""The numbers of the drain core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

ROWS_MAX: Final = 100_000  # of a segment: 1 MiB of Parquet, 0.15 s to write
ROWS_MOST: Final = 250_000  # what a reader's task may have to hold in memory
BYTES_MAX: Final = 32 << 20  # of a segment, uncompressed
AGE_S: Final = 1.0  # after the first row: freshness of the lake under steady input
FULL_ROWS: Final = 2_000  # a reasonably large file: a segment with so many rows waits only FULL_SHARE of its age
FULL_SHARE: Final = 0.25  # at most four segments a second; at low rates still one
AGE_S_LEAST: Final = 0.2  # lower values make more files than readers handle well
AGE_S_MOST: Final = 60.0  # higher values leave too much to drain again after a restart
IDLE_S: Final = 0.3  # without input: more is unlikely to come soon, so do not wait
SPAN_BYTES_MAX: Final = 32 << 20  # of journal between a segment's first and last record: writing it reads all

WAITING_ROWS_MAX: Final = 500_000  # noted and not yet in a segment; beyond, records stay in the journal (LAK-015)
WAITING_BYTES_MAX: Final = 64 << 20
FETCH_BYTES: Final = 4 << 20  # of journal per read; keeps a turn below 50 ms
FETCH_AGAIN_NS: Final = 50 * MILLISECOND  # records reported but not yet readable become so with the next sync

ROW_BYTES: Final = 160  # of a sample row in memory, approximately
RETRY_NS: Final = 1 * SECOND  # the lake's device is full: first retry
RETRY_NS_MOST: Final = 60 * SECOND  # the retry pause doubles up to this; it is also the pause after a failure
CURSOR_WITHIN_NS: Final = 200 * MILLISECOND  # the cursor only saves reading time, so no effect waits for its sync
CLOSE_NS: Final = 10 * SECOND  # to write the last segments when the node stops

assert ROWS_MAX <= ROWS_MOST, "a reader must be able to hold a default segment"
assert WAITING_ROWS_MAX >= 2 * ROWS_MOST, "the next segment is gathered while one is written"
assert WAITING_BYTES_MAX >= 2 * BYTES_MAX, "same, in bytes"
assert FULL_ROWS * 8 <= ROWS_MAX, "freshness decides before size does"
assert RETRY_NS <= RETRY_NS_MOST, "waiting grows"
