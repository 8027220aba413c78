"""The exit status of every noun, and the function that reports errors. The numbers are those of `weft.base.errors`."""

import sys
from typing import Final

from weft.base.errors import EXIT_CODES
from weft.cli.kit.text import clean

DONE: Final = EXIT_CODES["ok"]
NOT_SO: Final = EXIT_CODES["violated"]
"""Not found, a condition failed, or a check found something."""
USAGE: Final = EXIT_CODES["usage"]
UNREACHABLE: Final = EXIT_CODES["unavailable"]
DENIED: Final = EXIT_CODES["refused"]
UNCONFIRMED: Final = EXIT_CODES["unconfirmed"]
VOID: Final = EXIT_CODES["void"]
"""No verdict: the run did not have the circumstances that the promise is about."""

INTERRUPTED: Final = 130  # as in shells: 128 plus the signal's number


def complain(text: str, status: int) -> int:
    """Print what went wrong to standard error, without escape sequences; returns the exit status."""
    notice(text)
    return status


def notice(text: str) -> None:
    """Print a note to standard error; it is written when this returns."""
    print(f"weft: {clean(text, keeps=chr(10))}", file=sys.stderr, flush=True)
