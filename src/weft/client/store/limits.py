"""Every number of the store's client library, with its unit and its reason."""

from typing import Final

FRAME_BYTES_MAX: Final = 4 << 20  # one answer of a server (section 8)
REQUESTS_OPEN_MAX: Final = 500  # at a time; a server says `busy` beyond 1,000, and others may share the name
ITEMS_AHEAD_MAX: Final = 1_000  # of a stream, read and not yet asked for; then TCP holds the server back
ITEMS_AHEAD_MIN: Final = 250  # when it is read on
TIMEOUT_S: Final = 10.0  # until a request has its answer; a busy Raspberry Pi syncs its disk for seconds
GREETING_S: Final = 5.0  # until a server that was reached has said who it is
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 2.0  # a node that comes back is found soon; a connection refused costs nothing
SWEEP_S: Final = 0.5  # how late it is noticed that a request has no answer
CHANGES_AHEAD_MAX: Final = 10_000  # of a mirror's iteration that is not read: then only the newest per path count

assert ITEMS_AHEAD_MIN < ITEMS_AHEAD_MAX, "else a stream is never read on"
