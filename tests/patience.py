"""How long a test waits for what must come. Only a failure takes so long: a machine may be busy, and then everything is late."""

from typing import Final

PATIENCE_S: Final = 120.0
PATIENCE_MS: Final = 120_000
