"""The limits and names by which rows are judged (PIP-031).

The driver judges with Spark (`transforms.quality`), the bridge with DuckDB (`bridge.verdicts`). Both take their limits
from here, and a test compares their results for the same rows. This module imports nothing heavy, so that `weft sql`
starts quickly.
"""

from typing import Final

FUTURE_MS: Final = 24 * 3_600_000  # after its arrival; a later time stamp comes from a wrong clock
ANCIENT_NS: Final = 946_684_800_000_000_000  # 2000-01-01
ORIGIN_BYTES_MAX: Final = 128
TEXT_MAX: Final = 1_024
KEY_MAX: Final = {"store": 8_192}
"""Streams with longer keys than `TEXT_MAX`: a path of 1,024 bytes is five times as long if all of it is escaped."""
LABELS_MAX: Final = 64
EPOCHS: Final = 1 << 23
"""Bound of epochs: the number of a write is a signed 64-bit integer, and its low 40 bits are the counter (CFG-003)."""
COUNTERS: Final = 1 << 40
"""Bound of the counters of writes."""
UNTIMED: Final = frozenset({"documents", "configuration"})
"""Streams whose time stamps are not judged: an operation (DOC-011) or a root's write is valid at any time."""
UNNAMED: Final = frozenset({"store", "documents", "configuration"})
"""Streams whose origins are not nodes of the fleet."""
PAIRED: Final = ("delta", "rate", "average", "percent")
"""Sample types whose value is calculated from a sample and its earlier neighbour; others are used as they are (PIP-040)."""
OF_CHANGES: Final = ("op", "instance", "state", "epoch")
"""Attributes that every change of the catalog must have."""
OF_LOGS: Final = ("level", "service", "instance", "message")
"""Fields that every log record must have."""
SOURCE: Final = r"(?s)^.*/[0-9a-f]{32}\z"
"""Origin of an operation: session and source. A session may have any name, a source is a UUID."""
FROM_RECORDER: Final = (
    "undecodable", "unknown-format", "missing-field", "bad-type", "bad-number", "out-of-range", "too-long", "bad-json",
)  # fmt: skip
"""Errors that the recorder has already put into `error`."""
REASONS: Final = (
    *FROM_RECORDER, "no-sequence", "future", "ancient", "unknown-stream", "unknown-node", "series-collision", "changed",
)  # fmt: skip
"""The closed list of reasons; in addition each rule of the user has `rule:<name>`."""
