"""The numbers of the measurement core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import DAY
from weft.wire.samples import BODY_BYTES_MAX, LABELS_MAX, ROWS_MAX, SERIES_MAX

RATE_MIN_NS: Final = 100 * MILLISECOND  # faster belongs into the program that is measured (MEA-004)
RATE_MAX_NS: Final = DAY  # slower than a day nobody would notice that it stopped
TIMEOUT_NS: Final = 30 * SECOND  # of `once` and `on-demand`, which have no rate to take the half of
FLUSH_NS: Final = 1 * SECOND  # a batch waits no longer for its first row (CFG-074)
METRICS_MAX: Final = 1_000  # of one node
PARAM_BYTES_MAX: Final = 256  # travels as a label of every series
HELD_ROWS_MAX: Final = 100_000  # a timed threshold holds no more: some 10 MB; then it sends early, and loses nothing
LINES_SPARE: Final = 64  # lines of vanished processes and disks that may wait for a clean-up
STEP_MIN_NS: Final = 200 * MILLISECOND  # less is weather of the two clocks, and no rate shows it
STEP_SHARE: Final = 10  # and one tenth of the time since the last look: a clock may drift by 5 % (SIM-003)
ALERTS_MAX: Final = 256  # conditions of one node: each is compared with every sample of its metric
ALERT_FOR_MAX_NS: Final = 7 * DAY  # what has to hold for longer is no alert but a report
ALERT_TEXT_BYTES_MAX: Final = 200  # stands in an event, a mail's subject, a line of `weft alerts`
ALERT_LIMIT_MAX: Final = 10**18  # fits 64 bits, which all who read an event have
ALERTS_PENDING_MAX: Final = 1_024  # series that wait for their `for`; with labels some 1 MB
WHY_BYTES_MAX: Final = 200  # of a reason in an event
FOREIGN_SOURCES_MAX: Final = 256  # nodes that speak DATA to this one; who has more gives them a collector of Weft
FOREIGN_SERIES_MAX: Final = 4_096  # of all of them; with 6 KB of labels each 24 MB
FOREIGN_SERIES_OF_SOURCE_MAX: Final = 512  # so that one cannot take the place of all others
FOREIGN_STAMPS_MAX: Final = 64  # of one name, by which repeats are known: a minute at one a second
FOREIGN_ROWS_MAX: Final = 2 * FOREIGN_SERIES_MAX  # of one flush: all series each second, and as much to catch up
FOREIGN_SERIES_COST: Final = 6_000  # bytes of memory of a series besides its names: most for the stamps of repeats
FOREIGN_PERCENT: Final = 60  # of the core's budget, for foreign series: beyond, new ones are refused
FOREIGN_QUIET_NS: Final = 600 * SECOND  # who was not heard for so long makes room

assert RATE_MIN_NS <= FLUSH_NS, "a batch holds at least one tick of the fastest metric"
assert HELD_ROWS_MAX >= ROWS_MAX, "what is held is sent in whole batches"
assert SERIES_MAX * 8 <= BODY_BYTES_MAX, "the smallest definitions of all series fit one body"
assert LABELS_MAX >= 8, "three labels of a meter, its parameter, and those of an aggregate"
assert FOREIGN_SERIES_OF_SOURCE_MAX < FOREIGN_SERIES_MAX < SERIES_MAX, "foreign series are the smaller part"
