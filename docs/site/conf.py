"""How Sphinx makes the site: `scripts/site`. The pages stay plain Markdown that is read in the tree as well."""  # noqa: INP001  # Sphinx reads it, nobody imports it

import re
import tomllib
from pathlib import Path
from typing import Any

ABOUT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]

project = "Weft"
version = release = ABOUT.get("version", "")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["docs/site", "examples"]
html_theme = "furo"
html_title = "Weft"
html_favicon = "../../src/weft/shell/console/pages/icon.svg"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
highlight_language = "none"
pygments_style, pygments_dark_style = "default", "native"
suppress_warnings = ["misc.highlighting_failure"]
"""A block of a terminal, or of JSON with `…` in it, is coloured as far as it can be."""


LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)\)")


def _directories(app: Any, page: str, source: list[str]) -> None:
    """Links to directories, which the tree can show and a site cannot, are their text."""
    place = (Path(app.srcdir) / page).parent
    source[0] = LINK.sub(lambda link: link[1] if (place / link[2]).is_dir() else link[0], source[0])


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("source-read", _directories)
