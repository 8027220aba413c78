"""The numbers of the service core, each with unit and reason (CAT-023)."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

INTERVAL_MS: Final = 1_000  # I
INTERVAL_MS_MAX: Final = 3_600_000  # what a broker may ask for at most (CAT-013)
LIVENESS: Final = 3  # L, until the broker says another
LIVENESS_MAX: Final = 10
BEAT_SHARE: Final = 0.05  # a thousand services that were started together must not beat together (BEA-010)
DEAF_TENTHS: Final = 15  # of the longer of I and the beacon's interval, without a word: then beats go over TCP, too

ANSWER_NS: Final = 2 * SECOND  # until a registration has its answer (CAT-023)
UPDATE_TRIES: Final = 3  # an existing broker answers no update at all
RETRY: Final = BackOff(250 * MILLISECOND, 8 * SECOND, share=0.2)
RETURN_NS_MAX: Final = 8 * SECOND  # with an interval of an hour nobody may be away for an hour (BEA-021)
PAUSE_NS: Final = 500 * MILLISECOND  # who stood still for longer has heard nothing because of that

BEACONS_LOST_MAX: Final = 3  # in a row; then a broker is one that is not heard by beacon (BEA-020)
BROKERS_MAX: Final = 16  # that were heard by beacon and may be called; the one that was heard longest ago is forgotten
BEACON_NS: Final = 5 * SECOND  # a broker that has not called for so long is not called either
EPOCHS_MAX: Final = 16  # runs of brokers that are over: a beacon that comes late restarts nothing
UPDATES_MAX: Final = 1_000  # that wait for the broker
TEXT_MAX: Final = 1_024  # characters of anything that a broker says in words
PORT_MAX: Final = 65_535

TAPS_MAX: Final = 8  # as a broker has at most
TAP_REPORT_NS: Final = SECOND
TAP_SILENCE_NS: Final = 3 * SECOND  # of the monitor (MON-005)
COPIES_WAITING_MAX: Final = 1_000  # that were noted and not yet said; what finds no room is counted (MON-004)
