"""How long a test waits for what must come. Only a failure takes so long: a machine may be busy, and then everything is late."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 120.0
PATIENCE_MS: Final = 120_000
TRY_S: Final = 0.5
"""Given to a try that shall have no answer: a busy machine connects a socket within it."""


def until(holds: Callable[[], object], what: str) -> None:
    """Wait, bounded, until something holds that another process tells nobody. To ask all the time would keep it from its work."""
    ends_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_at, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)  # tidy: other processes tell nobody; bounded above
