"""The numbers of the measurement core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import DAY
from weft.wire.samples import BODY_BYTES_MAX, LABELS_MAX, ROWS_MAX, SERIES_MAX

RATE_MIN_NS: Final = 100 * MILLISECOND  # a faster rate belongs into the measured program itself (MEA-004)
RATE_MAX_NS: Final = DAY  # with a slower rate nobody would notice that it stopped
TIMEOUT_NS: Final = 30 * SECOND  # for `once` and `on-demand`, which have no rate to halve
FLUSH_NS: Final = 1 * SECOND  # longest time that a batch waits after its first row (CFG-074)
METRICS_MAX: Final = 1_000  # of one node
PARAM_BYTES_MAX: Final = 256  # travels as a label of every series
HELD_ROWS_MAX: Final = 100_000  # a timed threshold holds no more, some 10 MB; beyond, it sends early and loses nothing
LINES_SPARE: Final = 64  # lines of vanished processes and disks that wait for a clean-up
STEP_MIN_NS: Final = 200 * MILLISECOND  # smaller steps are normal jitter between the clocks
STEP_SHARE: Final = 10  # and one tenth of the time since the last look: a clock may drift by 5 % (SIM-003)
ALERTS_MAX: Final = 256  # conditions of one node: each sample is compared with all conditions of its metric
ALERT_FOR_MAX_NS: Final = 7 * DAY  # a condition over a longer time belongs into a report
ALERT_TEXT_BYTES_MAX: Final = 200  # used in an event, a mail's subject, a line of `weft alerts`
ALERT_LIMIT_MAX: Final = 10**18  # fits 64 bits, which all who read an event have
ALERTS_PENDING_MAX: Final = 1_024  # series waiting for their `for`; with labels some 1 MB
WHY_BYTES_MAX: Final = 200  # of a reason in an event
FOREIGN_SOURCES_MAX: Final = 256  # nodes that send DATA to this one; for more, use a collector of Weft beside them
FOREIGN_SERIES_MAX: Final = 4_096  # of all sources; with 6 KB of labels each 24 MB
FOREIGN_SERIES_OF_SOURCE_MAX: Final = 512  # so that one source cannot take all places
FOREIGN_STAMPS_MAX: Final = 64  # of one name, to recognise repetitions: a minute at one per second
FOREIGN_ROWS_MAX: Final = 2 * FOREIGN_SERIES_MAX  # of one flush: all series each second, and as many to catch up
FOREIGN_SERIES_COST: Final = 6_000  # bytes of memory of a series besides its names: mostly stamps
FOREIGN_PERCENT: Final = 60  # of the core's budget, for foreign series: beyond, new ones are refused
FOREIGN_QUIET_NS: Final = 600 * SECOND  # a source not heard for this long makes room

assert RATE_MIN_NS <= FLUSH_NS, "a batch holds at least one tick of the fastest metric"
assert HELD_ROWS_MAX >= ROWS_MAX, "what is held is sent in whole batches"
assert SERIES_MAX * 8 <= BODY_BYTES_MAX, "the smallest definitions of all series fit one body"
assert LABELS_MAX >= 8, "three labels of a meter, its parameter, and those of an aggregate"
assert FOREIGN_SERIES_OF_SOURCE_MAX < FOREIGN_SERIES_MAX < SERIES_MAX, "foreign series are the smaller part"
