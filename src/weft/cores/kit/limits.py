"""The numbers that all cores share, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

QUIET_NS: Final = 60 * SECOND  # shortest time between two events about one thing that a peer can cause at will
QUIET_MAX: Final = 1_000  # things remembered for QUIET_NS; a stranger can invent names, so the oldest entry is dropped
