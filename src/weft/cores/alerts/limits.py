"""The numbers of the alerts core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

ACTIVE_MAX: Final = 10_000  # one for each node of the largest fleet; some 10 MB
ENDED_MAX: Final = 100  # kept to show what ended last; the lake has all
NOTICES_MAX: Final = 1_000  # waiting for one sink: more than a person would still read
RETRY_NS: Final = 5 * SECOND  # a server that restarts is back after some seconds
RETRY_MAX_NS: Final = 600 * SECOND  # the pause doubles up to this: an alert stays relevant for longer than ten minutes
LATE_NS: Final = 60 * SECOND  # the shell answers within 30 s, unless it hangs
GIVE_UP_MS: Final = 24 * 3_600 * 1_000  # then a notice is given up: a day later people read `weft alerts` first
QUIET_NS: Final = 3_600 * SECOND  # between two events about the same sink
WHY_CHARS_MAX: Final = 200  # of a reason, which may be text that a server sent

assert RETRY_NS < RETRY_MAX_NS < QUIET_NS, "a sink that is down is said once an hour, not at every try"
assert LATE_NS > 2 * RETRY_NS, "a try is not repeated while it may still succeed"
