"""The numbers and words by which a row is judged (PIP-031): one list for all who judge.

The driver judges with Spark (`transforms.quality`), the bridge with DuckDB (`bridge.verdicts`). Both take their limits from
here, and a test compares what they make of the same rows. Imports nothing heavy, so `weft sql` starts quickly.
"""

from typing import Final

FUTURE_MS: Final = 24 * 3_600_000  # a stamp further ahead of its arrival is a wrong clock
ANCIENT_NS: Final = 946_684_800_000_000_000  # 2000-01-01
ORIGIN_BYTES_MAX: Final = 128
TEXT_MAX: Final = 1_024
KEY_MAX: Final = {"store": 8_192}
"""Where keys may be longer: 1,024 bytes of a path are five times as long if all are written as escapes."""
LABELS_MAX: Final = 64
EPOCHS: Final = 1 << 23
"""A number of a write is a signed 64-bit integer whose low 40 bits are the counter (CFG-003)."""
COUNTERS: Final = 1 << 40
UNTIMED: Final = frozenset({"documents", "configuration"})
"""Whose stamps decide nothing: an operation without a time counts like any other (DOC-011), so does a root's write."""
UNNAMED: Final = frozenset({"store", "documents", "configuration"})
"""Whose origins are not nodes of the fleet."""
PAIRED: Final = ("delta", "rate", "average", "percent")
"""Types of samples whose value needs the neighbour before; all others are what they are (PIP-040)."""
OF_CHANGES: Final = ("op", "instance", "state", "epoch")
"""Attributes that every change of the catalog has."""
OF_LOGS: Final = ("level", "service", "instance", "message")
"""Fields that every log record has."""
SOURCE: Final = r"(?s)^.*/[0-9a-f]{32}\z"
"""Origin of an operation: session and source. The name of a session may be anything, a source is a UUID."""
FROM_RECORDER: Final = (
    "undecodable", "unknown-format", "missing-field", "bad-type", "bad-number", "out-of-range", "too-long", "bad-json",
)  # fmt: skip
"""What the recorder already says in `error`."""
REASONS: Final = (
    *FROM_RECORDER, "no-sequence", "future", "ancient", "unknown-stream", "unknown-node", "series-collision", "changed",
)  # fmt: skip
"""The closed list; with `rule:<name>` for each of the user's."""
