"""The numbers that all cores share, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

QUIET_NS: Final = 60 * SECOND  # between two events about the same thing that a peer can provoke at will
QUIET_MAX: Final = 1_000  # things remembered for that; a stranger can invent names, so the oldest is forgotten
