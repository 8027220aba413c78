"""The survivors that are known: docs/mutants.md, one entry each, with the reason why no test kills it."""

import re
from pathlib import Path
from typing import Final

PAGE: Final = "docs/mutants.md"
ENTRY: Final = re.compile(r"^- (`[^`]+` `[^`]*`, [a-z ]+: `[^`]*` becomes `[^`]*`)\n((?:  .+\n)+)", re.MULTILINE)


def read(root: Path) -> dict[str, str]:
    """Why, by the key of each mutant."""
    page = root / PAGE
    return entries(page.read_text("utf-8")) if page.exists() else {}


def entries(text: str) -> dict[str, str]:
    return {key: " ".join(why.split()) for key, why in ENTRY.findall(text)}
