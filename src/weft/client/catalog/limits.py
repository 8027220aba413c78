"""Every number of the catalog's client library, with its unit and its reason."""

from typing import Final

PORT: Final = 5_246  # of a broker that says no other
ANSWER_S: Final = 1.0  # until the same is asked on a new socket (CAT-024)
TRIES: Final = 3  # CAT-024
CALL_S: Final = 5.0  # of a call to a service: it may have to work for its answer
LOCAL_S: Final = 0.3  # until a broker of this machine has answered, or is none
BEACON_S: Final = 1.2  # a beacon comes each second; some slack for a busy machine
FRAME_BYTES_MAX: Final = 256 << 20  # one answer: 100,000 records of 2.5 KiB
FRAMES_MAX: Final = 100_000  # of one answer: a thousand values of a hundred frames
QUEUE_MAX: Final = 10_000  # messages that wait in a socket
ASKED_MAX: Final = 1_000  # requests of one client under way; the rest waits for its turn
LINES_IDLE_MAX: Final = 8  # sockets to services that are kept for the next call
SHARED_S: Final = 0.1  # a publisher has our subscription so long after its greeting, at the latest
SETTLE_S: Final = 0.02  # what was published before the broker answered is here by then
REDIAL_S: Final = 1.0  # from a lost connection to a new one; libzmq needs 100 ms where it reconnects itself
CONNECT_S: Final = 2.0  # until a publisher that cannot be reached is waited for no longer
SILENT_S: Final = 3.0  # without a tick: the broker counts as unreachable (three of CAT-042)
BACK_OFF_MIN_S: Final = 0.25
BACK_OFF_MAX_S: Final = 8.0
CHANGES_AHEAD_MAX: Final = 10_000  # of a watch that is not read: then it begins anew, as a resync
TOLD_MAX: Final = 10_000  # log records by which one that comes twice is known
VALUES_AHEAD_MAX: Final = 10_000  # of a subscription that is not read: then the oldest is dropped and counted
