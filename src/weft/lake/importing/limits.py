"""The limits of an import (PIP-096)."""

from typing import Final

LINE_BYTES_MAX: Final = 64 << 10  # a longer line is quarantined; the rest of the file is read
BLOCK_BYTES: Final = 1 << 20  # read at once, so memory does not grow with the file
COLUMNS_MAX: Final = 10_000  # columns of a CSV header; each may become a series
KNOWN_MAX: Final = 100_000  # series in a cache, 30 MB; beyond this it is emptied and they are parsed again
SERIES_MAX: Final = 1_000_000  # metadata lines of one OpenMetrics file that are remembered
BASES_MAX: Final = 2_000_000  # bases of one series of an exported OpenMetrics file, before its values, 250 MB
SEGMENT_ROWS: Final = 100_000  # the same size at which the recorder cuts segments (LAK-003)
SEGMENT_BYTES: Final = 32 << 20
ANCIENT_NS: Final = 946_684_800_000_000_000  # 2000-01-01 (PIP-031)
FUTURE_NS: Final = 24 * 3_600 * 1_000_000_000  # after the import; a later time stamp comes from a wrong clock
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

assert BLOCK_BYTES >= 2 * LINE_BYTES_MAX, "a good line lies in at most two blocks"
