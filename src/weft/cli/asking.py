"""How the command line asks a running node: its http pages on loopback."""

import json
import urllib.error
import urllib.request
from typing import Any, Final

from weft.base.errors import UserError

HTTP_PORT: Final = 6
PATIENCE_S: Final = 2.0


def status_of(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    """The status of the node whose port block begins at `port`; UserError `unavailable` if none answers."""
    try:
        with urllib.request.urlopen(
            f"http://{host}:{port + HTTP_PORT}/status", timeout=PATIENCE_S
        ) as answer:  # http only, built here
            told: dict[str, Any] = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        raise UserError(
            "unavailable",
            f"no node answers at {host}:{port}",
            f"weft up, or weft status --port N (asked port {port + HTTP_PORT})",
        ) from None
    return told


def try_status(port: int) -> dict[str, Any] | None:
    """As `status_of`, None where nobody answers."""
    try:
        return status_of(port)
    except UserError:
        return None
