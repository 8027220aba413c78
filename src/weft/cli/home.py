"""Decides which lake a command uses."""

import os
from pathlib import Path


def home_of(lake: Path | None) -> Path:
    """The value of `--lake`, else $WEFT_LAKE, else ./lake."""
    return lake or Path(os.environ.get("WEFT_LAKE") or "lake")
