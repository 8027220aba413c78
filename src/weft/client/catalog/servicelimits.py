"""Every number of a service and of looking for a broker, with its unit and its reason."""

from typing import Final

BEACON_PORT: Final = 5_245  # where beacons are heard (BEA-002)
DISCOVERY_S: Final = 10.0  # until somebody who looks for a broker is told that there is none
REGISTER_S: Final = 10.0  # until `async with service` gives up
DATAGRAM_BYTES_MAX: Final = 1_400

CALLS_MAX: Final = 1_000  # under way at once; the next one is told `busy` (CAT-070)
CALLS_PER_TURN: Final = 64  # then the others of the loop have a turn
FRAME_BYTES_MAX: Final = 1 << 20  # of a call; libzmq drops who says more
FRAMES_MAX: Final = 64  # of a call
QUEUE_MAX: Final = 10_000  # messages that wait in a socket
ERROR_CHARS_MAX: Final = 1_024  # of the text of an error that callers are told

GRACE_S: Final = 0.2  # calls under way may end by themselves so long when a service stops
CANCEL_S: Final = 0.1  # and those that were cancelled so long after it
LINGER_MS: Final = 150  # last words have so long to leave
STOP_S: Final = 0.5  # all of it (CAT-023)

COPIES_MAX: Final = 1_000  # of messages, that wait in the socket of a tap

FIRST_WORDS_S: Final = 1.0  # what is published at once waits so long for the catalog's subscription
FIRST_WORDS_MAX: Final = 1_000  # publications that wait so; beyond them the oldest are dropped
SETTLE_S: Final = 0.02  # a subscriber of several topics has said all of them by then

RING_MAX: Final = 1_000  # log records that the broker may ask for again (LOG-006)
RECORDS_WAITING_MAX: Final = 10_000  # log records of other threads that the loop has not taken yet
RECORDS_PER_TURN: Final = 256  # log records that are published in one turn of the loop: calls are answered between
MESSAGE_CHARS_MAX: Final = 16_384  # of one log record
FIELDS_MAX: Final = 64  # extra fields of one log record

assert GRACE_S + CANCEL_S + LINGER_MS / 1_000 < STOP_S, "else a service does not stop in time"
