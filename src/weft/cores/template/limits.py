"""The numbers of the template core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

PING_NS: Final = 1 * SECOND  # people notice an absence after a few seconds
PING_SHARE: Final = 0.1  # at random, so that a thousand ends started together do not ping together
SILENCE_NS: Final = 5 * SECOND  # one lost ping is normal, four are not

assert (1 + PING_SHARE) * PING_NS * 4 <= SILENCE_NS, "fewer than four lost pings must not part two ends"
