"""Every number of the client library of documents, with its unit and its reason."""

from typing import Final

TIMEOUT_S: Final = 15.0  # until a request has its answer: an entry waits for the disk, and for one slice of a refold
OPEN_S: Final = 3.0  # seconds until a node must answer at all
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 1.0  # seconds between two attempts to reach it: people who enter points are waiting
BEAT_S: Final = 10.0  # seconds between two signs of life of a watch
ENTRIES: Final = 50  # operations in one request of an import
ENTRIES_BYTES: Final = 512 << 10  # all operations of one such request; one operation has at most 262,144
ENTRY_BYTES: Final = 1 << 20  # one edit as it is sent: the node would refuse it, and disconnects above 4 MiB
QUEUE_MAX: Final = 1_024  # unread answers of one watch; the node sends at most 8 ahead
TURN: Final = 16  # answers read in one turn of the loop; then other tasks run
