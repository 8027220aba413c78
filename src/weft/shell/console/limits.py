"""Every number of the console, with its unit and its reason."""

from typing import Final

NODES_MAX: Final = (
    1_000  # machines with values, about 5 KiB each, 30 KiB with 128 processes measured; the promise is 500 (CON-003)
)
POINTS: Final = 120  # of a sparkline: one for about two pixels of it
POINT_MS: Final = 5_000  # 120 of them are ten minutes
CELLS: Final = 60  # of the map of completeness, the same ten minutes
CELL_MS: Final = 10_000
SERIES_MAX: Final = 64  # of one machine and the metrics shown: some 60 disks
PROCESSES_MAX: Final = 128  # of one machine, whose use is compared with that before
DECODED_EVERY_NS: Final = 400_000_000  # of one machine: decoding every batch of a busy root would cost a core
BODIES_KNOWN_MAX: Final = 2_000  # arrays of series that are decoded once
STARTS_MAX: Final = 4  # starts of one machine whose numbers may still be on their way
RANGES_MAX: Final = 64  # of the numbers of one start
LOSSES_MAX: Final = 16  # losses listed per machine; all are counted
TICK_S: Final = 1.0  # at most one change a second (CON-001)
SOON_S: Final = 0.01  # at least, between two events to one viewer
CHANGES_KEPT: Final = 10  # changes; a viewer that is further behind gets the complete picture
SILENT_NS: Final = 4_000_000_000  # machines send once a second, and two missed seconds are not worth reporting
SILENT_GAPS: Final = 3  # a machine that sends less often is silent after three times its usual gap
GAP_NS_MAX: Final = 60_000_000_000
START_NS: Final = 20_000_000_000  # after the first look a machine that was never heard may be silent for so long
LATE_MS: Final = 60_000  # newer samples than that are on time
FORGOTTEN_NS: Final = 600_000_000_000  # a machine without a place that is silent for longer is no longer shown
ANSWER_S: Final = 45.0  # seconds for a question to the lake, its process included: a small machine may be busy
ANSWER_BYTES_MAX: Final = 1 << 20  # bytes of an answer of the lake: some thousand rows
ANSWER_KEPT_S: Final = 5.0  # seconds that an answer is reused; the tables change every few seconds
ANSWERS_KEPT: Final = 8  # answers of at most a MiB each
QUESTIONS_MAX: Final = 8  # questions that run or wait: one takes a second or two
QUERY_BYTES_MAX: Final = 16 << 10  # bytes of a question as it is posted
WHY_MAX: Final = 2_000  # characters of an error message of `weft sql`
ENTRIES_AROUND: Final = 25  # entries of a document on each side of a place: a screen and a half
FOLDED_MAX: Final = (
    100_000  # entries of a document that is shown as it was: 20,000 are parsed and folded in 1.3 s of a core
)
LINES_MAX: Final = 5_000  # of a document: a browser lays them out in a tenth of a second
CONFLICTS_MAX: Final = 100  # of one document or store, shown at once
ENTRY_CHARACTERS: Final = 300  # of an entry or value
VERSIONS_MAX: Final = 200  # of one entry of the store; `weft store history` has all
PATH_CHARACTERS: Final = 1_000  # of a path in the store, as it is asked for
ORIGIN_CHARACTERS: Final = 128  # of the origin of a record, as it is asked for
DIGITS_MAX: Final = 16  # of a number in an address
SHARES: Final = (("disk", 90, 97), ("memory", 95, 99))  # percent in use: worth a look, trouble

assert POINTS * POINT_MS == CELLS * CELL_MS, "sparklines and the map show the same time"
