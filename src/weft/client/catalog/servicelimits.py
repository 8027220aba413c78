"""Every number of a service and of the search for a broker, with its unit and its reason."""

from typing import Final

BEACON_PORT: Final = 5_245  # UDP port to which beacons are sent (BEA-002)
DISCOVERY_S: Final = 10.0  # how long a search for a broker lasts before it counts as failed
REGISTER_S: Final = 10.0  # how long `async with service` waits
DATAGRAM_BYTES_MAX: Final = 1_400

CALLS_MAX: Final = 1_000  # at the same time; further calls are answered `busy` (CAT-070)
CALLS_PER_TURN: Final = 64  # handled in one turn; then other tasks of the loop run
FRAME_BYTES_MAX: Final = 1 << 20  # of a call; libzmq disconnects a peer that sends a longer one
FRAMES_MAX: Final = 64  # of a call
QUEUE_MAX: Final = 10_000  # messages waiting in a socket
ERROR_CHARS_MAX: Final = 1_024  # of the text of an error in an answer

GRACE_S: Final = 0.2  # time for running calls to end by themselves when a service stops
CANCEL_S: Final = 0.1  # time for cancelled calls after that
LINGER_MS: Final = 150  # time for the last messages to leave
STOP_S: Final = 0.5  # time for the whole stop (CAT-023)

COPIES_MAX: Final = 1_000  # of messages waiting in the socket of a tap
COPIES_TOGETHER: Final = 100  # sent at once: each time wakes a thread here, the broker, and whoever reads the tap
COPY_WITHIN_S: Final = 0.01  # until fewer are sent

FIRST_WORDS_S: Final = 1.0  # how long first publications wait for the catalog's subscription
FIRST_WORDS_MAX: Final = 1_000  # publications that wait so; beyond that the oldest are dropped
SETTLE_S: Final = 0.02  # time in which a subscriber of several topics sends all its subscriptions

RING_MAX: Final = 1_000  # log records that the broker may request again (LOG-006)
RECORDS_WAITING_MAX: Final = 10_000  # log records of other threads that the loop has not taken yet
RECORDS_PER_TURN: Final = 256  # log records published in one turn of the loop: calls are answered in between
MESSAGE_CHARS_MAX: Final = 16_384  # of one log record
FIELDS_MAX: Final = 64  # extra fields of one log record

assert COPIES_TOGETHER <= COPIES_MAX, "else some are dropped each time"
assert GRACE_S + CANCEL_S + LINGER_MS / 1_000 < STOP_S, "else a service does not stop in time"
