"""The numbers of the service core, each with unit and reason (CAT-023)."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

INTERVAL_MS: Final = 1_000  # I
INTERVAL_MS_MAX: Final = 3_600_000  # the longest interval that a broker may request (CAT-013)
LIVENESS: Final = 3  # L, until the broker states another
LIVENESS_MAX: Final = 10
BEAT_SHARE: Final = 0.05  # a thousand services started together must not beat together (BEA-010)
DEAF_TENTHS: Final = 15  # of the longer of I and the beacon's interval: after this silence beats also go over TCP

ANSWER_NS: Final = 2 * SECOND  # until a registration has its answer (CAT-023)
UPDATE_TRIES: Final = 3  # an existing broker never answers an update
RETRY: Final = BackOff(250 * MILLISECOND, 8 * SECOND, share=0.2)
RETURN_NS_MAX: Final = 8 * SECOND  # even with an interval of an hour, no service may be away for an hour (BEA-021)
PAUSE_NS: Final = 500 * MILLISECOND  # a process that stood still longer has missed messages for that reason

BEACONS_LOST_MAX: Final = 3  # in a row; then a broker counts as one without a beacon (BEA-020)
BROKERS_MAX: Final = 16  # found by beacon; the one not heard for longest is dropped
BEACON_NS: Final = 5 * SECOND  # a broker without a beacon for so long is not called
EPOCHS_MAX: Final = 16  # ended runs of brokers that are remembered, so that a late beacon restarts nothing
UPDATES_MAX: Final = 1_000  # changes that wait for the broker
TEXT_MAX: Final = 1_024  # characters of any text of a broker
PORT_MAX: Final = 65_535

TAPS_MAX: Final = 8  # the maximum of a broker, too
TAP_REPORT_NS: Final = SECOND
TAP_SILENCE_NS: Final = 3 * SECOND  # of the monitor (MON-005)
COPIES_WAITING_MAX: Final = 1_000  # noted and not yet sent; further copies are counted as dropped (MON-004)
