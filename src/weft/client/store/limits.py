"""Every number of the store's client library, with its unit and its reason."""

from typing import Final

FRAME_BYTES_MAX: Final = 4 << 20  # one answer of a server (section 8)
REQUESTS_OPEN_MAX: Final = 500  # unanswered at a time; beyond 1,000 a server answers `busy`
ITEMS_AHEAD_MAX: Final = 1_000  # unread items of a stream; then the client stops reading, and TCP makes the server wait
ITEMS_AHEAD_MIN: Final = 250  # unread items at which reading resumes
TIMEOUT_S: Final = 10.0  # until a request has its answer; a busy Raspberry Pi syncs its disk for seconds
GREETING_S: Final = 5.0  # until a server that was reached has sent its greeting
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 2.0  # a node that comes back is found soon; a refused connection costs nothing
SWEEP_S: Final = 0.5  # between two checks for requests whose time is over
CHANGES_AHEAD_MAX: Final = (
    10_000  # unread changes of a mirror's iteration; beyond, only the newest of each path is kept
)

assert ITEMS_AHEAD_MIN < ITEMS_AHEAD_MAX, "else reading of a stream never resumes"
