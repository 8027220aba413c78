"""The sources of this tree as another version: what one runs whose node is to be upgraded."""

import re
import shutil
from pathlib import Path
from typing import Final

from tests.house.requirements import ROOT

OLDER: Final = "0.0.9"


def older_sources(place: Path) -> Path:
    """A copy of `src` below a folder, which says an older version of itself."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    file = place / "src/weft/__init__.py"
    text, count = re.subn(
        r"^__version__ = .*$", f'__version__ = "{OLDER}"', file.read_text("utf-8"), flags=re.MULTILINE
    )
    assert count == 1
    file.write_text(text, "utf-8")
    return place / "src"
