"""Every number of the client library, with its unit and its reason."""

from typing import Final

BATCH_MESSAGES: Final = 64  # of one multipart (CLI-008)
BATCH_BYTES: Final = 256 << 10
BATCH_FRAMES: Final = 256  # payload frames of one multipart (CLI-003)
PAYLOAD_BYTES_MAX: Final = 1 << 20  # all frames of one message: a node takes no more
FRAMES_MAX: Final = 16
TYPE_CHARS_MAX: Final = 64
NAME_CHARS_MAX: Final = 64  # of a client
TIMEOUT_MS_MAX: Final = 3_600_000  # of a message in hand: what the node reads as a registration
AWAY_S: Final = 600.0  # that a confirming reader may stay away: a machine's update and its reboot
WINDOW_MAX: Final = 65_536  # messages in hand, as above
NODE_BYTES_MAX: Final = 128  # a name or an id in a destination; what it may be is judged by the node
WHY_BYTES_MAX: Final = 240  # 64 reasons stand in one header of 64 KiB

MULTIPARTS_PER_TURN: Final = 16  # then others have the loop: 1,024 messages at most
CALLS_PER_TURN: Final = 256  # of a waiting handler that never waits
BUSY: Final = 500  # messages that wait for a handler: then one multipart per turn, so that a quick handler keeps up
COPIES_MAX: Final = 1_000  # copies that wait for a slow handler; the node's own bound (CHN-018)
COPIES_BYTES_MAX: Final = 8 << 20

HELLO_S: Final = 10.0  # until somebody answers hello: a busy Raspberry Pi syncs its disk for seconds
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 1.0  # a hello costs nothing on the same machine, and what is not read meanwhile is lost
TICK_MIN_S: Final = 0.001

assert BATCH_MESSAGES * (WHY_BYTES_MAX + 32) < 64 << 10, "else a batch of reasons has no header that holds it"
assert CALLS_PER_TURN > BATCH_MESSAGES, "else a handler that is as quick as reading loses copies all the same"
assert BUSY + BATCH_MESSAGES < COPIES_MAX, "else it is noticed too late"
