"""The numbers of programs that speak with a node about documents."""

from typing import Final

# seconds; an own entry waits for the disk; a refold of two million operations takes minutes, in slices
TIMEOUT_S: Final = 15.0
OPEN_S: Final = 3.0  # seconds until a node must answer at all
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 1.0  # seconds between two attempts to reach it: people who enter points are waiting
BEAT_S: Final = 10.0  # seconds between two signs of life of a watch
ENTRIES: Final = 50  # bodies in one request of an import
ENTRIES_BYTES: Final = 512 << 10  # the same; one body has at most 262,144
ENTRY_BYTES: Final = 1 << 20  # of a request that enters; the node refuses all above 65,536, and hangs up above 4 MiB
QUEUE_MAX: Final = 1_024  # answers of one watch that nobody has read; the node keeps to 8
TURN: Final = 16  # answers read in one go, then other tasks run
