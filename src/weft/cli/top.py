"""`weft top`: the console's first screen in a terminal, from the same picture (CON-006)."""

import contextlib
import http.client
import json as json_module
import select
import sys
import termios
import tty
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.errors import UserError
from weft.cli.asking import LOCAL, text_of
from weft.cli.kit.options import Flag
from weft.cli.which import PORT, AskedPort

PATIENCE_S: Final = 10.0
"""Longest wait for the next line of a console; a running one sends a line each second."""
ENDS: Final = "qQ\x1b"


def top(*, port: AskedPort = PORT, once: Flag = False, json: Flag = False) -> int:
    """Watch the whole fleet in the terminal: who is in trouble, what is missing, CPU, memory, disk, the busiest process.

    It is the first screen of weft console. Ask the root: other nodes only know what passes through them. q ends it.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        once: show it once, and end; the default if standard output is no terminal.
        json: the picture once, as JSON.
    """
    if json:
        print(text_of(port, "console/state.json").strip())
        return 0
    from weft.cli.kit.console import console
    from weft.cli.top_view import Screen, view

    screen, out = Screen(), console()
    if once or not out.is_terminal:
        screen.take(json_module.loads(text_of(port, "console/state.json")))
        out.print(view(screen, width=out.width))
        return 0
    from rich.live import Live

    with _keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:
        for picture in pictures(port):
            screen.take(picture)
            live.update(view(screen, width=out.width, height=out.height), refresh=True)
            if pressed():
                break
    return 0


def pictures(port: int) -> Iterator[dict[str, Any]]:
    """The whole picture of the console at `port`, then its changes; UserError `unavailable` when they end."""
    address = f"http://{LOCAL}:{port + HTTP_PORT}/console/live"
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as stream:
            yield from (json_module.loads(line[6:]) for line in stream if line.startswith(b"data: {"))
    except (urllib.error.URLError, OSError, ValueError, http.client.HTTPException):
        pass
    raise UserError("unavailable", f"the node at {LOCAL}:{port} does not answer, or has stopped", "weft up, or --port")


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """A function that says whether a key was pressed that ends the command; keys are not echoed meanwhile."""
    if not sys.stdin.isatty():
        yield lambda: False
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)

    def pressed() -> bool:
        return bool(select.select([sys.stdin], [], [], 0)[0]) and sys.stdin.read(1) in ENDS

    try:
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
