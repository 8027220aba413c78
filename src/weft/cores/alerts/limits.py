"""The numbers of the alerts core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

ACTIVE_MAX: Final = 10_000  # one for each node of the largest fleet; some 10 MB
ENDED_MAX: Final = 100  # shown as the last that ended; the lake has all
NOTICES_MAX: Final = 1_000  # that wait for one sink: what a person would still read
RETRY_NS: Final = 5 * SECOND  # a server that starts anew is back after some seconds
RETRY_MAX_NS: Final = 600 * SECOND  # doubled up to this: an alert is news for longer than ten minutes
LATE_NS: Final = 60 * SECOND  # the shell answers within its own 30 s, unless it hangs
GIVE_UP_MS: Final = 24 * 3_600 * 1_000  # of waiting: who reads it after a day looks at `weft alerts` first
QUIET_NS: Final = 3_600 * SECOND  # between two events about the same sink
WHY_CHARS_MAX: Final = 200  # of a reason, which may be what a server answered

assert RETRY_NS < RETRY_MAX_NS < QUIET_NS, "a sink that is down is said once an hour, not at every try"
assert LATE_NS > 2 * RETRY_NS, "a try is not repeated while it may still succeed"
