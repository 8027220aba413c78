"""The numbers of the configuration core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

HEARTBEAT_NS: Final = 2 * SECOND  # CFG-074
DEAD_AFTER: Final = 5  # one lost beat is weather, five are news (REC-001)
