"""The numbers of the export core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

RANGE_LSNS: Final = 500  # records of one range: what a crash makes the receiver hear again
PACE_NS: Final = 1 * SECOND  # between two ranges while nothing is behind: a request a second is cheap for both sides
BACK_OFF: Final = BackOff(1 * SECOND, 30 * SECOND, 0.2)  # a receiver that is back is heard of within half a minute
LATE_NS: Final = 60 * SECOND  # the shell answers within 20 s, unless it hangs
WARM_NS: Final = (
    120 * SECOND
)  # read again after a start: a rate needs the sample before, of metrics up to a minute apart
MARK_NS: Final = 10 * SECOND  # between two remembered places, so 12 of them are kept
PLACE_WITHIN_NS: Final = 500 * MILLISECOND  # no effect waits for it: without it a range is sent twice
WHY_CHARS_MAX: Final = 200  # of a reason, which may be text that a server sent
HOLD_PERCENT: Final = 50  # of the journal's bytes: beyond, a receiver that is away makes room

assert 2 * BACK_OFF.first_ns < LATE_NS, "a try is not repeated while it may still succeed"
assert WARM_NS > MARK_NS, "there is a place to remember"
