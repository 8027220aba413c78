"""Decides which lake a command uses."""

import os
from pathlib import Path

from weft.base.errors import UserError
from weft.lake.objects import ObjectPath, lake_path


def home_of(lake: Path | None) -> Path:
    """The directory of `--lake`, else $WEFT_LAKE, else ./lake. UserError `not-local` for a lake in an object store."""
    place = place_of(lake)
    if isinstance(place, ObjectPath):
        text = f"this works on a directory, and {place} is in an object store"
        raise UserError("not-local", text, f"weft lake fetch {place} --lake DIR, then this with --lake DIR")
    return place


def place_of(lake: Path | None) -> Path:
    """The same, wherever the lake is. UserError `bad-place`, `no-keys`."""
    return lake_path(lake or Path(os.environ.get("WEFT_LAKE") or "lake"))
