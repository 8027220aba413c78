"""The two pages of the board, each one file of HTML that contains its style and its script.

The Content-Security-Policy names both by their hash, so a browser runs nothing else. Start with `pages_of`.
"""

import base64
import hashlib
import html
from pathlib import Path
from typing import Final, NamedTuple

PLACE: Final = Path(__file__).parent
STYLE, SCRIPT, TOKEN, OPEN = "/* style */", "/* script */", "{{token}}", "{{open}}"  # placeholders in a page


class Page(NamedTuple):
    """A page, and what it may do (Content-Security-Policy)."""

    body: bytes
    policy: str


def pages_of(token: str, reached_at: str = "") -> dict[str, Page]:
    """Pages by path. `token` is included in the operators' page; if it is empty, the page asks for it.

    `reached_at`: where others reach an open fabric, shown as a warning at the top; empty: no warning (SEC-003).
    """
    warning = f"Open fabric: without keys, whoever reaches {reached_at} can pose as any node and change everything"
    bar = warning if reached_at else ""
    return {"/": _page("viewer", "", bar), "/entry": _page("entry", token, bar)}


def _page(name: str, token: str, bar: str) -> Page:
    style, script = (
        "\n".join((PLACE / f"{part}.{kind}").read_text("utf-8") for part in ("common", name)) for kind in ("css", "js")
    )
    text = (PLACE / f"{name}.html").read_text("utf-8").replace(TOKEN, html.escape(token))
    text = text.replace(OPEN, html.escape(bar))
    body = text.replace(STYLE, style).replace(SCRIPT, script).encode()
    policy = (
        f"default-src 'self'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(body, policy)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
