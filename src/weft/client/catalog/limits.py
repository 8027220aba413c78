"""Every number of the catalog's client library, with its unit and its reason."""

from typing import Final

PORT: Final = 5_246  # of a broker, if no other is given
ANSWER_S: Final = 1.0  # until the same is asked on a new socket (CAT-024)
TRIES: Final = 3  # CAT-024
CALL_S: Final = 5.0  # of a call to a service: it may have to work for its answer
LOCAL_S: Final = 0.3  # until a broker on this machine has answered; then there is none
BEACON_S: Final = 1.2  # until a beacon is heard: one comes each second, and a busy machine may be late
FRAME_BYTES_MAX: Final = 256 << 20  # one answer: 100,000 records of 2.5 KiB
FRAMES_MAX: Final = 100_000  # of one answer: a thousand values of a hundred frames
QUEUE_MAX: Final = 10_000  # messages that wait in a socket
ASKED_MAX: Final = 1_000  # unanswered requests of one client; further ones wait
LINES_IDLE_MAX: Final = 8  # sockets to services that are kept for the next call
SHARED_S: Final = 0.1  # from a publisher's greeting until it certainly has our subscription
SETTLE_S: Final = 0.02  # after the broker's answer: by then everything published before it has arrived
REDIAL_S: Final = 1.0  # from a lost connection to a new one; where libzmq reconnects itself, it needs 100 ms
CONNECT_S: Final = 2.0  # how long to wait for a connection to a publisher
SILENT_S: Final = 3.0  # without a tick, three of which should have come, the broker counts as unreachable (CAT-042)
BACK_OFF_MIN_S: Final = 0.25
BACK_OFF_MAX_S: Final = 8.0
CHANGES_AHEAD_MAX: Final = 10_000  # unread changes of a watch; beyond, only the newest of each instance is kept
TOLD_MAX: Final = 10_000  # reported log records that are remembered, to recognise one that comes twice
VALUES_AHEAD_MAX: Final = 10_000  # unread values of a subscription; beyond, the oldest is dropped and counted
