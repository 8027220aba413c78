"""Every number of the client library, with its unit and its reason."""

from typing import Final

BATCH_MESSAGES: Final = 64  # of one multipart (CLI-008)
BATCH_BYTES: Final = 256 << 10
BATCH_FRAMES: Final = 256  # payload frames of one multipart (CLI-003)
PAYLOAD_BYTES_MAX: Final = 1 << 20  # all frames of one message: a node takes no more
FRAMES_MAX: Final = 16
TYPE_CHARS_MAX: Final = 64
NAME_CHARS_MAX: Final = 64  # of one client
TIMEOUT_MS_MAX: Final = 3_600_000  # for one message: the longest that a registration may ask for
AWAY_S: Final = 600.0  # how long a confirming reader may stay away: an update and a reboot of a machine take less
WINDOW_MAX: Final = 65_536  # unanswered messages of a handler: the most that a registration may ask for
NODE_BYTES_MAX: Final = 128  # of a name or id in a destination; the node judges its content
WHY_BYTES_MAX: Final = 240  # of a reason: one header of 64 KiB holds 64 of them

MULTIPARTS_PER_TURN: Final = 16  # read in one turn of the loop, 1,024 messages at most; then other tasks run
CALLS_PER_TURN: Final = 256  # of an `async` handler that never waits; then other tasks run
BUSY: Final = 500  # unread messages; beyond that one multipart is read per turn, so that a quick handler keeps up
COPIES_MAX: Final = 1_000  # copies for a slow handler that are kept; the node's own bound (CHN-018)
COPIES_BYTES_MAX: Final = 8 << 20

HELLO_S: Final = 10.0  # until hello is answered: a busy Raspberry Pi syncs its disk for seconds
BACK_OFF_MIN_S: Final = 0.1
BACK_OFF_MAX_S: Final = 1.0  # a hello costs nothing on the same machine, and what is not read meanwhile is lost
TICK_MIN_S: Final = 0.001  # shortest pause between two checks for silence

assert BATCH_MESSAGES * (WHY_BYTES_MAX + 32) < 64 << 10, "else the reasons of one batch do not fit into a header"
assert CALLS_PER_TURN > BATCH_MESSAGES, "else reading outruns a quick handler, and copies are lost"
assert BUSY + BATCH_MESSAGES < COPIES_MAX, "else copies are lost before reading slows down"
