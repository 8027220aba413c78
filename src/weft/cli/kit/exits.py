"""The exit status of every noun, and the one way to complain. The numbers are those of `weft.base.errors`."""

import sys
from typing import Final

from weft.base.errors import EXIT_CODES
from weft.cli.kit.text import clean

DONE: Final = EXIT_CODES["ok"]
NOT_SO: Final = EXIT_CODES["violated"]
"""Not found, a condition failed, a check found something."""
USAGE: Final = EXIT_CODES["usage"]
UNREACHABLE: Final = EXIT_CODES["unavailable"]
DENIED: Final = EXIT_CODES["refused"]
UNCONFIRMED: Final = EXIT_CODES["unconfirmed"]
VOID: Final = EXIT_CODES["void"]
"""Nothing can be said: a run had none of the circumstances that its promise is about."""


def complain(text: str, status: int) -> int:
    """Say what went wrong on the standard error, in lines that move no cursor; the exit status."""
    notice(text)
    return status


def notice(text: str) -> None:
    """Say something beside the answer, on the standard error; it has left when this returns."""
    print(f"weft: {clean(text, keeps=chr(10))}", file=sys.stderr, flush=True)
