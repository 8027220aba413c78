"""Which lake a command means."""

import os
from pathlib import Path


def home_of(lake: Path | None) -> Path:
    """What `--lake` says, else $WEFT_LAKE, else ./lake."""
    return lake or Path(os.environ.get("WEFT_LAKE") or "lake")
